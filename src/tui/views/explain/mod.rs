//! Draws the explanation of a metric: the tree from the metric down to its inputs, one node per row. Unfolded nodes
//! show their equation in symbols and in numbers.

pub(in crate::tui) mod export;

use super::{Spec, Tab};
use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, bind};
use crate::tui::input::movement::Movement;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::layout;
use crate::tui::views::results;
use crate::tui::widgets::draw::{Canvas, wrap};
use ratatui::layout::Rect;

use atlas_plan::estimate::{METRICS, Metric};
use atlas_plan::explain::{Term, explain as derive};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Explain",
    tab: Tab { place: 6, name: "Explain", short: "Why" },
    synonyms: "explain equation formula derivation",
    opening: Some(bind(&["7"], Action::Show(View::Explain), "explain: equations and inputs of a metric", None)),
    keys: &[Keys::Own(&[
        bind(&["Enter", "Space"], Action::Fold, "fold or unfold", Some("fold")),
        bind(&["→", "l"], Action::Focus(1), "next metric", Some("metric")),
        bind(&["←", "h"], Action::Focus(-1), "previous metric", None),
    ])],
    rows,
    lines_of,
    draw: explain,
    info,
    document: |app, _| export::document(app),
    item: Some(|app| Some(("the line".to_owned(), text_here(app)?))),
    works: |app, action| {
        !matches!(action, Action::Fold | Action::Focus(_)) || app.subject.is_some() || app.answer.outcome.is_ok()
    },
    accept: |app, _| fold(app),
    update: |app, action, _| {
        match action {
            Action::Fold => fold(app),
            Action::Focus(by) => {
                other_figure(app, by);
                (app.view_row, app.view_scroll) = (0, 0);
                app.toggled.clear();
            }
            _ => return false,
        }
        true
    },
    ..Spec::DEFAULT
};

/// Depth from which nodes are initially folded.
const FOLDED_FROM: usize = 2;

/// A visible node.
struct Node<'t> {
    term: &'t Term,
    depth: usize,
    /// Child indices from the root: `0.2.1`.
    path: String,
    /// Whether it is unfolded; `None` without children.
    open: Option<bool>,
    /// Whether it affects its parent other than through the equation.
    is_dependency: bool,
}

impl Node<'_> {
    /// Returns the indentation in a view of this width.
    fn indent(&self, width: u16) -> u16 {
        u16::try_from(2 * self.depth).unwrap_or_default().min(width / 3)
    }

    /// Returns the lines below the node: its equation, in symbols and in numbers.
    fn equation(&self, width: u16) -> Vec<String> {
        let (Some(symbols), Some(numbers), Some(true)) = (self.term.in_symbols(), self.term.in_numbers(), self.open)
        else {
            return Vec::new();
        };
        wrap(&format!("{symbols} = {numbers}"), usize::from(width.saturating_sub(self.indent(width) + 6)))
    }

    fn lines(&self, width: u16, below: bool) -> usize {
        1 + usize::from(below && self.term.origin.is_some()) + self.equation(width).len()
    }

    /// Returns the width of its indentation, symbol and name.
    fn name(&self) -> usize {
        2 * self.depth + 4 + self.term.symbol.width() + self.term.name.width()
    }
}

/// Whether origins are shown below their nodes: they do not fit next to the names, and the view has enough lines.
fn origins_are_below(all: &[Node<'_>], area: Rect) -> bool {
    let inner = layout::inner(area);
    let names = all.iter().map(Node::name).max().unwrap_or_default() + 2;
    let origins =
        all.iter().filter_map(|node| node.term.origin.as_ref()).map(|origin| origin.to_string().width()).max();
    let beside = names + origins.unwrap_or_default() + 2 <= usize::from(inner.width.saturating_sub(VALUE + UNIT));
    let lines: usize = all.iter().map(|node| node.lines(area.width, true)).sum();
    inner.width >= ORIGIN_FROM && !beside && lines <= usize::from(inner.height)
}

/// Returns the tree of the metric under the cursor.
fn tree(app: &App) -> Option<Term> {
    if let Some(subject) = &app.subject {
        return derive(&subject.scenario, &subject.parts, &subject.estimate, app.figure);
    }
    let answer = &app.answer;
    let (scenario, parts, estimate) =
        (answer.scenario.as_ref()?, answer.parts.as_ref()?, answer.outcome.as_ref().ok()?);
    derive(scenario, parts, estimate, app.selected_metric()?)
}

/// Returns the visible nodes, in order.
fn nodes<'t>(app: &App, root: &'t Term) -> Vec<Node<'t>> {
    let mut all = Vec::new();
    collect(app, root, 0, "0".to_owned(), false, &mut all);
    all
}

