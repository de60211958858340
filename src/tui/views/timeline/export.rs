//! The document of the timeline: the tasks of a step, weak scaling, a serving run over time, or its latencies.

use crate::tui::app::{Answer, App};
use crate::tui::dialogs::export::parts::{WIDTH, about, charted, left, right, titled};
use crate::tui::views::timeline::view::{KINDS, busy_of_step, lane_name, named, plain, task_text};
use crate::tui::views::timeline::{Picture, Timeline, picture};
use crate::tui::work::simulating::Scaling;
use atlas_core::sort;
use atlas_core::units;
use atlas_report::chart::pictures;
use atlas_report::chart::{Axis, Plot, Series};
use atlas_report::document::Document;
use atlas_report::study::{Block, Cell, Grid};
use atlas_sim::serving::output::Levels;
use atlas_sim::serving::{Output as Served, RequestRecord};

/// Number of points of the curve of a distribution.
const POINTS: usize = 200;
/// Quantiles listed in a table.
const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)];

/// The current chart of the timeline; `None` while it is being simulated.
pub(in crate::tui) fn document(app: &App) -> Option<Document> {
    let about = &about(&app.now.setup);
    let served = || app.current_run()?.serving.as_ref();
    match picture(app) {
        Picture::Tasks => {
            app.current_run()?;
            tasks(&app.timeline, about)
        }
        Picture::Scaling => app.queries.scaling.answer().map(|scaling| scale(scaling, about)),
        Picture::Levels => served().map(|served| levels(served, about)),
        Picture::Latencies => served().and_then(|served| latencies(&app.answer, served, about)),
    }
}

fn time(seconds: f64) -> Cell {
    Cell::number(units::duration(seconds), seconds)
}

