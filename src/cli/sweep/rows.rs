//! Points of a sweep as lines of CSV or JSON. Text that is the same for many points is formatted once and copied.

use std::path::Path;

use atlas_plan::estimate::standing::is_available;
use atlas_plan::estimate::{Estimate, Metric, Verdict};
use atlas_plan::knob::Setting;
use atlas_plan::search::sweep::{Row, Sweep};
use atlas_report::{csv, optimum};

/// Output format of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A header and one line per point.
    Csv,
    /// One JSON object per line.
    JsonLines,
    /// Parquet columns; see [`super::columnar`].
    Parquet,
}

impl Shape {
    /// Format given by the file extension.
    pub(super) fn of(path: &Path) -> Result<Shape, String> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match ending.as_str() {
            "csv" => Ok(Shape::Csv),
            "jsonl" | "ndjson" => Ok(Shape::JsonLines),
            "parquet" => Ok(Shape::Parquet),
            _ => Err(format!("--out: found \".{ending}\", expected .csv, .jsonl or .parquet")),
        }
    }
}

/// Texts in one buffer, since an axis may have a million values.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    /// End offset of each text.
    ends: Vec<usize>,
}

impl Texts {
    /// Formats the values of an axis, each with the prefix `lead`.
    fn of(values: &[Setting], lead: &str, word: impl Fn(&Setting) -> String) -> Texts {
        let mut texts = Texts::default();
        for value in values {
            texts.bytes.extend_from_slice(lead.as_bytes());
            match value {
                Setting::Number(value) => number(&mut texts.bytes, *value),
                other => texts.bytes.extend_from_slice(word(other).as_bytes()),
            }
            texts.ends.push(texts.bytes.len());
        }
        texts
    }

    fn get(&self, at: usize) -> &[u8] {
        let begin = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        let range = begin.zip(self.ends.get(at).copied());
        range.and_then(|(begin, end)| self.bytes.get(begin..end)).unwrap_or_default()
    }
}

/// The columns of a sweep.
pub(super) struct Columns<'s> {
    shape: Shape,
    metrics: &'s [&'static Metric],
    /// Text at the beginning of a contender's lines: target and workload.
    contenders: Vec<Box<[u8]>>,
    /// For each contender, whether each metric applies.
    applies: Vec<Vec<bool>>,
    /// Text of each value of each axis.
    values: Vec<Texts>,
    /// Text before each metric.
    labels: Vec<Box<[u8]>>,
    header: Vec<u8>,
}

