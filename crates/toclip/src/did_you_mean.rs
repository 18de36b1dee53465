//! Suggestions for names that were written wrongly.

/// The end of a message about an unknown name: the known name that it resembles most, if any is
/// close.
///
/// ```
/// use toclip::did_you_mean;
/// assert_eq!(did_you_mean("resid", ["step", "residual"]), "; did you mean `residual`?");
/// assert_eq!(did_you_mean("weight", ["step", "residual"]), "");
/// ```
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let likeness = |other: &str| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    let close = known.into_iter().map(|other| (likeness(other), other)).filter(|(l, _)| *l > 0.8);
    let closest = close.max_by(|a, b| a.0.total_cmp(&b.0));
    closest.map_or_else(String::new, |(_, other)| format!("; did you mean `{other}`?"))
}
