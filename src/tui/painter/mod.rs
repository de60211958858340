//! What the terminal interface of Atlas Fabric does at every key for every cell of the screen: text into the cells of a
//! picture ([`cells`]), and the picture onto the terminal with few bytes and one write ([`paint`]), in the colors that it
//! has ([`color`]).
//!
//! A crate of its own because it is compiled for speed, where the rest of the interface is compiled for size. What the
//! interface calls is never inlined there, where it would be compiled for size after all.

pub mod cells;
pub mod color;
pub mod frame_writer;
pub mod paint;
mod pen;

pub use paint::Painter;
