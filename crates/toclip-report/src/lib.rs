//! The report: claims of the paper, measurements and plots, as one HTML file that needs no network, as a
//! table for the terminal, and as JSON for programs.

mod card;
mod embedded_figure;
mod html;
pub mod math;
mod report_json;
mod script;
mod terminal;

#[cfg(test)]
mod tests;

pub use card::figure as html_figure;
pub use html::{page as html_page, render as html};
pub use report_json::render as json;
pub use terminal::{render as terminal, wrap};
pub use toclip_plot::escape;

use serde::{Deserialize, Serialize};
use toclip_plot::Figure;

/// All that was reproduced in one run. Texts may contain formulas, as LaTeX between dollar signs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Title of the page.
    pub title: String,
    /// The takeaway, in two or three sentences.
    pub takeaway: Vec<String>,
    /// The one figure that shows it, with its caption.
    pub opening: Option<(Figure, String)>,
    /// Paragraphs on where the page comes from and on its notation.
    pub about: Vec<String>,
    /// One per figure or theorem, in the order of the paper.
    pub sections: Vec<Section>,
    /// Where the printed formulas are wrong.
    pub corrections: Vec<Correction>,
    /// Notes that belong to no section, at the end: a heading and its paragraphs.
    pub remarks: Vec<(String, Vec<String>)>,
    /// Command that repeats everything.
    pub command: String,
    /// Versions, seeds and settings that do not depend on the machine.
    pub facts: Vec<(String, String)>,
    /// Parts of the run and their seconds.
    pub timings: Vec<(String, f64)>,
}

/// One figure or theorem of the paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// Short name as on the command line, say `1b`; names the place in the page too.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Whether the heading needs no short name before it; not part of the JSON.
    #[serde(skip)]
    pub title_has_id: bool,
    /// Problem, noise, rates and runs in one line.
    pub settings: String,
    /// Claims and measurements.
    pub claims: Vec<Claim>,
    /// Plots; not part of the JSON.
    #[serde(skip)]
    pub figures: Vec<Figure>,
    /// Differences from the print, explained; a paragraph each.
    pub notes: Vec<String>,
    /// Tables and pictures beside the report: relative links.
    pub files: Vec<String>,
    /// Command that repeats this section alone.
    pub command: String,
    /// Where the explorer shows the same setting: a relative link; not part of the JSON.
    #[serde(skip)]
    pub explore: Option<String>,
}

/// One statement of the paper, checked by number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The statement of the paper.
    pub paper: String,
    /// The measurement here.
    pub measured: String,
    /// Whether they agree.
    pub verdict: Verdict,
}

/// Outcome of checking a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As claimed.
    Holds,
    /// Not as claimed.
    Fails,
    /// Not as printed, for a reason the notes of the section give.
    Differs,
}

/// A printed formula that is wrong, and the right one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// Where in the paper.
    pub place: String,
    /// As printed.
    pub printed: String,
    /// As it should be.
    pub right: String,
}

impl Verdict {
    /// Mark that stands before the word.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Holds => "✓",
            Self::Fails => "✗",
            Self::Differs => "≠",
        }
    }

    /// The outcome in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Differs => "differs",
        }
    }
}

impl Report {
    /// All claims with the section each belongs to, in order.
    pub fn claims(&self) -> impl Iterator<Item = (&Section, &Claim)> {
        self.sections.iter().flat_map(|s| s.claims.iter().map(move |c| (s, c)))
    }

    /// How many claims had this outcome.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.claims().filter(|(_, c)| c.verdict == verdict).count()
    }

    /// The outcome of all claims in a sentence.
    pub fn tally(&self) -> String {
        let part = |verdict, one: &str, many: &str| match self.count(verdict) {
            1 => format!("1 {one}"),
            n => format!("{n} {many}"),
        };
        let checked = match self.claims().count() {
            0 => return "No claims were checked.".into(),
            1 => "1 claim checked".to_string(),
            n => format!("{n} claims checked"),
        };
        let mut parts = vec![part(Verdict::Holds, "holds", "hold")];
        if self.count(Verdict::Differs) > 0 {
            let (one, many) = ("differs for a stated reason", "differ for stated reasons");
            parts.push(part(Verdict::Differs, one, many));
        }
        parts.push(part(Verdict::Fails, "fails", "fail"));
        format!("{checked}: {}.", parts.join(", "))
    }
}
