//! Charts of runs, by their file names.

use crate::chart::{Axis, Bar, Bars, Plot, Series, drawing};
use atlas_core::sort;
use atlas_core::units;
use atlas_plan::simulation::{Measured, serving, training};

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Points over two axes.
    Plot(Plot),
    /// Bars.
    Bars(Bars),
}

impl Chart {
    /// Lays out the chart; `None` if there is nothing to show.
    #[must_use]
    pub fn drawing(&self) -> Option<drawing::Drawing> {
        match self {
            Chart::Plot(plot) => drawing::plot(plot, 760.0, 420.0),
            Chart::Bars(bars) => drawing::bars(bars, 760.0),
        }
    }
}

/// Names and charts of a run.
#[must_use]
pub fn of(measured: &Measured) -> Vec<(&'static str, Chart)> {
    match measured {
        Measured::Training(m) => {
            let mut all = vec![
                ("iteration_breakdown", Chart::Bars(breakdown(m))),
                ("resource_utilization", Chart::Bars(stages(m))),
            ];
            if !m.allocation.curve.is_empty() {
                all.push(("memory_over_step", Chart::Plot(memory(m))));
            }
            if m.output.steps.len() > 1 {
                all.push(("iteration_times", Chart::Plot(iterations(m))));
            }
            all
        }
        Measured::Serving(m) => vec![
            ("latency_cdf", Chart::Plot(cdf(m))),
            ("queue_over_time", Chart::Plot(queue(m))),
            ("resource_utilization", Chart::Bars(resources(m))),
        ],
    }
}

fn bar(name: impl Into<String>, parts: Vec<(String, f64)>, shown: String, limit: Option<f64>) -> Bar {
    Bar { name: name.into(), parts, label: shown, interval: None, limit }
}

fn breakdown(m: &training::Measured) -> Bars {
    let parts = |parts: &training::Parts| {
        parts.list().iter().map(|(part, seconds)| (part.name().to_owned(), 1e3 * seconds)).collect::<Vec<_>>()
    };
    let row = |name: &str, p: &training::Parts| bar(name, parts(p), units::duration(p.total()), None);
    Bars {
        title: "Step time by part".to_owned(),
        bars: vec![row("simulated", &m.parts), row("closed form", &m.closed_parts())],
    }
}

/// A bar with a single part, for a share in percent.
fn share(name: impl Into<String>, share: f64, limit: Option<f64>) -> Bar {
    bar(name, vec![("share".to_owned(), 100.0 * share)], units::percent(share), limit.map(|limit| 100.0 * limit))
}

/// Maximum pipeline stages that are shown individually.
const MAX_STAGES: usize = 24;

fn stages(m: &training::Measured) -> Bars {
    use atlas_plan::simulation::bottleneck::{COMPUTE, MEMORY, NETWORK};
    let step = m.output.step.mean.max(1e-12);
    let mut bars = vec![
        share("computing", m.parts.compute / step, Some(COMPUTE)),
        share("memory", m.memory.total() / m.capacity.max(1.0), Some(MEMORY)),
        share("waiting for the network", m.parts.communication / step, Some(NETWORK)),
        share("network in use", m.network_busy, None),
    ];
    let several = m.output.stages.len() > 1;
    for (number, stage) in m.output.stages.iter().enumerate().take(if several { MAX_STAGES } else { 0 }) {
        bars.push(share(format!("stage {number} computing"), stage.compute / step, None));
    }
    Bars { title: "Resource utilization, %".to_owned(), bars }
}

fn iterations(m: &training::Measured) -> Plot {
    let points = m.output.steps.iter().enumerate().map(|(number, step)| (number as f64 + 1.0, 1e3 * step));
    let flat = |y: f64| vec![(1.0, y), (m.output.steps.len() as f64, y)];
    let series = |name: &str, points| Series { name: name.to_owned(), points, joined: true };
    Plot {
        title: "Step time".to_owned(),
        across: Axis { from_zero: false, ..Axis::linear("step") },
        up: Axis::linear("ms"),
        series: vec![
            series("simulated", points.collect()),
            series("uniform hardware", flat(1e3 * m.even_step)),
            series("closed form", flat(1e3 * m.analytical_step)),
        ],
        highlighted: None,
    }
}

