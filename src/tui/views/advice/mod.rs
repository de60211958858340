//! Draws the advice: one line, a pane with the first items, or the full view with reasons.

mod export;

use ratatui::layout::Rect;

use super::{Spec, Tab};
use crate::theme::Role;
use crate::tui::app::{Answer, App, Change, View};
use crate::tui::input::keymap::{self, Action, Keys, SharedKeys, bind};
use crate::tui::message::Effect;
use crate::tui::tables::state::Table;
use crate::tui::update::status::note;
use crate::tui::views::layout;
use crate::tui::widgets::draw::{Canvas, wrap};
use atlas_core::units;
use atlas_plan::advice::Advice;
use atlas_plan::estimate::Scale;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Advice",
    tab: Tab { place: 7, name: "Advice", short: "Adv" },
    synonyms: "advice recommendations suggestions improve tips",
    opening: Some(bind(&["a", "8"], Action::Show(View::Advice), "advice: changes that help, with their gain", None)),
    keys: &[Keys::Own(&[bind(&["Enter"], Action::Accept, "apply the advice; u undoes it", Some("apply"))])],
    shared_keys: &[SharedKeys::Filter, SharedKeys::Sort],
    table: |_| Some(Table::Advice),
    rows,
    lines_of,
    draw: advice,
    info,
    document: |app, _| Some(export::document(app)),
    item: Some(|app| Some(("the advice".to_owned(), text_here(app)?))),
    works: |app, action| action != Action::Accept || !app.advice_shown().is_empty(),
    accept: apply,
    ..Spec::DEFAULT
};

/// Formats the gain: `+8.2 %`, `makes it run`.
fn gain(advice: &Advice) -> String {
    if advice.fixes { "makes it run".to_owned() } else { units::relative(advice.before, advice.after) }
}

/// Formats the metric that it changes, before and after in one unit: `tokens/s 36.2 → 41.0 ktok/s`.
fn figures(advice: &Advice) -> String {
    let before = Some(advice.before).filter(|_| !advice.fixes);
    let scale = Scale::of(advice.metric, before.into_iter().chain([advice.after]));
    let before = before.map_or_else(String::new, |before| format!("{} → ", scale.show(before)));
    format!("{} {before}{}", advice.metric.label, scale.with_unit(advice.after))
}

/// Formats the title with the metric that the gains refer to.
fn title(advice: Option<&Advice>) -> String {
    advice.map_or_else(|| "Advice".to_owned(), |advice| format!("Advice for {}", advice.metric.label))
}

/// A line of the full view.
enum Line {
    /// The change, with its gain on the first line.
    Head(String),
    More(String),
    Reason(String),
    Source(String),
    Blank,
}

/// Returns the lines of one item of advice in the full view.
fn lines(advice: &Advice, width: usize) -> Vec<Line> {
    // The gain is at the end of the first line, after a space.
    let head = wrap(&advice.text, width.saturating_sub(usize::from(GAIN) + 1).max(8));
    let line = |(nth, text)| if nth == 0 { Line::Head(text) } else { Line::More(text) };
    let fits = head.first().is_some_and(|words| figures_fit(words, advice, width));
    let mut lines: Vec<Line> = head.into_iter().enumerate().map(line).collect();
    if !fits {
        lines.push(Line::More(figures(advice)));
    }
    if let Some(but) = advice.objection() {
        lines.extend(wrap(&but, width).into_iter().map(Line::More));
    }
    let reason = format!("{}: {}", advice.rule.name, advice.rule.reason);
    lines.extend(wrap(&reason, width).into_iter().map(Line::Reason));
    lines.extend(wrap(advice.rule.source, width).into_iter().map(Line::Source));
    lines.push(Line::Blank);
    lines
}

/// Whether the values fit between the first line of the change and its gain.
fn figures_fit(words: &str, advice: &Advice, width: usize) -> bool {
    let gain = usize::from(GAIN) + 1;
    words.chars().count() + figures(advice).chars().count() + 2 <= width.saturating_sub(gain)
}

fn text_width(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(8))
}

