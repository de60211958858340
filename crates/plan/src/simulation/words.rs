//! Types of option values: durations, arrivals, lengths, compression, windows. Their `FromStr` and `Display` are
//! inverse.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use atlas_core::time_unit::TimeUnit;
use atlas_core::units::written;
use atlas_sim::kernel::Distribution;
use atlas_sim::serving::Router;

/// Serializes a value with its `Display`.
macro_rules! described {
    ($($name:ident),+) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

described!(Span, Millis, ArrivalsWord, Lengths, CompressionWord, HostsWord, Window, RouterWord, ScaleWord);

/// Duration in seconds: `90`, `90s`, `500ms`, `2m`, `1.5h`, `30d`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Span(pub f64);

/// Duration in seconds; a number without a unit is in milliseconds, as is customary for latency limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Millis(pub f64);

/// The number and unit of a duration; `m` means minutes.
fn number_and_unit(text: &str) -> (&str, Option<TimeUnit>) {
    match (TimeUnit::split(text), text.strip_suffix('m')) {
        ((_, None), Some(digits)) => (digits, Some(TimeUnit::Minute)),
        (split, _) => split,
    }
}

/// Parses a duration; `bare` is the unit of a number without one.
fn span(text: &str, bare: TimeUnit) -> Result<f64, String> {
    let text = text.trim();
    let (digits, unit) = number_and_unit(text);
    let value = digits.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    value
        .map(|value| value * unit.unwrap_or(bare).seconds())
        .ok_or_else(|| format!("found \"{text}\", expected a time such as 500ms, 90s, 15m, 24h or 30d"))
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        span(text, TimeUnit::Second).map(Span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = [("d", TimeUnit::Day), ("h", TimeUnit::Hour), ("m", TimeUnit::Minute)];
        match whole.into_iter().find(|(_, unit)| self.0 > 0.0 && self.0 % unit.seconds() == 0.0) {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit.seconds()),
            None => write!(f, "{}s", self.0),
        }
    }
}

impl FromStr for Millis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        span(text, TimeUnit::Millisecond).map(Millis)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0)
    }
}

/// Arrival process of requests.
#[derive(Debug, Clone, PartialEq)]
pub enum ArrivalsWord {
    /// `poisson`, `poisson:RATE`.
    Poisson(Option<f64>),
    /// `gamma:CV`, `gamma:CV:RATE`.
    Gamma(f64, Option<f64>),
    /// `closed`, `closed:CONCURRENCY`.
    Closed(Option<u32>),
    /// `burst`: all at once.
    Burst,
    /// `schedule`: the phases of the workload.
    Schedule,
    /// `trace:FILE`.
    Trace(PathBuf),
}

impl FromStr for ArrivalsWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |what: &str| {
            Err(format!(
                "found \"{text}\", expected {what}; write poisson[:RATE], gamma:CV[:RATE], closed[:CONCURRENCY], burst, \
                 schedule or trace:FILE"
            ))
        };
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        let positive = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
        match (word.to_lowercase().as_str(), rest) {
            ("poisson", None) => Ok(ArrivalsWord::Poisson(None)),
            ("poisson", Some(rate)) => match positive(rate) {
                Some(rate) => Ok(ArrivalsWord::Poisson(Some(rate))),
                None => refuse("a positive rate"),
            },
            ("gamma", Some(rest)) => {
                let (cv, rate) = rest.split_once(':').map_or((rest, None), |(cv, rate)| (cv, Some(rate)));
                match (positive(cv), rate.map(positive)) {
                    (Some(cv), None) => Ok(ArrivalsWord::Gamma(cv, None)),
                    (Some(cv), Some(Some(rate))) => Ok(ArrivalsWord::Gamma(cv, Some(rate))),
                    _ => refuse("a positive coefficient of variation"),
                }
            }
            ("closed", None) => Ok(ArrivalsWord::Closed(None)),
            ("closed", Some(count)) => match count.parse::<u32>().ok().filter(|count| *count > 0) {
                Some(count) => Ok(ArrivalsWord::Closed(Some(count))),
                None => refuse("a positive number of requests in flight"),
            },
            ("burst", None) => Ok(ArrivalsWord::Burst),
            ("schedule", None) => Ok(ArrivalsWord::Schedule),
            ("trace", Some(file)) if !file.is_empty() => Ok(ArrivalsWord::Trace(PathBuf::from(file))),
            ("gamma", None) => refuse("gamma:CV"),
            ("trace", _) => refuse("trace:FILE"),
            _ => refuse("an arrival process"),
        }
    }
}

