//! What every reader of logs does a million times: lines out of a stream, numbers out of lines, statistics out of
//! numbers. A crate of its own to be compiled for speed, where the formats that use it are compiled for size.
//!
//! * [`stream`] – lines, without colours and NUL bytes, in constant memory
//! * [`prefix`] – what launchers and collectors put in front of every line
//! * [`text`] – words and numbers in a line
//! * [`series`] – values in constant memory: mean, quantiles, warm-up, outliers, bootstrap intervals

#![forbid(unsafe_code)]

pub mod prefix;
pub mod series;
pub mod stream;
pub mod text;
