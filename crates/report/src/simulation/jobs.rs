//! Output of simulations of several jobs under a scheduler.

use serde_json::{Value, json};

use super::plots::Chart;
use crate::chart::{Axis, Plot, Series};
use crate::csv;
use crate::table::{Align, Table};
use atlas_core::sort;
use atlas_core::units;
use atlas_plan::simulation::jobs::Config;
use atlas_sim::cluster::Output;
use atlas_sim::kernel::Quantiles;

/// Renders the jobs as text.
#[must_use]
pub fn render(config: &Config, accelerators: u32, sizes: &[u32], out: &Output) -> String {
    let mut text = format!("{}: {} jobs on {accelerators} accelerators\n\n", config.name, config.jobs.len());
    let head = ["job", "accelerators", "submitted", "begins", "ends", "waits", "contention", "slowdown", ""];
    let align = |i: usize| if i == 0 || i == 8 { Align::Left } else { Align::Right };
    let mut table = Table::new(head.into_iter().enumerate().map(|(i, name)| (name, align(i))));
    for ((job, record), size) in config.jobs.iter().zip(&out.jobs).zip(sizes) {
        let mut cells = vec![job.name.clone(), size.to_string(), units::duration(job.submitted.0)];
        match record {
            Some(r) => cells.extend([
                units::duration(r.begin),
                units::duration(r.end),
                units::duration(r.wait),
                units::significant(r.contention, 3),
                units::significant(r.slowdown, 3),
                if r.stopped_at_limit { "stopped at its time limit".to_owned() } else { String::new() },
            ]),
            None => cells.extend(["", "", "", "", "", "did not end"].map(str::to_owned)),
        }
        table.row(cells);
    }
    text += &table.render();
    text += &format!(
        "\nutilization {}, mean wait {}, p99 {}, mean queue length {:.2} jobs, all done after {}\n",
        units::percent(out.utilization),
        units::duration(out.wait.mean),
        units::duration(out.wait.p99),
        out.waiting,
        units::duration(out.seconds)
    );
    text += "contention: run time / run time without other jobs; slowdown: time from submission to end / run time\n";
    text
}

/// Returns CSV, a line per job.
#[must_use]
pub fn csv_of(config: &Config, sizes: &[u32], out: &Output) -> String {
    let mut text = csv::line([
        "job",
        "accelerators",
        "submitted_s",
        "begin_s",
        "end_s",
        "wait_s",
        "contention",
        "slowdown",
        "cut",
    ]);
    for ((job, record), size) in config.jobs.iter().zip(&out.jobs).zip(sizes) {
        let mut cells = vec![job.name.clone(), size.to_string(), job.submitted.0.to_string()];
        match record {
            Some(r) => {
                cells.extend([r.begin, r.end, r.wait, r.contention, r.slowdown].map(|v| v.to_string()));
                cells.push(r.stopped_at_limit.to_string());
            }
            None => cells.extend(std::iter::repeat_n(String::new(), 6)),
        }
        text += &csv::line(&cells);
    }
    text
}

/// Plot of the number of busy accelerators over time.
#[must_use]
pub fn chart(config: &Config, accelerators: u32, sizes: &[u32], out: &Output) -> Chart {
    let mut edges: Vec<(f64, f64)> = Vec::new();
    for (record, size) in out.jobs.iter().zip(sizes) {
        if let Some(r) = record {
            edges.extend([(r.begin, f64::from(*size)), (r.end, -f64::from(*size))]);
        }
    }
    sort::by(&mut edges, |a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut level = 0.0;
    let mut points = vec![(0.0, 0.0)];
    for (at, change) in edges {
        points.push((at / 3600.0, level));
        level += change;
        points.push((at / 3600.0, level));
    }
    let all = f64::from(accelerators);
    let series = vec![
        Series { name: "at work".to_owned(), points, joined: true },
        Series { name: "all".to_owned(), points: vec![(0.0, all), (out.seconds / 3600.0, all)], joined: true },
    ];
    let title = format!("{}: accelerators in use", config.name);
    Chart::Plot(Plot {
        title,
        across: Axis::linear("hours"),
        up: Axis::linear("accelerators"),
        series,
        highlighted: None,
    })
}

/// Returns the jobs as a JSON value.
#[must_use]
pub fn document(config: &Config, accelerators: u32, sizes: &[u32], out: &Output) -> Value {
    let quantiles = |q: &Quantiles| json!({"mean": q.mean, "p50": q.p50, "p90": q.p90, "p99": q.p99, "max": q.most});
    let jobs = config.jobs.iter().zip(&out.jobs).zip(sizes).map(|((job, record), size)| {
        json!({
            "name": job.name, "accelerators": size, "submitted": job.submitted.0,
            "begin": record.map(|r| r.begin), "end": record.map(|r| r.end), "wait": record.map(|r| r.wait),
            "contention": record.map(|r| r.contention), "slowdown": record.map(|r| r.slowdown),
            "cut": record.map(|r| r.stopped_at_limit),
        })
    });
    json!({
        "name": config.name,
        "kind": "jobs",
        "accelerators": accelerators,
        "utilization": out.utilization,
        "makespan": out.seconds,
        "mean_waiting_jobs": out.waiting,
        "wait": quantiles(&out.wait),
        "slowdown": quantiles(&out.slowdown),
        "jobs": jobs.collect::<Vec<_>>(),
    })
}