impl fmt::Display for ArrivalsWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArrivalsWord::Poisson(None) => f.write_str("poisson"),
            ArrivalsWord::Poisson(Some(rate)) => write!(f, "poisson:{}", written(*rate)),
            ArrivalsWord::Gamma(cv, None) => write!(f, "gamma:{cv}"),
            ArrivalsWord::Gamma(cv, Some(rate)) => write!(f, "gamma:{cv}:{rate}"),
            ArrivalsWord::Closed(None) => f.write_str("closed"),
            ArrivalsWord::Closed(Some(count)) => write!(f, "closed:{count}"),
            ArrivalsWord::Burst => f.write_str("burst"),
            ArrivalsWord::Schedule => f.write_str("schedule"),
            ArrivalsWord::Trace(file) => write!(f, "trace:{}", file.display()),
        }
    }
}

/// Distribution of lengths in tokens: `512`, `uniform:64..448`, `upto:200:600`, `exponential:256`, `gamma:256:0.5`,
/// `lognormal:256:1.2`, `lognormal:256:1.2:1024` (at most 1024).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lengths(pub Distribution);

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let tokens = |text: &str| text.trim().parse::<f64>().ok().filter(|v| (1.0..=1e7).contains(v));
        let cv = |text: &str| text.trim().parse::<f64>().ok().filter(|v| (0.0..=100.0).contains(v));
        let (word, rest) = text.split_once(':').unwrap_or(("", text));
        let pair = |by: &str| rest.split_once(by);
        let law = match word {
            "" => tokens(rest).map(Distribution::Constant),
            "uniform" => pair("..").and_then(|(low, high)| {
                let (low, high) = (tokens(low)?, tokens(high)?);
                (low <= high).then_some(Distribution::Uniform { low, high })
            }),
            "upto" => pair(":").and_then(|(mean, most)| {
                let (mean, most) = (tokens(mean)?, tokens(most)?);
                (mean <= most).then_some(Distribution::Bounded { mean, most })
            }),
            "exponential" => tokens(rest).map(|mean| Distribution::Exponential { mean }),
            "gamma" => pair(":").and_then(|(m, c)| Some(Distribution::Gamma { mean: tokens(m)?, cv: cv(c)? })),
            "lognormal" => pair(":").and_then(|(mean, rest)| match (tokens(mean)?, rest.split_once(':')) {
                (mean, None) => Some(Distribution::LogNormal { mean, cv: cv(rest)? }),
                (mean, Some((rest, most))) => {
                    let most = tokens(most).filter(|most| mean <= *most)?;
                    Some(Distribution::clipped_log_normal(mean, cv(rest)?, most))
                }
            }),
            _ => None,
        };
        law.map(Lengths).ok_or_else(|| {
            format!(
                "found \"{text}\", expected tokens such as 512, uniform:64..448, upto:200:600 (mean and longest), \
                 exponential:256, gamma:256:0.5 or lognormal:256:1.2"
            )
        })
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Distribution::Constant(value) => write!(f, "{value}"),
            Distribution::Uniform { low, high } => write!(f, "uniform:{low}..{high}"),
            Distribution::Bounded { mean, most } => write!(f, "upto:{mean}:{most}"),
            Distribution::Exponential { mean } => write!(f, "exponential:{mean}"),
            Distribution::Gamma { mean, cv } => write!(f, "gamma:{mean}:{cv}"),
            Distribution::LogNormal { mean, cv } => write!(f, "lognormal:{mean}:{cv}"),
            Distribution::ClippedLogNormal { mean, cv, most, .. } => write!(f, "lognormal:{mean}:{cv}:{most}"),
        }
    }
}

