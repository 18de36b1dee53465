//! Groups of coordinates, such as the layers of a network, each clipped on its own.

use crate::error::Result;
use serde::{Deserialize, Serialize};

/// A group of coordinates and its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// How many coordinates it has.
    pub size: u64,
    /// $c_g/c$: its threshold as a multiple of that of the [policy](crate::policy::Policy);
    /// infinite for a group that is not clipped.
    #[serde(default = "same")]
    pub ratio: f64,
}

/// The ratio unless given.
fn same() -> f64 {
    1.0
}

/// $c_g = r_g\thinspace c$: groups of coordinates, each with a threshold of its own.
///
/// The first group has the first coordinates, in the order in which the eigenvalues of the
/// [spectrum](crate::spectrum::Spectrum) were given, the second the next, and so on.
///
/// ```
/// use toclip::{Group, Groups};
/// // Two layers: the second is clipped at a third of the threshold of the first.
/// let layers = Groups::new(&[Group { size: 300, ratio: 1.0 }, Group { size: 200, ratio: 0.33 }])?;
/// assert_eq!(layers.sizes(), [300, 200]);
/// assert!(Groups::new(&[Group { size: 300, ratio: 0.0 }]).is_err());
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Groups(Vec<Group>);

/// Groups that cannot be clipped.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// No groups at all.
    #[error("clipping per group needs at least one group")]
    Empty,
    /// A group without coordinates.
    #[error("group {} of {count} has size 0; give at least 1", group + 1)]
    NoCoordinates {
        /// Which, from 0.
        group: usize,
        /// How many there are.
        count: usize,
    },
    /// A ratio that is not positive.
    #[error(
        "group {} of {count} has ratio {ratio}; its threshold is the ratio times c, so give a \
         positive number (infinity: not clipped)", group + 1
    )]
    Ratio {
        /// Which, from 0.
        group: usize,
        /// How many there are.
        count: usize,
        /// Its ratio.
        ratio: f64,
    },
}

impl Groups {
    /// From a list of groups.
    ///
    /// # Errors
    /// [`GroupError`] for an empty list, a group without coordinates, or a ratio that is not
    /// positive.
    pub fn new(groups: &[Group]) -> Result<Self> {
        let count = groups.len();
        if count == 0 {
            return Err(GroupError::Empty.into());
        }
        for (group, &Group { size, ratio }) in groups.iter().enumerate() {
            if size == 0 {
                return Err(GroupError::NoCoordinates { group, count }.into());
            }
            if !(ratio > 0.0) {
                return Err(GroupError::Ratio { group, count, ratio }.into());
            }
        }
        Ok(Groups(groups.to_vec()))
    }

    /// The groups in their order.
    pub fn groups(&self) -> &[Group] {
        &self.0
    }

    /// The number of coordinates of each group.
    pub fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|g| g.size).collect()
    }
}
