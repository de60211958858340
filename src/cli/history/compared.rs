//! Differences between entries, and changes over time.

use atlas_cluster::history::{Change, Entry, Group, compare, direction, groups, slowdowns};
use atlas_core::sort;
use atlas_core::units;
use atlas_plan::estimate::Direction;
use atlas_report::table::{Align, Table, left, right};
use atlas_report::{Format, csv, serialized};
use serde_json::{Value, json};

use super::{chain_rows, text};
use crate::cli::failure::Failure;

fn change_row(change: &Change) -> [String; 3] {
    let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
    [change.name.clone(), side(&change.before), side(&change.after)]
}

fn change_json(change: &Change) -> Value {
    json!({"name": change.name, "before": change.before, "after": change.after})
}

pub(super) fn diff(first: &Entry, second: &Entry, links: &[&Entry], format: Format) -> color_eyre::Result<String> {
    let difference = compare(first, second);
    let figures = &difference.figures;
    match format {
        Format::Table => {
            let columns = [left(""), (first.handle(), Align::Left), (second.handle(), Align::Left)];
            let mut table = Table::new(columns.into_iter().chain([right("change")]));
            table.row(["when (UTC)".to_owned(), first.minute(), second.minute()]);
            if !difference.inputs.is_empty() {
                table.section("\ninputs");
            }
            difference.inputs.iter().for_each(|change| table.row(change_row(change)));
            if !figures.is_empty() {
                table.section("\nfigures");
            }
            for (name, before, after) in figures {
                table.row([
                    name.clone(),
                    super::number(name, *before),
                    super::number(name, *after),
                    units::relative(*before, *after),
                ]);
            }
            // If one entry is derived from the other, shows the entries in between.
            if links.iter().any(|link| link.id == second.id) && links.len() > 1 {
                table.section("\nchain");
                chain_rows(&mut table, links);
            }
            Ok(table.render())
        }
        Format::Csv => {
            let inputs = difference.inputs.iter().map(change_row);
            let figures = figures.iter().map(|(name, a, b)| [name.clone(), a.to_string(), b.to_string()]);
            let rows = inputs.chain(figures).map(|row| csv::line(&row));
            Ok(csv::line(["name", "before", "after"]) + &rows.collect::<String>())
        }
        format => {
            let inputs: Vec<Value> = difference.inputs.iter().map(change_json).collect();
            let figures: Vec<Value> =
                figures.iter().map(|(name, a, b)| json!({"name": name, "before": a, "after": b})).collect();
            let document = json!({"first": first.id, "second": second.id, "inputs": inputs, "figures": figures});
            Ok(serialized(&document, format == Format::Yaml)?)
        }
    }
}

/// Groups that have a metric; the error lists the known metrics.
fn grouped<'a>(entries: &'a [Entry], figure: &str) -> Result<Vec<Group<'a>>, Failure> {
    let found = groups(entries, figure);
    if found.is_empty() && !entries.is_empty() {
        let known: std::collections::BTreeSet<&str> =
            sort::collect_unsorted(entries.iter().flat_map(|entry| entry.figures.keys().map(String::as_str)));
        let known: Vec<&str> = known.into_iter().collect();
        return Err(Failure::usage([format!(
            "no entry has the metric \"{figure}\"; known metrics: {}",
            known.join(", ")
        )]));
    }
    Ok(found)
}

