//! The table of keys.

use super::Action;
use super::mode::Mode::{self, *};
use crate::demo::View;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// The modes it holds in.
    pub modes: &'static [Mode],
    /// The keys, as the help writes them: `j`, `Ctrl-R`, `Shift-Tab`, `→`.
    pub keys: &'static [&'static str],
    /// What they do.
    pub action: Action,
    /// One line for the help.
    pub help: &'static str,
    /// A word for the footer, where it is worth a place there.
    pub hint: Option<&'static str>,
}

/// Modes, those of all views among them.
macro_rules! and_views {
    ($($before:ident),*; $($after:ident),*) => {
        &[
            $($before,)* Race, Compare, Breakdown, Sweep, Frontier, Sensitivity, Optimum, Timeline, Advice, Explain, Schedule,
            Problems, Measurements, Diff, $($after),*
        ]
    };
}

const PANES: &[Mode] = &[Targets, Workloads, Knobs, Results];
const VIEWS: &[Mode] = and_views!(;);
const SCREENS: &[Mode] = and_views!(Targets, Workloads, Knobs, Results;);
const LISTS: &[Mode] = and_views!(Targets, Workloads, Knobs, Results; Helping, Choosing, Confirming);
/// Views whose rows a filter can choose among; there the finder has another key than in [`FINDS`].
const TABLES: &[Mode] = &[Compare, Advice, Problems, Schedule];
const FINDS: &[Mode] = &[
    Targets,
    Workloads,
    Knobs,
    Results,
    Breakdown,
    Sweep,
    Frontier,
    Sensitivity,
    Optimum,
    Timeline,
    Explain,
    Measurements,
    Diff,
];
const SEARCHES: &[Mode] = &[Finding, Commanding, Seeking];
const EVERYWHERE: &[Mode] = &Mode::ALL;
const TOUR: &[Mode] = &[Touring];
const ALT_DIGITS: &[&str] = &["Alt-1", "Alt-2", "Alt-3", "Alt-4", "Alt-5", "Alt-6", "Alt-7", "Alt-8", "Alt-9"];

const fn row(
    modes: &'static [Mode],
    keys: &'static [&'static str],
    action: Action,
    help: &'static str,
    hint: Option<&'static str>,
) -> Binding {
    Binding { modes, keys, action, help, hint }
}

