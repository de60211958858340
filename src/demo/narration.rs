//! Live figures in what a tour says: `{tpot_ms}` is the figure on the screen, `{change tpot_ms}` how much less or more it
//! is than the baseline's. What is said can so never contradict what is shown.

use atlas_plan::estimate::Metric;
use atlas_plan::search::figure;

/// The names in braces that no figure has.
#[must_use]
pub fn unknown(text: &str) -> Vec<&str> {
    pieces(text).filter_map(|piece| piece.err()).filter(|name| metric(name).is_none()).collect()
}

/// The text with its figures; `now` and `before` give the values on the screen and of the baseline.
pub fn described(
    text: &str,
    now: impl Fn(&'static Metric) -> Option<f64>,
    before: impl Fn(&'static Metric) -> Option<f64>,
) -> String {
    let mut out = String::new();
    for piece in pieces(text) {
        match piece {
            Ok(plain) => out.push_str(plain),
            Err(name) => out.push_str(&shown(name, &now, &before).unwrap_or_else(|| "(not known here)".to_owned())),
        }
    }
    out
}

fn metric(name: &str) -> Option<&'static Metric> {
    figure::named(name.strip_prefix("change ").unwrap_or(name).trim())
}

fn shown(
    name: &str,
    now: &impl Fn(&'static Metric) -> Option<f64>,
    before: &impl Fn(&'static Metric) -> Option<f64>,
) -> Option<String> {
    let metric = metric(name)?;
    let value = now(metric)?;
    if !name.starts_with("change ") {
        return Some(metric.brief(value));
    }
    let before = before(metric).filter(|before| *before != 0.0)?;
    let percent = 100.0 * (value / before - 1.0);
    Some(format!("{:.0} % {}", percent.abs(), if percent < 0.0 { "less" } else { "more" }))
}

/// Plain text, and names in braces as errors.
fn pieces(text: &str) -> impl Iterator<Item = Result<&str, &str>> {
    text.split('{')
        .enumerate()
        .flat_map(|(nth, part)| match part.split_once('}') {
            Some((name, rest)) if nth > 0 => [Some(Err(name)), Some(Ok(rest))],
            _ => [Some(Ok(part)), None],
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_changes_are_those_on_the_screen() {
        let now = |metric: &'static Metric| (metric.name == "tpot_ms").then_some(42.0);
        let before = |metric: &'static Metric| (metric.name == "tpot_ms").then_some(21.0);
        let text = "A token takes {tpot_ms}, {change tpot} than before; {power_w}.";
        assert_eq!(described(text, now, before), "A token takes 42.0 ms, 100 % more than before; (not known here).");
        assert_eq!(described("nothing { here } }", now, before), "nothing (not known here) }");
        assert_eq!(unknown("{tpot_ms} {wibble} {change mfu}"), ["wibble"]);
        assert_eq!(unknown("plain"), Vec::<&str>::new());
    }
}