/// Renders a metric over time.
pub(super) fn trend(entries: &[Entry], figure: &str, format: Format) -> color_eyre::Result<String> {
    let groups = grouped(entries, figure)?;
    match format {
        Format::Table => {
            let mut out = String::new();
            for group in &groups {
                out += &format!("{}\n", group.title());
                let columns =
                    [left("when (UTC)"), left("entry"), left("software"), right(figure), right("change"), left("from")];
                let mut table = Table::new(columns);
                let mut before: Option<f64> = None;
                for (entry, number) in &group.points {
                    let change = before.map_or_else(String::new, |before| units::relative(before, *number));
                    let handle = entry.handle().to_owned();
                    let from: Vec<&str> = entry.sources.iter().filter_map(|id| id.rsplit('-').next()).collect();
                    let (software, value) = (text(&entry.software), super::number(figure, *number));
                    table.row([entry.minute(), handle, software, value, change, from.join(" ")]);
                    before = Some(*number);
                }
                out += &table.render();
                let releases = group.releases();
                if releases.len() > 1 {
                    out += "by software:\n";
                    for release in releases {
                        let change =
                            release.change.map_or_else(String::new, |change| format!(", {}", change.describe()));
                        let (value, count) = (super::number(figure, release.median), release.count);
                        out += &format!("  {}: median {value} of {count}{change}\n", release.software);
                    }
                }
                out.push('\n');
            }
            Ok(out)
        }
        Format::Csv => {
            let mut out = csv::line(["target", "workload", "kind", "engine", "at", "id", "software", figure]);
            for group in &groups {
                for (entry, value) in &group.points {
                    let (at, value) = (entry.at.to_string(), value.to_string());
                    let software = entry.software.as_deref().unwrap_or_default();
                    let lead = [group.target, group.workload, group.kind.name(), group.engine];
                    out += &csv::line(lead.into_iter().chain([&*at, &entry.id, software, &value]));
                }
            }
            Ok(out)
        }
        format => {
            let document = groups.iter().map(|group| {
                let points: Vec<Value> = group
                    .points
                    .iter()
                    .map(|(entry, value)| json!({"at": entry.at.to_string(), "id": entry.id, "software": entry.software, "value": value, "sources": entry.sources}))
                    .collect();
                let releases: Vec<Value> = group
                    .releases()
                    .iter()
                    .map(|release| json!({"software": release.software, "count": release.count, "median": release.median,
                        "change": release.change.as_ref().map(|change| json!({"ratio": change.ratio, "differences": change.differences})),
                        "first": release.seen[0].to_string(), "last": release.seen[1].to_string()}))
                    .collect();
                json!({"target": group.target, "workload": group.workload, "kind": group.kind, "engine": group.engine,
                    "figure": figure, "points": points, "releases": releases})
            });
            Ok(serialized(&document.collect::<Vec<Value>>(), format == Format::Yaml)?)
        }
    }
}

pub(super) fn changes(entries: &[Entry], figure: &str, tolerance: f64, format: Format) -> color_eyre::Result<String> {
    let groups = grouped(entries, figure)?;
    let found = slowdowns(&groups, direction(figure), tolerance);
    let names = |changes: &[Change]| -> String {
        let one = |change: &Change| {
            let [name, before, after] = change_row(change);
            format!("    {name}: {before} → {after}\n")
        };
        if changes.is_empty() { "    no input changed\n".to_owned() } else { changes.iter().map(one).collect() }
    };
    match format {
        Format::Table | Format::Csv => {
            let way = if direction(figure) == Direction::Higher { "lower" } else { "higher" };
            let mut out = String::new();
            for slow in &found {
                let ((best, was), (latest, now)) = (slow.best, slow.latest);
                let (target, workload) = (text(&latest.target), text(&latest.workload));
                out += &format!(
                    "{target} × {workload}: {figure} {} now, {} on {} ({}): {:.1} % {way}\n  changed since:\n{}",
                    super::number(figure, now),
                    super::number(figure, was),
                    best.minute(),
                    best.handle(),
                    100.0 * slow.worse,
                    names(&slow.changed)
                );
                if let Some((before, after, loss)) =
                    slow.step.filter(|(before, after, _)| (before.id != best.id) || (after.id != latest.id))
                {
                    out += &format!(
                        "  largest single change, {:.1} %, between {} ({}) and {} ({}):\n{}",
                        100.0 * loss,
                        before.minute(),
                        before.handle(),
                        after.minute(),
                        after.handle(),
                        names(&slow.step_changed)
                    );
                }
            }
            if found.is_empty() && !entries.is_empty() {
                out = format!("{figure} has not regressed by more than {:.1} % anywhere\n", 100.0 * tolerance);
            }
            Ok(out)
        }
        format => {
            let document = found.iter().map(|slow| {
                let all = |changes: &[Change]| changes.iter().map(change_json).collect::<Vec<Value>>();
                json!({"figure": figure, "best": {"id": slow.best.0.id, "value": slow.best.1},
                    "latest": {"id": slow.latest.0.id, "value": slow.latest.1}, "worse": slow.worse,
                    "changed": all(&slow.changed),
                    "largest_step": slow.step.map(|(a, b, loss)| json!({"from": a.id, "to": b.id, "worse": loss})),
                    "largest_step_changed": all(&slow.step_changed)})
            });
            Ok(serialized(&document.collect::<Vec<Value>>(), format == Format::Yaml)?)
        }
    }
}
