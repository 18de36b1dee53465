//! The rule for large gradients: `rule = "skip"`.

use serde::{Serialize, Serializer};
use toclip::Rule;
use toml::Value;

use crate::Mistake;

use crate::value_forms::deserialize_by_parse;
use toclip_words::unknown;

/// The rule for large gradients; clipping unless given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleChoice(pub Rule);

impl RuleChoice {
    /// Whether gradients are clipped by their norm, as they are unless a rule is given.
    pub fn is_clip(&self) -> bool {
        self.0 == Rule::Clip
    }

    /// The rule of this name.
    ///
    /// # Errors
    /// A sentence that lists the names.
    pub fn named(name: &str) -> Result<Self, Mistake> {
        let rule = Rule::named(name).map(RuleChoice);
        rule.ok_or_else(|| unknown("rule", name, &Rule::NAMES).into())
    }

    fn parse(value: Value) -> Result<Self, Mistake> {
        match value.as_str() {
            Some("per_group") => Err("clipping per group needs the groups: leave `rule` out and \
                                      give groups = [{ size = 100 }, { size = 400, ratio = 0.5 }]"
                .into()),
            Some("smooth") => {
                Err("expected the name of a smooth rule: \"tanh\" or \"root\"".into())
            }
            Some(name) => RuleChoice::named(name),
            None => Err(Mistake::is(value, "the name of a rule, such as \"skip\"")),
        }
    }
}

impl Serialize for RuleChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

deserialize_by_parse!(RuleChoice);
