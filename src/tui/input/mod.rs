//! Input: from bytes to events, keys to actions, and the movement of cursors.

pub(in crate::tui) mod cursor;
pub mod decoder;
pub mod keymap;
pub(in crate::tui) mod mouse;
pub(in crate::tui) mod movement;
pub(in crate::tui) mod scrolling;