/// Gradient compression: `RATIO` or `RATIO:SECONDS`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompressionWord {
    /// Ratio of uncompressed to compressed bytes.
    pub ratio: f64,
    /// Seconds to compress and decompress a stage's gradients.
    pub seconds: f64,
}

impl FromStr for CompressionWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (ratio, seconds) = text.split_once(':').map_or((text, None), |(ratio, seconds)| (ratio, Some(seconds)));
        let ratio = ratio.parse::<f64>().ok().filter(|ratio| ratio.is_finite() && *ratio >= 1.0);
        match (ratio, seconds.map_or(Ok(0.0), |text| span(text, TimeUnit::Second))) {
            (Some(ratio), Ok(seconds)) => Ok(CompressionWord { ratio, seconds }),
            _ => Err(format!("found \"{text}\", expected RATIO or RATIO:TIME, such as 4 or 4:20ms, the ratio from 1")),
        }
    }
}

impl fmt::Display for CompressionWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}s", self.ratio, self.seconds)
    }
}

/// Hosts with another accelerator than the job's: `a100-sxm-80gb:4`, or a comma-separated list, which applies to the
/// job's last hosts in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostsWord(pub Vec<(String, u32)>);

impl FromStr for HostsWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |part: &str| {
            let (name, count) = part.trim().rsplit_once(':')?;
            let count = count.trim().parse::<u32>().ok().filter(|count| *count > 0)?;
            (!name.trim().is_empty()).then(|| (name.trim().to_owned(), count))
        };
        let read: Option<Vec<(String, u32)>> = text.split(',').map(one).collect();
        read.map(HostsWord)
            .ok_or_else(|| format!("found \"{text}\", expected ACCELERATOR:HOSTS[,…], such as a100-sxm-80gb:4"))
    }
}

impl fmt::Display for HostsWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(name, count)| format!("{name}:{count}")).collect();
        f.write_str(&parts.join(","))
    }
}

/// Window of simulated time: `0..2s`, `1s..1.5s`, `500ms..`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Start, seconds.
    pub from: f64,
    /// End, seconds; infinite if open.
    pub to: f64,
}

impl Window {
    /// The whole run.
    pub const ALL: Window = Window { from: 0.0, to: f64::INFINITY };

    /// Whether the interval from `begin` to `end` overlaps the window.
    #[must_use]
    pub fn sees(&self, begin: f64, end: f64) -> bool {
        begin <= self.to && end >= self.from
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("found \"{text}\", expected FROM..TO such as 0..2s or 500ms..750ms");
        let (from, to) = text.split_once("..").ok_or_else(refuse)?;
        // A start without a unit has the unit of the end: the start of `1..2ms` is 1 ms.
        let unit = number_and_unit(to.trim()).1.unwrap_or(TimeUnit::Second);
        let from = if from.trim().is_empty() { 0.0 } else { span(from, unit).map_err(|_| refuse())? };
        let to = if to.trim().is_empty() { f64::INFINITY } else { span(to, TimeUnit::Second).map_err(|_| refuse())? };
        if from < to { Ok(Window { from, to }) } else { Err(refuse()) }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.to.is_finite() { write!(f, "{}s..{}s", self.from, self.to) } else { write!(f, "{}s..", self.from) }
    }
}

/// Policy that routes requests to replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouterWord(pub Router);

const ROUTERS: [(&str, Router); 5] = [
    ("round-robin", Router::RoundRobin),
    ("random", Router::Random),
    ("least-requests", Router::LeastRequests),
    ("two-choices", Router::TwoChoices),
    ("prefix-affinity", Router::PrefixAffinity),
];

impl FromStr for RouterWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let word = text.trim().replace('_', "-").to_lowercase();
        ROUTERS.iter().find(|(name, _)| *name == word).map(|(_, router)| RouterWord(*router)).ok_or_else(|| {
            let names: Vec<&str> = ROUTERS.iter().map(|(name, _)| *name).collect();
            format!("found \"{text}\", expected one of {}", names.join(", "))
        })
    }
}

