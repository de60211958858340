//! Curves: requests and latencies of a serving run, a training job at growing scale.

use ratatui::layout::Rect;

use crate::tui::app::Answer;
use crate::tui::draw::Canvas;
use crate::tui::simulating::Scaling;
use crate::tui::theme::Role;
use crate::tui::view::plot::{Plot, Series, Shape, color, letter};
use crate::tui::view::sweep::range;
use atlas_core::sort;
use atlas_core::units;
use atlas_core::units::duration_ms;
use atlas_plan::engine;
use atlas_plan::estimate::Metric;
use atlas_report::chart::Axis;
use atlas_report::chart::axis::Range;
use atlas_sim::serving::{Output as Served, RequestRecord};

/// Points of a distribution's curve.
const POINTS: usize = 200;

/// A curve's ticks.
fn ticks(range: &Range) -> Vec<(f64, String)> {
    range.ticks().into_iter().map(|(value, label)| (range.share(value), label)).collect()
}

/// A legend above a plot: letters and names.
fn names(canvas: &mut Canvas<'_>, area: Rect, names: &[&str]) {
    let mut x = area.x;
    for (index, name) in names.iter().enumerate() {
        let style = canvas.role(color(index));
        x = canvas.text(x, area.y, area.right().saturating_sub(x), &format!("{} {name}", letter(index)), style) + 3;
    }
}

/// Throughput of an accelerator against nodes, the events' and the closed form's.
pub(super) fn scale(scaling: &Scaling, canvas: &mut Canvas<'_>, area: Rect) -> bool {
    let nodes = Axis::log("nodes").range(scaling.points.iter().map(|point| point.0));
    let values = scaling.points.iter().flat_map(|point| [point.1, point.2]);
    let (Some(nodes), Some(up)) = (nodes, Axis::linear(scaling.metric.label).range(values)) else { return false };
    let curve = |get: fn(&(f64, f64, f64)) -> f64| Series {
        points: scaling.points.iter().map(|point| Some((nodes.share(point.0), up.share(get(point))))).collect(),
        name: String::new(),
        shape: Shape::Line,
    };
    names(canvas, area, &["simulated", "closed form"]);
    let plot = Plot {
        up: format!("{}, {}", scaling.metric.label, scaling.metric.unit),
        across: "nodes".to_owned(),
        ticks: [
            scaling.points.iter().map(|point| (nodes.share(point.0), format!("{}", point.0))).collect(),
            ticks(&up),
        ],
        series: vec![curve(|point| point.1), curve(|point| point.2)],
        shaded: Vec::new(),
        trail: Vec::new(),
        limits: Vec::new(),
        here: scaling
            .points
            .iter()
            .find(|point| point.0 == scaling.here)
            .map(|point| (nodes.share(point.0), up.share(point.1))),
        cursor: None,
    };
    let below = u16::try_from(scaling.points.len()).unwrap_or(8).min(area.height / 3);
    plot.draw(canvas, Rect { y: area.y + 1, height: area.height.saturating_sub(2 + below), ..area });
    // Efficiency: throughput per accelerator relative to the smallest size.
    let Some(smallest) = scaling.points.first() else { return true };
    let (text, dim) = (canvas.role(Role::Text), canvas.role(Role::Dim));
    for (row, point) in (0..below).zip(&scaling.points) {
        let y = area.bottom() - below + row;
        let described = format!(
            "{:>5} nodes  {:>8} tok/s/accel  efficiency {:>7}",
            point.0,
            units::si(point.1),
            units::percent(point.1 / smallest.1.max(1e-12))
        );
        let x = canvas.text(area.x, y, area.width, &described, text) + 2;
        let closed = format!("closed form {}", units::percent(point.2 / smallest.2.max(1e-12)));
        canvas.text(x, y, area.right().saturating_sub(x), &closed, dim);
    }
    true
}

/// Requests that run and wait over time, and the share of memory below.
pub(super) fn levels(served: &Served, canvas: &mut Canvas<'_>, area: Rect) -> bool {
    let seconds = served.cell * served.timeline.len() as f64;
    let Some(time) = Axis::linear("time").range([0.0, seconds].into_iter()) else { return false };
    let counts = served.timeline.iter().flat_map(|levels| [levels.running, levels.waiting]);
    let Some((_, up)) = range("requests", counts) else { return false };
    let at = |cell: usize| time.share((cell as f64 + 0.5) * served.cell);
    let curve = |name: &str, get: fn(&atlas_sim::serving::output::Levels) -> f64, up: &Range| Series {
        points: served
            .timeline
            .iter()
            .enumerate()
            .map(|(cell, levels)| Some((at(cell), up.share(get(levels)))))
            .collect(),
        name: name.to_owned(),
        shape: Shape::Line,
    };
    names(canvas, area, &["in batches", "waiting"]);
    let across: Vec<(f64, String)> =
        time.ticks().into_iter().map(|(value, _)| (time.share(value), duration_ms(1e3 * value))).collect();
    let plot = |up: String, ticks: Vec<(f64, String)>, series: Vec<Series>| Plot {
        up,
        across: "time".to_owned(),
        ticks: [across.clone(), ticks],
        series,
        shaded: Vec::new(),
        trail: Vec::new(),
        limits: Vec::new(),
        here: None,
        cursor: None,
    };
    let upper = (area.height.saturating_sub(1)) * 3 / 5;
    let requests = plot(
        "requests".to_owned(),
        ticks(&up),
        vec![curve("in batches", |l| l.running, &up), curve("waiting", |l| l.waiting, &up)],
    );
    requests.draw(canvas, Rect { y: area.y + 1, height: upper, ..area });
    if let Some(share) = Axis::linear("KV blocks in use").range([0.0, 1.0].into_iter()) {
        let ticks = [0.0, 0.5, 1.0].map(|value| (share.share(value), units::percent(value))).to_vec();
        let memory = plot("KV blocks in use".to_owned(), ticks, vec![curve("", |l| l.kv, &share)]);
        let y = area.y + 1 + upper;
        memory.draw(canvas, Rect { y, height: area.bottom().saturating_sub(y), ..area });
    }
    true
}

