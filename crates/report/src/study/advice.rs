//! Improvements for each scenario of a study: the playbook's advice, evaluated on each.

use super::{Block, Cell, Entry, Grid, Study};
use crate::table::Align;
use atlas_core::units;
use atlas_plan::advice::{Advice, Objective, advise};

/// Maximum pieces of advice per target in a study of several targets. With a single target, all are shown.
const MAX_ADVICE_PER_TARGET: usize = 3;

/// Appends the section with advice, if any rule gains anything on any target.
pub fn improvements(study: &Study, out: &mut Vec<Block>) {
    let advised = |entry: &Entry| {
        if entry.estimate.detail.is_none() {
            return Vec::new();
        }
        advise(&entry.scenario, &entry.parts, &entry.estimate, Objective::default())
    };
    let all: Vec<(&Entry, Vec<Advice>)> = study.entries.iter().map(|entry| (entry, advised(entry))).collect();
    let limit = if study.entries.len() == 1 { usize::MAX } else { MAX_ADVICE_PER_TARGET };
    let named: Vec<(&str, &Advice)> = all
        .iter()
        .flat_map(|(entry, advice)| advice.iter().take(limit).map(|advice| (entry.name.as_str(), advice)))
        .collect();
    if named.is_empty() {
        return;
    }
    out.push(Block::Heading(3, "How to improve it".to_owned()));
    out.push(Block::Text(
        "Rules from the literature, each tested on the scenario: gains are estimated by applying the change. They \
         are single steps; `atlas optimize` looks for the best of all combinations."
            .to_owned(),
    ));
    out.push(Block::Table(table(&named, study.entries.len() > 1)));
}

/// Table of advice, best first; with a target column if `targets` is set.
#[must_use]
pub fn table(all: &[(&str, &Advice)], targets: bool) -> Grid {
    let left = |name: &str| (name.to_owned(), Align::Left);
    let right = |name: &str| (name.to_owned(), Align::Right);
    let mut head = if targets { vec![left("target")] } else { Vec::new() };
    head.extend([
        left("change"),
        right("gain"),
        left("figure"),
        right("from"),
        right("to"),
        left("rule"),
        left("source"),
    ]);
    let row = |(target, advice): &(&str, &Advice)| {
        let show = |value: f64| {
            if value.is_finite() { Cell::number(advice.metric.show(value), value) } else { Cell::text("–") }
        };
        let gain = if advice.fixes {
            Cell { best: true, ..Cell::text("makes it run") }
        } else {
            Cell::number(units::relative(1.0, 1.0 + advice.gain), advice.gain)
        };
        let losses = advice.objection().map_or_else(String::new, |but| format!("; {but}"));
        let own = [
            Cell::text(advice.text.clone() + &losses),
            gain,
            Cell::text(advice.metric.label),
            if advice.fixes { Cell::text("–") } else { show(advice.before) },
            show(advice.after),
            Cell::text(format!("{}: {}", advice.rule.name, advice.rule.reason)),
            Cell::text(advice.rule.source),
        ];
        targets.then(|| Cell::text(*target)).into_iter().chain(own).collect()
    };
    Grid { head, rows: all.iter().map(row).collect() }
}