impl fmt::Display for RouterWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ROUTERS.iter().find(|(_, router)| *router == self.0).map_or("least-requests", |(name, _)| name);
        f.write_str(name)
    }
}

/// Autoscaling range: `MIN..MAX` or `MIN..MAX:REQUESTS`, with the target number of concurrent requests per replica.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleWord {
    /// Minimum replicas.
    pub least: u32,
    /// Maximum replicas.
    pub most: u32,
    /// Target number of concurrent requests per replica.
    pub target: f64,
}

impl ScaleWord {
    /// Default target: the default concurrency per replica.
    const TARGET: f64 = crate::scenario::CONCURRENCY;
}

impl FromStr for ScaleWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (range, target) = text.split_once(':').map_or((text, None), |(range, target)| (range, Some(target)));
            let (least, most) = range.split_once("..")?;
            let (least, most) = (least.trim().parse::<u32>().ok()?, most.trim().parse::<u32>().ok()?);
            let target = target.map_or(Some(Self::TARGET), |text| text.trim().parse::<f64>().ok())?;
            (least >= 1 && least <= most && target > 0.0 && target.is_finite()).then_some(ScaleWord {
                least,
                most,
                target,
            })
        };
        read().ok_or_else(|| format!("found \"{text}\", expected MIN..MAX[:REQUESTS], such as 1..8:32"))
    }
}

impl fmt::Display for ScaleWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}:{}", self.least, self.most, self.target)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_are_read_with_and_without_unit() {
        let seconds = |text: &str| text.parse::<Span>().map(|span| span.0);
        assert_eq!(seconds("50000h"), Ok(1.8e8));
        assert_eq!(seconds("90"), Ok(90.0));
        assert_eq!(seconds("1.5 min"), Ok(90.0));
        assert_eq!(seconds("250ms"), Ok(0.25));
        assert_eq!("200".parse::<Millis>().map(|m| m.0), Ok(0.2));
        assert_eq!("2s".parse::<Millis>().map(|m| m.0), Ok(2.0));
        for bad in ["", "h", "-1s", "nan", "inf", "5x"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn option_values_round_trip_through_text() {
        fn round<T: FromStr<Err = String> + fmt::Display + PartialEq + fmt::Debug>(text: &str) {
            let word: T = text.parse().unwrap();
            assert_eq!(word.to_string().parse::<T>().unwrap(), word, "{text}");
        }
        for text in ["poisson", "poisson:8", "gamma:2.5", "gamma:2:0.25", "closed", "closed:64", "burst", "schedule"] {
            round::<ArrivalsWord>(text);
        }
        round::<ArrivalsWord>("trace:some/where:else.csv");
        for text in
            ["512", "uniform:64..448", "exponential:256", "gamma:256:0.5", "lognormal:256:1.2", "lognormal:256:1.2:900"]
        {
            round::<Lengths>(text);
        }
        for text in ["50000h", "30d", "0", "0.25s", "7m"] {
            round::<Span>(text);
        }
        for text in ["0..2s", "1..5ms", "500ms.."] {
            round::<Window>(text);
        }
        round::<CompressionWord>("4:20ms");
        round::<Millis>("200");
        round::<RouterWord>("two_choices");
        round::<ScaleWord>("1..8");
    }

    #[test]
    fn invalid_option_values_state_what_is_expected() {
        for bad in ["gamma", "gamma:0", "poisson:-1", "closed:0", "trace:", "often", "gamma:1:x"] {
            let error = bad.parse::<ArrivalsWord>().unwrap_err();
            assert!(error.contains("expected") && error.contains(bad), "{error}");
        }
        assert!("uniform:9..3".parse::<Lengths>().is_err() && "0".parse::<Lengths>().is_err());
        assert!("2s..1s".parse::<Window>().is_err() && "1s".parse::<Window>().is_err());
        assert!("0.5".parse::<CompressionWord>().is_err() && "8..1".parse::<ScaleWord>().is_err());
    }
}
