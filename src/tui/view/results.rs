//! The results: whether it can run, what bounds it, and every figure with its interval and its change against the
//! baseline.

use crate::tui::painter::cells::TextWidth as _;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::draw::{Canvas, wrap};
use crate::tui::app::{App, Headline, Pane, View};
use crate::tui::theme::Role;
use atlas_core::units;
use atlas_plan::engine::notes::notes;
use atlas_plan::estimate::{Better, Detail, Format, Metric, Verdict};

/// A row of the pane.
#[derive(Debug, Clone, PartialEq)]
enum Row {
    Heading(&'static str),
    Figure(&'static Metric),
    Blank,
    Text(Role, String),
    /// A line above the figures.
    Above(Headline, Role, String),
}

/// Fewest rows of a screen that has some to spare for air.
const AIRY: u16 = 30;

/// Rows of verdict and figures, without the notes.
#[must_use]
pub fn figure_rows(app: &App, width: u16) -> usize {
    upper(app, width).len()
}

/// All rows in a pane whose inside has this width, and the one of the figure under the cursor; 0 for the first, so that
/// what stands above it is seen.
#[must_use]
pub fn rows_and_cursor(app: &App, width: u16) -> (usize, usize) {
    let here = app.figure_here();
    let all = build(app, width);
    let first = all.iter().position(|row| matches!(row, Row::Figure(_)));
    let row = all.iter().position(|row| matches!(row, Row::Figure(metric) if Some(*metric) == here));
    (all.len(), if row == first || app.headline().is_some() { 0 } else { row.unwrap_or_default() })
}

/// The figure at a row.
#[must_use]
pub fn figure_at(app: &App, width: u16, row: usize) -> Option<&'static Metric> {
    match build(app, width).get(row) {
        Some(Row::Figure(metric)) => Some(metric),
        _ => None,
    }
}

/// The line above the figures at a row.
#[must_use]
pub fn headline_at(app: &App, width: u16, row: usize) -> Option<Headline> {
    match build(app, width).get(row) {
        Some(Row::Above(headline, ..)) => Some(*headline),
        _ => None,
    }
}

/// A line above the figures in words, and the figure whose equations stand behind it.
#[must_use]
pub fn headline(app: &App, headline: Headline) -> Option<(String, Option<&'static Metric>)> {
    let detail = app.answer.detail()?;
    let (text, metric) = match headline {
        Headline::Verdict => {
            let metric = match detail.verdict {
                Verdict::Fits | Verdict::Memory { .. } => Some("memory_fill"),
                Verdict::Overload { .. } => Some("queue_utilization"),
                _ => None,
            };
            (verdict(app, detail).1, metric)
        }
        Headline::Limits => {
            let time = if detail.serving.is_some() { "tpot_ms" } else { "step_time_ms" };
            (detail.limits.describe(), Some(time))
        }
    };
    Some((text, metric.and_then(Metric::named)))
}

/// What the line of information says of the line above the figures that is under the cursor.
#[must_use]
pub fn about_headline(app: &App) -> String {
    let described = app.headline().and_then(|line| headline(app, line));
    described.map_or_else(String::new, |(text, metric)| match metric {
        Some(metric) => format!("Enter explains {}", metric.label),
        None => text,
    })
}

/// Everything: verdict, figures, notes.
fn build(app: &App, width: u16) -> Vec<Row> {
    let mut rows = upper(app, width);
    let width = usize::from(width.saturating_sub(2));
    if app.answer.pending {
        rows.push(Row::Heading("caveats"));
        let text = format!("these are the closed form's figures, {}", pending(app));
        rows.extend(wrap(&text, width).into_iter().map(|line| Row::Text(Role::Warn, line)));
        return rows;
    }
    let (scenario, estimate) = (app.answer.scenario.as_ref(), app.answer.outcome.as_ref().ok());
    let remarks = scenario.zip(estimate).map(|(scenario, estimate)| notes(scenario, estimate)).unwrap_or_default();
    let evidence = app.answer.evidence().map(str::to_owned);
    for (i, remark) in evidence.iter().chain(&remarks).enumerate() {
        if i == 0 {
            rows.push(Row::Heading("caveats"));
        }
        for (j, line) in wrap(remark, width.saturating_sub(2)).into_iter().enumerate() {
            rows.push(Row::Text(Role::Dim, format!("{} {line}", if j == 0 { app.glyphs.bullet } else { " " })));
        }
    }
    rows
}

/// Verdict and figures: what the layout and the cursor go by, at every key.
fn upper(app: &App, width: u16) -> Vec<Row> {
    let width = usize::from(width.saturating_sub(2));
    let mut rows = Vec::new();
    if let Err(complaint) = &app.answer.outcome {
        rows.extend(wrap(complaint, width).into_iter().map(|line| Row::Text(Role::Error, line)));
        rows.push(Row::Blank);
    }
    if let Some(detail) = app.answer.detail() {
        let airy = app.size.1 >= AIRY;
        let (role, text) = verdict(app, detail);
        let lines = wrap(&text, width).into_iter().take(if airy { 3 } else { 2 });
        rows.extend(lines.map(|line| Row::Above(Headline::Verdict, role, line)));
        if airy {
            // Two lines whatever they say, so that nothing below moves when the limit is another.
            let mut lines = wrap(&detail.limits.describe(), width);
            lines.resize(2, String::new());
            rows.extend(lines.into_iter().map(|line| Row::Above(Headline::Limits, Role::Text, line)));
        } else {
            let [(first, share), (second, next), ..] = detail.limits.ranked();
            let (share, next) = (100.0 * share, 100.0 * next);
            let text = format!("{} {share:.0} %, {} {next:.0} %", first.name(), second.name());
            rows.push(Row::Above(Headline::Limits, Role::Text, text));
        }
    }
    let (mut section, grouped) = (None, app.figures_are_grouped());
    for metric in app.figures() {
        let first = Metric::headlines(app.answer.mode()).any(|headline| headline == metric);
        let name = if first { "key figures" } else { metric.section.name() };
        if grouped && section != Some(name) {
            rows.push(Row::Heading(name));
            section = Some(name);
        }
        rows.push(Row::Figure(metric));
    }
    rows
}

/// How the simulation stands whose place the closed form takes.
fn pending(app: &App) -> String {
    let query = &app.queries.simulation;
    match (query.progress(), query.trouble()) {
        (Some(progress), _) => format!("simulating, {:.0} %, Esc stops", 100.0 * progress.share()),
        (None, Some(trouble)) => format!("for the simulation is {trouble}"),
        (None, None) => "until the simulation has run".to_owned(),
    }
}

/// Whether it can run, and by how much.
#[must_use]
pub fn verdict(app: &App, detail: &Detail) -> (Role, String) {
    let memory = &detail.memory;
    match detail.verdict {
        Verdict::Fits => {
            let gb = |bytes: f64| format!("{:.1}", bytes / atlas_core::units::MEMORY_GB);
            let free = 100.0 * (1.0 - memory.upper / memory.capacity.max(1.0));
            let bound = if memory.upper > memory.total() { format!(" to {}", gb(memory.upper)) } else { String::new() };
            let text = format!("fits: {}{bound} of {} GB, {free:.0} % free", gb(memory.total()), gb(memory.capacity));
            (Role::Best, format!("{} {text}", app.glyphs.check))
        }
        verdict => (Role::Error, format!("{} {}", app.glyphs.cross, verdict.describe())),
    }
}

/// A verdict against in two or three words.
#[must_use]
pub fn refusal(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::Memory { .. } => "does not fit",
        Verdict::Overload { .. } => "overloaded",
        _ => "cannot run",
    }
}

