//! Formats the pages other than the list as lines of text that fit the width: an entry, the differences between two
//! entries, and a metric over time.

use std::borrow::Cow;

use atlas_cluster::history::{Entry, Group, chain, compare, groups, value_text};
use atlas_core::units;
use atlas_plan::estimate::{Metric, Scale};
use atlas_plan::knob::Knob;
use atlas_report::table::{Align, Table};

use super::{Page, entry};
use crate::theme::Role;
use crate::tui::app::App;
use crate::tui::painter::cells::TextWidth;
use crate::tui::widgets::draw::wrap;

/// Text of a line with its role.
pub type Line = (Role, String);

/// Minimum width for wrapping a value to the right of its name; with less, it goes below the name.
const MIN_SIDE_BY_SIDE_WIDTH: usize = 24;

/// Returns the lines of the page that is shown. The list has none.
#[must_use]
pub fn page(app: &App, width: usize) -> Vec<Line> {
    let Some(listed) = app.history.listed.answer() else { return Vec::new() };
    let all = &listed.entries;
    let lines = match &app.history.page {
        Page::List => return Vec::new(),
        Page::Entry(id) => entry(app, id).map(|entry| one(entry, &chain(all, entry), width)),
        Page::Difference(first, second) => entry(app, first).zip(entry(app, second)).map(|(first, second)| {
            let (first, second) = if first.at <= second.at { (first, second) } else { (second, first) };
            difference(first, second, &chain(all, first), width)
        }),
        Page::Trend(id) => entry(app, id).map(|entry| {
            let Some((figure, _)) = entry.headline() else { return Vec::new() };
            // Only entries of the same target and workload are comparable.
            let same = |other: &&Entry| (&other.target, &other.workload) == (&entry.target, &entry.workload);
            let same: Vec<Entry> = all.iter().filter(same).cloned().collect();
            groups(&same, figure).iter().flat_map(|group| trend(group, figure, width)).collect()
        }),
    };
    lines.filter(|lines| !lines.is_empty()).unwrap_or_else(|| vec![(Role::Dim, "nothing to show".to_owned())])
}

/// Returns the label of a metric and its values, formatted with a common unit. Metrics of measurement tools are not in
/// the list of metrics; their unit is derived from the name.
pub(super) fn figure(name: &str, values: &[f64]) -> (Cow<'static, str>, Vec<String>) {
    if let Some(metric) = Metric::named(name) {
        let shown = match values {
            [value] => vec![metric.brief(*value)],
            _ => {
                let scale = Scale::of(metric, values.iter().copied());
                values.iter().map(|value| scale.with_unit(*value)).collect()
            }
        };
        return (metric.label.into(), shown);
    }
    let rate = name.ends_with("_per_s");
    let (stem, to_ms) = match (name.strip_suffix("_ms"), name.strip_suffix("_s").filter(|_| !rate)) {
        (Some(stem), _) => (stem, Some(1.0)),
        (None, Some(stem)) => (stem, Some(1e3)),
        (None, None) => (name, None),
    };
    let shown = |value: &f64| match to_ms {
        Some(to_ms) => units::duration_in(value * to_ms, 3),
        None => units::si(*value),
    };
    (stem.replace("_per_", "/").replace('_', " ").into(), values.iter().map(shown).collect())
}

/// Formats the value of an input: a knob with its unit, a long number with four significant digits.
fn input(name: &str, value: &str) -> String {
    let unit = Knob::find(name).map_or("", |knob| knob.spec().unit);
    let number = value.parse::<f64>().ok().filter(|number| number.is_finite() && number.fract() != 0.0);
    // Numbers this long were computed, not typed: four digits are enough.
    let shown =
        number.filter(|_| value.len() > 8).map_or_else(|| value.to_owned(), |number| units::significant(number, 4));
    let known = !unit.is_empty() && value.parse::<f64>().is_ok();
    if known { format!("{shown} {unit}") } else { shown }
}

fn heading(text: &str) -> [Line; 2] {
    [(Role::Text, String::new()), (Role::Heading, text.to_owned())]
}

