//! Draws curves: requests and latencies of a serving run, and a training job at increasing scale.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::Answer;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::sweep::view::range;
use crate::tui::widgets::draw::{Canvas, wrap};
use crate::tui::widgets::plot::{Plot, Series, Shape, color, letter};
use crate::tui::work::simulating::Scaling;
use atlas_core::sort;
use atlas_core::units;
use atlas_core::units::{duration, duration_ms, durations_ms};
use atlas_plan::engine;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_report::chart::Axis;
use atlas_report::chart::axis::Range;
use atlas_sim::serving::output::Levels;
use atlas_sim::serving::{Output as Served, RequestRecord};

/// Number of points of a distribution's curve.
const POINTS: usize = 200;

/// Returns the ticks of an axis.
fn ticks(range: &Range) -> Vec<(f64, String)> {
    range.ticks().into_iter().map(|(value, label)| (range.share(value), label)).collect()
}

/// Draws a legend above a plot: letters and names.
fn names(canvas: &mut Canvas<'_>, area: Rect, names: &[&str]) {
    let mut x = area.x;
    for (index, name) in names.iter().enumerate() {
        let style = canvas.role(color(index));
        x = canvas.text(x, area.y, area.right().saturating_sub(x), &format!("{} {name}", letter(index)), style) + 3;
    }
}

/// Draws throughput per accelerator over the number of nodes, simulated and analytical.
pub(super) fn scale(scaling: &Scaling, canvas: &mut Canvas<'_>, area: Rect) -> bool {
    let nodes = Axis::log("nodes").range(scaling.points.iter().map(|point| point.0));
    let values = scaling.points.iter().flat_map(|point| [point.1, point.2]);
    let (Some(nodes), Some(up)) = (nodes, Axis::linear(scaling.metric.label).range(values)) else { return false };
    let curve = |get: fn(&(f64, f64, f64)) -> f64| Series {
        points: scaling.points.iter().map(|point| Some((nodes.share(point.0), up.share(get(point))))).collect(),
        name: String::new(),
        shape: Shape::Line,
    };
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
        highlighted: scaling
            .points
            .iter()
            .find(|point| point.0 == scaling.here)
            .map(|point| (nodes.share(point.0), up.share(point.1))),
        cursor: None,
    };
    let least = u16::try_from(scaling.points.len()).unwrap_or(8);
    let below = least.min(area.height / 3);
    let picture = Rect { y: area.y + 1, height: area.height.saturating_sub(2 + below), ..area };
    // If the chart does not fit, only its values are shown.
    let (below, charted) = if plot.fits(picture) { (below, true) } else { (least.min(area.height), false) };
    if charted {
        names(canvas, area, &["simulated", "closed form"]);
        plot.draw(canvas, picture);
    }
    // Efficiency: throughput per accelerator relative to the smallest size.
    let Some(smallest) = scaling.points.first() else { return true };
    let (text, dim) = (canvas.role(Role::Text), canvas.role(Role::Dim));
    let top = if charted { area.bottom() - below } else { area.y };
    for (row, point) in (0..below).zip(&scaling.points) {
        let y = top + row;
        let nodes = format!("{:>5} {:<5}", point.0, if point.0 == 1.0 { "node" } else { "nodes" });
        let efficiency = units::percent(point.1 / smallest.1.max(1e-12));
        let described = match area.width {
            ..50 => format!("{nodes}  {:>8}  {efficiency:>7}", units::si(point.1)),
            _ => format!("{nodes}  {:>8} tok/s/accel  efficiency {efficiency:>7}", units::si(point.1)),
        };
        let x = canvas.text(area.x, y, area.width, &described, text) + 2;
        let closed = format!("closed form {}", units::percent(point.2 / smallest.2.max(1e-12)));
        let room = area.right().saturating_sub(x);
        if closed.width() <= usize::from(room) {
            canvas.text(x, y, room, &closed, dim);
        }
    }
    true
}