/// The baseline in words.
#[must_use]
pub fn baseline_name(app: &App) -> String {
    if let Some(place) = app.tabs.pinned().filter(|_| app.pinned_setup().is_some()) {
        return if place == app.tabs.current() { "pinned (this tab)".to_owned() } else { app.tab_label(place) };
    }
    match &app.now.baseline {
        None => "saved values".to_owned(),
        Some(setup) if setup.target != app.now.setup.target => setup.target.to_string(),
        Some(setup) if setup.workload != app.now.setup.workload => setup.workload.to_string(),
        Some(_) => "baseline".to_owned(),
    }
}

/// Draws the pane.
pub fn results(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let focused = app.pane == Pane::Results && app.view == View::Main && app.tour.is_none();
    let versus = format!("{} vs {}", canvas.glyphs.delta, baseline_name(app));
    // Until a simulation has run the closed form stands there, and says so.
    let remark = if app.answer.pending { pending(app) } else { versus };
    let inner = canvas.pane(area, Pane::Results, &remark, focused);
    let all = build(app, inner.width);
    let scroll = app.scroll[3].min(all.len().saturating_sub(1));
    // A margin at the right is the first to go.
    let width = inner.width.saturating_sub(if inner.width >= 53 { 2 } else { 1 });
    let columns = Columns::fit(width, app.answer.detail().is_some());
    let above = app.headline().filter(|_| focused);
    let here = app.figure_here().filter(|_| focused && above.is_none());
    for (line, row) in (0..inner.height).zip(all.iter().skip(scroll)) {
        let at = Rect::new(inner.x + 1, inner.y + line, width, 1);
        match row {
            Row::Heading(name) => {
                let style = canvas.role(Role::Heading);
                canvas.text(at.x, at.y, at.width, name, style);
            }
            Row::Text(role, text) => {
                let style = canvas.role(*role);
                canvas.text(at.x, at.y, at.width, text, style);
            }
            Row::Above(headline, role, text) => {
                let style = canvas.role(*role);
                canvas.text(at.x, at.y, at.width, text, style);
                if above == Some(*headline) && !text.is_empty() {
                    let selection = canvas.role(Role::Selection);
                    canvas.tint(Rect::new(inner.x, at.y, inner.width, 1), selection);
                }
            }
            Row::Figure(metric) => {
                figure(app, canvas, at, &columns, metric);
                if here == Some(*metric) {
                    let selection = canvas.role(Role::Selection);
                    canvas.tint(Rect::new(inner.x, at.y, inner.width, 1), selection);
                }
            }
            Row::Blank => {}
        }
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < all.len());
}

