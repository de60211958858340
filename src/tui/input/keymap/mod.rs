//! Maps keys to actions, per mode, in one table. The footer, the help and the documentation are generated from it.
//!
//! * [`Mode`] – the state that determines which keys are bound
//! * `global` – the keys that do not belong to one view
//! * `table` – the table, composed of these and the keys of each view

mod binding;
mod global;
mod mode;
mod scope;
mod table;

use std::sync::OnceLock;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub use binding::{Binding, Keys, Place, SharedKeys, bind};
pub use mode::Mode;
pub use table::{bindings, rows};
pub(in crate::tui) use table::{general, special};

use crate::demo::View;

/// An action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Move by this many rows.
    Move(i32),
    /// Move by a screenful.
    Page(i32),
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// To the pane to the right or left.
    Focus(i32),
    /// Jump to a pane by its number.
    FocusPane(u8),
    /// Change the knob by steps.
    Step(i32),
    /// Type a value.
    Edit,
    /// Toggle or cycle the knob.
    Toggle,
    /// Reset the knob to the value in the file.
    Reset,
    /// Reset all knobs.
    ResetAll,
    /// Mark the target for comparison.
    Mark,
    /// Mark the target, and go to the next one.
    MarkNext,
    /// Set the baseline to this scenario.
    Baseline,
    /// Set the baseline to the values in the files.
    ClearBaseline,
    /// Show a view, or the overview if it is shown already.
    Show(View),
    /// Sort the comparison by the row under the cursor, or in file order again.
    Sort,
    /// Sort the comparison by the targets' names, or restore the previous order.
    SortByName,
    /// Hide the metric under the cursor from the comparison.
    HideMetric,
    /// Move the metric under the cursor by this many positions.
    ShiftMetric(i32),
    /// Type the metrics of the comparison.
    ChooseMetrics,
    /// Fold or unfold what is under the cursor.
    Fold,
    /// Select the next or previous knob of the horizontal axis.
    Across(i32),
    /// Select the next or previous knob of the vertical axis.
    Against(i32),
    /// Select the next or previous metric.
    Metric(i32),
    /// Search for the best knobs.
    Search,
    /// Go to the next or previous tab.
    Tab(i32),
    /// Go to the tab at this index, from 0.
    TabAt(u8),
    /// Open another tab with the same scenario.
    DuplicateTab,
    /// Open another tab with the values in the files.
    NewTab,
    /// Give the tab a name.
    RenameTab,
    /// Close the tab.
    CloseTab,
    /// Reopen the tab that was closed last.
    ReopenTab,
    /// Pin or unpin the tab as the baseline.
    PinTab,
    /// Show only the rows that match.
    Filter,
    /// Zoom.
    Zoom(i32),
    /// Export the view.
    Export,
    /// Find a target, workload or knob.
    Find,
    /// Find a command.
    Palette,
    /// Copy the metric or row under the cursor.
    Copy,
    /// Copy the whole table.
    CopyAll,
    /// Write the changed knobs into the files, after showing the change.
    WriteBack,
    /// All keys.
    Help,
    /// Type the wanted value of a metric.
    Goal,
    /// Open the assistant.
    Assistant,
    /// Detect the accelerators of this machine and its cluster.
    Detect,
    /// Unmark all targets.
    UnmarkAll,
    /// Type the question of the race.
    Question,
    /// To the next or the previous match of the last search.
    NextMatch(i32),
    /// A new target or workload.
    NewEntry,
    /// A new price of the price book.
    NewPrice,
    /// A new profile of the target.
    NewProfile,
    /// Name the point of the history on the screen.
    NamePoint,
    /// Undo.
    Undo,
    /// Redo.
    Redo,
    /// Write a record.
    Save,
    /// Open the entry in an editor.
    OpenEditor,
    /// Fit the target's numbers to the measured rows.
    Calibrate,
    /// Discard the proposal.
    Discard,
    /// Wait for a second key.
    After(Mode),
    /// The list of tours.
    Demos,
    /// Read the files again.
    Reload,
    /// Paint everything again.
    Repaint,
    /// Suspend.
    Suspend,
    /// Close the topmost overlay or view.
    Escape,
    /// Accept the choice or the text.
    Accept,
    /// The tour's next step.
    NextStep,
    /// Go back to the tour's previous step.
    PreviousStep,
    /// Quit.
    Quit,
    /// Close the view, or quit.
    Close,
}

