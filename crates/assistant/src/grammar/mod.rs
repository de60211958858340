//! The grammar: a line is a sequence of clauses in any order.
//!
//! | clause | means |
//! | --- | --- |
//! | `serve`, `train` | the mode |
//! | `llama 70b` | parts of the name of a workload, or of a model of the catalog |
//! | `cheapest`, `fastest`, `lowest-latency`, `greenest`, `soonest`, `smallest` | the objective |
//! | `tpot<50ms`, `ttft under 2s`, `tpot 50ms`, `$/1M<2`, `tp<=8`, `fits`, `10% free` | a constraint |
//! | `under 50ms`, `under 60d`, `<$2` | a constraint on the metric that the unit implies |
//! | `tp=8`, `tp 8`, `precision fp8` | a knob setting |
//! | `tp8`, `fp8`, `sglang`, `1000 users`, `8k context` | a knob setting in colloquial form |
//! | `1T tokens` | the length of a training run |
//! | `on h100, h200`, `128 h100`, `8xh100`, `h100*`, `64 gpus` | the hardware |

mod clause;
pub(super) mod question;
mod spoken;
mod trouble;
mod words;

pub use trouble::ParseError;

use super::Known;
use question::Question;

/// Maximum length of a line, bytes.
const MAX_LINE_BYTES: usize = 2_000;

/// Parses a line.
///
/// # Errors
/// A word is not recognized, or a bound or setting is invalid. The error lists the valid ones.
pub fn parse(line: &str, known: &Known) -> Result<Question, ParseError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(ParseError::TooLong { longest: MAX_LINE_BYTES });
    }
    clause::Reader::of(words::split(line), known).read()
}

/// Parses a number of tokens: `1T`, `15B`, `300000`.
pub(super) fn tokens(text: &str) -> Option<f64> {
    let units = [("t", 1e12), ("b", 1e9), ("g", 1e9), ("m", 1e6), ("k", 1e3), ("", 1.0)];
    let text = text.to_ascii_lowercase();
    let (digits, scale) = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    let value = words::number(digits)? * scale;
    (value.is_finite() && value >= 1.0).then_some(value)
}
