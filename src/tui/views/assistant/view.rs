//! Draws the assistant: the conversation, and the input line below it.

use ratatui::layout::Rect;

use super::{Answer, Turn};
use crate::theme::Role;
use crate::tui::app::App;
use crate::tui::widgets::draw::{Canvas, wrap};
use atlas_assistant::offline::EXAMPLES;
use atlas_core::escape;

/// A line of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    text: String,
    role: Role,
}

/// Maximum number of columns.
const MAX_WIDTH: u16 = 110;

fn area(size: (u16, u16)) -> Rect {
    let (columns, rows) = size;
    let width = columns.saturating_sub(2).min(MAX_WIDTH);
    let height = rows.saturating_sub(2);
    Rect::new((columns - width) / 2, (rows - height) / 2, width, height)
}

/// Number of lines of the conversation that fit.
pub(super) fn visible_lines(size: (u16, u16)) -> usize {
    usize::from(area(size).height.saturating_sub(4))
}

fn turn_rows(turn: &Turn, width: usize) -> Vec<Row> {
    let mut rows = vec![Row { text: format!("> {}", turn.question), role: Role::Key }];
    match &turn.answer {
        Ok(Answer::Computed(reply)) => {
            for line in reply.text(width).lines() {
                let heading = reply.about.as_ref().is_some_and(|about| about.line() == line) || line == "Reproduce:";
                // Tables and commands keep their lines; what is too wide is cut by the frame.
                let role = if heading { Role::Heading } else { Role::Text };
                rows.push(Row { text: escape::terminal(line).into_owned(), role });
            }
            if let Some(suggestion) = &reply.suggestion {
                let text = format!("Enter applies: {}", suggestion.text);
                rows.extend(wrap(&text, width).into_iter().map(|text| Row { text, role: Role::Good }));
            }
        }
        Ok(Answer::Endpoint(said)) => {
            rows.extend(escaped_rows(&said.answer, width, Role::Text));
            said.remarks.iter().for_each(|remark| rows.extend(escaped_rows(remark, width, Role::Dim)));
        }
        Err(refusal) => {
            let lines = refusal.lines().flat_map(|line| {
                // Indented lines are examples, which are not wrapped.
                if line.starts_with(' ') { vec![line.to_owned()] } else { wrap(line, width) }
            });
            rows.extend(lines.map(|text| Row { text: escape::terminal(&text).into_owned(), role: Role::Warn }));
        }
    }
    rows.push(Row { text: String::new(), role: Role::Text });
    rows
}

/// Formats text of the endpoint: escapes it before anything else, then wraps it.
fn escaped_rows(text: &str, width: usize, role: Role) -> Vec<Row> {
    let lines = text.trim_end().lines().flat_map(|line| wrap(&escape::terminal(line), width));
    lines.map(|text| Row { text, role }).collect()
}

/// All lines of the conversation.
pub(super) fn lines(app: &App) -> Vec<Row> {
    let width = usize::from(area(app.size).width.saturating_sub(4));
    if app.assistant.turns.is_empty() && super::pending(&app.assistant).is_none() {
        let lead = "Ask about the current scenario, or name another one. All figures are computed offline. Start a \
             question with ! to send it to the endpoint in ATLAS_ASSISTANT_URL, or with !! to show the request only.";
        let lead = wrap(lead, width).into_iter().map(|text| Row { text, role: Role::Dim });
        let examples = EXAMPLES.iter().map(|example| Row { text: format!("  {example}"), role: Role::Text });
        return lead.chain(examples).collect();
    }
    let mut rows: Vec<Row> = app.assistant.turns.iter().flat_map(|turn| turn_rows(turn, width)).collect();
    if let Some(question) = super::pending(&app.assistant) {
        rows.push(Row { text: format!("> {question}"), role: Role::Key });
        rows.extend(escaped_rows(&app.assistant.arriving, width, Role::Text));
        if question.starts_with('!') {
            rows.push(Row { text: "waiting for the endpoint; Esc stops".to_owned(), role: Role::Dim });
            return rows;
        }
        let progress = app.queries.assistant.progress().unwrap_or_default();
        rows.push(Row { text: format!("computing: {}; Esc stops", progress.describe()), role: Role::Dim });
    }
    rows
}

/// Index of the first line of the last turn.
pub(super) fn last_turn(app: &App) -> usize {
    let width = usize::from(area(app.size).width.saturating_sub(4));
    let before = app.assistant.turns.len().saturating_sub(1);
    app.assistant.turns.iter().take(before).map(|turn| turn_rows(turn, width).len()).sum()
}

/// Draws the pane.
pub(in crate::tui) fn draw(app: &App, canvas: &mut Canvas<'_>) {
    let area = area(app.size);
    canvas.clear(area);
    let inner = canvas.frame(area, "Assistant", "Enter asks or applies, ↑ previous question, Ctrl-Y copies", true);
    let rows = lines(app);
    let room = visible_lines(app.size);
    let skip = app.assistant.scroll.min(rows.len().saturating_sub(room));
    let width = inner.width.saturating_sub(2);
    for (y, row) in (inner.y..).zip(rows.iter().skip(skip).take(room)) {
        let style = canvas.role(row.role);
        canvas.text(inner.x + 1, y, width, &row.text, style);
    }
    canvas.more(area, skip > 0, skip + room < rows.len());
    let (key, input) = (canvas.role(Role::Key), canvas.role(Role::Input));
    let y = inner.bottom().saturating_sub(1);
    canvas.text(inner.x + 1, y, 1, "?", key);
    canvas.typed(inner.x + 3, y, width.saturating_sub(2), &app.assistant.line, input);
}
