//! Description of a sweep's file: number of points, the best of them, and how the objective depends on the knobs. The
//! file is read point by point, so that memory use does not depend on its length.

use std::collections::BTreeMap;
use std::io::Read;

use super::study::{Block, Cell, Grid};
use crate::chart::{Axis, Plot, Series};
use crate::document::Document;
use crate::table::Align;
use atlas_core::sort;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::Knob;

/// Maximum points listed.
const MAX_LISTED_POINTS: usize = 12;
/// Maximum lines in one chart.
const MAX_LINES: usize = 8;
/// Maximum values of one knob that are charted.
const MAX_VALUES: usize = 4096;

/// Cells of a point, as written in the file.
type Point = Vec<String>;
/// Best point at each value of a knob: from the bits of the value to rank and metric value.
type Curve = BTreeMap<u64, (f64, f64)>;

/// Aggregated content of the file.
struct Sweep {
    head: Vec<String>,
    /// Column of the metric by which points are ranked.
    sought: (usize, &'static Metric),
    points: u64,
    fitting: u64,
    /// Best points so far, best first, with their ranks.
    best: Vec<(f64, Point)>,
    /// Curve of each target for each knob, by the knob's column.
    curves: BTreeMap<usize, BTreeMap<String, Curve>>,
}

/// Maximum length of a line. Without a limit, a file without line breaks, such as a device, would be read endlessly.
const LONGEST_LINE: usize = 1 << 20;

/// Reader that fails at a line that is too long, so that memory use is bounded for any input.
struct ShortLines<R> {
    inner: R,
    length: usize,
}

impl<R: Read> Read for ShortLines<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(bytes)?;
        let read = bytes.get(..count).unwrap_or_default();
        self.length = match read.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => count - end - 1,
            None => self.length + count,
        };
        if self.length > LONGEST_LINE {
            let message = format!("a line of more than {LONGEST_LINE} bytes; expected output of `atlas sweep --out`");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
        }
        Ok(count)
    }
}

/// Reads a sweep's CSV. `objective` names the column to rank by; if unset, the first metric.
///
/// # Errors
/// Describes what is wrong with the file.
pub fn read(text: impl Read, name: &str, objective: Option<&str>) -> Result<Document, String> {
    let mut reader = csv::Reader::from_reader(ShortLines { inner: text, length: 0 });
    let described = |error: csv::Error| format!("{name}: {error}");
    let head: Vec<String> = reader.headers().map_err(described)?.iter().map(str::to_owned).collect();
    let figures: Vec<(usize, &'static Metric)> =
        head.iter().enumerate().filter_map(|(i, column)| Some((i, figure(column)?))).collect();
    let wanted = objective.map(|text| atlas_plan::search::metric::named(text).map_or(text, |metric| metric.name));
    let sought = figures.iter().find(|(_, metric)| wanted.is_none_or(|wanted| metric.name == wanted));
    let Some(sought) = sought.copied() else {
        let names: Vec<&str> = figures.iter().map(|(_, metric)| metric.name).collect();
        return Err(match (wanted, names.is_empty()) {
            (Some(wanted), false) => format!("{name}: no column `{wanted}`; metrics: {}", names.join(", ")),
            _ => format!("{name}: no metric columns; expected output of `atlas sweep --out FILE.csv`"),
        });
    };
    let knobs: Vec<usize> =
        head.iter().enumerate().filter(|(_, column)| Knob::find(column).is_some()).map(|(i, _)| i).collect();
    // A file of measurements may have columns of metrics, too.
    let missing: Vec<String> = ["target", "workload", "verdict"]
        .iter()
        .filter(|column| place(&head, column).is_none())
        .map(|column| format!("no column `{column}`"))
        .chain(knobs.is_empty().then(|| "no column of a knob".to_owned()))
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(format!("{name}: not a sweep: {missing}; expected output of `atlas sweep --out FILE.csv`"));
    }
    let (target, verdict) = (place(&head, "target"), place(&head, "verdict"));
    let curves = sort::collect_unsorted(knobs.iter().map(|knob| (*knob, BTreeMap::new())));
    let mut sweep = Sweep { head, sought, points: 0, fitting: 0, best: Vec::new(), curves };
    for record in reader.records() {
        let record = record.map_err(described)?;
        sweep.points += 1;
        let fits = verdict.and_then(|verdict| record.get(verdict)).is_none_or(|word| word.is_empty() || word == "fits");
        let value = record.get(sought.0).and_then(|text| text.parse::<f64>().ok()).filter(|value| value.is_finite());
        let Some(value) = value.filter(|_| fits) else { continue };
        sweep.fitting += 1;
        let rank = sought.1.better.sort_key(value);
        sweep.rank(rank, &record);
        let target = target.and_then(|target| record.get(target)).unwrap_or_default();
        for knob in &knobs {
            let Some(x) = record.get(*knob).and_then(|text| text.parse::<f64>().ok()) else { continue };
            let curve = sweep.curves.entry(*knob).or_default().entry(target.to_owned()).or_default();
            if curve.len() < MAX_VALUES || curve.contains_key(&x.to_bits()) {
                let known = curve.entry(x.to_bits()).or_insert((rank, value));
                if rank < known.0 {
                    *known = (rank, value);
                }
            }
        }
    }
    if sweep.points == 0 {
        return Err(format!("{name}: no points in it"));
    }
    Ok(sweep.document(name))
}