/// Name of a latency, the knob of its limit, its value in a record, and the limit in ms.
type Curve = (&'static str, &'static str, fn(&RequestRecord) -> f64, Option<f64>);

/// The figures of the closed form beside the three distributions.
const CLOSED: [&Metric; 3] = [Metric::known("ttft_ms"), Metric::known("tpot_ms"), Metric::known("p50_ms")];

/// The share of faster requests over time, with a line at the limit if there is one.
pub(super) fn latencies(answer: &Answer, served: &Served, canvas: &mut Canvas<'_>, area: Rect) -> bool {
    let Some(scenario) = &answer.scenario else { return false };
    let [ttft, tpot, e2e] = scenario.simulation(&scenario.base).slo_ms;
    let curves: [Curve; 3] = [
        ("time to first token", "slo_ttft_ms", |r| r.ttft, ttft),
        ("time per output token", "slo_tpot_ms", |r| r.tpot, tpot),
        ("end to end", "slo_e2e_ms", |r| r.e2e, e2e),
    ];
    let at_once = engine::at_once(scenario);
    let estimate = engine::estimate(&at_once);
    let closed = CLOSED.map(|metric| match metric.applies_to(&at_once) {
        true => format!("closed form {}", metric.show((metric.get)(&estimate, &at_once))),
        false => String::new(),
    });
    let each = area.width / 3;
    // If they do not fit side by side, each quantile has its own line.
    let narrow = each < 30;
    for (place, ((name, knob, get, limit), closed)) in (0u16..).zip(curves.into_iter().zip(&closed)) {
        let mut sample: Vec<f64> = served.records.iter().map(|record| 1e3 * get(record)).collect();
        sort::numbers(&mut sample);
        let [Some(least), Some(most)] = [sample.first().copied(), sample.last().copied()] else { return false };
        let ends = [least, most].into_iter().chain(limit);
        let Some(across) = Axis::linear(name).range(ends) else { continue };
        let Some(up) = Axis::linear("share").range([0.0, 1.0].into_iter()) else { continue };
        let value = |share: f64| sample.get((share * (sample.len() - 1) as f64).round() as usize).copied();
        let shares = (0..=POINTS).map(|point| point as f64 / POINTS as f64);
        let points = shares.map(|share| Some((across.share(value(share)?), up.share(share)))).collect();
        let kept = limit.map(|limit| sample.partition_point(|time| *time <= limit) as f64 / sample.len() as f64);
        let plot = Plot {
            up: name.to_owned(),
            across: String::new(),
            ticks: [
                across.ticks().into_iter().map(|(value, _)| (across.share(value), duration_ms(value))).collect(),
                [0.0, 0.5, 0.9, 0.99].map(|share| (up.share(share), units::percent(share))).to_vec(),
            ],
            series: vec![Series { points, name: String::new(), shape: Shape::Line }],
            shaded: Vec::new(),
            trail: Vec::new(),
            limits: Vec::new(),
            here: None,
            cursor: limit.zip(kept).map(|(limit, kept)| (across.share(limit), Some(up.share(kept)))),
        };
        let box_ = Rect {
            x: area.x + place * each,
            width: each.saturating_sub(1),
            height: area.height.saturating_sub(if narrow { 3 } else { 2 }),
            ..area
        };
        plot.draw(canvas, box_);
        let quantile = |q: f64| value(q).map_or_else(String::new, duration_ms);
        let text = canvas.role(Role::Text);
        let median = format!("p50 {}", quantile(0.5));
        let described = match box_.width {
            _ if narrow => {
                canvas.text(box_.x, area.bottom() - 3, box_.width, &median, text);
                format!("p99 {}", quantile(0.99))
            }
            ..42 => format!("{median}  p99 {}", quantile(0.99)),
            _ => format!("{median}  p90 {}  p99 {}", quantile(0.9), quantile(0.99)),
        };
        canvas.text(box_.x, area.bottom() - 2, box_.width, &described, text);
        let (style, described) = match (limit, kept) {
            (Some(limit), Some(kept)) => {
                (canvas.role(Role::Mark), format!("{} within {}", units::percent(kept), duration_ms(limit)))
            }
            _ if closed.is_empty() => (canvas.role(Role::Dim), format!("no {knob} is set")),
            _ => (canvas.role(Role::Dim), closed.clone()),
        };
        canvas.text(box_.x, area.bottom() - 1, box_.width, &described, style);
    }
    true
}
