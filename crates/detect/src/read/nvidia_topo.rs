//! `nvidia-smi topo -m`: how GPUs and NICs are connected.

use std::collections::BTreeMap;

use crate::text::{clean, strip_sequences};

/// Maximum number of columns that are read.
const MAX_COLUMNS: usize = 256;

/// Connection between two devices, closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The same device.
    Same,
    /// A bonded set of NVLinks, with their number.
    NvLink(u32),
    /// At most one PCIe bridge (`PIX`).
    Pix,
    /// Several PCIe bridges without the host bridge (`PXB`).
    Pxb,
    /// The PCIe host bridge (`PHB`).
    Phb,
    /// The interconnect between host bridges of one NUMA node (`NODE`).
    Node,
    /// The interconnect between NUMA nodes (`SYS`).
    Sys,
}

impl Relation {
    fn read(word: &str) -> Option<Relation> {
        Some(match word {
            "X" => Relation::Same,
            "PIX" => Relation::Pix,
            "PXB" => Relation::Pxb,
            "PHB" => Relation::Phb,
            "NODE" => Relation::Node,
            "SYS" => Relation::Sys,
            _ => Relation::NvLink(word.strip_prefix("NV")?.parse().ok()?),
        })
    }
}

/// The connection matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// Connections between GPUs, by row and column.
    pub gpus: Vec<Vec<Relation>>,
    /// NICs, with their connection to each GPU.
    pub nics: Vec<(String, Vec<Relation>)>,
}

/// Parses the output of `nvidia-smi topo -m`. Returns `None` if it has no matrix or an incomplete one.
#[must_use]
pub fn parse(text: &str) -> Option<Topology> {
    let text = strip_sequences(text);
    let mut lines = text.lines();
    let header: Vec<&str> = lines
        .by_ref()
        .map(|line| line.split_whitespace().take(MAX_COLUMNS).take_while(|word| *word != "CPU").collect::<Vec<_>>())
        .find(|words| words.first() == Some(&"GPU0"))?;
    let gpus = header.iter().filter(|word| is_gpu(word)).count();
    let mut topology = Topology::default();
    let mut legend = BTreeMap::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(label) = first.strip_suffix(':').filter(|label| label.starts_with("NIC")) {
            legend.insert(label.to_owned(), clean(words.next().unwrap_or("")));
            continue;
        }
        if !header.contains(&first) {
            continue;
        }
        let row: Vec<Relation> = words.take(header.len()).map_while(Relation::read).collect();
        if row.len() < header.len() {
            continue;
        }
        let to_gpus = header.iter().zip(row).filter(|(column, _)| is_gpu(column)).map(|(_, relation)| relation);
        if is_gpu(first) {
            topology.gpus.push(to_gpus.collect());
        } else {
            topology.nics.push((first.to_owned(), to_gpus.collect()));
        }
    }
    for (name, _) in &mut topology.nics {
        if let Some(known) = legend.get(name.as_str()).filter(|known| !known.is_empty()) {
            name.clone_from(known);
        }
    }
    (gpus > 0 && topology.gpus.len() == gpus).then_some(topology)
}

fn is_gpu(word: &str) -> bool {
    word.strip_prefix("GPU").is_some_and(|number| number.parse::<u32>().is_ok())
}

impl Topology {
    /// Number of GPUs that NVLink connects directly to the first GPU, including itself; 1 without NVLink.
    ///
    /// `None` if GPUs are connected in groups of different sizes.
    #[must_use]
    pub fn nvlink_domain(&self) -> Option<u32> {
        let size = |row: &Vec<Relation>| {
            row.iter().filter(|relation| matches!(relation, Relation::Same | Relation::NvLink(_))).count()
        };
        let first = self.gpus.first().map(size)?;
        self.gpus.iter().all(|row| size(row) == first).then(|| u32::try_from(first).ok()).flatten()
    }

    /// Names of the NICs that are connected to a GPU without passing the host bridge.
    #[must_use]
    pub fn near_nics(&self) -> Vec<&str> {
        let near = |relations: &[Relation]| relations.iter().any(|r| matches!(r, Relation::Pix | Relation::Pxb));
        self.nics.iter().filter(|(_, relations)| near(relations)).map(|(name, _)| name.as_str()).collect()
    }
}