/// The action a key has in a mode.
#[must_use]
pub fn lookup(mode: Mode, key: &KeyEvent) -> Option<Action> {
    let name = name_of(key)?;
    let both = mode.first_key().map(|first| format!("{first}{name}"));
    let bound = |row: &&Binding| row.keys.iter().any(|known| *known == name || both.as_deref() == Some(*known));
    let row = rows(mode).find(bound)?;
    // One row binds the keys of all nine tabs. The position of the key in the row is the index of the tab.
    let place = row.keys.iter().position(|known| *known == name).and_then(|place| u8::try_from(place).ok());
    Some(match row.action {
        Action::TabAt(_) => Action::TabAt(place.unwrap_or_default()),
        action => action,
    })
}

/// The key shown for an action where only one is shown: preferably a digit, else a single character.
#[must_use]
pub fn key_of(action: Action) -> &'static str {
    // Called many times per frame, for few actions.
    static KEYS: OnceLock<Vec<(Action, &'static str)>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        let mut keys: Vec<(Action, &'static str)> = Vec::new();
        for action in bindings().map(|row| row.action) {
            if keys.iter().all(|(known, _)| *known != action) {
                keys.push((action, best_key(action)));
            }
        }
        keys
    });
    keys.iter().find(|(known, _)| *known == action).map_or("", |(_, key)| key)
}

fn best_key(action: Action) -> &'static str {
    let mut best: Option<(u8, &str)> = None;
    for key in bindings().filter(|row| row.action == action).flat_map(|row| row.keys) {
        let rank = match key.as_bytes() {
            [b'0'..=b'9'] => 0,
            [_] => 1,
            _ => 2,
        };
        if best.is_none_or(|(known, _)| rank < known) {
            best = Some((rank, key));
        }
    }
    best.map_or("", |(_, key)| key)
}