/// Columns of a figure's row. The digits before the point end where those behind it begin, in every row.
struct Columns {
    label: u16,
    interval: u16,
    absolute: u16,
    relative: u16,
}

/// Digits and sign before the point; the point and the digits behind it; a space and the unit.
const WHOLE: u16 = 5;
const FRACTION: u16 = 5;
const UNIT: u16 = 7;

impl Columns {
    /// What has room: the change in per cent first, then the interval, then the change itself.
    fn fit(width: u16, intervals: bool) -> Columns {
        let label = match width {
            66.. => 18,
            51.. => 14,
            _ => 13,
        };
        let mut room = width.saturating_sub(label + WHOLE + FRACTION + UNIT);
        let mut take = |wanted: u16, least: u16| {
            let taken = if room >= least { wanted.min(room) } else { 0 };
            room -= taken;
            taken
        };
        let relative = take(if width >= 51 { 9 } else { 8 }, 8);
        let interval = if intervals { take(12, 10) } else { 0 };
        let absolute = take(11, 10);
        Columns { label, interval, absolute, relative }
    }
}

/// A number as written by [`Metric::show`] in its three columns: before the point, from the point on, the unit.
pub(super) fn split(shown: &str) -> (&str, &str, &str) {
    let (number, unit) = shown.split_once(' ').unwrap_or((shown, ""));
    let at = number.find(['.', 'e']).unwrap_or(number.len());
    let (whole, fraction) = number.split_at_checked(at).unwrap_or((number, ""));
    (whole, fraction, unit)
}

/// A fraction rounded to its column, where it is longer and has a unit behind it.
fn short(whole: &str, fraction: &str, unit: &str) -> Option<String> {
    let digits = usize::from(FRACTION);
    if fraction.len() <= digits || unit.is_empty() {
        return None;
    }
    let number: f64 = format!("{whole}{fraction}").parse().ok()?;
    let rounded = format!("{number:.*}", digits - 1);
    rounded.find('.').and_then(|at| rounded.get(at..)).map(str::to_owned)
}