/// Draws running and waiting requests over time, and below them the fraction of the KV cache in use.
pub(super) fn levels(answer: &Answer, served: &Served, canvas: &mut Canvas<'_>, area: Rect) -> bool {
    let seconds = served.cell * served.timeline.len() as f64;
    let Some(time) = Axis::linear("time").range([0.0, seconds].into_iter()) else { return false };
    let counts = served.timeline.iter().flat_map(|levels| [levels.running, levels.waiting]);
    let Some((_, up)) = range("requests", counts) else { return false };
    let Some(share) = Axis::linear("KV in use").range([0.0, 1.0].into_iter()) else { return false };
    let at = |cell: usize| time.share((cell as f64 + 0.5) * served.cell);
    let curve = |name: &str, get: Level, up: &Range| Series {
        points: served
            .timeline
            .iter()
            .enumerate()
            .map(|(cell, levels)| Some((at(cell), up.share(get(levels)))))
            .collect(),
        name: name.to_owned(),
        shape: Shape::Line,
    };
    let across = times(&time, 1e3);
    let plot = |up: String, ticks: Vec<(f64, String)>, series: Vec<Series>| Plot {
        up,
        across: "time".to_owned(),
        ticks: [across.clone(), ticks],
        series,
        shaded: Vec::new(),
        trail: Vec::new(),
        limits: Vec::new(),
        highlighted: None,
        cursor: None,
    };
    let [running, waiting, kv]: [(&str, Level); 3] =
        [("running", |l| l.running), ("waiting", |l| l.waiting), ("KV in use", |l| l.kv_share)];
    let requests = plot(
        requests_of(answer, served),
        ticks(&up),
        [running, waiting].map(|(name, get)| curve(name, get, &up)).into(),
    );
    let quarters = [0.0, 0.5, 1.0].map(|value| (share.share(value), units::percent(value))).to_vec();
    let memory = plot(kv.0.to_owned(), quarters, vec![curve("", kv.1, &share)]);
    // Levels whose chart does not fit are summarized as text.
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let [upper, lower] = halves(below);
    let most = Rect { height: below.height.saturating_sub(1), ..below };
    let (charted, summarized): (_, &[(&str, Level)]) = if requests.fits(upper) && memory.fits(lower) {
        (vec![(&requests, upper), (&memory, lower)], &[])
    } else if requests.fits(most) {
        (vec![(&requests, most)], &[kv])
    } else {
        (Vec::new(), &[running, waiting, kv])
    };
    let mut top = area.bottom().saturating_sub(1);
    if charted.is_empty() {
        let head = format!("{} over {}", requests_of(answer, served), duration(seconds));
        top = area.y;
        for line in wrap(&head, usize::from(area.width)).into_iter().take(usize::from(area.height)) {
            canvas.text(area.x, top, area.width, &line, canvas.role(Role::Dim));
            top += 1;
        }
    } else {
        names(canvas, area, &[running.0, waiting.0]);
    }
    for (picture, place) in &charted {
        picture.draw(canvas, *place);
    }
    for (y, (name, get)) in (top..area.bottom()).zip(summarized) {
        let count = served.timeline.len().max(1) as f64;
        let mean = served.timeline.iter().map(get).sum::<f64>() / count;
        let most = served.timeline.iter().map(get).fold(0.0, f64::max);
        let [mean, most] = [mean, most].map(|value| match *name {
            name if name == kv.0 => units::percent(value),
            _ => units::significant_short((10.0 * value).round() / 10.0),
        });
        canvas.text(area.x, y, area.width, &format!("{name}: mean {mean}, max {most}"), canvas.role(Role::Text));
    }
    true
}

/// Accessor of a level.
type Level = fn(&Levels) -> f64;

/// Splits an area into two, the upper one taller.
fn halves(area: Rect) -> [Rect; 2] {
    let upper = area.height * 3 / 5;
    [Rect { height: upper, ..area }, Rect { y: area.y + upper, height: area.height - upper, ..area }]
}

/// Describes which requests are counted: identical replicas are simulated once.
fn requests_of(answer: &Answer, served: &Served) -> String {
    let replicas = answer.scenario.as_ref().map_or(1.0, |scenario| f64::from(scenario.base.shape.dp));
    let simulated = served.timeline.iter().map(|levels| levels.replicas).fold(0.0, f64::max).round();
    if simulated < replicas { format!("requests on one of {replicas} replicas") } else { "requests".to_owned() }
}

/// Returns the ticks of a time axis, in one unit. `ms` is the unit of the values in ms.
fn times(range: &Range, ms: f64) -> Vec<(f64, String)> {
    let ticks = range.ticks();
    let longest = ticks.iter().map(|(value, _)| value.abs()).fold(0.0, f64::max);
    let label = |value: f64| {
        let [label, _] = durations_ms([ms * value, ms * longest]);
        label
    };
    ticks.iter().map(|(value, _)| (range.share(*value), label(*value))).collect()
}

