//! Live figures in what a tour says: `{tpot_ms}` is the figure on the screen, `{change tpot_ms}` how much less or more it
//! is than the baseline's. What is said can so never contradict what is shown.

use atlas_core::units;
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
        return Some(three_digits(&metric.show(value)));
    }
    let before = before(metric).filter(|before| *before != 0.0)?;
    let percent = 100.0 * (value / before - 1.0);
    Some(format!("{:.0} % {}", percent.abs(), if percent < 0.0 { "less" } else { "more" }))
}

/// A number as it was written, `6536 tok/s` or `$0.002339`, with three significant digits: for values that are known no
/// better. Prices from one to a hundred dollars keep their cents.
#[must_use]
pub fn three_digits(shown: &str) -> String {
    let (sign, rest) = shown.strip_prefix('$').map_or(("", shown), |rest| ("$", rest));
    let (number, unit) = rest.split_once(' ').unwrap_or((rest, ""));
    let Ok(value) = number.parse::<f64>() else { return shown.to_owned() };
    let cents = sign == "$" && unit.is_empty() && (1.0..100.0).contains(&value.abs());
    if value == 0.0 || !value.is_finite() || cents || number.bytes().filter(u8::is_ascii_digit).count() <= 3 {
        return shown.to_owned();
    }
    let step = 10f64.powf(value.abs().log10().floor() - 2.0);
    let rounded = if step > 1.0 { (value / step).round() * step } else { value };
    let space = if unit.is_empty() { "" } else { " " };
    format!("{sign}{}{space}{unit}", units::significant(rounded, 3))
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
    fn three_digits_keep_the_unit_and_the_cents_of_small_prices() {
        let shown = [
            "6536 tok/s",
            "12.95 ktok/s",
            "173.9 ms",
            "9996 ms",
            "19.4 %",
            "$2.34",
            "$115.01",
            "$0.002339",
            "–",
            "0 W",
        ];
        let kept =
            ["6540 tok/s", "12.9 ktok/s", "174 ms", "10000 ms", "19.4 %", "$2.34", "$115", "$0.00234", "–", "0 W"];
        assert_eq!(shown.map(three_digits), kept);
    }

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