/// Number of rows: one per item of advice, and one for the text shown without advice.
#[must_use]
fn rows(app: &App) -> usize {
    app.advice_shown().len().max(1)
}

/// Returns the first and the last line of an item of advice in the full view.
#[must_use]
fn lines_of(app: &App, row: usize) -> Option<(usize, usize)> {
    let width = text_width(layout::areas(app).body);
    let mut first = 0;
    let all = app.advice_shown();
    for advice in all.iter().take(row) {
        first += lines(advice, width).len();
    }
    let own = all.get(row).map_or(1, |advice| lines(advice, width).len());
    Some((first, first + own.saturating_sub(2)))
}

/// Returns the advice under the cursor as text.
#[must_use]
fn text_here(app: &App) -> Option<String> {
    let advice = app.advice_shown().get(app.view_row).copied()?;
    let losses = advice.objection().map_or_else(String::new, |but| format!("; {but}"));
    Some(format!("{}: {} ({}; {}{losses})", advice.rule.name, advice.text, gain(advice), figures(advice)))
}

/// Returns the information line.
#[must_use]
fn info(app: &App) -> String {
    match app.advice().len() {
        0 => "advice: rules of the playbook, each evaluated on this scenario".to_owned(),
        1 => "one change helps; its gain is estimated by applying it to this scenario".to_owned(),
        n => format!("{n} changes help; each gain is estimated by applying the change to this scenario"),
    }
}

/// Applies the advice under the cursor.
fn apply(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(advice) = app.advice_shown().get(app.view_row).copied().cloned() else { return };
    app.push_undo(Change::Single);
    for (knob, setting) in advice.changes {
        app.set_override(knob, setting);
    }
    app.view_row = 0;
    app.recompute();
    note(app, format!("{}; u undoes it", advice.text), effects);
}

/// Draws the line, the pane, or the full view, depending on the available space.
pub fn advice(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    if app.view == View::Advice {
        full(app, canvas, area);
    } else if area.height < 3 {
        line(app, canvas, area);
    } else {
        pane(app, canvas, area);
    }
}

/// Returns the text shown without advice.
fn no_advice_text(answer: &Answer) -> &'static str {
    if answer.detail().is_none() {
        "advice needs the analytical engine; add `accelerator:` to the target"
    } else if answer.fits() {
        "no rule of the playbook helps here"
    } else {
        "no single change makes this scenario run"
    }
}

/// Draws the gain, right-aligned and colored.
fn draw_gain(canvas: &mut Canvas<'_>, x: u16, y: u16, width: u16, advice: &Advice) {
    let style = canvas.role(if advice.fixes { Role::Best } else { Role::Good });
    canvas.right(x, y, width, &gain(advice), style);
}

const GAIN: u16 = 12;

fn line(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let (key, text, dim) = (canvas.role(Role::Key), canvas.role(Role::Text), canvas.role(Role::Dim));
    let x = canvas.text(area.x + 1, area.y, 2, keymap::key_of(Action::Show(View::Advice)), key) + 1;
    match app.advice().first() {
        None => {
            canvas.text(x, area.y, area.right() - x, no_advice_text(&app.answer), dim);
        }
        Some(best) => {
            let end = canvas.text(x, area.y, (area.right() - x).saturating_sub(GAIN + 2), &best.text, text);
            draw_gain(canvas, area.right() - GAIN - 1, area.y, GAIN, best);
            // The metric of the gain, if it fits.
            let shown = u16::try_from(gain(best).chars().count()).unwrap_or(GAIN);
            let label = u16::try_from(best.metric.label.chars().count()).unwrap_or(GAIN);
            let at = (area.right() - 1).saturating_sub(shown + 1 + label);
            if at > end + 1 && !best.fixes {
                canvas.text(at, area.y, label, best.metric.label, dim);
            }
        }
    }
}