fn collect<'t>(app: &App, term: &'t Term, depth: usize, path: String, beside: bool, all: &mut Vec<Node<'t>>) {
    let inner = !term.terms.is_empty() || !term.dependencies.is_empty();
    let open = inner.then(|| (depth < FOLDED_FROM) != app.toggled.contains(&path));
    let below = format!("{path}.");
    all.push(Node { term, depth, path, open, is_dependency: beside });
    if open == Some(true) {
        let terms = term.terms.iter().map(|term| (term, false));
        let bearing = term.dependencies.iter().map(|term| (term, true));
        for (place, (child, beside)) in terms.chain(bearing).enumerate() {
            collect(app, child, depth + 1, format!("{below}{place}"), beside, all);
        }
    }
}

/// Explains the next or previous metric of the same scenario.
fn other_figure(app: &mut App, by: i32) {
    let Some(subject) = &app.subject else { return results::move_to_metric(app, &Movement::By(by), 1) };
    let all: Vec<&'static Metric> = METRICS.iter().filter(|metric| metric.applies_to(&subject.scenario)).collect();
    let here = all.iter().position(|metric| *metric == app.figure).unwrap_or_default();
    let next = here.saturating_add_signed(by as isize).min(all.len().saturating_sub(1));
    app.figure = all.get(next).copied().unwrap_or(app.figure);
}

/// Unfolds the path to the first of these inputs that exists, and selects it.
pub(in crate::tui) fn reveal(app: &mut App, symbols: &[&str]) {
    let Some(root) = tree(app) else { return };
    let Some(path) = symbols.iter().find_map(|symbol| path_to(&root, symbol, "0")) else { return };
    for (depth, (end, _)) in path.match_indices('.').enumerate() {
        let above = path.get(..end).unwrap_or_default().to_owned();
        if depth >= FOLDED_FROM {
            app.toggled.insert(above);
        }
    }
    app.view_row = nodes(app, &root).iter().position(|node| node.path == path).unwrap_or_default();
}

/// Returns the path to the first occurrence of an input below a term.
fn path_to(term: &Term, symbol: &str, path: &str) -> Option<String> {
    if term.symbol == symbol {
        return Some(path.to_owned());
    }
    let below = term.terms.iter().chain(&term.dependencies).enumerate();
    below.into_iter().find_map(|(place, child)| path_to(child, symbol, &format!("{path}.{place}")))
}

/// Number of visible nodes.
#[must_use]
fn rows(app: &App) -> usize {
    tree(app).map_or(1, |root| nodes(app, &root).len())
}

/// Returns the first and last line of a visible node.
#[must_use]
fn lines_of(app: &App, row: usize) -> Option<(usize, usize)> {
    let Some(root) = tree(app) else { return Some((0, 0)) };
    let all = nodes(app, &root);
    let area = layout::areas(app).body;
    let below = origins_are_below(&all, area);
    let lines = |node: &Node<'_>| node.lines(area.width, below);
    let first = all.iter().take(row).map(lines).sum();
    Some((first, first + all.get(row).map_or(0, |node| lines(node) - 1)))
}

/// Returns the node under the cursor as text, for the clipboard.
#[must_use]
fn text_here(app: &App) -> Option<String> {
    let root = tree(app)?;
    let all = nodes(app, &root);
    let node = all.get(app.view_row)?;
    let equation = node.term.in_symbols().unwrap_or_else(|| node.term.symbol.to_string());
    let origin = node.term.origin.as_ref().map_or_else(String::new, |origin| format!(" [{origin}]"));
    Some(format!("{equation} = {} ({}){origin}", node.term.shown(), node.term.name))
}

/// Returns the information line: the full text of the row, which may be truncated.
#[must_use]
fn info(app: &App) -> String {
    let Some(root) = tree(app) else { return String::new() };
    let all = nodes(app, &root);
    let Some(node) = all.get(app.view_row) else { return String::new() };
    // For the metric itself: the measurements near this setup.
    if let Some(evidence) = app.answer.evidence().filter(|_| app.view_row == 0 && app.subject.is_none()) {
        return evidence;
    }
    match &node.term.origin {
        Some(origin) => format!("{}: {}; {origin}", node.term.symbol, node.term.name),
        None => format!("{}: {}", node.term.symbol, node.term.name),
    }
}

/// Folds or unfolds the node under the cursor; for a leaf, its parent.
fn fold(app: &mut App) {
    let Some(root) = tree(app) else { return };
    let all = nodes(app, &root);
    let Some(node) = all.get(app.view_row) else { return };
    let path = match (node.open, node.path.rsplit_once('.')) {
        (None, Some((above, _))) => above.to_owned(),
        _ => node.path.clone(),
    };
    let row = all.iter().position(|node| node.path == path);
    if !app.toggled.remove(&path) {
        app.toggled.insert(path);
    }
    app.view_row = row.unwrap_or(app.view_row);
}

