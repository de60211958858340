//! Draws the operators of a pass, if the zoom level shows them.

use ratatui::layout::Rect;
use ratatui::style::Modifier;

use crate::theme::Role;
use crate::tui::views::timeline::Timeline;
use crate::tui::widgets::draw::Canvas;
use atlas_sim::training::input::KernelRecord;
use atlas_sim::training::program::Action;

/// Minimum width in cells of the widest operator for a pass to be drawn as operators.
const MIN_OPERATOR_CELLS: f64 = 4.0;

/// Returns the color of an operator: matrix multiplications, attention, others; recomputation has its own color.
fn role(action: Action) -> Role {
    use atlas_perf::ops::{OpName, OpName as Name};
    let of = |name: OpName| match name {
        Name::Attention | Name::Recurrence | Name::Indexer => Role::Bar5,
        Name::Norm | Name::Rotary | Name::Residual | Name::Activation | Name::Dispatch | Name::Loss => Role::Bar6,
        _ => Role::Bar2,
    };
    match action {
        Action::Operator(name) => of(name),
        Action::Recompute(_) => Role::Bar3,
        Action::Images | Action::Convolutions => Role::Bar2,
        _ => Role::Bar6,
    }
}

/// Draws the operators of a pass instead of its bar if they are known and wide enough. Returns whether it did.
pub(super) fn draw_operators(timeline: &Timeline, number: u32, canvas: &mut Canvas<'_>, track: Rect) -> bool {
    let Some(output) = timeline.output() else { return false };
    let (from, to) = timeline.window;
    let list = &output.operators;
    let first = list.partition_point(|inner| inner.pass < number);
    let seen = |inner: &&KernelRecord| inner.end > from && inner.begin < to;
    let shown = || list.iter().skip(first).take_while(|inner| inner.pass == number).filter(seen);
    let cells = f64::from(track.width) / (to - from).max(1e-12);
    let widest = shown().map(|inner| inner.end - inner.begin).fold(0.0, f64::max);
    if widest * cells < MIN_OPERATOR_CELLS {
        return false;
    }
    let share = |at: f64| ((at - from) / (to - from).max(1e-12)).clamp(0.0, 1.0);
    for inner in shown() {
        let style = canvas.role(role(inner.action));
        canvas.segment(track, (share(inner.begin), share(inner.end)), style);
        let begin = (share(inner.begin) * f64::from(track.width)).ceil() as u16;
        let end = (share(inner.end) * f64::from(track.width)).floor() as u16;
        let (name, room) = (inner.action.name(), end.saturating_sub(begin));
        if usize::from(room) > name.len() {
            canvas.text(track.x + begin, track.y, room, name, style.add_modifier(Modifier::REVERSED));
        }
    }
    true
}

/// Returns the name of the operator in the middle of the visible range.
pub(super) fn middle_operator(timeline: &Timeline, number: u32) -> Option<&'static str> {
    let (from, to) = timeline.window;
    let middle = 0.5 * (from + to);
    let list = &timeline.output()?.operators;
    let own = list.iter().skip(list.partition_point(|inner| inner.pass < number));
    let inner =
        own.take_while(|inner| inner.pass == number).find(|inner| inner.begin <= middle && middle < inner.end)?;
    Some(inner.action.name())
}
