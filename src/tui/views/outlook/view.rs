//! Draws the outlook: a small chart of the metric over the last changed knob, with the best value.

use crate::tui::app::App;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::sweep::Curves;
use crate::tui::views::sweep::heat::format_setting;
use crate::tui::views::sweep::view::{draw_no_answer, legend, plot};
use crate::tui::widgets::draw::Canvas;
use ratatui::layout::Rect;

use atlas_plan::engine::analytical_scenario;
use atlas_plan::estimate::Direction;

/// Draws the pane.
pub(in crate::tui) fn outlook(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let query = &app.queries.outlook;
    let Some(curves) = query.answer() else {
        // The first frame is empty and without a remark, which would disappear after a tenth of a second.
        if query.problem().is_none() {
            return;
        }
        let inner = canvas.frame(area, "Outlook", "", false);
        return draw_no_answer(&app.answer, query.problem(), canvas, inner);
    };
    let simulates =
        app.answer.scenario.as_ref().is_some_and(|scenario| analytical_scenario(scenario).engine != scenario.engine);
    // Only the sweep view runs simulations, because it reports progress.
    let how = if simulates { ", in closed form" } else { "" };
    let title = format!("{} over {}{how}", curves.metric.label, curves.across.knob.name());
    let (at, value) = best(curves).unwrap_or_default();
    // Never truncated: shortened or left out.
    let room = usize::from(area.width).saturating_sub(title.width() + 10);
    let best =
        [format!("best at {at}: {value}"), format!("best at {at}")].into_iter().find(|text| text.width() <= room);
    let best = best.filter(|_| !at.is_empty()).unwrap_or_default();
    let mut inner = canvas.frame(area, &title, &best, false);
    inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if curves.curves.len() > 1 {
        let names = curves.curves.iter().map(|(name, _)| &**name);
        let below = legend(canvas, Rect { height: inner.height / 3, ..inner }, names, 0);
        let y = below.unwrap_or(inner.y + inner.height / 3);
        inner = Rect { y, height: inner.bottom() - y, ..inner };
    }
    plot(curves, None).draw(canvas, inner);
}

/// Returns the best point of the scenario's curve; `None` if the curve is flat.
fn best(curves: &Curves) -> Option<(String, String)> {
    let (_, grid) = curves.curves.first().filter(|_| curves.metric.better != Direction::Neutral)?;
    let mut runs = grid.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, cell.feasible_value()?)));
    let first = runs.next()?;
    let (mut best, mut differs) = (first, false);
    for (at, value) in runs {
        let better = curves.metric.better.is_better(value, best.1);
        differs |= value != first.1;
        best = if better { (at, value) } else { best };
    }
    let value = curves.across.values.get(best.0).filter(|_| differs)?;
    Some((format_setting(value), curves.metric.brief(best.1)))
}
