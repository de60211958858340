//! State of the tabs.

use crate::demo::Pane;
use crate::demo::View;
use crate::tui::app::snapshot::{Snapshot, TabId};
use crate::tui::views::frontier::state::FrontierSettings;
use crate::tui::views::sweep::state::SweepSettings;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::knob::Knob;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of tabs, so that the strip and the session file stay small.
pub const MAX_TABS: usize = 32;

/// Maximum number of closed tabs that can be reopened.
pub(in crate::tui) const MAX_CLOSED_TABS: usize = 16;

/// A tab: its scenario, its undo history, and its view and cursors.
#[derive(Debug, Clone)]
pub struct Tab {
    /// Identifier of the tab.
    pub id: TabId,
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
    /// The scenario, its marks and its baseline. Outdated for the current tab, whose state is in `App::now`.
    pub now: Snapshot,
    /// States to undo to, oldest first.
    pub past: Vec<Snapshot>,
    /// States to redo, next one last.
    pub future: Vec<Snapshot>,
    /// View and cursors.
    pub place: Place,
}

/// View and cursors of a tab.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The current view.
    pub view: View,
    /// Views that Esc returns to, each with the row of its cursor.
    pub back: Vec<(View, usize)>,
    /// The focused pane.
    pub pane: Pane,
    /// The knob under the cursor.
    pub knob: Knob,
    /// The metric under the cursor.
    pub figure: &'static Metric,
    /// First visible row of each pane.
    pub scroll: [usize; 4],
    /// First visible row of a full-screen view.
    pub view_scroll: usize,
    /// The row under the cursor of a full-screen view.
    pub view_row: usize,
    /// Paths of nodes of the explanation that were folded or unfolded.
    pub toggled: BTreeSet<String>,
    /// The column under the cursor of a table that has columns.
    pub column: usize,
    /// Settings and cursor of the sweep.
    pub sweep: SweepSettings,
    /// Settings and cursor of the frontier.
    pub frontier: FrontierSettings,
}

impl Default for Place {
    fn default() -> Place {
        Place {
            view: View::Main,
            back: Vec::new(),
            pane: Pane::Targets,
            knob: Knob::Engine,
            figure: MetricId::TokensPerSec.metric(),
            scroll: [0; 4],
            view_scroll: 0,
            view_row: 0,
            toggled: BTreeSet::new(),
            column: 0,
            sweep: SweepSettings::default(),
            frontier: FrontierSettings::default(),
        }
    }
}

/// All tabs, in the order of the strip.
#[derive(Debug, Clone)]
pub struct Tabs {
    pub(in crate::tui) list: Vec<Tab>,
    pub(in crate::tui) current: usize,
    pub(in crate::tui) closed: Vec<(usize, Tab)>,
    pub(in crate::tui) pinned: Option<TabId>,
    /// The tab selected for the difference view.
    pub(in crate::tui) against: Option<TabId>,
    /// The previous tab.
    pub(in crate::tui) before: Option<TabId>,
    pub(in crate::tui) next: u32,
}

impl Default for Tabs {
    fn default() -> Tabs {
        let only = Tab {
            id: TabId(0),
            name: None,
            now: Snapshot::default(),
            past: Vec::new(),
            future: Vec::new(),
            place: Place::default(),
        };
        let (list, closed) = (vec![only], Vec::new());
        Tabs { list, current: 0, closed, pinned: None, against: None, before: None, next: 1 }
    }
}

impl Tabs {
    /// Number of tabs, at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Index of the current tab.
    #[must_use]
    pub fn current(&self) -> usize {
        self.current
    }

    /// All tabs. The contents of the current one are outdated here.
    #[must_use]
    pub fn list(&self) -> &[Tab] {
        &self.list
    }

    /// Index of the pinned tab.
    #[must_use]
    pub fn pinned(&self) -> Option<usize> {
        self.place_of(self.pinned?)
    }

    pub(in crate::tui) fn place_of(&self, id: TabId) -> Option<usize> {
        self.list.iter().position(|tab| tab.id == id)
    }

    pub(in crate::tui) fn id_here(&self) -> Option<TabId> {
        self.list.get(self.current).map(|tab| tab.id)
    }

    pub(in crate::tui) fn fresh_id(&mut self) -> TabId {
        self.next += 1;
        TabId(self.next)
    }
}
