//! First-principles estimates of training and serving on accelerators.
//!
//! Floors, from the ground up; a module imports only from those above it:
//!
//! * [`constants`] – every fitted or fixed coefficient, with unit, meaning and origin
//! * [`efficiency`] – a target's own factors applied over them
//! * [`accelerator`] – one device as its datasheet describes it
//! * [`linear`], [`convolution`] – mixers that are no attention, networks that are no transformer
//! * [`arch`] – a model's architecture and its parameter counts
//! * [`ops`] – the operators of a layer: FLOPs, bytes, kernels
//! * [`roofline`] – the time of one operator on one accelerator
//! * [`collective`] – the time of one collective on one fabric
//! * [`memory`] – what must be resident on one accelerator
//! * [`traits`] – what software does, without names or versions
//! * [`vision`] – what images take before a language model reads them
//! * [`training`], [`serving`] – one optimizer step; a deployment under load
//! * [`interval`] – how far their figures can be trusted
//!
//! All of it is plain data and pure functions: no I/O, no clock, no allocation.

#![forbid(unsafe_code)]

pub mod accelerator;
pub mod arch;
pub mod collective;
pub mod constants;
pub mod convolution;
pub mod efficiency;
pub mod flops;
pub mod interval;
pub mod linear;
pub mod memory;
pub mod ops;
pub mod roofline;
pub mod serving;
pub mod training;
pub mod traits;
pub mod vision;
