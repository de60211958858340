//! Tags of values in the encoding of documents, which the build script writes and the crate reads.

pub(crate) const NULL: u8 = 0;
pub(crate) const FALSE: u8 = 1;
pub(crate) const TRUE: u8 = 2;
/// Non-negative integer.
pub(crate) const NATURAL: u8 = 3;
pub(crate) const FLOAT: u8 = 4;
pub(crate) const TEXT: u8 = 5;
pub(crate) const LIST: u8 = 6;
pub(crate) const MAP: u8 = 7;
/// Negative integer, by its absolute value.
pub(crate) const NEGATIVE: u8 = 8;
/// Mapping with the positions of its keys.
pub(crate) const PLACED_MAP: u8 = 9;