fn figure(app: &App, canvas: &mut Canvas<'_>, area: Rect, columns: &Columns, metric: &'static Metric) {
    let now = app.answer.value(metric);
    let shown = now.map_or_else(|| "–".to_owned(), |now| metric.show(now));
    let role = match () {
        () if app.flash.metrics.contains(metric.name) => Role::Flash,
        () if app.answer.fits() => Role::Value,
        // What cannot be had is not shouted.
        () => Role::Dim,
    };
    let (style, dim) = (canvas.role(role), canvas.role(Role::Dim));
    let (whole, fraction, unit) = split(&shown);
    let rounded = short(whole, fraction, unit);
    let fraction = rounded.as_deref().unwrap_or(fraction);
    let text = canvas.role(Role::Text);
    let indent = u16::from(columns.label > 13);
    // A long label takes what the digits leave.
    let spare = usize::from(WHOLE).saturating_sub(whole.chars().count() + 1);
    let room = columns.label - indent + u16::try_from(spare).unwrap_or_default();
    canvas.text(area.x + indent, area.y, room, metric.label, text);
    let mut x = area.x + columns.label;
    canvas.right(x, area.y, WHOLE, whole, style);
    x += WHOLE;
    // Small prices have no unit, and may need its room for their digits.
    canvas.text(x, area.y, if unit.is_empty() { FRACTION + UNIT } else { FRACTION }, fraction, style);
    x += FRACTION;
    // A long unit begins in the room that a short fraction leaves.
    let long = u16::try_from(unit.width()).unwrap_or_default().saturating_sub(UNIT - 1);
    let spare = FRACTION.saturating_sub(u16::try_from(fraction.width()).unwrap_or(FRACTION));
    let early = long.min(spare);
    canvas.text(x + 1 - early, area.y, UNIT - 1 + early, unit, dim);
    x += UNIT;
    let (Some(now), before) = (now, app.baseline.value(metric)) else { return };
    if columns.interval > 0 {
        if let Some(interval) = interval(app, metric, now, &shown, usize::from(columns.interval - 2)) {
            canvas.right(x, area.y, columns.interval - 1, &interval, dim);
        }
        x += columns.interval;
    }
    let Some(before) = before.filter(|before| (now - before).abs() > 1e-9 * before.abs()) else { return };
    let (_, style) = change(canvas, metric.better, before, now);
    if columns.absolute > 0 {
        // Of what is next to nothing the last column says all there is to say.
        if (now - before).abs() >= LEAST * before.abs() {
            let room = usize::from(columns.absolute - 1);
            canvas.right(x, area.y, columns.absolute - 1, &within(signed(metric, now - before), room), style);
        }
        x += columns.absolute;
    }
    let (text, style) = change(canvas, metric.better, before, now);
    canvas.right(x, area.y, columns.relative, &text, style);
}

/// The ends between which nine measurements of ten lie, in the unit in which the value is written, `31.2–41.0`, or as
/// shares of it, `-14/+13%`.
fn interval(app: &App, metric: &Metric, now: f64, shown: &str, room: usize) -> Option<String> {
    let (scenario, estimate) = (app.answer.scenario.as_ref()?, app.answer.outcome.as_ref().ok()?);
    let (low, high) = metric.interval(estimate, scenario)?;
    if !(low.is_finite() && high.is_finite()) || low == high || now == 0.0 {
        return None;
    }
    let number: f64 = shown.split(' ').next()?.trim_start_matches('$').parse().ok()?;
    let show = |end: f64| {
        let end = end / now * number;
        if end.abs() >= 100.0 { format!("{end:.0}") } else { units::significant(end, 3) }
    };
    let ends = format!("{}–{}", show(low), show(high));
    // Ends that need more room than there is are described as shares of the value.
    let shares = || format!("{:+.0}/{:+.0}%", 100.0 * (low / now - 1.0), 100.0 * (high / now - 1.0));
    Some(if number < 1.0 || room < 9 || ends.chars().count() > room { shares() } else { ends })
}

