//! A command of the palette, and what it does.

use crate::tui::input::keymap::Action;
use atlas_assistant::Question;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::Knob;
use std::sync::Arc;

/// What a command does.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandAction {
    /// Performs the action of a key.
    Action(Action),
    /// Selects a theme by its index.
    Theme(usize),
    /// Goes to a named point of the history by its index.
    Point(usize),
    /// Plays a tour by its index.
    Tour(usize),
    /// Sweeps over a knob, alone or against another one.
    Sweep(Knob, Option<Knob>),
    /// Explains a metric.
    Explain(&'static Metric),
    /// Goes to a knob in its pane.
    Knob(Knob),
    /// Applies a typed question.
    Ask(Arc<Question>),
    /// Asks the assistant.
    Question(String),
}

/// A row of the palette.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Description of the command.
    pub text: String,
    /// The keys with the same effect.
    pub keys: &'static [&'static str],
    /// Its effect.
    pub deed: CommandAction,
}
