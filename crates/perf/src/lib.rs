//! First-principles estimates of training and serving on accelerators.
//!
//! The modules form layers, listed from the bottom up. A module imports only from modules above it in this list:
//!
//! * [`constants`] – every fitted or fixed coefficient, with unit, meaning and origin
//! * [`efficiency`] – a target's own factors, applied to the constants
//! * [`accelerator`] – one device as its datasheet describes it
//! * [`linear`], [`convolution`] – linear mixers (an alternative to attention), convolutional networks
//! * [`arch`] – a model's architecture and its parameter counts
//! * [`flops`] – a model's FLOPs per token
//! * [`ops`] – the operators of a layer: FLOPs, bytes, kernels
//! * [`roofline`] – the time of one operator on one accelerator
//! * [`collective`] – the time of one collective on one fabric
//! * [`parts`] – the parts of times and memory
//! * [`traits`] – behavior of software, independent of names and versions
//! * [`vision`] – the work of encoding images before a language model reads them
//! * [`training`], [`serving`] – the time of one optimizer step; the performance of a deployment under load
//! * [`interval`] – the accuracy of both estimates
//!
//! All modules are plain data and pure functions: no I/O, no clock, no allocation.

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
pub mod ops;
pub mod parts;
pub mod roofline;
pub mod serving;
pub mod training;
pub mod traits;
pub mod vision;
