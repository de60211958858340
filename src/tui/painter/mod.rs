//! Output to the terminal: writes text into the cells of a buffer ([`cells`]), and the buffer to the terminal with few
//! bytes and one write ([`paint`]), in the available colors.

pub mod cells;
pub mod frame_writer;
pub mod paint;
mod pen;

pub use paint::Painter;