/// Formats names with their values. Values are wrapped in their column, or below the name if that column is narrow.
fn pairs(pairs: &[(String, String)], width: usize) -> Vec<Line> {
    let longest = pairs.iter().map(|(name, _)| name.width()).max().unwrap_or_default();
    let lead = longest.min(28) + 2;
    let mut lines = Vec::new();
    for (name, value) in pairs {
        let room = width.saturating_sub(lead);
        if name.width() + 2 > lead || value.width() > room && room < MIN_SIDE_BY_SIDE_WIDTH {
            lines.extend(wrap(name, width).into_iter().map(|line| (Role::Text, line)));
            lines
                .extend(wrap(value, width.saturating_sub(2)).into_iter().map(|line| (Role::Text, format!("  {line}"))));
            continue;
        }
        for (nth, part) in wrap(value, room).into_iter().enumerate() {
            let name = if nth == 0 { name.as_str() } else { "" };
            lines.push((Role::Text, format!("{name:<lead$}{part}")));
        }
    }
    lines
}

/// Returns the lines of a table if they fit the width.
fn fitting(table: &Table, width: usize) -> Option<Vec<Line>> {
    let lines: Vec<Line> = table.render().lines().map(|line| (Role::Text, line.to_owned())).collect();
    lines.iter().all(|(_, line)| line.width() <= width).then_some(lines)
}

/// Formats the chain: entries that resulted from one another.
fn links(links: &[&Entry], width: usize) -> Vec<Line> {
    if links.len() < 2 {
        return Vec::new();
    }
    let row = |link: &&Entry| {
        let known = link.headline().map(|(name, value)| (name, figure(name, &[value])));
        let known = known.map_or_else(String::new, |(_, (label, value))| format!("  {label} {}", value.concat()));
        (link.handle().to_owned(), format!("{}  {}{known}", link.minute(), link.kind.name()))
    };
    let rows: Vec<(String, String)> = links.iter().map(row).collect();
    heading("chain").into_iter().chain(pairs(&rows, width)).collect()
}

