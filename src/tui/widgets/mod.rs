//! Drawing of text, frames, plots and images.

pub mod draw;
pub(in crate::tui) mod frames;
pub mod graphics;
pub mod line;
pub(in crate::tui) mod plot;
