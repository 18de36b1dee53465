//! Formulas in text: LaTeX between two dollar signs, typeset for the page and written out for the
//! terminal and for JSON.

use pulldown_latex::config::RenderConfig;
use pulldown_latex::{Parser, Storage, mathml::push_mathml};
use toclip_plot::escape;

/// Text for the page: formulas as MathML, all else escaped. Text that is no formula stays as it is.
pub fn html(text: &str) -> String {
    map(text, escape, |formula| mathml(formula).unwrap_or_else(|| escape(&format!("${formula}$"))))
}

/// Text for people without a page: formulas in Unicode.
pub fn plain(text: &str) -> String {
    let write = |formula: &str| {
        let text = written_out(&mut formula.chars().peekable());
        text.split_whitespace().collect::<Vec<_>>().join(" ").replace("· ", "·")
    };
    map(text, str::to_owned, write)
}

/// Applies one function to text and another to formulas. A dollar sign without a partner is text.
fn map(text: &str, prose: impl Fn(&str) -> String, formula: impl Fn(&str) -> String) -> String {
    let parts: Vec<&str> = text.split('$').collect();
    if parts.len().is_multiple_of(2) {
        return prose(text);
    }
    let part = |(k, part): (usize, &&str)| if k % 2 == 0 { prose(part) } else { formula(part) };
    parts.iter().enumerate().map(part).collect()
}

fn mathml(formula: &str) -> Option<String> {
    // The converter does not escape these.
    if formula.contains(['<', '>', '&', '"']) {
        return None;
    }
    let (storage, mut out) = (Storage::new(), String::new());
    push_mathml(&mut out, Parser::new(formula, &storage), RenderConfig::default()).ok()?;
    // The converter writes the micro sign, which has no italic form in most fonts.
    (!out.contains("<merror")).then(|| out.replace('\u{b5}', "μ"))
}

const SYMBOLS: [(&str, &str); 23] = [
    ("mu", "μ"),
    ("nu", "ν"),
    ("eta", "η"),
    ("sigma", "σ"),
    ("lambda", "λ"),
    ("kappa", "κ"),
    ("theta", "θ"),
    ("pi", "π"),
    ("Gamma", "Γ"),
    ("infty", "∞"),
    ("le", " ≤ "),
    ("ge", " ≥ "),
    ("lt", " < "),
    ("gt", " > "),
    ("cdot", "·"),
    ("to", " → "),
    ("oint", "∮"),
    ("log", "log"),
    ("approx", " ≈ "),
    ("max", "max"),
    ("min", "min"),
    (",", " "),
    ("!", ""),
];

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// A formula as one line of Unicode, up to the brace that closes it.
fn written_out(rest: &mut Letters) -> String {
    let mut out = String::new();
    while let Some(letter) = rest.next() {
        match letter {
            '}' => break,
            '{' => out += &written_out(rest),
            '\\' => out += &command(rest),
            '^' => out += &raised(&argument(rest)),
            '_' => out += &format!("_{}", grouped(&argument(rest))),
            '-' => out.push('−'),
            other => out.push(other),
        }
    }
    out
}

/// The next group, command or letter.
fn argument(rest: &mut Letters) -> String {
    match rest.next() {
        Some('{') => written_out(rest),
        Some('\\') => command(rest),
        Some(letter) => letter.to_string(),
        None => String::new(),
    }
}

fn command(rest: &mut Letters) -> String {
    let mut name = String::new();
    while let Some(letter) = rest.next_if(|c| c.is_ascii_alphabetic()) {
        name.push(letter);
    }
    if name.is_empty() {
        name.extend(rest.next());
    }
    match name.as_str() {
        "frac" => {
            let (above, below) = (argument(rest), argument(rest));
            format!("{}/{}", grouped(&above), grouped(&below))
        }
        "sqrt" => format!("√{}", grouped(&argument(rest))),
        "operatorname" | "mathrm" | "text" => argument(rest),
        "left" | "right" | "bigl" | "bigr" => String::new(),
        name => SYMBOLS.iter().find(|symbol| symbol.0 == name).map_or(name, |s| s.1).into(),
    }
}

/// In brackets unless it is one word.
fn grouped(text: &str) -> String {
    match text.chars().all(char::is_alphanumeric) {
        true => text.into(),
        false => format!("({text})"),
    }
}

fn raised(text: &str) -> String {
    match text {
        "2" => "²".into(),
        "*" => "*".into(),
        _ => format!("^{}", grouped(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_typeset_and_text_is_escaped() {
        let page = html(r"if $\frac{\mu^2}{\nu} \gt 1$ & <b>");
        assert!(page.starts_with("if <math"), "{page}");
        assert!(page.contains("<mfrac>") && page.ends_with("</math> &amp; &lt;b&gt;"), "{page}");
    }

    #[test]
    fn what_is_no_formula_stays_text() {
        for text in ["costs $5", r"$\nonsense{$", "$<script>$", "a $ b $ c $"] {
            assert_eq!(html(text), escape(text));
        }
        assert_eq!(plain("costs $5"), "costs $5");
    }

    #[test]
    fn formulas_are_written_out() {
        for (formula, expected) in [
            (r"$\mu^2/\nu \gt 1$", "μ²/ν > 1"),
            (r"$\lambda_j = j^{-1/6}$", "λ_j = j^(−1/6)"),
            (r"$\frac{c}{\sqrt{2r+\sigma^2}}$", "c/(√(2r+σ²))"),
            (r"$\operatorname{erfc}\left(x\right)$", "erfc(x)"),
            (r"$\eta^*_D$", "η*_D"),
            (r"$\eta = 0.7$, $c \gt 1$", "η = 0.7, c > 1"),
        ] {
            assert_eq!(plain(formula), expected);
        }
    }
}
