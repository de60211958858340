//! What several test modules use.

pub(crate) mod goldens;
pub(crate) mod keys;
pub(crate) mod plans;
pub(crate) mod program;
pub(crate) mod trace;
