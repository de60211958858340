//! The lists of targets and workloads.

use std::ops::Range;
use std::sync::Arc;

use crate::theme::Role;
use crate::tui::app::{App, PANES, Pane, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::tables::state::{Sort, Table};
use crate::tui::views::idle;
use crate::tui::widgets::draw::Canvas;
use ratatui::layout::Rect;

use atlas_config::Workload;
use atlas_config::library::Entry;
use atlas_core::units;

/// A row of a list.
struct Row<'a> {
    name: &'a Arc<str>,
    detail: String,
    marked: bool,
}

/// Draws the targets.
pub fn targets(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let sorted_by = match app.tables.sort(Table::Targets) {
        Sort::Metric(metric) => Some(metric),
        _ => None,
    };
    let seen = visible_rows(app, Pane::Targets, area);
    let rows: Vec<Row<'_>> = app
        .targets()
        .enumerate()
        .map(|(row, (index, target))| Row {
            name: &target.name,
            detail: match sorted_by {
                _ if !seen.contains(&row) => String::new(),
                Some(metric) => {
                    app.tables.figure_of(index).map_or_else(|| "–".to_owned(), |value| metric.format.brief(value))
                }
                None => {
                    let size = target.size().map_or_else(String::new, |(each, nodes)| format!("{each}×{nodes}"));
                    match idle::of(&app.idle, &target.name) {
                        Some(idle) => format!("{idle}  {size}"),
                        None => size,
                    }
                }
            },
            marked: app.now.marks.contains(&target.name),
        })
        .collect();
    let marked = app.now.marks.len();
    let remark = match app.filter_remark(Table::Targets, rows.len(), app.library.target_list().len()) {
        Some(remark) => remark,
        None if marked > 0 => format!("{marked} marked"),
        None => sorted_by.map_or_else(String::new, |metric| format!("by {}", metric.label)),
    };
    list(app, canvas, area, Pane::Targets, app.target_row(), &remark, rows);
    details(app, canvas, area);
}

/// Draws a description of the selected target below the list, if there is space.
fn details(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(target) = &app.answer.target else { return };
    let used = u16::try_from(app.library.target_list().len()).unwrap_or(u16::MAX);
    let link = target.interconnect.as_ref().map(|link| match link.bw_gbytes_per_sec {
        Some(bandwidth) => format!("{} {bandwidth} GB/s", link.kind),
        None => link.kind.clone(),
    });
    let network = target.network.as_ref().map(|network| {
        let kind = network.kind.as_deref().unwrap_or("network");
        network.gbits_per_accel.map_or_else(|| kind.to_owned(), |rate| format!("{kind} {rate} Gbit/s"))
    });
    let cost = &target.cost;
    let rows: [(&str, Option<String>); 9] = [
        ("vendor", Some(target.vendor.clone())),
        ("machine", target.instance_type.clone()),
        ("memory", Some(format!("{} GB each", target.memory_gb_per_accel))),
        ("link", link),
        ("network", network),
        ("price", Some(format!("{}/h per node", units::usd(cost.hourly_usd)))),
        ("power", Some(format!("{} per node", units::with_unit(&units::si(cost.energy_watts_node), "W")))),
        ("formats", (!target.numeric.is_empty()).then(|| target.numeric.join(" "))),
        ("profile", app.answer.profile.as_ref().map(|profile| profile.name.to_string())),
    ];
    let rows: Vec<(&str, String)> = rows.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    let needs = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    if area.height < used.saturating_add(needs).saturating_add(4) || area.width < 20 {
        return;
    }
    let top = area.bottom() - 1 - needs;
    let (dim, text) = (canvas.role(Role::Dim), canvas.role(Role::Text));
    for (y, (name, value)) in (top..).zip(&rows) {
        canvas.text(area.x + 2, y, 8, name, dim);
        canvas.text(area.x + 11, y, area.width.saturating_sub(13), value, text);
    }
}

/// Draws the workloads.
pub fn workloads(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let seen = visible_rows(app, Pane::Workloads, area);
    let mode = |workload: &Entry<Workload>| workload.mode().map_or("", |mode| mode.name());
    let rows: Vec<Row<'_>> = app
        .workloads()
        .enumerate()
        .map(|(row, workload)| Row {
            name: &workload.name,
            detail: match seen.contains(&row) {
                true => mode(workload).get(..5).unwrap_or_default().to_owned(),
                false => String::new(),
            },
            marked: false,
        })
        .collect();
    let remark = app.filter_remark(Table::Workloads, rows.len(), app.library.workload_list().len()).unwrap_or_default();
    list(app, canvas, area, Pane::Workloads, app.workload_row(), &remark, rows);
}

/// Returns the range of the visible rows of a list, and possibly a few more.
fn visible_rows(app: &App, pane: Pane, area: Rect) -> Range<usize> {
    let place = PANES.iter().position(|known| *known == pane).unwrap_or_default();
    let scroll = app.scroll.get(place).copied().unwrap_or_default();
    scroll..scroll + usize::from(area.height)
}

fn list(
    app: &App,
    canvas: &mut Canvas<'_>,
    area: Rect,
    pane: Pane,
    selected: Option<usize>,
    remark: &str,
    rows: Vec<Row<'_>>,
) {
    let focused = app.pane == pane && app.view == View::Main && app.tour.is_none();
    let inner = canvas.pane(area, pane, remark, focused);
    let scroll = visible_rows(app, pane, area).start;
    let visible = usize::from(inner.height);
    let total = rows.len();
    let table = if pane == Pane::Targets { Table::Targets } else { Table::Workloads };
    let filtered = app.tables.filter(table).is_some();
    if rows.is_empty() {
        let text = if filtered { "no matches; Esc shows all" } else { "none found" };
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), text, canvas.role(Role::Dim));
    }
    for (line, (index, row)) in (0..inner.height).zip(rows.into_iter().enumerate().skip(scroll)) {
        let y = inner.y + line;
        let chosen = selected == Some(index);
        let flash = app.flash.entries.contains(row.name);
        let style = if flash { canvas.role(Role::Flash) } else { canvas.role(Role::Text) };
        let sign = if row.marked { canvas.glyphs.mark } else { " " };
        let marked = canvas.role(Role::Mark);
        canvas.text(inner.x, y, 1, sign, marked);
        let detail = u16::try_from(row.detail.width()).unwrap_or_default();
        let room = inner.width.saturating_sub(3);
        // Names take precedence over details.
        let needs = u16::try_from(row.name.width()).unwrap_or(u16::MAX).saturating_add(detail + 1);
        canvas.text(inner.x + 2, y, room, row.name, style);
        if needs <= room {
            let dim = canvas.role(Role::Dim);
            canvas.right(inner.x + 2, y, room, &row.detail, dim);
        }
        if chosen {
            let role = if focused { Role::Selection } else { Role::SelectionDim };
            canvas.tint(Rect::new(inner.x, y, inner.width, 1), canvas.role(role));
        }
        if flash {
            canvas.tint(Rect::new(inner.x, y, inner.width, 1), canvas.role(Role::Flash));
        }
    }
    canvas.more(area, scroll > 0, scroll + visible < total);
}
