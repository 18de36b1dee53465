//! Limits checked before the start: simulations too long to end, runs too many for the memory.

use toclip_words::short;

/// The largest memory for the runs of an ensemble.
const MOST_BYTES: f64 = 8e9;
/// A step of the cheapest simulation takes some forty nanoseconds.
const MOST_STEPS: f64 = 1e12;

/// Refuses so many runs at so many times that they could not be kept.
///
/// # Errors
/// [`toclip::Error::Invalid`] above 8 GB.
pub fn check_memory(runs: u64, times: usize) -> toclip::Result<()> {
    // R and D of each run at each time, and their summary.
    let bytes = 32.0 * runs as f64 * times as f64;
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(toclip::Error::Invalid(format!(
        "{runs} runs at {times} times would need {:.0} GB; use fewer runs or points",
        bytes / 1e9
    )))
}

/// Refuses a time that a simulation would not reach in a day.
///
/// # Errors
/// [`toclip::Error::Invalid`] above $10^{12}$ steps.
pub fn check_steps(time: f64, dim: f64) -> toclip::Result<()> {
    let steps = time * dim;
    // NaN and infinity are refused elsewhere, with a better message.
    if !(steps > MOST_STEPS) || time.is_infinite() {
        return Ok(());
    }
    Err(toclip::Error::Invalid(format!(
        "t = {time:e} would take {steps:.0e} steps of SGD, t times the dimension {}; expected at most {}",
        short(dim),
        short(MOST_STEPS / dim)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_refused_with_what_would_do() {
        assert!(check_memory(100, 201).is_ok() && check_steps(1e6, 1e6).is_ok());
        let runs = check_memory(1_000_000_000, 201).unwrap_err().to_string();
        assert!(runs.starts_with("1000000000 runs at 201 times would need 6432 GB"), "{runs}");
        let long = check_steps(1e18, 10.0).unwrap_err().to_string();
        assert!(long.starts_with("t = 1e18 would take 1e19 steps of SGD"), "{long}");
        assert!(long.ends_with("expected at most 1e11"), "{long}");
        assert!(check_steps(f64::NAN, 10.0).is_ok() && check_steps(f64::INFINITY, 10.0).is_ok());
    }
}
