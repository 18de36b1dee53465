//! The data of a figure inside the page.

use serde_json::Value;
use toclip_plot::Figure;

/// JSON that can stand inside a script element.
pub(super) fn render(figure: &Figure) -> String {
    // A figure is numbers and text, which always serialise.
    let mut value = serde_json::to_value(figure).unwrap_or_default();
    shorten(&mut value);
    // Whatever ends or opens an element starts with this character; in JSON it is only in text.
    value.to_string().replace('<', "\\u003c")
}

/// Single precision is finer than any screen and takes half the room. A column that it would
/// make coarser to the eye, such as times far from zero, is left alone.
fn shorten(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Array(items) if items.iter().all(|v| v.is_number() || v.is_null()) => {
            let short: Vec<Option<f64>> = items.iter().map(|v| v.as_f64().map(single)).collect();
            let apart = |a: Option<f64>, b: Option<f64>| a != b;
            let kept = (1..items.len()).all(|i| {
                apart(items[i - 1].as_f64(), items[i].as_f64()) == apart(short[i - 1], short[i])
            });
            if kept {
                *items = short.into_iter().map(Value::from).collect();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// The shortest decimal that reads as the same single-precision number.
fn single(value: f64) -> f64 {
    let single = value as f32;
    if value == 0.0 || single.is_normal() {
        format!("{single:e}").parse().unwrap_or(value)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip_plot::Chart;

    #[test]
    fn numbers_are_short_where_that_loses_nothing() {
        let x = [1e6, 1e6 + 1e-6];
        let chart = Chart::new("</script>").line("a", &x, &[1.0 / 3.0, f64::NAN]);
        let json = render(&chart.line("b", &[0.0, 1e-300], &[1e300, -0.1]).into());
        assert!(json.contains("0.33333334,null"), "{json}");
        assert!(json.contains("1000000.000001"), "{json}");
        assert!(!json.contains('<'));
        let back: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(back["charts"][0]["title"], "</script>");
        assert_eq!(back["charts"][0]["series"][1]["x"], serde_json::json!([0.0, 1e-300]));
        assert_eq!(back["charts"][0]["series"][1]["y"], serde_json::json!([1e300, -0.1]));
    }
}
