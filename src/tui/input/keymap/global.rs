//! The keys that do not belong to one view: those of dialogs, tours and every screen.

use super::Action;
use super::binding::{Binding, Place, SharedKeys, bind};
use super::mode::Mode::*;
use super::scope::Scope::{self, AllViews, Everywhere, Modes, Screens, Shared};
use crate::demo::View;

/// An entry of the list of global keys.
pub(super) enum Entry {
    /// A key.
    Key(Scope, Binding),
    /// The keys of the views whose keys have this place.
    ViewKeys(Place),
    /// The keys that open views.
    Openings(Openings),
}

/// Groups of the keys that open views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Openings {
    /// Keys that footers show.
    InFooters,
    /// Other keys.
    Other,
    /// Keys after `v`, by the second key.
    AfterV,
}

const PANES: Scope = Modes(&[Targets, Workloads, Knobs, Results]);
const SCREENS: Scope = Screens(&[]);
/// Scope of actions that work on every screen and are also listed after `t`.
const AFTER_T: Scope = Screens(&[AfterT]);
const LISTS: Scope = Screens(&[Helping, Choosing, Confirming, Detecting]);
const SEARCHES: Scope = Modes(&[Finding, Commanding, OptimizerForm]);
const TOUR: Scope = Modes(&[Touring]);
const ALT_DIGITS: &[&str] = &["Alt-1", "Alt-2", "Alt-3", "Alt-4", "Alt-5", "Alt-6", "Alt-7", "Alt-8", "Alt-9"];

const fn row(
    scope: Scope,
    keys: &'static [&'static str],
    action: Action,
    help: &'static str,
    hint: Option<&'static str>,
) -> Entry {
    Entry::Key(scope, bind(keys, action, help, hint))
}

