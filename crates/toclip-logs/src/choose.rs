//! From named values to rows: which column is the norm, the step, the loss.
//!
//! Formats without a header show their names as they go. The first records are held back until
//! the choice can be made among all their names; then they are handed on, and the rest follows.

use std::collections::HashMap;

use serde::Serialize;

use crate::roles::{Role, role_of};
use crate::words::{list, printable};
use crate::{Error, Options, Result, Row};

/// Records held back before the choice.
const HELD: usize = 4096;
/// Names remembered; a log with more than this has names that are no columns.
const NAMES: usize = 20_000;
/// Longer names are none; remembering them would make memory grow with the log.
const LONGEST: usize = 1 << 10;
const ROLES: usize = Role::ALL.len();

/// A column that was taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// What for.
    pub role: Role,
    /// Its name in the log.
    pub name: String,
    /// Columns that could have been taken instead, best first.
    pub others: Vec<String>,
}

struct Candidate {
    name: String,
    role: usize,
    score: u32,
    /// Rows it stood in; none for a name that is only among the settings of the run.
    rows: u64,
}

pub(crate) struct Chooser<'a> {
    wanted: [Option<&'a str>; ROLES],
    /// The step is the format's own, and was not asked for.
    own_step: bool,
    ids: HashMap<Vec<u8>, Option<u32>>,
    names: Vec<String>,
    candidates: Vec<Candidate>,
    chosen: Option<[Option<u32>; ROLES]>,
    held: Vec<(u32, f64)>,
    ends: Vec<usize>,
    record: Vec<(u32, f64)>,
    pending: Option<Row>,
    /// Settings found outside the rows.
    pub settings: Row,
    /// A record without a step belongs to the step before it, as where each value has its line.
    pub joins: bool,
    visit: &'a mut dyn FnMut(&Row),
}

impl<'a> Chooser<'a> {
    pub fn new(options: &'a Options, visit: &'a mut dyn FnMut(&Row)) -> Self {
        let mut wanted = [None; ROLES];
        let asked = [&options.step, &options.norm, &options.loss, &options.learning_rate];
        for (wanted, asked) in wanted.iter_mut().zip(asked) {
            *wanted = asked.as_deref();
        }
        Self {
            wanted,
            own_step: false,
            ids: HashMap::new(),
            names: Vec::new(),
            candidates: Vec::new(),
            chosen: None,
            held: Vec::new(),
            ends: Vec::new(),
            record: Vec::new(),
            pending: None,
            settings: Row::default(),
            joins: false,
            visit,
        }
    }

    /// The format has a step of its own.
    pub fn fix_step(&mut self, name: &'static str) {
        self.wanted[0] = Some(name);
        self.own_step = true;
    }

    /// The role of a name and how well it fits: what the user asked for comes first.
    pub fn role(&self, name: &str) -> Option<(usize, u32)> {
        for (role, wanted) in self.wanted.iter().enumerate() {
            let Some(wanted) = wanted else { continue };
            if name == *wanted {
                return Some((role, 0));
            }
            if name.eq_ignore_ascii_case(wanted) || name.ends_with(&format!(" - {wanted}")) {
                return Some((role, 1));
            }
        }
        let (role, score) = role_of(name)?;
        let index = Role::ALL.iter().position(|r| *r == role)?;
        self.wanted[index].is_none().then_some((index, score))
    }

    /// The column of this name; `None` for one that says nothing to us.
    pub fn column(&mut self, key: &[u8]) -> Option<u32> {
        if let Some(id) = self.ids.get(key) {
            return *id;
        }
        if self.ids.len() >= NAMES || key.len() > LONGEST {
            return None;
        }
        let name = printable(key);
        let id = self.role(&name).map(|(role, score)| {
            self.candidates.push(Candidate { name: name.clone(), role, score, rows: 0 });
            (self.candidates.len() - 1) as u32
        });
        if self.names.len() < 200 {
            self.names.push(name);
        }
        self.ids.insert(key.to_vec(), id);
        id
    }

    /// Makes the choice among the columns of a header, and says where each role stands.
    pub fn decide_by_header(&mut self) -> [Option<u32>; ROLES] {
        self.candidates.iter_mut().for_each(|c| c.rows = 1);
        self.decide()
    }

    fn decide(&mut self) -> [Option<u32>; ROLES] {
        if let Some(chosen) = self.chosen {
            return chosen;
        }
        let mut chosen = [None; ROLES];
        for (role, chosen) in chosen.iter_mut().enumerate() {
            let of_role = || self.candidates.iter().enumerate().filter(|(_, c)| c.role == role);
            // A name that stands in few rows is a setting printed at the start.
            let most = of_role().map(|(_, c)| c.rows).max().unwrap_or(0);
            *chosen = of_role()
                .filter(|(_, c)| c.rows > 0 && 20 * c.rows >= most)
                .min_by_key(|(_, c)| c.score)
                .map(|(id, _)| id as u32);
        }
        self.chosen = Some(chosen);
        let (held, ends) = (std::mem::take(&mut self.held), std::mem::take(&mut self.ends));
        let mut start = 0;
        for end in ends {
            let row = self.to_row(&held[start..end]);
            self.row(row);
            start = end;
        }
        chosen
    }

    /// Adds a value to the record; of two with the same name the first counts.
    pub fn put(&mut self, id: u32, value: f64) {
        if self.record.len() < 64 {
            self.record.push((id, value));
        }
    }

