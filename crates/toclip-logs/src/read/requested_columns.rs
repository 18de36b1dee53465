//! The columns that the caller names, in full or by a part of the name.

use super::role::{ROLES, Role, is_bin_extreme, role_of};
use crate::ReadOptions;

/// The score of a name that contains a name given by the caller.
pub(super) const PARTIAL: u32 = 2;

/// Column names given by the caller.
#[derive(Default)]
pub(super) struct RequestedColumns<'a> {
    /// For each role.
    names: [Option<&'a str>; ROLES.len()],
    /// The step is part of the format.
    own_step: bool,
}

impl<'a> RequestedColumns<'a> {
    pub fn new(options: &'a ReadOptions) -> Self {
        let mut names = [None; ROLES.len()];
        let columns = [&options.step, &options.norm, &options.loss, &options.learning_rate];
        names.iter_mut().zip(columns).for_each(|(given, name)| *given = name.as_deref());
        Self { names, own_step: false }
    }

    /// Declares that the format has a step of its own.
    pub fn fix_step(&mut self, name: &'static str) {
        self.names[Role::Step as usize] = Some(name);
        self.own_step = true;
    }

    /// The name that the caller gave for a role.
    pub fn of(&self, role: Role) -> Option<&'a str> {
        self.names[role as usize].filter(|_| !(self.own_step && role == Role::Step))
    }

    /// The role of a name and its score; names given by the caller come first.
    pub fn role(&self, name: &str) -> Option<(Role, u32)> {
        self.full_role(name).or_else(|| self.partial_role(name))
    }

    /// The role of a name that the caller gave in full, or that is known.
    pub fn full_role(&self, name: &str) -> Option<(Role, u32)> {
        let known = || role_of(name).filter(|(role, _)| self.names[*role as usize].is_none());
        self.given_role(name).or_else(known)
    }

    /// The role of a name that the caller gave in full.
    pub fn given_role(&self, name: &str) -> Option<(Role, u32)> {
        for ((role, _), given) in ROLES.iter().zip(self.names) {
            let Some(given) = given else { continue };
            if name == given {
                return Some((*role, 0));
            }
            if name.eq_ignore_ascii_case(given) || name.ends_with(&format!(" - {given}")) {
                return Some((*role, 1));
            }
        }
        None
    }

    /// The role of a name that contains a name given by the caller.
    pub fn partial_role(&self, name: &str) -> Option<(Role, u32)> {
        if is_bin_extreme(name) || self.names == [None; ROLES.len()] {
            return None;
        }
        let name = name.to_lowercase();
        let part = |given: &str| !given.is_empty() && name.contains(&given.to_lowercase());
        let roles = ROLES.iter().zip(self.names);
        let mut roles = roles.filter(|((role, _), _)| *role != Role::Step || !self.own_step);
        let ((role, _), _) = roles.find(|(_, given)| given.is_some_and(part))?;
        Some((*role, PARTIAL))
    }
}