impl<'s> Columns<'s> {
    pub(super) fn new(sweep: &Sweep, metrics: &'s [&'static Metric], shape: Shape) -> Columns<'s> {
        let axes = sweep.space.axes();
        let contender = |target: &str, workload: &str| match shape {
            Shape::Csv | Shape::Parquet => csv::fields([target, workload]),
            Shape::JsonLines => format!(
                "{{\"target\":{},\"workload\":{}",
                serde_json::Value::from(target),
                serde_json::Value::from(workload)
            ),
        };
        let values = axes.iter().map(|axis| match shape {
            Shape::Csv | Shape::Parquet => {
                let word = |word: &Setting| csv::fields([word.to_string().as_str()]);
                Texts::of(&axis.values, ",", word)
            }
            Shape::JsonLines => {
                let lead = format!(",\"{}\":", axis.knob.name());
                Texts::of(&axis.values, &lead, |word| optimum::setting(word).to_string())
            }
        });
        let labels = metrics.iter().map(|metric| match shape {
            Shape::Csv | Shape::Parquet => Box::from(*b","),
            Shape::JsonLines => format!(",\"{}\":", metric.name).into_bytes().into(),
        });
        let names = axes.iter().map(|axis| axis.knob.name()).chain(metrics.iter().map(|metric| metric.name));
        let header = match shape {
            Shape::Csv | Shape::Parquet => {
                csv::line(["target", "workload"].into_iter().chain(names).chain(["verdict"])).into_bytes()
            }
            Shape::JsonLines => Vec::new(),
        };
        let applies = sweep
            .contenders
            .iter()
            .map(|(_, scenario)| metrics.iter().map(|metric| metric.applies_to(scenario)).collect());
        Columns {
            shape,
            metrics,
            contenders: sweep
                .contenders
                .iter()
                .map(|(parts, _)| contender(&parts.target.name, &parts.workload.name).into_bytes().into())
                .collect(),
            applies: applies.collect(),
            values: values.collect(),
            labels: labels.collect(),
            header,
        }
    }

    /// The header.
    pub(super) fn header(&self) -> Vec<u8> {
        self.header.clone()
    }

    /// Writes the line of a point.
    pub(super) fn write_row(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        out.extend_from_slice(self.contenders.get(row.contender).map_or(&[], |text| text));
        for (values, digit) in self.values.iter().zip(row.digits) {
            out.extend_from_slice(values.get(*digit));
        }
        let applies = self.applies.get(row.contender).map_or(&[][..], |applies| applies);
        for ((metric, label), applies) in self.metrics.iter().zip(&self.labels).zip(applies) {
            out.extend_from_slice(label);
            let held = *applies && is_available(metric, row.estimate);
            let value = metric.value(row.estimate, row.scenario).filter(|value| held && value.is_finite());
            match value {
                Some(value) => number(out, value),
                None if self.shape == Shape::JsonLines => out.extend_from_slice(b"null"),
                None => {}
            }
        }
        let verdict = verdict(row.estimate).as_bytes();
        match self.shape {
            Shape::Csv | Shape::Parquet => {
                out.push(b',');
                out.extend_from_slice(verdict);
                out.push(b'\n');
            }
            Shape::JsonLines => {
                out.extend_from_slice(b",\"verdict\":\"");
                out.extend_from_slice(verdict);
                out.extend_from_slice(b"\"}\n");
            }
        }
    }
}

/// Formats with the fewest digits that parse to the same number; integers have no decimal point.
fn number(out: &mut Vec<u8>, value: f64) {
    let mut buffer = zmij::Buffer::new();
    out.extend_from_slice(match buffer.format_finite(value).as_bytes() {
        [whole @ .., b'.', b'0'] => whole,
        all => all,
    });
}

/// All results of [`verdict`].
pub(super) const VERDICTS: [&str; 12] = [
    "fits",
    "memory",
    "accelerators",
    "indivisible",
    "stages",
    "format",
    "power",
    "context",
    "empty",
    "pools",
    "failures",
    "overload",
];

/// One word for why a point cannot run.
pub(super) fn verdict(estimate: &Estimate) -> &'static str {
    match estimate.detail.as_ref().map(|detail| &detail.verdict) {
        None | Some(Verdict::Fits) => "fits",
        Some(Verdict::Memory { .. } | Verdict::HostMemory { .. }) => "memory",
        Some(Verdict::Accelerators { .. } | Verdict::SlowNodes { .. }) => "accelerators",
        Some(Verdict::Indivisible { .. } | Verdict::Sequence { .. }) => "indivisible",
        Some(Verdict::RecomputedLayers { .. } | Verdict::Stages { .. } | Verdict::Bidirectional { .. }) => "stages",
        Some(Verdict::Format { .. } | Verdict::SoftwareFormat { .. } | Verdict::CacheFormat { .. }) => "format",
        Some(Verdict::RackPower { .. }) => "power",
        Some(Verdict::Context { .. } | Verdict::OutputLimit { .. }) => "context",
        Some(Verdict::NoTokens | Verdict::NoOutput | Verdict::NoDecode) => "empty",
        Some(Verdict::PrefillPool { .. }) => "pools",
        Some(Verdict::NoProgress { .. }) => "failures",
        Some(Verdict::Overload { .. }) => "overload",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_numbers_parse_back_to_the_same_f64() {
        for value in [0.0, 1.0, -2.5, 1.0 / 3.0, 1e300, 1e-300, 123_456_789.0, f64::MIN_POSITIVE] {
            let mut out = Vec::new();
            number(&mut out, value);
            let text = String::from_utf8_lossy(&out).into_owned();
            assert_eq!(text.parse(), Ok(value), "{text}");
        }
    }
}
