//! The built-in catalog: accelerators, models, prices and published measurements.
//!
//! The files under `workload/` are encoded at build time, so that startup does no work and built-in entries are found
//! without parsing YAML. Loading a [`Catalog`] reads the user's `accelerators/*.yaml`, `models.yaml` and `prices.yaml`,
//! whose entries override the built-in ones. A model may also come from a [`hugging_face`] config.

#![forbid(unsafe_code)]

pub mod accelerator;
mod checkpoint;
mod collection;
pub mod convolution;
pub mod datasheet;
pub mod digest;
pub mod evidence;
pub mod hugging_face;
pub mod images;
pub mod load;
pub mod measurements;
pub mod model;
mod parameters;
pub mod part;
pub mod price;
pub mod shipped;
pub mod software;
mod tag;
pub mod transformer;

pub use accelerator::Accelerator;
pub use load::Catalog;
pub use model::{Architecture, Model};
pub use part::Part;
pub use price::Price;
pub use transformer::Transformer;