/// Metric of a column, by its full name only, since some aliases of metrics are also names of knobs.
fn figure(column: &str) -> Option<&'static Metric> {
    atlas_plan::search::metric::named(column).filter(|metric| metric.name == column)
}

fn place(head: &[String], name: &str) -> Option<usize> {
    head.iter().position(|column| column == name)
}

impl Sweep {
    fn rank(&mut self, rank: f64, record: &csv::StringRecord) {
        if self.best.len() == MAX_LISTED_POINTS && self.best.last().is_some_and(|(worst, _)| rank >= *worst) {
            return;
        }
        let at = self.best.partition_point(|(known, _)| *known <= rank);
        self.best.insert(at, (rank, record.iter().map(str::to_owned).collect()));
        self.best.truncate(MAX_LISTED_POINTS);
    }

    fn document(self, name: &str) -> Document {
        let metric = self.sought.1;
        let title = format!("Sweep: {name}");
        let mut blocks = vec![Block::Heading(1, title.clone())];
        blocks.push(Block::Text(format!(
            "{} points, of which {} can run; ranked by {}: {}.",
            self.points, self.fitting, metric.label, metric.help
        )));
        let rows = self.table();
        if let Some(first) = self.best.first() {
            let words = self
                .head
                .iter()
                .zip(&first.1)
                .filter(|(column, _)| !column.is_empty() && figure(column).is_none() && *column != "verdict");
            let words: Vec<String> = words.map(|(column, word)| format!("{column} = {word}")).collect();
            let shown = first.1.get(self.sought.0).and_then(|text| text.parse().ok()).map(|value| metric.show(value));
            blocks.push(Block::Callout(format!(
                "Best: {} {} at {}.",
                metric.label,
                shown.unwrap_or_default(),
                words.join(", ")
            )));
        } else {
            blocks.push(Block::Callout("No point can run.".to_owned()));
        }
        blocks.push(Block::Heading(2, "Best points".to_owned()));
        blocks.push(Block::Table(rows.clone()));
        blocks.extend(self.charts());
        Document { title, blocks, rows }
    }

    fn table(&self) -> Grid {
        let figures: Vec<Option<&'static Metric>> = self.head.iter().map(|column| figure(column)).collect();
        let align = |column: &String, metric: &Option<&Metric>| {
            let number = metric.is_some() || Knob::find(column).is_some();
            (column.clone(), if number { Align::Right } else { Align::Left })
        };
        let head = self.head.iter().zip(&figures).map(|(column, metric)| align(column, metric)).collect();
        let row = |(_, point): &(f64, Point)| {
            let cell = |(text, metric): (&String, &Option<&'static Metric>)| match text.parse::<f64>() {
                Ok(value) if value.is_finite() => {
                    Cell::number(metric.map_or_else(|| text.clone(), |metric| metric.show(value)), value)
                }
                _ => Cell::text(text.clone()),
            };
            point.iter().zip(&figures).map(cell).collect()
        };
        Grid { head, rows: self.best.iter().map(row).collect() }
    }

