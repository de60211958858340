//! Corrections by measurements that apply to a scenario.

use std::sync::Arc;

use super::{ActiveSoftware, Parts};
use atlas_config::Corrections;
use atlas_config::corrections::Adjustments;

/// Corrections in effect, and the model they are looked up by.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveCorrections {
    /// The corrections.
    pub corrections: Arc<Corrections>,
    /// Name of the model, as in measurements.
    pub model: Arc<str>,
    /// Corrections of all scenarios of a search; `None`: each has its own.
    pub shared: Option<Adjustments>,
}

impl ActiveCorrections {
    /// Corrections for a scenario with these parts; `None` if there are none for its accelerator.
    #[must_use]
    pub fn of(parts: &Parts) -> Option<Arc<ActiveCorrections>> {
        let corrections = Arc::clone(parts.corrections.as_ref()?);
        let sheet = parts.accelerator.as_ref()?;
        let model = parts.model_name();
        (*corrections.accelerator == *sheet.id)
            .then(|| Arc::new(ActiveCorrections { corrections, model, shared: None }))
    }
}

impl ActiveSoftware {
    /// Software family: `vllm` for `vllm@0.11.0`.
    #[must_use]
    pub fn family(&self) -> &str {
        self.name.split_once('@').map_or(&self.name, |(family, _)| family)
    }
}
