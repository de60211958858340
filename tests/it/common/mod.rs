//! Helpers that several test modules use.

pub(crate) mod goldens;
pub(crate) mod keys;
pub(crate) mod plans;
pub(crate) mod program;
#[cfg(unix)]
pub(crate) mod pty;
pub(crate) mod raster;
pub(crate) mod screen;
pub(crate) mod trace;
