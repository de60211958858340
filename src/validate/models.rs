//! The catalog's models as [`Architecture`]s.

use std::collections::HashMap;

use crate::catalog::Catalog;
use crate::engine::analytical::arch::Architecture;
use crate::engine::datasheet;

/// Architectures by catalog id and alias.
#[derive(Debug, Clone)]
pub struct Models(HashMap<String, Architecture>);

impl Models {
    /// Every model of the catalog.
    #[must_use]
    pub fn of(catalog: &Catalog) -> Models {
        let mut all = HashMap::new();
        for model in catalog.models() {
            let found = datasheet::model(&model);
            for alias in &model.aliases {
                all.entry(alias.clone()).or_insert(found);
            }
            all.insert(model.id.clone(), found);
        }
        Models(all)
    }

    /// The architecture under a catalog id or an alias.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Architecture> {
        self.0.get(id).copied()
    }
}
