//! Typical tasks as key scripts from the start: the keys, their maximum number, and what must be on the screen
//! afterwards. The limits keep the interface efficient.

use crate::common::{keys, screen};

use std::sync::Arc;

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_fabric::demo::{Tours, View};
use atlas_fabric::theme::color::ColorDepth;
use atlas_fabric::theme::{Glyphs, Themes};
use atlas_fabric::tui::app::App;
use atlas_fabric::tui::message::{Effect, Message, Timer};
use atlas_fabric::tui::update::update;
use atlas_fabric::tui::views::race;
use atlas_plan::search::Gauge;
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

/// The TUI on the built-in catalog after startup.
pub(crate) struct Start {
    pub(crate) app: App,
}

impl Start {
    pub(crate) fn new() -> Start {
        Start::of(&Sources::built_in())
    }

    pub(crate) fn of(sources: &Sources) -> Start {
        Start::begin(sources, Vec::new())
    }

    /// With the built-in tours.
    pub(crate) fn with_tours() -> Start {
        let (tours, _) = Tours::load(None, None);
        Start::begin(&Sources::built_in(), tours)
    }

    fn begin(sources: &Sources, tours: impl Into<Tours>) -> Start {
        let library = Arc::new(Library::load(sources, None));
        let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
        Start { app: App::new(library, tours, themes, Glyphs::unicode(), (120, 40)) }
    }

    /// Sends keys, and executes their effects. Returns the number of keys.
    pub(crate) fn type_keys(&mut self, text: &str) -> usize {
        let keys = keys::typed(text);
        let count = keys.len();
        for key in keys {
            self.send(Message::Key(key));
        }
        count
    }

    /// [`Start::type_keys`], for chaining.
    pub(crate) fn keys(&mut self, text: &str) -> &mut Start {
        self.type_keys(text);
        self
    }