    /// The record is complete.
    pub fn end_record(&mut self) {
        if self.record.is_empty() {
            return;
        }
        for &(id, _) in &self.record {
            let candidate = &mut self.candidates[id as usize];
            candidate.rows += 1;
            // A better name that comes late changes nothing, a role still empty is filled.
            if let Some(chosen) = &mut self.chosen {
                chosen[candidate.role].get_or_insert(id);
            }
        }
        if self.chosen.is_some() {
            let row = self.to_row(&self.record);
            self.record.clear();
            self.row(row);
            return;
        }
        self.held.append(&mut self.record);
        self.ends.push(self.held.len());
        if self.ends.len() >= HELD {
            self.decide();
        }
    }

    /// The record was no row but settings of the whole run.
    pub fn end_settings(&mut self) {
        for (id, value) in std::mem::take(&mut self.record) {
            let role = self.candidates[id as usize].role;
            match Role::ALL[role] {
                Role::Clip => self.settings.clip = Some(value),
                Role::BatchSize => self.settings.batch_size = Some(value),
                _ => {}
            }
        }
    }

    /// The record was cut or garbled.
    pub fn discard(&mut self) {
        self.record.clear();
    }

    fn to_row(&self, record: &[(u32, f64)]) -> Row {
        let mut row = Row::default();
        let chosen = self.chosen.unwrap_or_default();
        let fields = row.fields_mut();
        for &(id, value) in record {
            let role = self.candidates[id as usize].role;
            if chosen[role] == Some(id) {
                fields[role].get_or_insert(value);
            }
        }
        row
    }

    /// Hands a row on, once nothing more can belong to its step.
    pub fn row(&mut self, mut row: Row) {
        // Integers beyond this are not exact, and no training is that long.
        row.step = row.step.filter(|s| s.abs() < 9e15);
        if row.clip.is_some() || row.batch_size.is_some() {
            self.settings.clip = row.clip.or(self.settings.clip);
            self.settings.batch_size = row.batch_size.or(self.settings.batch_size);
        }
        if let Some(pending) = &mut self.pending {
            let same = match row.step {
                Some(step) => pending.step == Some(step),
                None => self.joins && pending.step.is_some(),
            };
            if same && pending.merge(&row) {
                return;
            }
            if pending.norm.is_some() || pending.loss.is_some() {
                (self.visit)(pending);
            }
        }
        self.pending = Some(row);
    }

    /// Hands on what is left, and says which columns were taken.
    pub fn finish(mut self) -> Result<(Vec<Column>, Row, Vec<String>)> {
        let chosen = self.decide();
        if let Some(pending) = self.pending.take()
            && (pending.norm.is_some() || pending.loss.is_some())
        {
            (self.visit)(&pending);
        }
        for (role, wanted) in self.wanted.iter().enumerate() {
            if self.own_step && Role::ALL[role] == Role::Step {
                continue;
            }
            if let (Some(wanted), None) = (wanted, chosen[role]) {
                let have = match self.names.is_empty() {
                    true => "the log has no columns".into(),
                    false => format!("the log has {}", list(&self.names)),
                };
                return Err(Error::NoColumn { name: (*wanted).into(), have });
            }
        }
        let mut columns = Vec::new();
        for (role, id) in chosen.iter().enumerate() {
            let Some(id) = id else { continue };
            let mut others: Vec<&Candidate> = (self.candidates.iter().enumerate())
                .filter(|(i, c)| c.role == role && c.rows > 0 && *i != *id as usize)
                .map(|(_, c)| c)
                .collect();
            others.sort_by_key(|c| c.score);
            columns.push(Column {
                role: Role::ALL[role],
                name: self.candidates[*id as usize].name.clone(),
                others: others.iter().take(20).map(|c| c.name.clone()).collect(),
            });
        }
        Ok((columns, self.settings, self.names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(options: &Options, records: &[&[(&str, f64)]]) -> Result<(Vec<Row>, Vec<Column>)> {
        let mut rows = Vec::new();
        let mut visit = |row: &Row| rows.push(*row);
        let mut chooser = Chooser::new(options, &mut visit);
        for record in records {
            for (name, value) in *record {
                if let Some(id) = chooser.column(name.as_bytes()) {
                    chooser.put(id, *value);
                }
            }
            chooser.end_record();
        }
        let (columns, ..) = chooser.finish()?;
        Ok((rows, columns))
    }

    #[test]
    fn the_best_name_wins_even_when_it_comes_later() {
        let records: &[&[(&str, f64)]] = &[
            &[("step", 1.0), ("actor/grad_norm", 9.0)],
            &[("step", 1.0), ("grad_norm", 2.0)],
            &[("step", 2.0), ("grad_norm", 3.0), ("loss", 0.5)],
        ];
        let (read, columns) = rows(&Options::default(), records).unwrap();
        assert_eq!(read.iter().map(|r| r.norm).collect::<Vec<_>>(), [Some(2.0), Some(3.0)]);
        let norm = columns.iter().find(|c| c.role == Role::Norm).unwrap();
        assert_eq!(norm.name, "grad_norm");
        assert_eq!(norm.others, ["actor/grad_norm"]);
        let asked = Options { norm: Some("actor/grad_norm".into()), ..Options::default() };
        let (read, _) = rows(&asked, records).unwrap();
        assert_eq!(read[0].norm, Some(9.0));
    }

    #[test]
    fn a_column_that_is_not_there_is_named() {
        let asked = Options { norm: Some("gn".into()), ..Options::default() };
        let error = rows(&asked, &[&[("step", 1.0), ("grad_norm", 9.0)]]).unwrap_err();
        assert_eq!(error.to_string(), "there is no column `gn`; the log has `step`, `grad_norm`");
    }
}
