//! One input of a target: what it may take, and what must hold.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::targets::Target;

/// What an input may take.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// An input that takes longer is tried once more, and measured.
    pub(crate) doubt: Duration,
    /// Processor time.
    pub(crate) time: Duration,
    /// Bytes.
    pub(crate) memory: u64,
}

impl Bounds {
    /// For optimized runs of one target in a process of its own. Filling so much memory takes longer than the doubt.
    #[allow(dead_code, reason = "the long runs are another binary")]
    pub(crate) const LONG: Bounds =
        Bounds { doubt: Duration::from_millis(5), time: Duration::from_secs(1), memory: 200 << 20 };
}

/// Time that this thread has run, which other load on the machine does not lengthen; elsewhere than on Linux, time that
/// has passed.
fn worked() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let nanoseconds = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

/// Resident memory now, or the most since the peak was reset, in bytes; elsewhere than on Linux, nothing.
fn resident(peak: bool) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let name = if peak { "VmHWM:" } else { "VmRSS:" };
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

/// Tries one input; the error says what does not hold.
pub(crate) fn attempt(target: &Target, input: &[u8], bounds: Bounds) -> Result<(), String> {
    let run = || catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let began = Instant::now();
    let result = run();
    if began.elapsed() > bounds.doubt {
        // Linux resets the peak.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let (before, began) = (resident(false), worked());
        let _ = run();
        let took = worked().saturating_sub(began);
        let memory = resident(true).zip(before).map_or(0, |(peak, before)| peak.saturating_sub(before));
        if took > bounds.time {
            return Err(format!("it takes {took:?}"));
        }
        if memory > bounds.memory {
            return Err(format!("it takes {} MB", memory >> 20));
        }
    }
    result.unwrap_or_else(|_| Err("it panics".to_owned()))
}
