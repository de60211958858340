//! Built-in entries of the predecessor dashboard, loaded when a name is not in any list.

use std::sync::Arc;

use super::decoding::decode;
use super::{File, Kind};
use crate::{Target, Workload};
use atlas_catalog::Catalog;
use atlas_catalog::shipped::{Text, document};
use atlas_document::Origin;

/// Hardware profiles and scenarios of the dashboard.
#[derive(Debug, Clone, Default)]
pub(super) struct Predecessor {
    pub(super) targets: Vec<Arc<Target>>,
    pub(super) workloads: Vec<Arc<Workload>>,
}

impl Predecessor {
    pub(super) fn read() -> Predecessor {
        let file = |kind: Kind, wanted: &str| -> Option<File> {
            let label = format!("{}{wanted}", Origin::BUILT_IN).into();
            Some(decode(label, kind, "benchboard", Text::Shipped(document(wanted)?), &Catalog::default()))
        };
        let targets =
            file(Kind::Targets, "workload/benchboard/targets.yaml").map_or_else(Vec::new, |file| file.targets);
        let workloads =
            file(Kind::Workloads, "workload/benchboard/workloads.yaml").map_or_else(Vec::new, |file| file.workloads);
        Predecessor {
            targets: targets.iter().filter_map(|entry| entry.get()).cloned().collect(),
            workloads: workloads.iter().filter_map(|entry| entry.get()).cloned().collect(),
        }
    }
}