/// A change with its sign; its unit stands beside the value.
fn signed(metric: &Metric, change: f64) -> String {
    let text = match metric.format {
        // The difference of two shares is in points; its relative change stands beside it in per cent.
        Format::Percent => format!("{:.1} pt", change.abs() * 100.0),
        // Three digits without the sign of the currency: small prices fit, and it stands beside the value.
        Format::Usd if change.abs() < 1.0 => units::significant(change.abs(), 3),
        Format::Usd if change.abs() < 10_000.0 => format!("{:.2}", change.abs()),
        Format::Usd => units::si(change.abs()),
        format => format.show(change.abs()),
    };
    format!("{}{text}", if change < 0.0 { "-" } else { "+" })
}

/// A change in its columns: one that is too long for them has three digits in place of four.
fn within(text: String, room: usize) -> String {
    if text.width() <= room {
        return text;
    }
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    match number.parse::<f64>() {
        Ok(value) => {
            let sign = if value < 0.0 { "-" } else { "+" };
            let short = format!("{sign}{} {unit}", units::significant(value.abs(), 3));
            if short.trim_end().width() <= room {
                return short;
            }
            // The smallest have more noughts than room; their unit stands beside the value.
            let small = format!("{sign}{:.2e}", value.abs());
            if small.width() + 1 + unit.width() <= room { format!("{small} {unit}") } else { small }
        }
        Err(_) => text,
    }
}

/// Least change that is described in digits; what is smaller is of no account, whichever way it goes.
pub(super) const LEAST: f64 = 0.000_5;

/// A change by its arrow, its sign and its colour.
pub(super) fn change(canvas: &Canvas<'_>, better: Better, before: f64, now: f64) -> (String, Style) {
    let arrow = if now > before { canvas.glyphs.up } else { canvas.glyphs.down };
    if (now - before).abs() < LEAST * before.abs() {
        return (format!("{arrow}<0.1 %"), canvas.role(Role::Dim));
    }
    (format!("{arrow}{}", units::relative(before, now)), change_style(canvas, better, now - before))
}

/// Better is one colour, worse another; the arrow and the sign say it too.
pub(super) fn change_style(canvas: &Canvas<'_>, better: Better, change: f64) -> Style {
    let role = match (better, change > 0.0) {
        (Better::Higher, true) | (Better::Lower, false) => Role::Good,
        (Better::Higher, false) | (Better::Lower, true) => Role::Bad,
        (Better::Neutral, _) => Role::Dim,
    };
    canvas.role(role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_gives_up_digits_then_noughts_then_its_unit_before_it_is_cut() {
        assert_eq!(within("+0.8712 J".into(), 10), "+0.8712 J");
        assert_eq!(within("+0.008712 J".into(), 10), "+0.00871 J");
        assert_eq!(within("+0.00008712 J".into(), 10), "+8.71e-5 J");
        assert_eq!(within("-0.001291 kg".into(), 10), "-1.29e-3");
    }

    #[test]
    fn numbers_split_at_the_point_and_the_unit() {
        assert_eq!(split("36.22 ktok/s"), ("36", ".22", "ktok/s"));
        assert_eq!(split("2642 tok/s"), ("2642", "", "tok/s"));
        assert_eq!(split("$0.01047"), ("$0", ".01047", ""));
        assert_eq!(split("1.000e-9"), ("1", ".000e-9", ""));
        assert_eq!(split("–"), ("–", "", ""));
        assert_eq!(short("0", ".07196", "tok/J").as_deref(), Some(".0720"));
        assert_eq!((short("0", ".07196", ""), short("36", ".22", "tok/J")), (None, None));
        let narrow = |text: &str| within(text.to_owned(), 9);
        assert_eq!((narrow("-0.1533 ms"), narrow("+88.86 min")), ("-0.153 ms".to_owned(), "+88.9 min".to_owned()));
        assert_eq!(narrow("+6.410 ms"), "+6.410 ms");
    }

    #[test]
    fn every_width_has_room_for_the_figure() {
        for width in 40..90 {
            for intervals in [false, true] {
                let c = Columns::fit(width, intervals);
                let used = c.label + WHOLE + FRACTION + UNIT + c.interval + c.absolute + c.relative;
                assert!(used <= width, "{used} of {width}");
            }
        }
        let narrow = Columns::fit(48, true);
        assert!(narrow.interval > 0 && narrow.relative > 0, "both fit 80 columns");
    }
}