fn tasks(timeline: &Timeline, about: &str) -> Option<Document> {
    let (first, last) = timeline.span;
    let kind = |kind| KINDS.iter().position(|known| *known == plain(kind)).unwrap_or_default();
    let (mut lanes, mut rows, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for lane in &timeline.lanes {
        let name = lane_name(lane);
        let mut drawn = Vec::new();
        for number in &lane.tasks {
            let Some(task) = timeline.task(*number) else { continue };
            let (begin, end) = (task.begin - first, task.end - first);
            let critical = timeline.critical.get(*number as usize).copied().unwrap_or_default();
            drawn.push(pictures::Task {
                kind: kind(task.kind),
                span: (begin, end),
                tooltip: format!("{}, {}", task_text(task), units::duration(end - begin)),
            });
            rows.push(vec![
                Cell::text(name.clone()),
                Cell::text(named(task.kind).0),
                Cell::number(task.micro.to_string(), f64::from(task.micro)),
                Cell::number(task.chunk.to_string(), f64::from(task.chunk)),
                time(begin),
                time(end),
                Cell::text(if critical { "yes" } else { "no" }),
            ]);
        }
        let busy = busy_of_step(timeline, lane);
        shares.push(vec![Cell::text(name.clone()), count(drawn.len()), Cell::number(units::percent(busy), busy)]);
        lanes.push((name, drawn));
    }
    let ticks = Axis::linear("time").range([0.0, last - first].into_iter())?.ticks();
    let ticks: Vec<_> = ticks.into_iter().map(|(at, _)| (at, units::duration(at))).collect();
    let kinds: Vec<String> = KINDS.iter().map(|kind| named(*kind).0.to_owned()).collect();
    let chart = pictures::lanes("Tasks of a step", &lanes, &ticks, &kinds, WIDTH)?;
    let critical = timeline.critical.iter().filter(|critical| **critical).count();
    let text = format!(
        "A step of {}: {} tasks on {} streams, {critical} of them on the critical path. Identical replicas are shown \
         once.",
        units::duration(last - first),
        rows.len(),
        lanes.len()
    );
    let head = vec![
        left("stream"),
        left("task"),
        right("micro"),
        right("chunk"),
        right("begin_s"),
        right("end_s"),
        left("critical"),
    ];
    let busy = Grid { head: vec![left("stream"), right("tasks"), right("busy")], rows: shares };
    let blocks = vec![Block::Text(text), Block::Picture(chart), Block::Heat(busy)];
    Some(titled(format!("A step of {about}, simulated"), blocks, Grid { head, rows }))
}

fn count(count: usize) -> Cell {
    Cell::text(count.to_string())
}

fn scale(scaling: &Scaling, about: &str) -> Document {
    let metric = scaling.metric;
    let series = |name: &str, get: fn(&(f64, f64, f64)) -> f64| Series {
        name: name.to_owned(),
        points: scaling.points.iter().map(|point| (point.0, get(point))).collect(),
        joined: true,
    };
    let here = scaling.points.iter().find(|point| point.0 == scaling.here).map(|point| (point.0, point.1));
    let plot = Plot {
        title: format!("{} over the number of nodes", metric.label),
        across: Axis::log("nodes"),
        up: Axis::linear(format!("{} ({})", metric.label, metric.unit)),
        series: vec![series("simulated", |point| point.1), series("closed form", |point| point.2)],
        highlighted: here,
    };
    let smallest = scaling.points.first().copied().unwrap_or((1.0, 1.0, 1.0));
    let rows = scaling.points.iter().map(|point| {
        let share = |now: f64, then: f64| {
            let share = now / then.max(1e-12);
            Cell::number(units::percent(share), share)
        };
        vec![
            Cell::number(point.0.to_string(), point.0),
            Cell::number(metric.show(point.1), point.1),
            share(point.1, smallest.1),
            Cell::number(metric.show(point.2), point.2),
            share(point.2, smallest.2),
        ]
    });
    let head = ["nodes", "simulated", "efficiency", "closed form", "closed-form efficiency"].map(right).to_vec();
    let rows = Grid { head, rows: rows.collect() };
    let text = "Weak scaling: constant work per accelerator; efficiency is relative to the smallest size.".to_owned();
    let blocks = std::iter::once(Block::Text(text)).chain(charted(&plot)).chain([Block::Table(rows.clone())]).collect();
    titled(format!("Weak scaling: {about}"), blocks, rows)
}

fn levels(served: &Served, about: &str) -> Document {
    let at = |cell: usize| (cell as f64 + 0.5) * served.cell;
    let curve = |name: &str, get: fn(&Levels) -> f64| Series {
        name: name.to_owned(),
        points: served.timeline.iter().enumerate().map(|(cell, levels)| (at(cell), get(levels))).collect(),
        joined: true,
    };
    let plot = |title: &str, up: Axis, series: Vec<Series>| {
        charted(&Plot { title: title.to_owned(), across: Axis::linear("time (s)"), up, series, highlighted: None })
    };
    let requests = vec![curve("running", |levels| levels.running), curve("waiting", |levels| levels.waiting)];
    let share = |value: f64| Cell::number(units::percent(value), value);
    let rows = served.timeline.iter().enumerate().map(|(cell, levels)| {
        let shown = |value: f64| Cell::number(units::significant(value, 4), value);
        vec![
            Cell::number(units::significant(at(cell), 4), at(cell)),
            shown(levels.running),
            shown(levels.waiting),
            share(levels.kv_share),
            shown(levels.replicas),
        ]
    });
    let head = ["time_s", "running", "waiting", "kv_share", "replicas"].map(right).to_vec();
    let rows = Grid { head, rows: rows.collect() };
    let text = format!("Averages over bins of {}, including ramp-up and drain.", units::duration(served.cell));
    let count = served.timeline.len().max(1) as f64;
    let of = |name: &str, get: fn(&Levels) -> f64, show: fn(f64) -> String| {
        let mean = served.timeline.iter().map(get).sum::<f64>() / count;
        let most = served.timeline.iter().map(get).fold(0.0, f64::max);
        vec![Cell::text(name), Cell::number(show(mean), mean), Cell::number(show(most), most)]
    };
    let number = |value: f64| units::significant(value, 4);
    let described = Grid {
        head: vec![left(""), right("mean"), right("max")],
        rows: vec![
            of("running requests", |levels| levels.running, number),
            of("waiting requests", |levels| levels.waiting, number),
            of("KV blocks in use", |levels| levels.kv_share, units::percent),
            of("replicas", |levels| levels.replicas, number),
        ],
    };
    let charts = [
        plot("Requests", Axis::linear("requests"), requests),
        plot("KV blocks in use", Axis::linear("share"), vec![curve("KV blocks", |levels| levels.kv_share)]),
    ];
    let blocks =
        std::iter::once(Block::Text(text)).chain(charts.into_iter().flatten()).chain([Block::Table(described)]);
    let blocks = blocks.collect();
    titled(format!("A run of {about}, simulated"), blocks, rows)
}

/// Name of a latency, its getter in seconds, and its limit in ms.
type Latency = (&'static str, fn(&RequestRecord) -> f64, Option<f64>);

fn latencies(answer: &Answer, served: &Served, about: &str) -> Option<Document> {
    let scenario = answer.scenario.as_ref()?;
    let [ttft, tpot, e2e] = scenario.simulation(&scenario.base).slo_ms;
    let all: [Latency; 3] = [
        ("time to first token", |record| record.ttft, ttft),
        ("time per output token", |record| record.tpot, tpot),
        ("end to end", |record| record.e2e, e2e),
    ];
    let (mut series, mut rows) = (Vec::new(), Vec::new());
    for (name, get, limit) in all {
        let mut sample: Vec<f64> = served.records.iter().map(|record| 1e3 * get(record)).collect();
        sort::numbers(&mut sample);
        let last = sample.len().checked_sub(1)? as f64;
        let value = |share: f64| sample.get((share * last).round() as usize).copied();
        let shares = (0..=POINTS).map(|point| point as f64 / POINTS as f64);
        let points = shares.filter_map(|share| Some((value(share)?, share))).collect();
        series.push(Series { name: name.to_owned(), points, joined: true });
        let mut cells = vec![Cell::text(name)];
        for (_, share) in QUANTILES {
            let value = value(share)?;
            cells.push(Cell::number(units::duration_ms(value), value));
        }
        let kept = limit.map(|limit| sample.partition_point(|time| *time <= limit) as f64 / (last + 1.0));
        cells.push(limit.map_or_else(|| Cell::text("–"), |limit| Cell::number(units::duration_ms(limit), limit)));
        cells.push(kept.map_or_else(|| Cell::text("–"), |kept| Cell::number(units::percent(kept), kept)));
        rows.push(cells);
    }
    let mut head = vec![left("latency, ms")];
    head.extend(QUANTILES.map(|(name, _)| right(name)));
    head.extend([right("limit"), right("within limit")]);
    let rows = Grid { head, rows };
    let plot = Plot {
        title: "Latency CDF".to_owned(),
        across: Axis::log("ms"),
        up: Axis::linear("share"),
        series,
        highlighted: None,
    };
    let text = format!("Latencies of {} requests.", served.records.len());
    let blocks = std::iter::once(Block::Text(text)).chain(charted(&plot)).chain([Block::Table(rows.clone())]).collect();
    Some(titled(format!("Latencies of {about}, simulated"), blocks, rows))
}
