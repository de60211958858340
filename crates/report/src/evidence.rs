//! Text rendering of the measured rows that support an estimate.

use std::fmt::Write as _;

use atlas_core::units;
use atlas_evidence::support::{Count, Nearest, Support};

use super::table::{Align, Table, right, wrap};

/// Text for an estimate that no measured row can support.
pub const NONE: &str = "evidence: none. Measured rows exist for the analytical and event engines only, and for accelerators \
                        and models of known architecture.";

/// Renders the number of measured rows, and for each metric the nearest row and the prediction error there.
#[must_use]
pub fn render(supports: &[Support], width: usize) -> String {
    let Some(first) = supports.first() else { return format!("{}\n", wrap(NONE, width, "  ")) };
    let mut out = "evidence: measured rows (sources) by property shared with this scenario\n".to_owned();
    let column = |text: &str| right(text.to_owned());
    let names = [&first.accelerator.of, &first.software.of, &first.format.of].map(|name| column(name));
    let head = [(String::new(), Align::Left)].into_iter().chain(names).chain([column("kind of run"), column("all")]);
    let mut table = Table::new(head);
    for support in supports {
        let counts = [&support.accelerator, &support.software, &support.format, &support.regime, &support.all];
        let cell = |count: &Count| match count.rows {
            0 => "none".to_owned(),
            rows => format!("{rows} ({})", count.sources),
        };
        table.row([format!("  {}", support.figure.title())].into_iter().chain(counts.map(cell)));
    }
    out += &table.render();
    let unknown = supports.iter().filter(|support| support.accelerator.rows == 0);
    let unknown: Vec<&str> = unknown.map(|support| support.figure.title()).collect();
    if !unknown.is_empty() {
        let _ = writeln!(out, "no measured row for this accelerator: {}", unknown.join(", "));
    }
    for group in supports.chunk_by(same_row) {
        let Some(near) = group.first().and_then(|support| support.nearest.as_ref()) else { continue };
        let titles: Vec<&str> = group.iter().map(|support| support.figure.title()).collect();
        let titles = titles.join(" and ");
        let judged: Vec<String> =
            group.iter().filter_map(|support| support.nearest.as_ref()).map(describe_error).collect();
        let found =
            if near.comparable { "nearest measured row, " } else { "no comparable measured row; nearest row, " };
        let text = format!("{found}{titles}: {}. Measured {}", describe_nearest_row(near), judged.join("; "));
        let _ = writeln!(out, "{}", wrap(&text, width, "  "));
    }
    out
}

/// Whether two metrics have the same nearest row.
fn same_row(a: &Support, b: &Support) -> bool {
    let id = |support: &Support| support.nearest.as_ref().map(|near| near.id);
    id(a).is_some() && id(a) == id(b)
}

/// Describes the row, its distance, and in what it differs.
fn describe_nearest_row(near: &Nearest) -> String {
    let shown = |value: &str| if value.is_empty() { "not stated".to_owned() } else { value.to_owned() };
    let differs = near
        .differs
        .iter()
        .map(|field| format!("{} {} (here {})", field.field, shown(field.there), shown(&field.here)));
    let differs: Vec<String> = differs.collect();
    let differs = if differs.is_empty() { "the same scenario".to_owned() } else { differs.join(", ") };
    format!("{} ({}), distance {:.2}: {differs}", near.id, near.source, near.distance)
}

/// Describes the measured value and the prediction error.
fn describe_error(near: &Nearest) -> String {
    format!(
        "{} {}, predicted {}, {:+.1} %, {} the 90 % interval",
        near.metric,
        units::significant(near.measured, 4),
        units::significant(near.predicted, 4),
        100.0 * near.error,
        if near.inside { "inside" } else { "outside" },
    )
}
