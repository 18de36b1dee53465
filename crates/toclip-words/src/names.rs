//! Suggestions for names that were written wrongly.

/// The end of a message about an unknown name: the known name that it resembles most, if any is
/// close.
///
/// ```
/// use toclip_words::did_you_mean;
/// assert_eq!(did_you_mean("resid", ["step", "residual"]), "; did you mean `residual`?");
/// assert_eq!(did_you_mean("weight", ["step", "residual"]), "");
/// ```
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let likeness = |other: &str| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    let close = known.into_iter().map(|other| (likeness(other), other)).filter(|(l, _)| *l > 0.8);
    let closest = close.max_by(|a, b| a.0.total_cmp(&b.0));
    closest.map_or_else(String::new, |(_, other)| format!("; did you mean `{other}`?"))
}

/// ``unknown `what` `name`; did you mean …?``, or the list of known names.
///
/// ```
/// let said = toclip_words::unknown("noise family", "cauchy", &["none", "gaussian"]);
/// assert_eq!(said, "unknown noise family `cauchy`; expected one of: none, gaussian");
/// ```
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    format!("unknown {what} `{name}`{}", did_you_mean_or_list(name, known))
}

/// `; did you mean …?`, or the list of known names.
pub fn did_you_mean_or_list(name: &str, known: &[&str]) -> String {
    match (did_you_mean(name, known.iter().copied()), known) {
        (hint, _) if !hint.is_empty() => hint,
        (_, []) => "; none is allowed here".into(),
        _ => format!("; expected one of: {}", known.join(", ")),
    }
}
