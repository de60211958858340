//! Corrections from runs that apply to a scenario.

use std::sync::Arc;

use super::{Parts, SoftwareInForce};
use atlas_config::Corrections;

/// Corrections in effect, and what of the scenario they depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Corrected {
    /// The corrections.
    pub corrections: Arc<Corrections>,
    /// The model, as runs name it.
    pub model: Arc<str>,
}

impl Corrected {
    /// The corrections of a scenario with these parts.
    #[must_use]
    pub fn of(parts: &Parts) -> Option<Arc<Corrected>> {
        let corrections = Arc::clone(parts.corrections.as_ref()?);
        let sheet = parts.accelerator.as_ref()?;
        let model = parts.model_name();
        (*corrections.accelerator == *sheet.id).then(|| Arc::new(Corrected { corrections, model }))
    }
}

impl SoftwareInForce {
    /// Its family: `vllm` of `vllm@0.11.0`.
    #[must_use]
    pub fn family(&self) -> &str {
        self.name.split_once('@').map_or(&self.name, |(family, _)| family)
    }
}
