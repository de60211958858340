//! Views: one folder or file each, with its state, its actions and its drawing.

pub mod advice;
pub mod assistant;
pub mod breakdown;
pub mod comparison;
pub mod diff;
pub mod edits;
pub mod explain;
pub mod frontier;
pub mod measurements;
pub mod optimum;
pub mod outlook;
pub mod problems;
pub mod race;
pub mod results;
pub mod scenarios;
pub mod schedule;
pub mod sweep;
pub mod timeline;
pub mod tornado;
