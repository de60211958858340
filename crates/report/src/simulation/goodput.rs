//! Output of the study of failures and checkpoints.

use atlas_core::math;
use serde_json::{Value, json};

use crate::chart::{Axis, Plot, Series};
use crate::table::{Table, left, right, wrap};
use atlas_core::sort;
use atlas_core::units;
use atlas_plan::simulation::goodput::{SHARES, Study};
use atlas_sim::kernel::Interval;

fn with_width(interval: &Interval) -> String {
    if interval.half_width.is_finite() {
        format!("{} ± {}", units::percent(interval.mean), units::percent(interval.half_width))
    } else {
        units::percent(interval.mean)
    }
}

/// Renders the study as text.
#[must_use]
pub fn render(study: &Study, width: usize) -> String {
    let i = &study.input;
    let mut out = format!(
        "failures and checkpoints: {} nodes; mean time between failures {} per node, {} overall\n",
        i.nodes,
        units::duration(i.node_mtbf),
        units::duration(i.mtbf())
    );
    out += &format!(
        "a checkpoint of {} GB takes {}; optimal interval: {} (Young), {} (Daly)\n\n",
        units::si(study.checkpoint_bytes * 1e-9),
        units::duration(i.checkpoint),
        units::duration(i.young_interval()),
        units::duration(i.daly_interval())
    );
    let mut table = Table::new([right("interval"), right("goodput"), left("")]);
    let young = i.young_interval();
    let nearest = |to: f64| {
        study
            .choices
            .iter()
            .map(|choice| choice.interval)
            .min_by(|a, b| math::ln(a / to).abs().total_cmp(&math::ln(b / to).abs()))
            .unwrap_or(0.0)
    };
    let (at_young, at_daly) = (nearest(young), nearest(i.daly_interval()));
    for choice in &study.choices {
        let mut marks = Vec::new();
        if study.best.is_some_and(|best| best.interval == choice.interval) {
            marks.push("best");
        }
        if choice.interval == at_young {
            marks.push("Young");
        }
        if choice.interval == at_daly {
            marks.push("Daly");
        }
        table.row([units::duration(choice.interval), with_width(&choice.goodput), marks.join(", ")]);
    }
    if !study.choices.is_empty() {
        out += &table.render();
        out.push('\n');
    }
    let mut table =
        Table::new([left(format!("every {}", units::duration(i.interval))), right("share of the time".to_owned())]);
    for (name, share) in SHARES.iter().zip(&study.shares) {
        table.row([(*name).to_owned(), with_width(share)]);
    }
    out += &table.render();
    let [goodput, ..] = &study.shares;
    out += &format!(
        "{} failures in {} of work ({} runs); long-run throughput {}, {} without failures\n",
        units::significant(study.failures.mean, 3),
        units::duration(i.work),
        study.replications,
        units::with_unit(&units::si(study.tokens_per_sec * goodput.mean), "tok/s"),
        units::with_unit(&units::si(study.tokens_per_sec), "tok/s"),
    );
    for note in &study.notes {
        out += &wrap(note, width, "  ");
        out.push('\n');
    }
    out
}

/// Returns the study as a JSON value.
#[must_use]
pub fn document(study: &Study) -> Value {
    let i = &study.input;
    let interval = |i: &Interval| json!({"mean": i.mean, "half_width": i.half_width});
    let choices =
        study.choices.iter().map(|choice| json!({"interval": choice.interval, "goodput": interval(&choice.goodput)}));
    let shares = SHARES.iter().zip(&study.shares).map(|(name, share)| (name.replace(' ', "_"), interval(share)));
    json!({
        "nodes": f64::from(i.nodes),
        "accelerator_mtbf": study.mtbf,
        "node_mtbf": i.node_mtbf,
        "job_mtbf": i.mtbf(),
        "checkpoint_seconds": i.checkpoint,
        "checkpoint_bytes": study.checkpoint_bytes,
        "flush": i.flush, "detection": i.detection, "restart": i.restart, "spares": i.spares,
        "repair": i.repair.mean(), "work": i.work,
        "interval": i.interval,
        "young_interval": i.young_interval(),
        "daly_interval": i.daly_interval(),
        "daly_goodput": i.work / i.daly_wall().max(1e-12),
        "best_interval": study.best.map(|best| best.interval),
        "best_goodput": study.best.map(|best| interval(&best.goodput)),
        "choices": choices.collect::<Vec<_>>(),
        "shares": sort::collect_unsorted::<serde_json::Map<_, _>, _>(shares),
        "failures": interval(&study.failures),
        "replications": study.replications,
        "tokens_per_sec_without_failures": study.tokens_per_sec,
        "tokens_per_sec": study.tokens_per_sec * study.shares[0].mean,
        "notes": study.notes,
    })
}

/// Goodput over the checkpoint interval, simulated and as expected by Daly.
#[must_use]
pub fn plot(study: &Study) -> Plot {
    let simulated = study.choices.iter().map(|choice| (choice.interval / 60.0, choice.goodput.mean)).collect();
    let theory = study.choices.iter().map(|choice| {
        let at = atlas_sim::training::faults::Input { interval: choice.interval, ..study.input };
        (choice.interval / 60.0, at.work / at.daly_wall().max(1e-12))
    });
    let series = |name: &str, points| Series { name: name.to_owned(), points, joined: true };
    Plot {
        title: "Goodput by checkpoint interval".to_owned(),
        across: Axis::log("checkpoint interval, minutes"),
        up: Axis { from_zero: false, ..Axis::linear("goodput") },
        series: vec![series("simulated", simulated), series("Daly's estimate with unlimited spares", theory.collect())],
        highlighted: study.best.map(|best| (best.interval / 60.0, best.goodput.mean)),
    }
}
