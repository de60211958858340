//! Runs one input of a target, and checks limits and invariants.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::targets::Target;

/// Limits for an input.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Time after which an input is tried again with measurement.
    pub(crate) doubt: Duration,
    /// CPU time.
    pub(crate) time: Duration,
    /// Memory, bytes.
    pub(crate) memory: u64,
}

impl Bounds {
    /// For optimized runs of one target in a separate process. Filling that much memory takes longer than `doubt`.
    #[allow(dead_code, reason = "the long runs are another binary")]
    pub(crate) const LONG: Bounds =
        Bounds { doubt: Duration::from_millis(5), time: Duration::from_secs(1), memory: 200 << 20 };
}

/// CPU time of this thread, which other load on the machine does not increase. On systems other than Linux, the elapsed
/// time.
fn worked() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let nanoseconds = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

/// Current resident memory, or its maximum since the peak was reset, in bytes. `None` on systems other than Linux.
fn resident(peak: bool) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let name = if peak { "VmHWM:" } else { "VmRSS:" };
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

/// Tries one input; the error describes what failed.
pub(crate) fn attempt(target: &Target, input: &[u8], bounds: Bounds) -> Result<(), String> {
    let run = || catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let began = Instant::now();
    let result = run();
    if began.elapsed() > bounds.doubt {
        // On Linux, this resets the peak.
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