/// The list. Within a mode the footer shows hints in this order.
pub(super) static GLOBAL: &[Entry] = &[
    row(TOUR, &["Space", "→", "l", "Enter"], Action::NextStep, "next step", Some("next")),
    row(TOUR, &["←", "h", "Backspace"], Action::PreviousStep, "step back", Some("back")),
    row(TOUR, &["Esc", "q"], Action::Escape, "leave the tour and restore your scenario", Some("leave")),
    row(Modes(&[Editing]), &["Enter", "Tab"], Action::Accept, "set the value", Some("set")),
    row(Modes(&[Editing]), &["Esc"], Action::Escape, "restore the old value", Some("cancel")),
    Entry::ViewKeys(Place::BeforeEsc),
    row(Modes(&[Editing]), &["↑"], Action::Step(1), "one step up", Some("step")),
    row(Modes(&[Editing]), &["↓"], Action::Step(-1), "one step down", None),
    row(Modes(&[Finding, Choosing]), &["Enter"], Action::Accept, "go to the match", Some("go")),
    row(Modes(&[Commanding]), &["Enter"], Action::Accept, "run the command", Some("run")),
    row(Modes(&[Exporting]), &["Enter"], Action::Accept, "write the file", Some("write")),
    row(Modes(&[Exporting]), &["Tab", "↓"], Action::Move(1), "next format", Some("format")),
    row(Modes(&[Exporting]), &["Shift-Tab", "↑"], Action::Move(-1), "previous format", None),
    row(Modes(&[Exporting]), &["Esc"], Action::Escape, "cancel", Some("cancel")),
    row(Modes(&[Prompting]), &["Enter"], Action::Accept, "accept", Some("accept")),
    row(Modes(&[Prompting]), &["Esc"], Action::Escape, "cancel", Some("cancel")),
    row(Modes(&[Detecting]), &["Enter", "y"], Action::Accept, "run the commands", Some("run")),
    row(Modes(&[Confirming]), &["Enter", "y"], Action::Accept, "write the change", Some("write")),
    row(SEARCHES, &["↓", "Ctrl-N", "Tab"], Action::Move(1), "next match", Some("next")),
    row(SEARCHES, &["↑", "Ctrl-P", "Shift-Tab"], Action::Move(-1), "previous match", None),
    row(
        Modes(&[Finding, Commanding, OptimizerForm, Choosing, Helping, Confirming, Detecting]),
        &["Esc"],
        Action::Escape,
        "close",
        Some("close"),
    ),
    row(SCREENS, &["$"], Action::NewPrice, "add a price of these accelerators to the price book", None),
    row(SCREENS, &["%"], Action::NewProfile, "add a profile with efficiency factors of the target", None),
    row(Modes(&[Filling]), &["Enter"], Action::Accept, "next field; on the last one, preview the change", Some("next")),
    row(Modes(&[Filling]), &["Tab", "↓"], Action::Move(1), "next field", Some("field")),
    row(Modes(&[Filling]), &["Shift-Tab", "↑"], Action::Move(-1), "previous field", None),
    row(Modes(&[Filling]), &["Esc"], Action::Escape, "cancel; nothing is written", Some("leave")),
    row(PANES, &["n"], Action::NextMatch(1), "next match of the last search", None),
    row(PANES, &["N"], Action::NextMatch(-1), "previous match of the last search", None),
    row(
        AllViews,
        &["Esc"],
        Action::Escape,
        "clear the filter, stop background work, or go back to the panes",
        Some("back"),
    ),
    Entry::ViewKeys(Place::AfterEsc),
    row(Modes(&[OptimizerForm]), &["Enter"], Action::Accept, "apply", Some("apply")),
    row(SCREENS, &["&"], Action::Detect, "detect the accelerators of this machine and cluster", None),
    row(SCREENS, &["A"], Action::Assistant, "assistant: ask questions in plain English", None),
    row(
        Modes(&[Conversing]),
        &["Enter"],
        Action::Accept,
        "ask; if empty, apply the change suggested by the last answer",
        Some("ask"),
    ),
    row(Modes(&[Conversing]), &["↑", "Ctrl-P"], Action::Move(-1), "previous question", Some("earlier")),
    row(Modes(&[Conversing]), &["↓", "Ctrl-N"], Action::Move(1), "next question", None),
    row(Modes(&[Conversing]), &["PageDown", "Ctrl-D"], Action::Page(1), "page down", Some("scroll")),
    row(Modes(&[Conversing]), &["PageUp", "Ctrl-U"], Action::Page(-1), "page up", None),
    row(Modes(&[Conversing]), &["Ctrl-Y"], Action::Copy, "copy the last answer", Some("copy")),
    row(Modes(&[Conversing]), &["Esc"], Action::Escape, "stop answering, or close", Some("close")),
    row(Shared(SharedKeys::Sort), &["o"], Action::Sort, "cycle sort column (last: file order)", None),
    row(PANES, &["Tab", "l"], Action::Focus(1), "next pane", Some("pane")),
    row(PANES, &["Shift-Tab", "h"], Action::Focus(-1), "previous pane", None),
    row(SCREENS, &["b"], Action::Baseline, "set the baseline to this scenario", Some("baseline")),
    row(SCREENS, &["B"], Action::ClearBaseline, "set the baseline to the saved values", None),
    Entry::Openings(Openings::InFooters),
    row(
        Shared(SharedKeys::Filter),
        &["/"],
        Action::Filter,
        "filter by words or conditions such as tpot<50ms",
        Some("filter"),
    ),
    row(Shared(SharedKeys::Find), &["/"], Action::Find, "find a target, workload or knob", Some("find")),
    row(SCREENS, &["u"], Action::Undo, "undo", Some("undo")),
    row(SCREENS, &[":", "Ctrl-P"], Action::Palette, "find a command", Some("commands")),
    row(SCREENS, &["Ctrl-R", "U"], Action::Redo, "redo", None),
    row(
        SCREENS,
        &["z"],
        Action::NamePoint,
        "name this point in the edit history; return to it with : and its name",
        None,
    ),
    Entry::Openings(Openings::Other),
    row(SCREENS, &["y"], Action::Copy, "copy what is under the cursor", Some("copy")),
    row(SCREENS, &["Y"], Action::CopyAll, "copy the whole table", None),
    row(SCREENS, &["x"], Action::Export, "export this view: Markdown, HTML, JSON, CSV, SVG", Some("export")),
    row(
        SCREENS,
        &["S"],
        Action::WriteBack,
        "save the changed knobs to their files, after confirmation",
        Some("save to files"),
    ),
    row(SCREENS, &["d"], Action::Demos, "guided tours", Some("tours")),
    row(SCREENS, &["s"], Action::Save, "save a record of this scenario", Some("record")),
    row(SCREENS, &["e"], Action::OpenEditor, "open the selected entry's file in $EDITOR", Some("edit file")),
    row(SCREENS, &["v"], Action::After(AfterV), "other views: lists them", Some("other views")),
    Entry::Openings(Openings::AfterV),
    row(SCREENS, &["r"], Action::Reload, "reload the files (they are also watched)", None),
    row(PANES, &["f"], Action::Filter, "filter rows by words or conditions such as tpot<50ms", None),
    row(Shared(SharedKeys::Filter), &["f"], Action::Find, "find a target, workload or knob", None),
    row(SCREENS, &["]"], Action::Tab(1), "next tab", None),
    row(SCREENS, &["["], Action::Tab(-1), "previous tab", None),
    row(SCREENS, &["t"], Action::After(AfterT), "tabs: lists what can be done with them", Some("tabs")),
    row(AFTER_T, &["T", "td"], Action::DuplicateTab, "duplicate this scenario in a new tab", Some("duplicate")),
    row(AFTER_T, &["Ctrl-N", "tn"], Action::NewTab, "new tab with the saved values", Some("new")),
    row(AFTER_T, &["tr"], Action::RenameTab, "rename this tab", Some("rename")),
    row(AFTER_T, &["tp"], Action::PinTab, "pin this tab: deltas on all tabs are relative to it", Some("pin or unpin")),
    row(AFTER_T, &["Ctrl-W", "tc"], Action::CloseTab, "close this tab (u reopens it)", Some("close")),
    row(AFTER_T, &["Ctrl-T", "to"], Action::ReopenTab, "reopen the last closed tab", Some("reopen")),
    row(SCREENS, ALT_DIGITS, Action::TabAt(0), "go to tab 1 to 9", None),
    row(SCREENS, &["1"], Action::Show(View::Main), "overview: targets, workloads, knobs, results", None),
    row(SCREENS, &["H"], Action::FocusPane(1), "go to the targets", None),
    row(SCREENS, &["W"], Action::FocusPane(2), "go to the workloads", None),
    row(SCREENS, &["K"], Action::FocusPane(3), "go to the knobs", None),
    row(SCREENS, &["V"], Action::FocusPane(4), "go to the results", None),
    row(LISTS, &["j", "↓"], Action::Move(1), "down", None),
    row(LISTS, &["k", "↑"], Action::Move(-1), "up", None),
    row(LISTS, &["PageDown", "Ctrl-D"], Action::Page(1), "page down", None),
    row(LISTS, &["PageUp", "Ctrl-U"], Action::Page(-1), "page up", None),
    row(LISTS, &["g", "Home"], Action::First, "go to the first", None),
    row(LISTS, &["G", "End"], Action::Last, "go to the last", None),
    row(Modes(&[Helping, Choosing]), &["q"], Action::Escape, "close", None),
    row(Modes(&[Choosing]), &["d"], Action::Escape, "close", None),
    row(PANES, &["Esc"], Action::Escape, "dismiss the message", None),
    row(Modes(&[AfterV, AfterT]), &["Esc"], Action::Escape, "cancel", Some("cancel")),
    row(SCREENS, &["?"], Action::Help, "help: all keys", Some("keys")),
    row(Modes(&[Helping]), &[":", "/"], Action::Palette, "find a command by name", Some("find")),
    row(Modes(&[Helping]), &["?"], Action::Escape, "close", None),
    row(SCREENS, &["q"], Action::Close, "quit; in a view, go back to the overview", Some("quit")),
    row(Everywhere, &["Ctrl-L"], Action::Repaint, "redraw the screen", None),
    row(Everywhere, &["Ctrl-Z"], Action::Suspend, "suspend (fg resumes)", None),
    row(Everywhere, &["Ctrl-C"], Action::Quit, "quit immediately", None),
];