    pub(crate) fn send(&mut self, message: Message) {
        let mut waiting = update(&mut self.app, message);
        while !waiting.is_empty() {
            for effect in std::mem::take(&mut waiting) {
                let answer = match effect {
                    Effect::Work(order) => Message::WorkFinished(order.serial, order.job.run(&Gauge::default())),
                    Effect::After { timer: timer @ Timer::Outlook(_), .. } => Message::Expired(timer),
                    _ => continue,
                };
                waiting.extend(update(&mut self.app, answer));
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        screen::text(&self.app)
    }
}

/// Sends keys; fails if there are more than `most`.
fn within(most: usize, keys: &str) -> Start {
    let mut start = Start::new();
    let count = start.type_keys(keys);
    assert!(count <= most, "{count} keys, {most} at most: {keys}");
    start
}

/// "Which of these four serves a 70B model under 50 ms per token most cheaply?" Before the race, no view answered this.
#[test]
fn cheapest_of_four_targets_under_50_ms_takes_at_most_twelve_keys() {
    let start = within(12, "f-8<Enter>mmmjjjmc");
    assert_eq!((start.app.view, &*start.app.now.setup.workload), (View::Race, "llama3.1-70b-serve"));
    assert_eq!(race::question(&start.app).to_string(), "cheapest tpot<50ms ttft<2s 5% free");
    let mut names: Vec<String> = race::ranked(&start.app).iter().map(|entry| entry.name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["b200-8", "h100-sxm-8", "h200-sxm-8", "mi300x-8"]);
}

#[test]
fn checking_whether_a_model_fits_takes_at_most_seven_keys() {
    let start = within(7, ":405b<Enter>V");
    assert_eq!(&*start.app.now.setup.workload, "llama3.1-405b-train");
    assert!(start.text().contains("✗"), "{}", start.text());
}

#[test]
fn cost_of_a_longer_prompt_is_shown_within_fourteen_keys() {
    let start = within(14, ":prompt=8192<Enter>V");
    let text = start.text();
    assert!(text.contains("▲") && text.contains("$/1M tokens"), "{text}");
}

#[test]
fn goal_seek_for_a_token_price_takes_at_most_seven_keys() {
    let start = within(7, "Vk=2.00");
    assert!(start.text().contains("Goal for $/1M tokens"), "{}", start.text());
}

#[test]
fn break_even_price_of_two_targets_takes_at_most_nine_keys() {
    let text = within(9, "jjjjmgVk=").text();
    assert!(text.contains("hourly_usd") && text.contains("passes h200-sxm-8"), "{text}");
}

#[test]
fn best_layout_of_a_target_takes_at_most_two_keys() {
    let start = within(2, "6R");
    let text = start.text();
    for part in ["best", "tp", "TTFT", "free", "default"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn comparing_two_targets_takes_at_most_six_keys() {
    let start = within(6, "mjjjmC");
    assert_eq!(start.app.columns.len(), 2);
    assert!(start.text().contains("reference"), "{}", start.text());
}

#[test]
fn breakdown_and_explain_views_take_one_key_each() {
    assert_eq!(within(1, "3").app.view, View::Breakdown);
    assert_eq!(within(1, "7").app.view, View::Explain);
}

#[test]
fn releases_and_what_runs_views_take_one_key_each() {
    assert!(within(1, "@").text().contains("Releases of vLLM"));
    let mut start = Start::new();
    start.keys("mm");
    assert_eq!(start.type_keys("#"), 1);
    assert!(start.text().contains("What runs") && start.text().contains("llama-3.1-70b"), "{}", start.text());
}

#[test]
fn question_typed_in_the_palette_opens_the_race_view() {
    let typed = ":train 70b 1T tokens 128 h100 under 60d<Enter>";
    let start = within(typed.len(), typed);
    assert_eq!((start.app.view, &*start.app.now.setup.workload), (View::Race, "llama3.1-70b-train"));
    assert!(start.text().contains("h100-sxm-128"), "{}", start.text());
}

/// A click on a heading of the comparison sorts by it, and the best target becomes visible.
#[test]
fn heading_click_sorts_the_comparison_and_scrolls_to_the_best() {
    let mut start = Start::new();
    start.keys("CGGG");
    let text = start.text();
    let (row, line) = text.lines().enumerate().find(|(_, line)| line.contains("tok/s/user")).unwrap();
    let column = line.char_indices().position(|(at, _)| line[at..].starts_with("tok/s/user")).unwrap();
    start.send(Message::Mouse(MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: u16::try_from(column).unwrap(),
        row: u16::try_from(row).unwrap(),
        modifiers: KeyModifiers::NONE,
    }));
    assert_eq!(start.app.order.map(|metric| metric.name), Some("tokens_per_sec_per_user"));
    let best = start.app.columns.first().map(|(name, _)| name.to_string()).unwrap();
    assert!(start.text().contains(&best), "{best}\n{}", start.text());
    assert_eq!(start.app.column, 0, "the cursor is on the winner");
}

#[test]
fn comparison_metrics_can_be_chosen_reordered_and_hidden() {
    let mut start = Start::new();
    start.keys("C=");
    start.keys("<C-u>mfu<Enter>");
    assert!(start.text().contains("TPOT"), "what does not apply to serving leaves the usual figures");
    start.keys("=<C-u>tpot ttft wibble");
    assert!(start.text().contains("unknown metric `wibble`"), "{}", start.text());
    start.keys("<BS><BS><BS><BS><BS><BS><Enter>");
    let shown = |start: &Start| {
        start.app.chosen.of(start.app.answer.mode()).unwrap().iter().map(|m| m.name).collect::<Vec<_>>()
    };
    assert_eq!(shown(&start), ["tpot_ms", "ttft_ms"]);
    start.keys(">");
    assert_eq!(shown(&start), ["ttft_ms", "tpot_ms"]);
    start.keys("<BS>");
    assert_eq!(shown(&start), ["ttft_ms"]);
    start.keys("=<C-u><Enter>");
    assert!(start.app.chosen.of(start.app.answer.mode()).is_none(), "nothing typed shows the usual ones");
}

#[test]
fn comparison_filter_accepts_metric_labels() {
    let mut start = Start::new();
    start.keys("C/TTFT p99 > 1500ms<Enter>");
    assert!(!start.app.columns.is_empty(), "{}", start.text());
    let all = Start::new().app.library.targets().len();
    assert!(start.app.columns.len() < all);
}
