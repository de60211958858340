//! Metrics in the narration of a tour: `{tpot_ms}` is replaced by the value on the screen, and `{change tpot_ms}` by
//! the relative difference from the baseline. The narration therefore always agrees with the screen.

use atlas_plan::estimate::Metric;
use atlas_plan::search::metric;

/// Returns the names in braces that are not names of metrics.
#[must_use]
pub fn unknown(text: &str) -> Vec<&str> {
    pieces(text).filter_map(|piece| piece.err()).filter(|name| metric(name).is_none()).collect()
}

/// Replaces the names in braces by values. `now` and `before` return the value of a metric on the screen and in the
/// baseline.
pub fn described(
    text: &str,
    now: impl Fn(&'static Metric) -> Option<f64>,
    before: impl Fn(&'static Metric) -> Option<f64>,
) -> String {
    let mut out = String::new();
    for piece in pieces(text) {
        match piece {
            Ok(plain) => out.push_str(plain),
            Err(name) => out.push_str(&shown(name, &now, &before).unwrap_or_else(|| "(not available)".to_owned())),
        }
    }
    out
}

fn metric(name: &str) -> Option<&'static Metric> {
    metric::named(name.strip_prefix("change ").unwrap_or(name).trim())
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

/// Splits the text into plain text (`Ok`) and names in braces (`Err`).
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
    fn narration_placeholders_expand_to_formatted_values_and_changes() {
        let now = |metric: &'static Metric| (metric.name == "tpot_ms").then_some(42.0);
        let before = |metric: &'static Metric| (metric.name == "tpot_ms").then_some(21.0);
        let text = "A token takes {tpot_ms}, {change tpot} than before; {power_w}.";
        assert_eq!(described(text, now, before), "A token takes 42.0 ms, 100 % more than before; (not available).");
        assert_eq!(described("nothing { here } }", now, before), "nothing (not available) }");
        assert_eq!(unknown("{tpot_ms} {wibble} {change mfu}"), ["wibble"]);
        assert_eq!(unknown("plain"), Vec::<&str>::new());
    }
}