/// The second key of a sequence such as `vd`.
#[must_use]
pub fn second_key(key: &'static str) -> Option<&'static str> {
    key.strip_prefix(['v', 't']).filter(|second| !second.is_empty())
}

/// Whether a key is a number.
#[must_use]
pub fn is_number(key: &str) -> bool {
    key.len() == 1 && key.starts_with(|c: char| c.is_ascii_digit())
}

/// Name of a key in the table; `None` for keys that cannot be bound.
#[must_use]
pub fn name_of(key: &KeyEvent) -> Option<String> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if key.modifiers.contains(KeyModifiers::ALT) {
        return match key.code {
            KeyCode::Char(digit @ '1'..='9') if !control => Some(format!("Alt-{digit}")),
            _ => None,
        };
    }
    let name = match key.code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) if control => return Some(format!("Ctrl-{}", c.to_ascii_uppercase())),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Up => "↑".to_owned(),
        KeyCode::Down => "↓".to_owned(),
        KeyCode::Left => "←".to_owned(),
        KeyCode::Right => "→".to_owned(),
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::BackTab => "Shift-Tab".to_owned(),
        KeyCode::Backspace => "Backspace".to_owned(),
        KeyCode::Delete => "Delete".to_owned(),
        KeyCode::Esc => "Esc".to_owned(),
        KeyCode::Home => "Home".to_owned(),
        KeyCode::End => "End".to_owned(),
        KeyCode::PageUp => "PageUp".to_owned(),
        KeyCode::PageDown => "PageDown".to_owned(),
        _ => return None,
    };
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_key_is_bound_twice_in_a_mode() {
        for mode in Mode::all() {
            let mut seen = HashSet::new();
            for row in rows(mode) {
                for key in row.keys {
                    assert!(seen.insert(*key), "{key} twice in {mode:?}");
                }
                assert!(!row.help.is_empty());
            }
            assert!(seen.contains("Ctrl-C") && seen.contains("Ctrl-Z"));
            assert!(
                !mode.types() || seen.iter().all(|key| key.chars().count() > 1 || "↑↓←→".contains(key)),
                "{mode:?}"
            );
        }
    }

    #[test]
    fn digit_keys_select_the_ten_numbered_views() {
        let views = [View::Main, View::Race, View::Breakdown, View::Sweep, View::Frontier, View::Optimum];
        let later = [View::Explain, View::Advice, View::Timeline, View::Sensitivity];
        let keys: String = views.into_iter().chain(later).map(Action::Show).map(key_of).collect();
        assert_eq!(keys, "1234567890");
        for mode in [
            Mode::Targets,
            Mode::Knobs,
            Mode::View(View::Compare),
            Mode::View(View::Sweep),
            Mode::View(View::Optimum),
            Mode::View(View::Timeline),
        ] {
            let numbers = rows(mode).flat_map(|row| row.keys).filter(|key| is_number(key)).count();
            assert_eq!(numbers, 10, "{mode:?}");
        }
    }

    #[test]
    fn every_pane_and_every_view_has_a_key() {
        let panes = (1..=4).map(Action::FocusPane);
        let views = [View::Compare, View::Schedule, View::Problems, View::Measurements, View::Diff];
        let others = [View::Watch, View::History, View::Launch, View::Releases, View::Fits, View::Formats];
        let views = views.into_iter().chain(others);
        let keys: Vec<&str> = panes.chain(views.map(Action::Show)).map(key_of).collect();
        assert_eq!(keys, ["H", "W", "K", "V", "C", "vs", "!", "vm", "vd", "vj", "vh", "vl", "@", "#", "vf"]);
    }

    /// Letters bound in both cases: the actions of the lower and of the upper case, and how they are related. If two
    /// actions are unrelated, one of them is moved to a `v` or `t` sequence, a punctuation key or the command line.
    const PAIRS: &[(&[Action], &[Action], &str)] = &[
        (&[Action::Show(View::Advice)], &[Action::Assistant], "recommendations: tested changes, or answers in words"),
        (&[Action::Baseline], &[Action::ClearBaseline], "the baseline: this scenario, or the saved values"),
        (&[Action::Show(View::Race)], &[Action::Show(View::Compare)], "compare: each at its best, or all the same"),
        (&[Action::First], &[Action::Last], "the first, or the last"),
        (&[Action::Focus(-1)], &[Action::FocusPane(1)], "left: by one, or to the leftmost pane"),
        (&[Action::Move(-1)], &[Action::FocusPane(3)], "the cursor: up a row, or to the knobs"),
        (&[Action::MarkNext, Action::Mark], &[Action::UnmarkAll], "marks: set one, or remove all"),
        (
            &[Action::NextMatch(1), Action::Against(1)],
            &[Action::NextMatch(-1), Action::Against(-1)],
            "next, or previous",
        ),
        (&[Action::Sort], &[Action::SortByName], "order: by a metric, or by name"),
        (&[Action::Reload], &[Action::ResetAll, Action::Search], "again: files, knobs, search"),
        (&[Action::Save], &[Action::WriteBack], "save: a record, or the knobs in their files"),
        (&[Action::After(Mode::AfterT)], &[Action::DuplicateTab], "tabs: all keys, or a second one of this scenario"),
        (&[Action::Undo], &[Action::Redo], "undo, or redo"),
        (&[Action::After(Mode::AfterV)], &[Action::FocusPane(4)], "views: the others, or the results"),
        (&[Action::Copy], &[Action::CopyAll], "copy: this, or the whole table"),
    ];

    #[test]
    fn upper_and_lower_case_of_a_letter_bind_related_actions() {
        let mut seen = HashSet::new();
        for mode in Mode::all() {
            let action = |c: char| {
                lookup(mode, &KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))
                    .filter(|_| mode.first_key().is_none())
            };
            for letter in 'a'..='z' {
                let (Some(lower), Some(upper)) = (action(letter), action(letter.to_ascii_uppercase())) else {
                    continue;
                };
                let pair = PAIRS.iter().position(|(one, other, _)| one.contains(&lower) && other.contains(&upper));
                assert!(pair.is_some(), "{letter} in {mode:?}: {lower:?} and {upper:?} are not stated as related");
                seen.extend(pair);
            }
        }
        assert_eq!(seen.len(), PAIRS.len(), "every pair that is stated is bound");
    }

    #[test]
    fn prefix_keys_bind_only_their_prefix_and_every_second_key_has_a_hint() {
        for after in [Mode::AfterV, Mode::AfterT] {
            let first = after.first_key();
            for row in bindings().filter(|row| row.keys.iter().any(|key| Some(*key) == first)) {
                assert_eq!(row.action, Action::After(after));
            }
            let second: Vec<&Binding> =
                rows(after).filter(|row| row.keys.iter().any(|key| second_key(key).is_some())).collect();
            assert!(second.len() > 4 && second.iter().all(|row| row.hint.is_some()), "{after:?}");
        }
    }

    #[test]
    fn every_mode_binds_esc() {
        for mode in Mode::all() {
            assert!(rows(mode).any(|row| row.keys.contains(&"Esc")), "{mode:?}");
        }
    }
}
