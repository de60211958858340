//! Timers that training tools print between steps: Megatron-LM's `(min, max) time across ranks (ms)`, the older `time
//! (ms) | forward-compute: 265.42 | …`, DeepSpeed's wall-clock breakdown, and the report of `--log-straggler`.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::observation::Timer;
use crate::text::{has, number_after, parse_integer, parse_leading_number, text_after};

/// Maximum number of timers on one line.
const MAX_TIMERS: usize = 64;

/// Parser of timers.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// Seconds per unit, while in a block of one timer per line.
    block: Option<f64>,
}

/// Trigger words. Every line of timers contains one, except rows of a block.
pub(crate) const WORDS: [&str; 3] = ["time across ranks (", "time (ms) |", "MxRtt/Rnk:"];

/// Prepared searchers for [`WORDS`]: most lines contain none of them and need no further test.
static FINDERS: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| WORDS.map(Finder::new));

impl Timers {
    /// Whether the next lines may be rows of a block.
    pub(crate) fn open(&self) -> bool {
        self.block.is_some()
    }

    /// Parses the timers of a line. Returns whether the line has timers or starts a block of them.
    pub(crate) fn line(&mut self, text: &str, mut take: impl FnMut(Timer)) -> bool {
        let trimmed = text.trim_ascii();
        if let Some(scale) = self.block {
            if let Some(timer) = row(trimmed, scale) {
                take(timer);
                return true;
            }
            self.block = None;
        }
        if !FINDERS.iter().any(|word| word.find(trimmed.as_bytes()).is_some()) {
            return false;
        }
        if has(trimmed, "time across ranks (") {
            self.block = Some(scale(trimmed, "time across ranks "));
            return true;
        }
        if let Some(list) = text_after(trimmed, "time (ms) |").filter(|_| trimmed.contains(':')) {
            list.split('|').take(MAX_TIMERS).filter_map(parse_single).for_each(&mut take);
            return true;
        }
        if has(trimmed, "MxRtt/Rnk:") && has(trimmed, "MnRtt/Rnk:") {
            parse_straggler(trimmed).map(&mut take);
            return true;
        }
        false
    }
}

/// Returns the seconds per unit, which is stated in parentheses after `words`.
fn scale(text: &str, words: &str) -> f64 {
    match text_after(text, words).map(|unit| unit.starts_with("(s)")) {
        Some(true) => 1.0,
        _ => 1e-3,
    }
}

/// Parses `forward-compute ....................: (1234.50, 1300.20)`.
fn row(text: &str, scale: f64) -> Option<Timer> {
    let (name, values) = text.split_once(':')?;
    let name = name.trim_end_matches(['.', ' ']);
    let (min_seconds, rest) = parse_leading_number(values.trim_start().strip_prefix('(')?)?;
    let (max_seconds, _) = parse_leading_number(rest.trim_start().strip_prefix(',')?)?;
    timer(name, min_seconds * scale, max_seconds * scale)
}

/// Parses `backward-params-all-reduce: 22.00`.
fn parse_single(text: &str) -> Option<Timer> {
    let (name, value) = text.split_once(':')?;
    let (value, _) = parse_leading_number(value)?;
    timer(name.trim(), value * 1e-3, value * 1e-3)
}

fn timer(name: &str, min_seconds: f64, max_seconds: f64) -> Option<Timer> {
    let named = (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let sound = min_seconds.is_finite() && max_seconds.is_finite() && min_seconds >= 0.0 && max_seconds >= min_seconds;
    (named && sound).then(|| Timer { name: name.to_owned(), min_seconds, max_seconds, slowest: None })
}

/// Parses `MnRtt/Rnk: 1020.53ms/1 | MxRtt/Rnk: 1325.78ms/3 | …`, the extremes of the round-trip times of all ranks.
fn parse_straggler(text: &str) -> Option<Timer> {
    let slow = text_after(text, "MxRtt/Rnk:")?;
    let (min_seconds, max_seconds) = (number_after(text, "MnRtt/Rnk:")?, number_after(text, "MxRtt/Rnk:")?);
    let rank = slow.split('|').next()?.split_once('/').and_then(|(_, rank)| parse_integer(rank));
    timer("straggler-report", min_seconds * 1e-3, max_seconds * 1e-3).map(|timer| Timer { slowest: rank, ..timer })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn all(lines: &[&str]) -> Vec<(String, f64, f64, Option<u64>)> {
        let (mut timers, mut out) = (Timers::default(), Vec::new());
        for line in lines {
            timers.line(line, |timer| out.push((timer.name, timer.min_seconds, timer.max_seconds, timer.slowest)));
        }
        out
    }

    #[test]
    fn every_shape_of_timers_is_read() {
        let found = all(&[
            "(min, max) time across ranks (ms):",
            "    forward-backward ...............................: (1234.50, 1300.25)",
            "    forward-compute ................................: (400.00, 500.00)",
            "iteration 3/ 10 | elapsed time per iteration (ms): 5.0 |",
            "    forward-compute ................................: (400.00, 500.00)",
            "time (ms) | forward-compute: 265.42 | backward-params-all-reduce: 22.00 | optimizer: x",
            "MnRtt/Rnk: 1020.5ms/1 | MxRtt/Rnk: 1325.0ms/3 | MnPwr/Rnk: 400.00W/0",
        ]);
        let expected = [
            ("forward-backward", 1.2345, 1.30025, None),
            ("forward-compute", 0.4, 0.5, None),
            ("forward-compute", 0.26542, 0.26542, None),
            ("backward-params-all-reduce", 0.022, 0.022, None),
            ("straggler-report", 1.0205, 1.325, Some(3)),
        ];
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!((found.0.as_str(), found.3), (expected.0, expected.3));
            assert!((found.1 - expected.1).abs() < 1e-9 && (found.2 - expected.2).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn malformed_timer_lines_are_ignored() {
        let lines = ["time (ms)", "(min, max) time across ranks (ms):", " a: (1", " b ...: (5.0, 2.0)", " c: (nan, 2)"];
        assert_eq!(all(&lines), []);
    }
}