/// The table. Within a mode the footer shows hints in this order.
pub const BINDINGS: &[Binding] = &[
    row(TOUR, &["Space", "→", "l", "Enter"], Action::NextStep, "next step", Some("next")),
    row(TOUR, &["←", "h", "Backspace"], Action::PreviousStep, "step back", Some("back")),
    row(TOUR, &["Esc", "q"], Action::Escape, "leave; everything is as it was before", Some("leave")),
    row(&[Editing], &["Enter", "Tab"], Action::Accept, "keep the value", Some("keep")),
    row(&[Editing], &["Esc"], Action::Escape, "put the old value back", Some("cancel")),
    row(&[Race], &["Enter"], Action::Accept, "apply the layout; on the scenario's own, nothing", Some("apply")),
    row(
        &[Race],
        &["/", "Tab"],
        Action::Question,
        "type the question: cheapest tpot<50ms 10% free on h100, b200",
        Some("question"),
    ),
    row(&[Asking], &["Enter"], Action::Accept, "take the question", Some("take")),
    row(&[Asking], &["Esc"], Action::Escape, "leave the question as it was", Some("cancel")),
    row(&[Bounding], &["Enter", "Tab"], Action::Accept, "keep the bound; nothing typed is no bound", Some("keep")),
    row(&[Bounding], &["Esc"], Action::Escape, "leave it as it was", Some("cancel")),
    row(&[Editing], &["↑"], Action::Step(1), "one step up", Some("step")),
    row(&[Editing], &["↓"], Action::Step(-1), "one step down", None),
    row(&[Finding, Choosing], &["Enter"], Action::Accept, "go there", Some("go")),
    row(&[Commanding], &["Enter"], Action::Accept, "do it", Some("do it")),
    row(&[Exporting], &["Enter"], Action::Accept, "write the file", Some("write")),
    row(&[Exporting], &["Tab", "↓"], Action::Move(1), "the next format", Some("format")),
    row(&[Exporting], &["Shift-Tab", "↑"], Action::Move(-1), "the format before", None),
    row(&[Exporting], &["Esc"], Action::Escape, "write nothing", Some("cancel")),
    row(&[Prompting], &["Enter"], Action::Accept, "take it", Some("take")),
    row(&[Prompting], &["Esc"], Action::Escape, "leave it as it was", Some("cancel")),
    row(&[Confirming], &["Enter", "y"], Action::Accept, "write it", Some("write")),
    row(SEARCHES, &["↓", "Ctrl-N", "Tab"], Action::Move(1), "next match", Some("next")),
    row(SEARCHES, &["↑", "Ctrl-P", "Shift-Tab"], Action::Move(-1), "previous match", None),
    row(
        &[Finding, Commanding, Seeking, Choosing, Helping, Confirming],
        &["Esc"],
        Action::Escape,
        "close",
        Some("close"),
    ),
    row(&[Knobs], &["→", "+", "="], Action::Step(1), "one step up", Some("change")),
    row(&[Knobs], &["←", "-", "_"], Action::Step(-1), "one step down", None),
    row(&[Knobs], &["Enter"], Action::Edit, "type a value; results follow every key", Some("type")),
    row(&[Knobs], &["Space"], Action::Toggle, "toggle, or take the next choice", Some("toggle")),
    row(&[Knobs], &["Backspace", "Delete"], Action::Reset, "reset to the value in the file", Some("reset")),
    row(&[Knobs], &["R"], Action::ResetAll, "reset all knobs to the values in the files", None),
    row(&[Targets], &["Space", "m"], Action::Mark, "mark for race and comparison", Some("mark")),
    row(&[Targets], &["Backspace"], Action::UnmarkAll, "unmark all targets", None),
    row(&[Targets, Workloads, Results], &["R"], Action::ResetAll, "reset all knobs to the values in the files", None),
    row(PANES, &["n"], Action::NextMatch(1), "next match of the last search", None),
    row(PANES, &["N"], Action::NextMatch(-1), "previous match of the last search", None),
    row(&[Sweep, Frontier], &["→", "l"], Action::Focus(1), "next point", Some("point")),
    row(&[Sweep, Frontier], &["←", "h"], Action::Focus(-1), "previous point", None),
    row(
        &[Sweep, Frontier],
        &["Enter"],
        Action::Accept,
        "take the point; on the scenario's own, explain the figure",
        Some("take"),
    ),
    row(&[Sweep], &["Tab"], Action::Across(1), "turn the next knob; / finds one", Some("knob")),
    row(&[Sweep], &["Shift-Tab"], Action::Across(-1), "turn the previous knob", None),
    row(&[Sweep], &["n"], Action::Against(1), "turn a second knob against it, or the next one", Some("second")),
    row(&[Sweep], &["N"], Action::Against(-1), "the previous second knob, or none", None),
    row(
        &[Sensitivity],
        &["Enter"],
        Action::Accept,
        "sweep over the knob; on a number of the hardware, explain the figure down to it",
        Some("open"),
    ),
    row(&[Optimum], &["Enter"], Action::Accept, "edit bound, search, or apply candidate", Some("apply")),
    row(&[Optimum], &["→", "Space"], Action::Step(1), "the next goal", Some("goal")),
    row(&[Optimum], &["←"], Action::Step(-1), "the goal before", None),
    row(&[Optimum], &["Backspace", "Delete"], Action::Reset, "no bound", Some("no bound")),
    row(&[Optimum], &["R"], Action::Search, "search", Some("search")),
    row(&[Sweep, Sensitivity], &["."], Action::Figure(1), "the next figure", Some("figure")),
    row(&[Sweep, Sensitivity], &[","], Action::Figure(-1), "the figure before", None),
    row(&[Frontier], &["."], Action::Figure(1), "the next pair of figures", Some("figures")),
    row(&[Frontier], &[","], Action::Figure(-1), "the pair before", None),
    row(&[Timeline], &["+", "="], Action::Zoom(1), "nearer", Some("zoom")),
    row(&[Timeline], &["-", "_"], Action::Zoom(-1), "further away", None),
    row(&[Timeline], &["→", "l"], Action::Focus(1), "next task of the stream", Some("task")),
    row(&[Timeline], &["←", "h"], Action::Focus(-1), "task before", None),
    row(&[Timeline], &["Enter"], Action::Accept, "to the task that it waited for", Some("cause")),
    row(&[Timeline], &["Tab"], Action::Across(1), "the other picture: scaling; latencies", Some("picture")),
    row(
        VIEWS,
        &["Esc"],
        Action::Escape,
        "back to the panes; first shows all rows of a filtered table, or stops work",
        Some("back"),
    ),
    row(&[Compare], &["→", "l"], Action::Focus(1), "next column", Some("column")),
    row(&[Compare], &["←", "h"], Action::Focus(-1), "previous column", None),
    row(&[Compare], &["Enter"], Action::Accept, "select the column's target and explain the figure", Some("explain")),
    row(&[Compare], &["o"], Action::Sort, "sort by this metric, or as in the files", Some("order")),
    row(&[Compare], &["O"], Action::SortByName, "sort by name, or as before", None),
    row(&[Schedule], &["→", "l"], Action::Focus(1), "next column", Some("column")),
    row(&[Schedule], &["←", "h"], Action::Focus(-1), "previous column", None),
    row(&[Schedule, Breakdown], &["Enter"], Action::Accept, "explain the figure, down to its inputs", Some("explain")),
    row(&[Schedule], &["o"], Action::Sort, "sort by this column, turned round, or as in the file", Some("sort")),
    row(&[Problems], &["Enter"], Action::Accept, "open the file there in $EDITOR", Some("edit file")),
    row(&[Problems], &["o"], Action::Sort, "cycle sort column (last: file order)", Some("sort")),
    row(&[Results], &["="], Action::Goal, "goal: type the value you want and see what reaches it", Some("goal")),
    row(&[Seeking], &["Enter"], Action::Accept, "apply", Some("apply")),
    row(&[Results], &["Enter"], Action::Accept, "explain the figure, down to its inputs", Some("explain")),
    row(
        &[Targets, Workloads, Knobs, Results, Advice],
        &["o"],
        Action::Sort,
        "cycle sort column (last: file order)",
        None,
    ),
    row(&[Compare], &["Space", "m"], Action::Mark, "mark or unmark the column's target", None),
    row(&[Diff], &["Enter"], Action::Accept, "explain the figure, down to its inputs", Some("explain")),
    row(&[Diff], &["→", "l"], Action::Focus(1), "against the next tab", Some("against")),
    row(&[Diff], &["←", "h"], Action::Focus(-1), "against the tab before", None),
    row(&[Advice], &["Enter"], Action::Accept, "apply the advice; u undoes it", Some("apply")),
    row(
        &[Measurements],
        &["f"],
        Action::Calibrate,
        "fit the target's numbers to the rows; nothing is written yet",
        Some("calibrate"),
    ),
    row(
        &[Measurements],
        &["Enter"],
        Action::Accept,
        "explain the prediction; on a proposal, write the profile",
        Some("open"),
    ),
    row(&[Measurements], &["Backspace"], Action::Discard, "forget what is proposed", Some("discard")),
    row(&[Explain], &["Enter", "Space"], Action::Fold, "fold or unfold", Some("fold")),
    row(&[Explain], &["→", "l"], Action::Focus(1), "the next figure", Some("figure")),
    row(&[Explain], &["←", "h"], Action::Focus(-1), "the figure before", None),
    row(PANES, &["Tab", "l"], Action::Focus(1), "next pane", Some("pane")),
    row(PANES, &["Shift-Tab", "h"], Action::Focus(-1), "previous pane", None),
    row(&[Targets, Workloads], &["Enter"], Action::FocusPane(3), "to the knobs", None),
    row(SCREENS, &["b"], Action::Baseline, "set baseline to this scenario", Some("baseline")),
    row(SCREENS, &["B"], Action::ClearBaseline, "set baseline to the values in the files", None),
    row(
        SCREENS,
        &["c", "2"],
        Action::Show(View::Race),
        "race: each target at its best under the same constraints",
        Some("race"),
    ),
    row(
        SCREENS,
        &["C"],
        Action::Show(View::Compare),
        "compare targets side by side with the same knobs",
        Some("compare"),
    ),
    row(
        TABLES,
        &["/"],
        Action::Filter,
        "show only what matches: words, or conditions such as tpot<50ms",
        Some("filter"),
    ),
    row(FINDS, &["/"], Action::Find, "find a target, workload or knob", Some("find")),
    row(SCREENS, &["u"], Action::Undo, "undo", Some("undo")),
    row(SCREENS, &[":", "Ctrl-P"], Action::Palette, "find a command", Some("commands")),
    row(SCREENS, &["Ctrl-R", "U"], Action::Redo, "redo", None),
    row(SCREENS, &["3"], Action::Show(View::Breakdown), "breakdown: where time and memory go", None),
    row(SCREENS, &["v", "4"], Action::Show(View::Sweep), "sweep: a figure over one or two knobs", Some("sweep")),
    row(SCREENS, &["F", "5"], Action::Show(View::Frontier), "Pareto frontier of two figures", Some("frontier")),
    row(
        SCREENS,
        &["i", "0"],
        Action::Show(View::Sensitivity),
        "sensitivity: which knob and hardware figure matter most",
        Some("sensitivity"),
    ),
    row(
        SCREENS,
        &["S", "6"],
        Action::Show(View::Optimum),
        "optimize: search the best knobs for this target",
        Some("optimize"),
    ),
    row(SCREENS, &["E", "9"], Action::Show(View::Timeline), "timeline (simulated)", Some("timeline")),
    row(SCREENS, &["a", "8"], Action::Show(View::Advice), "advice: changes that help here, with their gain", None),
    row(SCREENS, &["7"], Action::Show(View::Explain), "explain: the equations and inputs of a figure", None),
    row(SCREENS, &["p"], Action::Show(View::Schedule), "schedule, phase by phase", Some("phases")),
    row(SCREENS, &["y"], Action::Copy, "what is under the cursor to the clipboard", Some("copy")),
    row(SCREENS, &["Y"], Action::CopyAll, "the whole table to the clipboard", None),
    row(SCREENS, &["x"], Action::Export, "this view to a file: Markdown, HTML, JSON, CSV, SVG", Some("export")),
    row(SCREENS, &["w"], Action::WriteBack, "write the turned knobs into the files, after a look", Some("write")),
    row(SCREENS, &["d"], Action::Demos, "guided tours", Some("tours")),
    row(SCREENS, &["s"], Action::Save, "save a record of this scenario", Some("save")),
    row(SCREENS, &["e"], Action::OpenEditor, "open the selected entry's file in $EDITOR", Some("edit file")),
    row(SCREENS, &["!"], Action::Show(View::Problems), "problems in the files", None),
    row(SCREENS, &["M"], Action::Show(View::Measurements), "measured runs beside predictions", None),
    row(SCREENS, &["t"], Action::NextTheme, "next theme", None),
    row(SCREENS, &["r"], Action::Reload, "read the files again (they are watched, too)", None),
    row(PANES, &["f"], Action::Filter, "show only the rows that match: words, or conditions such as tpot<50ms", None),
    row(TABLES, &["f"], Action::Find, "find a target, workload or knob", None),
    row(SCREENS, &["]"], Action::Tab(1), "the next scenario", None),
    row(SCREENS, &["["], Action::Tab(-1), "the scenario before", None),
    row(SCREENS, &["T"], Action::DuplicateTab, "this scenario again, on a tab of its own", None),
    row(SCREENS, &["Ctrl-N"], Action::NewTab, "a tab with the files' values", None),
    row(SCREENS, &["L"], Action::RenameTab, "name this tab", None),
    row(SCREENS, &["X", "Ctrl-W"], Action::CloseTab, "close this tab; u brings it back", None),
    row(SCREENS, &["Ctrl-T"], Action::ReopenTab, "bring the tab that was closed last back", None),
    row(SCREENS, &["P"], Action::PinTab, "pin this tab: deltas on every tab are against it", None),
    row(SCREENS, &["D"], Action::Show(View::Diff), "difference to another tab or to the baseline", None),
    row(SCREENS, ALT_DIGITS, Action::TabAt(0), "the scenario with that number", None),
    row(SCREENS, &["1"], Action::Show(View::Main), "the overview: targets, workloads, knobs, results", None),
    row(SCREENS, &["H"], Action::FocusPane(1), "to the targets", None),
    row(SCREENS, &["W"], Action::FocusPane(2), "to the workloads", None),
    row(SCREENS, &["K"], Action::FocusPane(3), "to the knobs", None),
    row(SCREENS, &["V"], Action::FocusPane(4), "to the results", None),
    row(LISTS, &["j", "↓"], Action::Move(1), "down", None),
    row(LISTS, &["k", "↑"], Action::Move(-1), "up", None),
    row(LISTS, &["PageDown", "Ctrl-D"], Action::Page(1), "a screenful down", None),
    row(LISTS, &["PageUp", "Ctrl-U"], Action::Page(-1), "a screenful up", None),
    row(LISTS, &["g", "Home"], Action::First, "to the first", None),
    row(LISTS, &["G", "End"], Action::Last, "to the last", None),
    row(&[Helping, Choosing], &["q"], Action::Escape, "close", None),
    row(&[Choosing], &["d"], Action::Escape, "close", None),
    row(PANES, &["Esc"], Action::Escape, "dismiss the message", None),
    row(SCREENS, &["?"], Action::Help, "help: all keys", Some("keys")),
    row(&[Helping], &[":", "/"], Action::Palette, "find a command by name", Some("find")),
    row(&[Helping], &["?"], Action::Escape, "close", None),
    row(SCREENS, &["q"], Action::Close, "quit; in a view: back to the overview", Some("quit")),
    row(EVERYWHERE, &["Ctrl-L"], Action::Repaint, "paint the screen again", None),
    row(EVERYWHERE, &["Ctrl-Z"], Action::Suspend, "suspend; fg comes back", None),
    row(EVERYWHERE, &["Ctrl-C"], Action::Quit, "quit at once", None),
];
