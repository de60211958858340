//! Dialogs: forms, prompts, pickers and exports that open above a view.

pub mod detecting;
pub mod export;
pub(in crate::tui) mod finder;
pub mod form;
pub mod goal;
pub mod help;
pub mod palette;
pub(in crate::tui) mod popup;
pub mod prompt;
pub mod write_back;