/// A latency: its long and short name, the knob of its limit, its value in a record, and the limit in ms.
type Curve = (&'static str, &'static str, &'static str, fn(&RequestRecord) -> f64, Option<f64>);

/// Metrics of the analytical model shown with the three distributions.
const CLOSED: [&Metric; 3] = [MetricId::TtftMs.metric(), MetricId::TpotMs.metric(), MetricId::P50Ms.metric()];

/// Minimum width of a distribution with its values below; if narrower, the values are in a table below all of them.
const MIN_CHART_COLUMNS: u16 = 30;

/// Draws the cumulative distribution of each latency, with a line at the limit if there is one.
pub(super) fn latencies(answer: &Answer, served: &Served, canvas: &mut Canvas<'_>, area: Rect) -> bool {
    let Some(scenario) = &answer.scenario else { return false };
    let [ttft, tpot, e2e] = scenario.simulation(&scenario.base).slo_ms;
    let curves: [Curve; 3] = [
        ("time to first token", "TTFT", "slo_ttft_ms", |r| r.ttft, ttft),
        ("time per output token", "TPOT", "slo_tpot_ms", |r| r.tpot, tpot),
        ("end to end", "E2E", "slo_e2e_ms", |r| r.e2e, e2e),
    ];
    let at_once = engine::analytical_scenario(scenario);
    let estimate = engine::estimate(&at_once);
    let closed = CLOSED.map(|metric| metric.applicable_value(&estimate, &at_once).map(|value| metric.show(value)));
    let each = area.width / 3;
    let narrow = each < MIN_CHART_COLUMNS;
    let limited = curves.iter().any(|(.., limit)| limit.is_some());
    // The rows of the table, under its heading.
    let mut rows = vec![["", "p50", "p99", if limited { "SLO met" } else { "closed form" }].map(str::to_owned)];
    let text = canvas.role(Role::Text);
    for (place, ((name, short, knob, get, limit), closed)) in (0u16..).zip(curves.into_iter().zip(closed)) {
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
            up: if narrow { short } else { name }.to_owned(),
            across: String::new(),
            ticks: [
                times(&across, 1.0),
                [0.0, 0.5, 0.9, 0.99].map(|share| (up.share(share), units::percent(share))).to_vec(),
            ],
            series: vec![Series { points, name: String::new(), shape: Shape::Line }],
            shaded: Vec::new(),
            trail: Vec::new(),
            limits: Vec::new(),
            highlighted: None,
            cursor: limit.zip(kept).map(|(limit, kept)| (across.share(limit), Some(up.share(kept)))),
        };
        let below = if narrow { TABLE } else { 2 };
        let box_ = Rect {
            x: area.x + place * each,
            width: each.saturating_sub(1),
            height: area.height.saturating_sub(below),
            ..area
        };
        if plot.fits(box_) {
            plot.draw(canvas, box_);
        }
        let quantile = |q: f64| value(q).map_or_else(String::new, duration_ms);
        if narrow {
            let last = match kept {
                Some(kept) => units::percent(kept),
                None if limited => "–".to_owned(),
                None => closed.unwrap_or_else(|| "–".to_owned()),
            };
            rows.push([short.to_owned(), quantile(0.5), quantile(0.99), last]);
            continue;
        }
        let described = match box_.width {
            ..42 => format!("p50 {}  p99 {}", quantile(0.5), quantile(0.99)),
            _ => format!("p50 {}  p90 {}  p99 {}", quantile(0.5), quantile(0.9), quantile(0.99)),
        };
        canvas.text(box_.x, area.bottom() - 2, box_.width, &described, text);
        let (style, described) = match (limit, kept, closed) {
            (Some(limit), Some(kept), _) => {
                (canvas.role(Role::Mark), format!("{} within {}", units::percent(kept), duration_ms(limit)))
            }
            (.., Some(closed)) => (canvas.role(Role::Dim), format!("closed form {closed}")),
            _ => (canvas.role(Role::Dim), format!("no {knob} is set")),
        };
        canvas.text(box_.x, area.bottom() - 1, box_.width, &described, style);
    }
    if narrow {
        let top = area.bottom().saturating_sub(TABLE).max(area.y);
        let dim = canvas.role(Role::Dim);
        for (y, (nth, [name, cells @ ..])) in (top..area.bottom()).zip(rows.iter().enumerate()) {
            let style = if nth == 0 { dim } else { text };
            canvas.text(area.x, y, 5, name, dim);
            // Columns of ten, with space for the last heading.
            for (place, cell) in (0u16..).zip(cells) {
                let width = if place == 2 { 11 } else { 9 };
                canvas.right(
                    area.x + 5 + 10 * place,
                    y,
                    width.min(area.width.saturating_sub(5 + 10 * place)),
                    cell,
                    style,
                );
            }
        }
    }
    true
}

/// Number of lines of the table of latencies: a heading, and one for each.
const TABLE: u16 = 4;