fn pane(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let all = app.advice();
    let tall = area.height >= 8;
    let step = if tall { 2 } else { 1 };
    let fit = usize::from(area.height - 2) / step;
    let remark = if all.len() > fit { format!("{fit} of {}", all.len()) } else { String::new() };
    let inner = canvas.view(area, View::Advice, &title(all.first()), &remark, false);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let (text, dim) = (canvas.role(Role::Text), canvas.role(Role::Dim));
    if all.is_empty() {
        canvas.text(inner.x, inner.y, inner.width, no_advice_text(&app.answer), dim);
        return;
    }
    for (y, advice) in (inner.y..inner.bottom()).step_by(step).zip(all.iter().take(fit)) {
        canvas.text(inner.x, y, inner.width.saturating_sub(GAIN + 1), &advice.text, text);
        draw_gain(canvas, inner.right() - GAIN, y, GAIN, advice);
        if tall {
            let width = inner.width.saturating_sub(2);
            canvas.text(inner.x + 2, y + 1, width, advice.rule.name, dim);
            let figures = figures(advice);
            let room = usize::from(width).saturating_sub(advice.rule.name.chars().count() + 2);
            if figures.chars().count() <= room {
                canvas.right(inner.x, y + 1, inner.width, &figures, dim);
            }
        }
    }
}

fn full(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let all = app.advice_shown();
    let remark = match app.filter_remark(Table::Advice, all.len(), app.advice().len()) {
        Some(remark) => remark,
        None if all.is_empty() => String::new(),
        None => "Enter applies, u undoes it".to_owned(),
    };
    let inner = canvas.view(area, View::Advice, &title(app.advice().first()), &remark, app.tour.is_none());
    let (text, dim, accent) = (canvas.role(Role::Text), canvas.role(Role::Dim), canvas.role(Role::Value));
    if all.is_empty() {
        let text = if app.advice().is_empty() { no_advice_text(&app.answer) } else { "no matches; Esc shows all" };
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), text, dim);
        return;
    }
    let width = text_width(area);
    let mut line = 0;
    let place = |line: usize| {
        let y = inner.y + u16::try_from(line.checked_sub(app.view_scroll)?).ok()?;
        (y < inner.bottom()).then_some(y)
    };
    for (row, advice) in all.iter().enumerate() {
        for piece in lines(advice, width) {
            if let Some(y) = place(line) {
                match piece {
                    Line::Head(words) => {
                        let number = format!("{:>2}", row + 1);
                        canvas.text(inner.x + 1, y, 2, &number, dim);
                        canvas.text(inner.x + 5, y, inner.width.saturating_sub(GAIN + 7), &words, accent);
                        if figures_fit(&words, advice, width) {
                            canvas.right(inner.x, y, inner.width.saturating_sub(GAIN + 2), &figures(advice), dim);
                        }
                        draw_gain(canvas, inner.right() - GAIN - 1, y, GAIN, advice);
                        if row == app.view_row {
                            let selection = canvas.role(Role::Selection);
                            canvas.tint(Rect::new(inner.x, y, inner.width, 1), selection);
                        }
                    }
                    Line::More(words) => {
                        canvas.text(inner.x + 5, y, inner.width.saturating_sub(6), &words, accent);
                    }
                    Line::Reason(words) => {
                        canvas.text(inner.x + 5, y, inner.width.saturating_sub(6), &words, text);
                    }
                    Line::Source(words) => {
                        canvas.text(inner.x + 5, y, inner.width.saturating_sub(6), &words, dim);
                    }
                    Line::Blank => {}
                }
            }
            line += 1;
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(inner.height) < line.saturating_sub(1));
}

#[cfg(test)]
mod tests {
    use super::figures;
    use crate::tui::testing::TestApp;
    use atlas_document::Sources;

    #[test]
    fn every_advice_shows_the_metric_before_and_after() {
        for width in [80, 110, 200] {
            let mut hands = TestApp::of(&Sources::built_in());
            hands.app.size = (width, 200);
            let text = hands.keys("8").work().text();
            assert!(!hands.app.advice().is_empty());
            for advice in hands.app.advice() {
                assert!(text.contains(&figures(advice)), "{width}: {}\n{text}", figures(advice));
            }
        }
    }
}