fn one(entry: &Entry, chain: &[&Entry], width: usize) -> Vec<Line> {
    let origin = &entry.origin;
    let known = [
        ("entry", Some(entry.id.clone())),
        ("when (UTC)", Some(entry.minute())),
        ("target", entry.target.clone()),
        ("workload", entry.workload.clone()),
        ("software", entry.software.clone()),
        ("engine", entry.engine.clone()),
        ("host", origin.host.clone()),
        ("directory", origin.directory.clone()),
        ("version of atlas", Some(origin.version.clone())),
        ("command", Some(origin.command.join(" "))),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let known = known.chain(entry.sources.iter().map(|source| ("from".to_owned(), source.clone())));
    let known: Vec<(String, String)> = known.filter(|(_, value)| !value.is_empty()).collect();
    let mut lines = pairs(&known, width);
    lines.extend(links(chain, width));
    let shown = |(name, value): (&String, &f64)| {
        let (label, value) = figure(name, &[*value]);
        (label.into_owned(), value.concat())
    };
    let figures: Vec<(String, String)> = entry.figures.iter().map(shown).collect();
    let inputs = entry.inputs.iter().map(|(name, value)| (name.clone(), input(name, &value_text(value))));
    let inputs: Vec<(String, String)> = inputs.collect();
    for (title, rows) in [("figures", figures), ("inputs", inputs)] {
        if !rows.is_empty() {
            lines.extend(heading(title));
            lines.extend(pairs(&rows, width));
        }
    }
    lines
}

fn difference(first: &Entry, second: &Entry, chain: &[&Entry], width: usize) -> Vec<Line> {
    let found = compare(first, second);
    let inputs = found.inputs.iter().map(|change| {
        let side =
            |side: &Option<String>| side.as_ref().map_or_else(|| "–".to_owned(), |text| input(&change.name, text));
        [change.name.clone(), side(&change.before), side(&change.after), String::new()]
    });
    let figures = found.figures.iter().map(|(name, before, after)| {
        let (label, values) = figure(name, &[*before, *after]);
        let [before_text, after_text] = <[String; 2]>::try_from(values).unwrap_or_default();
        [label.into_owned(), before_text, after_text, units::relative(*before, *after)]
    });
    let parts: [(&str, Vec<[String; 4]>); 2] = [("inputs", inputs.collect()), ("figures", figures.collect())];
    let when = ["when (UTC)".to_owned(), first.minute(), second.minute(), String::new()];
    let columns = [("", Align::Left), (first.handle(), Align::Left), (second.handle(), Align::Left)];
    let mut table = Table::new(columns.into_iter().chain([("change", Align::Right)]));
    table.row(when.clone());
    for (title, rows) in parts.iter().filter(|(_, rows)| !rows.is_empty()) {
        table.section(format!("\n{title}"));
        rows.iter().for_each(|row| table.row(row.clone()));
    }
    let mut lines = fitting(&table, width).unwrap_or_else(|| {
        // Each name is on its own line, with both values below.
        let below = |[name, before, after, change]: &[String; 4]| {
            let values = format!("{before} → {after}  {change}");
            let values =
                wrap(&values, width.saturating_sub(2)).into_iter().map(|line| (Role::Text, format!("  {line}")));
            wrap(name, width).into_iter().map(|line| (Role::Dim, line)).chain(values).collect::<Vec<Line>>()
        };
        let mut lines = vec![(Role::Heading, format!("{} → {}", first.handle(), second.handle()))];
        lines.extend(below(&when));
        for (title, rows) in parts.iter().filter(|(_, rows)| !rows.is_empty()) {
            lines.extend(heading(title));
            lines.extend(rows.iter().flat_map(below));
        }
        lines
    });
    lines.extend(links(chain, width));
    lines
}

fn trend(group: &Group<'_>, name: &str, width: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = wrap(&group.title(), width).into_iter().map(|line| (Role::Heading, line)).collect();
    let values: Vec<f64> = group.points.iter().map(|(_, value)| *value).collect();
    let (label, shown) = figure(name, &values);
    let befores = std::iter::once(None).chain(values.iter().copied().map(Some));
    let change = |(before, now): (Option<f64>, &f64)| before.map_or_else(String::new, |was| units::relative(was, *now));
    let changes = befores.zip(&values).map(change);
    let of = |get: fn(&Entry) -> String| group.points.iter().map(move |(entry, _)| get(entry)).collect::<Vec<String>>();
    let from = |entry: &Entry| {
        let handles: Vec<&str> = entry.sources.iter().filter_map(|id| id.rsplit('-').next()).collect();
        handles.join(" ")
    };
    let mut columns = vec![
        ("when (UTC)", Align::Left, of(|entry| entry.minute())),
        ("entry", Align::Left, of(|entry| entry.handle().to_owned())),
        ("software", Align::Left, of(|entry| entry.software.clone().unwrap_or_else(|| "–".to_owned()))),
        (&*label, Align::Right, shown),
        ("change", Align::Right, changes.collect()),
        ("from", Align::Left, of(from)),
    ];
    // Drops the least informative columns first.
    let mut order = ["from", "software", "entry"].into_iter();
    loop {
        let mut table = Table::new(columns.iter().map(|(title, align, _)| (*title, *align)));
        for row in 0..group.points.len() {
            table.row(columns.iter().map(|(.., cells)| cells.get(row).cloned().unwrap_or_default()));
        }
        match (fitting(&table, width), order.next()) {
            (Some(table), _) => {
                lines.extend(table);
                break;
            }
            (None, Some(least)) => columns.retain(|(title, ..)| *title != least),
            // Only the date and the values are left: wrap them.
            (None, None) => {
                let cells = |row: usize| columns.iter().filter_map(move |(.., cells)| cells.get(row)).cloned();
                let rows = (0..group.points.len()).map(|row| cells(row).collect::<Vec<_>>().join("  "));
                lines.extend(rows.flat_map(|row| wrap(&row, width)).map(|line| (Role::Text, line)));
                break;
            }
        }
    }
    let releases = group.releases();
    if releases.len() > 1 {
        lines.push((Role::Text, "by software:".to_owned()));
        let medians: Vec<f64> = releases.iter().map(|release| release.median).collect();
        let (_, shown) = figure(name, &medians);
        for (release, value) in releases.iter().zip(shown) {
            let change = release.change.as_ref().map_or_else(String::new, |change| format!(", {}", change.describe()));
            let text = format!("{}: median {value} (n = {}){change}", release.software, release.count);
            lines
                .extend(wrap(&text, width.saturating_sub(2)).into_iter().map(|line| (Role::Text, format!("  {line}"))));
        }
    }
    lines.push((Role::Text, String::new()));
    lines
}