/// Widths of a number and of its unit.
const VALUE: u16 = 11;
const UNIT: u16 = 9;
/// Minimum width of the view for origins next to names, and minimum width of an origin. On narrower screens the
/// information line shows the origin.
const ORIGIN_FROM: u16 = 100;
const MIN_ORIGIN_WIDTH: u16 = 20;

/// Draws the view.
fn explain(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let metric = if app.subject.is_some() { Some(app.figure) } else { app.selected_metric() };
    let title = metric.map_or_else(|| "Explain".to_owned(), |metric| format!("Explain {}", metric.label));
    let remark = match &app.subject {
        Some(subject) => subject.name.as_str(),
        None if area.width >= 100 => "left and right: other metrics",
        None => "",
    };
    let inner = canvas.view(area, View::Explain, &title, remark, app.tour.is_none());
    let dim = canvas.role(Role::Dim);
    let Some(root) = tree(app) else {
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), "no estimate to explain", dim);
        return;
    };
    let all = nodes(app, &root);
    // The name on the left, then the value, and its origin in the remaining columns.
    let below = origins_are_below(&all, area);
    let longest = all.iter().map(Node::name).max();
    let longest = u16::try_from(longest.unwrap_or_default() + 2).unwrap_or(u16::MAX);
    // Origins get the width they need, at most half of the space.
    let origins =
        all.iter().filter_map(|node| node.term.origin.as_ref()).map(|origin| origin.to_string().width()).max();
    let origins = u16::try_from(origins.unwrap_or_default() + 1).unwrap_or(u16::MAX).max(MIN_ORIGIN_WIDTH);
    let named = inner.width.saturating_sub(VALUE + UNIT);
    let shared = named.saturating_sub(origins).max(named / 2).max(30);
    let most = if inner.width >= ORIGIN_FROM && !below { shared } else { named.max(30) };
    let left = longest.clamp(30, most).min(inner.width.saturating_sub(VALUE + UNIT));
    let mut line = 0_usize;
    for (row, node) in all.iter().enumerate() {
        let mut place = || {
            let y = line.checked_sub(app.view_scroll).and_then(|y| u16::try_from(y).ok());
            line += 1;
            y.map(|y| inner.y + y).filter(|y| *y < inner.bottom())
        };
        let x = inner.x + 1 + node.indent(area.width);
        if let Some(y) = place() {
            head(canvas, Rect::new(x, y, (inner.x + left).saturating_sub(x), 1), node);
            value(canvas, inner.x + left, y, &node.term.shown());
            let behind = inner.x + left + VALUE + UNIT;
            let room = inner.right().saturating_sub(behind + 1);
            if let Some(origin) = node.term.origin.as_ref().filter(|_| !below && room >= MIN_ORIGIN_WIDTH) {
                canvas.text(behind, y, room, &origin.to_string(), dim);
            }
            if row == app.view_row {
                // The origin is not highlighted: it is long, and every step would repaint it.
                let selection = canvas.role(Role::Selection);
                canvas.tint(Rect::new(inner.x, y, left + VALUE + UNIT - 1, 1), selection);
            }
        }
        let origin = node.term.origin.as_ref().filter(|_| below).map(ToString::to_string);
        for words in origin.into_iter().chain(node.equation(area.width)) {
            if let Some(y) = place() {
                canvas.text(x + 2, y, inner.right().saturating_sub(x + 3), &words, dim);
            }
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(inner.height) < line);
}

/// Draws the fold sign, the symbol and the name.
fn head(canvas: &mut Canvas<'_>, area: Rect, node: &Node<'_>) {
    let sign = match node.open {
        Some(true) => canvas.glyphs.open,
        Some(false) => canvas.glyphs.closed,
        None => canvas.glyphs.bullet,
    };
    let (accent, text, dim) = (canvas.role(Role::Accent), canvas.role(Role::Text), canvas.role(Role::Dim));
    canvas.text(area.x, area.y, 1, sign, if node.open.is_some() { accent } else { dim });
    let symbol = canvas.role(if node.is_dependency { Role::Dim } else { Role::Title });
    let end = canvas.text(area.x + 2, area.y, area.width.saturating_sub(2), &node.term.symbol, symbol);
    let room = area.right().saturating_sub(end + 2);
    if node.term.name != node.term.symbol {
        canvas.text(end + 1, area.y, room, &node.term.name, if node.is_dependency { dim } else { text });
    }
}

/// Draws a value, aligned at the decimal point.
fn value(canvas: &mut Canvas<'_>, x: u16, y: u16, shown: &str) {
    let (style, dim) = (canvas.role(Role::Value), canvas.role(Role::Dim));
    let (whole, fraction, unit) = results::split(shown);
    canvas.right(x, y, 5, whole, style);
    let end = canvas.text(x + 5, y, VALUE - 5, fraction, style);
    let begin = (x + VALUE).max(end + 1);
    canvas.text(begin, y, (x + VALUE + UNIT).saturating_sub(begin), unit, dim);
}