fn memory(m: &training::Measured) -> Plot {
    let a = &m.allocation;
    let curve = |name: &str, of: fn(&(f64, f64)) -> f64| Series {
        name: name.to_owned(),
        points: a.curve.iter().enumerate().map(|(pass, at)| (pass as f64 + 1.0, 1e-9 * of(at))).collect(),
        joined: true,
    };
    let count = a.curve.len() as f64;
    let capacity = vec![(1.0, 1e-9 * m.capacity), (count, 1e-9 * m.capacity)];
    Plot {
        title: format!("Memory over a step, stage {}", a.stage),
        across: Axis { from_zero: false, ..Axis::linear("pass") },
        up: Axis::linear("GB"),
        series: vec![
            curve("in use", |at| at.0),
            curve("reserved", |at| at.1),
            Series { name: "capacity".to_owned(), points: capacity, joined: true },
        ],
        highlighted: None,
    }
}

/// Maximum points of a cumulative distribution function.
const CDF_POINTS: usize = 400;

fn cdf(m: &serving::Measured) -> Plot {
    let curve = |name: &str, of: fn(&atlas_sim::serving::RequestRecord) -> f64| {
        let mut sample: Vec<f64> = m.output.records.iter().map(of).filter(|s| *s > 0.0).map(|s| 1e3 * s).collect();
        sort::numbers(&mut sample);
        let count = sample.len();
        let step = count.div_ceil(CDF_POINTS).max(1);
        let last = count.saturating_sub(1);
        let kept = sample.iter().enumerate().filter(|(rank, _)| rank % step == 0 || *rank == last);
        let points = kept.map(|(rank, ms)| (*ms, (rank as f64 + 1.0) / count as f64)).collect();
        Series { name: name.to_owned(), points, joined: true }
    };
    let mut series = vec![curve("TTFT", |r| r.ttft), curve("TPOT", |r| r.tpot), curve("E2E", |r| r.e2e)];
    for (name, limit) in [("TTFT limit", m.slo.ttft), ("TPOT limit", m.slo.tpot), ("E2E limit", m.slo.e2e)] {
        if let Some(limit) = limit {
            let points = vec![(1e3 * limit, 0.0), (1e3 * limit, 1.0)];
            series.push(Series { name: name.to_owned(), points, joined: true });
        }
    }
    Plot {
        title: "Latency: share of requests within".to_owned(),
        across: Axis::log("ms"),
        up: Axis::linear("share of requests"),
        series,
        highlighted: None,
    }
}

fn queue(m: &serving::Measured) -> Plot {
    let o = &m.output;
    let curve = |name: &str, of: fn(&atlas_sim::serving::output::Levels) -> f64| Series {
        name: name.to_owned(),
        points: o.timeline.iter().enumerate().map(|(at, l)| ((at as f64 + 0.5) * o.cell, of(l))).collect(),
        joined: true,
    };
    let mut series = vec![curve("waiting", |l| l.waiting), curve("running", |l| l.running)];
    if o.timeline.windows(2).any(|pair| matches!(pair, [a, b] if a.replicas != b.replicas)) {
        series.push(curve("replicas", |l| l.replicas));
    }
    Plot {
        title: "Queue over time".to_owned(),
        across: Axis::linear("s"),
        up: Axis::linear("requests"),
        series,
        highlighted: None,
    }
}

fn resources(m: &serving::Measured) -> Bars {
    use atlas_plan::simulation::bottleneck::{COMPUTE, MEMORY, NETWORK};
    let o = &m.output;
    let (memory, peak) = m.memory_use();
    let network = m.communication() * o.busy;
    Bars {
        title: "Resource utilization, %".to_owned(),
        bars: vec![
            share("stepping", o.busy, Some(COMPUTE)),
            share("KV blocks, mean", o.kv_share, Some(MEMORY)),
            share("KV blocks, peak", o.max_kv_share, None),
            share("device memory, mean", memory, None),
            share("device memory, peak", peak, None),
            share("communication between ranks", network, Some(NETWORK)),
        ],
    }
}
