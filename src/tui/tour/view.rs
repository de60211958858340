//! Draws the caption of a tour: narration, progress, and failed expectations.

use ratatui::layout::Rect;

use crate::demo::narration;
use crate::theme::Role;
use crate::tui::app::App;
use crate::tui::widgets::draw::{Canvas, wrap};

/// Draws the caption.
pub(in crate::tui) fn caption(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(tour) = &app.tour else { return };
    let total = tour.demo.steps.len();
    let Some(step) = tour.demo.steps.get(tour.step) else { return };
    let inner = canvas.frame(area, &step.title, &format!("step {} of {total}", tour.step + 1), true);
    let width = inner.width.saturating_sub(2);
    let mut y = inner.y;
    let text = canvas.role(Role::Text);
    let say = narration::described(&step.say, |metric| app.answer.value(metric), |metric| app.baseline.value(metric));
    let lines = wrap(&say, usize::from(width));
    let room = inner.height.saturating_sub(1);
    for (i, line) in lines.iter().take(usize::from(room)).enumerate() {
        let cut = i + 1 == usize::from(room) && lines.len() > usize::from(room);
        let line = if cut { format!("{line} {}", app.glyphs.ellipsis) } else { line.clone() };
        canvas.text(inner.x + 1, y, width, &line, text);
        y += 1;
    }
    if let Some(error) = &tour.error {
        let style = canvas.role(Role::Error);
        let lines = wrap(error, usize::from(width));
        // Errors are shown in full; the narration is cut for them.
        y = y.min(inner.bottom().saturating_sub(1 + u16::try_from(lines.len()).unwrap_or(1)).max(inner.y));
        for line in &lines {
            canvas.text(inner.x + 1, y, width, &format!("{line:<pad$}", pad = usize::from(width)), style);
            y += 1;
        }
    }
    // CI checks the expectations of tours; only failures are shown.
    for (_, claim) in tour.outcomes.iter().filter(|(held, _)| !held) {
        if y + 1 >= inner.bottom() {
            break;
        }
        let (role, sign) = (Role::Bad, app.glyphs.cross);
        let style = canvas.role(role);
        let claim = format!("{sign} {claim}");
        let lines = wrap(&claim, usize::from(width));
        // A long expectation is wrapped if all of it fits, otherwise truncated.
        if lines.len() < usize::from(inner.bottom() - y) {
            for line in &lines {
                canvas.text(inner.x + 1, y, width, line, style);
                y += 1;
            }
        } else {
            canvas.text(inner.x + 1, y, width, &claim, style);
            y += 1;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of steps")]
    let share = (tour.step + 1) as f64 / total.max(1) as f64;
    let bar = canvas.glyphs.bar(share, usize::from(width));
    let style = canvas.role(Role::Bar1);
    canvas.text(inner.x + 1, inner.bottom() - 1, width, &bar, style);
}