    /// Charts of the best result at each value of each knob, over all values of the other knobs.
    fn charts(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        for (knob, lines) in &self.curves {
            let several = lines.values().any(|line| line.len() > 1);
            let Some(name) = self.head.get(*knob).filter(|_| several) else { continue };
            let series: Vec<Series> = lines
                .iter()
                .take(MAX_LINES)
                .map(|(target, line)| {
                    let mut points: Vec<(f64, f64)> =
                        line.iter().map(|(x, (_, value))| (f64::from_bits(*x), *value)).collect();
                    sort::by(&mut points, |a, b| a.0.total_cmp(&b.0));
                    Series { name: target.clone(), points, joined: true }
                })
                .collect();
            let ends = || series.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
            let (low, high) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
            let across = if low > 0.0 && high / low >= 16.0 { Axis::log(name) } else { Axis::linear(name) };
            blocks.push(Block::Heading(2, format!("{} over {name}", self.sought.1.label)));
            let more = lines.len().saturating_sub(MAX_LINES);
            let some = if more > 0 { format!(" {more} more targets are not shown.") } else { String::new() };
            blocks.push(Block::Text(format!("Each value shows the best feasible point over all other knobs.{some}")));
            blocks.push(Block::Plot(Plot {
                title: format!("{} over {name}", self.sought.1.label),
                across,
                up: Axis::linear(format!("{} ({})", self.sought.1.label, self.sought.1.unit)),
                series,
                highlighted: None,
            }));
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::document::DocumentFormat;

    const FILE: &str = "\
target,workload,tp,microbatch,tokens_per_sec,dollar_per_1m_tokens,verdict
a,w,1,1,100,5,fits
a,w,2,1,300,4,fits
a,w,2,2,250,3,fits
a,w,4,1,900,1,memory
b,w,4,1,200,2,fits
b,w,4,2,,,fits
";

    #[test]
    fn sweep_summary_lists_only_feasible_points_and_names_the_best() {
        let document = read(FILE.as_bytes(), "x.csv", None).unwrap();
        let text = document.write(DocumentFormat::Markdown);
        assert!(text.contains("6 points, of which 4 can run"), "{text}");
        assert!(text.contains("target = a, workload = w, tp = 2, microbatch = 1"), "{text}");
        assert_eq!(document.rows.rows.len(), 4);
        // With an objective where lower is better.
        let cheap = read(FILE.as_bytes(), "x.csv", Some("dollar_per_1m_tokens")).unwrap();
        assert!(cheap.write(DocumentFormat::Markdown).contains("target = b, workload = w, tp = 4"));
        assert!(cheap.formats().contains(&DocumentFormat::Svg));
    }

    #[test]
    fn invalid_sweep_file_is_refused_with_a_reason() {
        for (text, objective, part) in [
            ("", None, "no metric columns"),
            ("a,b\n1,2\n", None, "no metric columns"),
            (FILE, Some("mfu"), "no column `mfu`"),
            ("target,workload,tp,tokens_per_sec,verdict\n", None, "no points"),
            ("target,workload,tp,tokens_per_sec,verdict\na\n", None, "x.csv"),
            ("accelerator,model,tp,tokens_per_sec\nh100,a,1,2\n", None, "no column `target`, no column `workload`"),
            ("target,workload,tokens_per_sec,verdict\na,b,1,fits\n", None, "no column of a knob"),
        ] {
            let described = read(text.as_bytes(), "x.csv", objective).unwrap_err();
            assert!(described.contains(part), "{described}");
        }
    }
}
