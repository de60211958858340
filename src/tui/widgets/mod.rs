//! Drawing of text, frames, plots and images, and the layout of the screen.

pub mod draw;
pub(in crate::tui) mod frames;
pub mod graphics;
pub mod layout;
pub mod line;
pub(in crate::tui) mod plot;
