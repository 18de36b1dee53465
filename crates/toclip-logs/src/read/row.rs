//! One row of a log.

/// One row: the values logged for one step. Any of them may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogRow {
    /// The step, iteration or update.
    pub step: Option<f64>,
    /// The norm of the gradient, $\Vert g \Vert$; may be NaN or infinite.
    pub norm: Option<f64>,
    /// The training loss.
    pub loss: Option<f64>,
    /// The learning rate.
    pub learning_rate: Option<f64>,
    /// The factor by which mixed-precision training multiplied the loss.
    pub loss_scale: Option<f64>,
    /// The epoch.
    pub epoch: Option<f64>,
    /// The current threshold, if the log has it.
    pub clip: Option<f64>,
    /// The global batch size, if the log has it.
    pub batch_size: Option<f64>,
    /// Gradient norms of single layers: the place of the layer in
    /// [`ReadSummary::layers`](crate::ReadSummary::layers), and its norm, in any order. Empty for a
    /// model with more than 512 layers.
    pub layers: Vec<(u32, f64)>,
}

impl LogRow {
    /// A row of values in the order of [`super::role::ROLES`].
    #[inline]
    pub(super) fn new(values: [Option<f64>; 8], layers: Vec<(u32, f64)>) -> Self {
        let [step, norm, loss, learning_rate, loss_scale, epoch, clip, batch_size] = values;
        LogRow { step, norm, loss, learning_rate, loss_scale, epoch, clip, batch_size, layers }
    }

    /// Fills missing values with those of `other`; false, and no change, if both have one.
    pub(super) fn merge(&mut self, other: &mut LogRow) -> bool {
        let has = |layer: u32| self.layers.iter().any(|(mine, _)| *mine == layer);
        if other.layers.iter().any(|(layer, _)| has(*layer)) {
            return false;
        }
        let mut layers = std::mem::take(&mut other.layers);
        let theirs = other.values_mut();
        let mine = self.values_mut();
        // Rows are merged by their step; epochs and settings repeat in every row of a step.
        if (1..5).any(|i| mine[i].is_some() && theirs[i].is_some()) {
            return false;
        }
        mine.into_iter().zip(theirs).for_each(|(mine, theirs)| *mine = mine.or(*theirs));
        self.layers.append(&mut layers);
        true
    }

    /// The values in the order of [`super::role::ROLES`].
    fn values_mut(&mut self) -> [&mut Option<f64>; 8] {
        [
            &mut self.step,
            &mut self.norm,
            &mut self.loss,
            &mut self.learning_rate,
            &mut self.loss_scale,
            &mut self.epoch,
            &mut self.clip,
            &mut self.batch_size,
        ]
    }
}

/// Parses a number as logs write it, with spaces around it allowed.
pub(super) fn parse_number(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii();
    match text.first()? {
        b'0'..=b'9' | b'-' | b'+' | b'.' | b'n' | b'N' | b'i' | b'I' => {
            short_decimal(text).or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
        }
        _ => None,
    }
}

/// Powers of ten that are exact.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Parses a number of at most 15 digits, as nearly all in logs are: both the digits and the power of
/// ten are then exact, and one rounding gives the nearest number, as the general parser does at
/// three times the cost. `None` for anything else.
#[inline]
fn short_decimal(text: &[u8]) -> Option<f64> {
    let (negative, text) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    let (mut digits, mut count, mut power, mut after_point) = (0u64, 0, 0i32, false);
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        match byte {
            b'0'..=b'9' => {
                digits = 10 * digits + u64::from(byte - b'0');
                count += 1;
                power -= i32::from(after_point);
            }
            b'.' if !after_point => after_point = true,
            _ => break,
        }
        if count > 15 {
            return None;
        }
        rest = after;
    }
    if count == 0 {
        return None;
    }
    match rest {
        [] => {}
        [b'e' | b'E', sign @ (b'-' | b'+'), a @ b'0'..=b'9', b @ b'0'..=b'9'] => {
            let exponent = i32::from(a - b'0') * 10 + i32::from(b - b'0');
            power += if *sign == b'-' { -exponent } else { exponent };
        }
        _ => return None,
    }
    let digits = digits as f64;
    let scale = POWERS.get(power.unsigned_abs() as usize)?;
    let value = if power < 0 { digits / scale } else { digits * scale };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_step_are_one() {
        let mut row = LogRow { step: Some(3.0), norm: Some(1.0), ..LogRow::default() };
        assert!(row.merge(&mut LogRow { step: Some(3.0), loss: Some(0.5), ..LogRow::default() }));
        assert_eq!((row.norm, row.loss), (Some(1.0), Some(0.5)));
        let before = row.clone();
        assert!(!row.merge(&mut LogRow { step: Some(3.0), norm: Some(2.0), ..LogRow::default() }));
        assert_eq!(row, before);
    }

    #[test]
    fn short_numbers_have_the_same_bits() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut short = 0;
        for _ in 0..200_000 {
            let digits: String =
                (0..1 + random(17)).map(|_| char::from(b'0' + random(10) as u8)).collect();
            let point = random(digits.len() as u64 + 1) as usize;
            let sign = ["", "-", "+"][random(3) as usize];
            let mut text = format!("{sign}{}.{}", &digits[..point], &digits[point..]);
            if random(2) == 0 {
                text += &format!("e{}{:02}", ["-", "+"][random(2) as usize], random(30));
            }
            let same: f64 = text.parse().unwrap();
            assert_eq!(
                parse_number(text.as_bytes()).map(f64::to_bits),
                Some(same.to_bits()),
                "{text}"
            );
            short += usize::from(short_decimal(text.as_bytes()).is_some());
        }
        assert!(short > 50_000, "{short}");
        for none in ["", "-", ".", "1.2.3", "1e", "1e5", "--1", "-+1", "1e-5x", "1x"] {
            let general = none.parse::<f64>().ok().map(f64::to_bits);
            assert_eq!(parse_number(none.as_bytes()).map(f64::to_bits), general, "{none}");
        }
    }

    #[test]
    fn numbers_as_logs_write_them() {
        assert_eq!(parse_number(b" 1.6E-08 "), Some(1.6e-8));
        assert_eq!(parse_number(b"-inf"), Some(f64::NEG_INFINITY));
        assert!(parse_number(b"NaN").unwrap().is_nan());
        for none in [&b""[..], b"None", b"null", b"1,5", b"0x10", b"\xff", b"12h"] {
            assert_eq!(parse_number(none), None, "{none:?}");
        }
    }
}
