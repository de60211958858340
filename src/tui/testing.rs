//! Runs the interface without a terminal, for tests: takes keys, and returns state and screen text.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/it/common/keys.rs"]
mod keys;

use std::path::Path;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::App;
use super::message::{Effect, Message, Timer};
use super::update::update;
use crate::theme::color::ColorDepth;
use crate::theme::{Glyphs, Themes};
use crate::tui::screen::view;
use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::search::Gauge;

/// An application on two nodes of catalogued accelerators and three workloads.
pub(super) struct TestApp {
    pub(super) app: App,
    pub(super) effects: Vec<Effect>,
}

impl TestApp {
    pub(super) fn new() -> TestApp {
        let data = Path::new("tests/data/screens");
        let (targets, workloads) = (Some(data.join("targets.yaml")), Some(data.join("workloads.yaml")));
        TestApp::of(&Sources { targets, workloads, ..Sources::built_in() })
    }

    pub(super) fn of(sources: &Sources) -> TestApp {
        let library = Arc::new(Library::load(sources, None));
        let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
        TestApp { app: App::new(library, Vec::new(), themes, Glyphs::unicode(), (120, 40)), effects: Vec::new() }
    }

    /// Types keys: letters as they are, others in angle brackets: `jj<Tab><A-2>`.
    pub(super) fn keys(&mut self, text: &str) -> &mut TestApp {
        for key in keys::typed(text) {
            self.effects.extend(update(&mut self.app, Message::Key(key)));
        }
        self
    }

    /// Performs the ordered work, as the workers would, until none is left.
    pub(super) fn work(&mut self) -> &mut TestApp {
        loop {
            let (orders, others) =
                std::mem::take(&mut self.effects).into_iter().partition(|effect| matches!(effect, Effect::Work(_)));
            self.effects = others;
            let orders: Vec<Effect> = orders;
            // Expire the timers that wait for a pause.
            let outlook = |effect: &Effect| match effect {
                Effect::After { timer: timer @ Timer::Outlook(_), .. } => Some(*timer),
                _ => None,
            };
            let pauses: Vec<Timer> = self.effects.iter().filter_map(outlook).collect();
            self.effects.retain(|effect| outlook(effect).is_none());
            for timer in &pauses {
                self.effects.extend(update(&mut self.app, Message::Expired(*timer)));
            }
            if orders.is_empty() && pauses.is_empty() {
                return self;
            }
            for order in orders {
                let Effect::Work(order) = order else { continue };
                let product = order.job.run(&Gauge::default());
                self.effects.extend(update(&mut self.app, Message::WorkFinished(order.serial, product)));
            }
        }
    }

    pub(super) fn text(&self) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.app.size.0, self.app.size.1));
        view(&self.app, &mut buffer);
        let rows = buffer.content.chunks(usize::from(buffer.area.width.max(1)));
        let lines = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}
