//! Conversion of a configuration to the inputs of the engines: accelerator, architecture, training job and network.

use atlas_core::count::Count;
use std::sync::Arc;

use super::custom::{Phase, TREE};
use super::layers;
use super::{PREDECESSOR_ACCELERATORS, Pattern, Predecessor, TRANSFORMER, Topology, UNKNOWN, known};
use atlas_catalog::Catalog;
use atlas_catalog::datasheet;
use atlas_perf::accelerator::{Accelerator, Precision};
use atlas_perf::arch::Architecture;
use atlas_perf::training::{Recompute, Sharding, TrainingInput};
use atlas_sim::kernel::Progress;
use atlas_sim::network;
use atlas_sim::network::{Algorithm, Operation, Routing, Shape, Wire};

impl Predecessor {
    /// Total number of accelerators.
    #[must_use]
    pub fn accelerators(&self) -> f64 {
        self.training.num_nodes * self.hardware.num_gpus_per_node
    }

    /// The accelerator of the catalog with the stated specifications, and its datasheet if the catalog has it.
    #[must_use]
    pub fn device(&self, catalog: &Catalog) -> (Accelerator, Option<Arc<atlas_catalog::Accelerator>>) {
        let name = self.hardware.gpu_model.trim();
        let known = PREDECESSOR_ACCELERATORS
            .iter()
            .find(|(word, ..)| word.eq_ignore_ascii_case(name))
            .map_or(name, |(_, id, _)| id);
        let found = catalog.accelerator(known).ok();
        let found = found.or_else(|| catalog.find_accelerator_by_description(name, Some(self.hardware.memory_gb)));
        let sheet = found.clone().or_else(|| catalog.accelerator(PREDECESSOR_ACCELERATORS[0].1).ok());
        let mut device = sheet.map(|sheet| datasheet::accelerator(&sheet)).unwrap_or_default();
        let own = device.peak(Precision::Bf16);
        let by = self.hardware.compute_tflops * 1e12 / own.max(1.0);
        device.flops = device.flops.map(|rate| rate * by);
        // A device that is faster than its datasheet is assumed to draw proportionally more power.
        device.tdp_w = device.tdp_w.map(|watts| watts * by.max(1.0));
        device.mem_bytes = self.hardware.memory_gb * 1e9;
        device.nic_bw = self.hardware.network_bandwidth_gbps * 1e9;
        device.link_bw = device.nic_bw;
        device.domain = 1.0;
        (device, found)
    }

    /// Architecture of the model, if it is known.
    fn architecture(&self, catalog: &Catalog) -> Result<Architecture, String> {
        let m = &self.model;
        if !m.layers.is_empty() {
            let width = if self.training.mixed_precision { 2.0 } else { 4.0 };
            return Ok(datasheet::of_sums(&layers::sums(&m.layers, width)));
        }
        if m.model_type.trim().eq_ignore_ascii_case(TRANSFORMER) {
            return Ok(Architecture {
                layers: Count::floor(m.num_layers),
                hidden: Count::floor(m.hidden_size),
                heads: Count::floor(m.num_attention_heads),
                kv_heads: Count::floor(m.num_attention_heads),
                head_dim: m.hidden_size / m.num_attention_heads,
                ffn: Count::floor(4.0 * m.hidden_size),
                gated: false,
                vocab: Count::floor(m.vocab_size),
                tied: true,
                positions: Count::floor(m.sequence_length),
                ..Architecture::default()
            });
        }
        known(&m.model_type, catalog)?.map(|model| datasheet::model(&model)).ok_or_else(|| UNKNOWN.to_owned())
    }

    /// Training job, without its network.
    ///
    /// # Errors
    ///
    /// If the model is unknown.
    pub fn system(&self, catalog: &Catalog) -> Result<TrainingInput, String> {
        let arch = self.architecture(catalog)?;
        let (device, _) = self.device(catalog);
        let t = &self.training;
        let accelerators = self.accelerators();
        let images = arch.convolutions.is_some();
        Ok(TrainingInput {
            accelerator: device,
            accelerators,
            domain: 1.0,
            seq: if images { 1.0 } else { self.model.sequence_length },
            micro: t.batch_size_per_gpu,
            global: t.batch_size_per_gpu * t.gradient_accumulation_steps * accelerators,
            dp: Count::floor(accelerators),
            sharding: Sharding::None,
            recompute: if t.gradient_checkpointing { Recompute::Full } else { Recompute::None },
            precision: match (t.mixed_precision, device.flops.get(Precision::Bf16 as usize)) {
                (false, _) => Precision::Tf32,
                (true, Some(rate)) if *rate > 0.0 => Precision::Bf16,
                (true, _) => Precision::Fp16,
            },
            weight_bytes: if t.mixed_precision { 2.0 } else { 4.0 },
            // 32-bit weights need no master copy.
            optimizer_bytes: if t.mixed_precision { 12.0 } else { 8.0 },
            arch,
            ..TrainingInput::default()
        })
    }

    /// Topology of the network.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let n = self.accelerators().clamp(1.0, 1e9) as u32;
        let us = 1e-6;
        let (cable, switch) = (self.network.base_latency_us * us, self.network.switch_latency_us * us);
        let bandwidth = self.hardware.network_bandwidth_gbps * 1e9;
        let link = Wire { bandwidth, latency: cable };
        match self.network.topology_type {
            Topology::FullMesh => Shape::FullMesh { accelerators: n, link },
            Topology::Ring => Shape::Ring { accelerators: n, link },
            // Each link contributes half of the latency of a switch.
            Topology::Tree => {
                Shape::Tree { accelerators: n, fan_out: 2, link: Wire { bandwidth, latency: cable + 0.5 * switch } }
            }
            Topology::Torus => Shape::Torus { sides: rectangle(n), wrapped: true, link },
        }
    }

    /// Seconds to reduce `bytes` bytes of gradients, by simulation of the network.
    ///
    /// # Errors
    ///
    /// Errors of the network simulation.
    pub fn reduction(&self, bytes: f64, progress: &Progress) -> Result<f64, Vec<network::Problem>> {
        if self.accelerators() < 2.0 {
            return Ok(0.0);
        }
        let ring = Algorithm::Ring { channels: 1, local: 0, chunks: 1 };
        let whole = |operation, algorithm| (operation, algorithm, 1.0);
        let jobs: Vec<(Operation, Algorithm, f64)> = match self.training.communication_pattern {
            Pattern::Ring => vec![whole(Operation::AllReduce, ring)],
            Pattern::Tree => vec![whole(Operation::AllReduce, TREE)],
            Pattern::ReduceScatter | Pattern::AllGather => {
                vec![whole(Operation::ReduceScatter, ring), whole(Operation::AllGather, ring)]
            }
            Pattern::AllToAll => {
                vec![whole(Operation::ReduceScatter, Algorithm::Direct), whole(Operation::AllGather, Algorithm::Direct)]
            }
            Pattern::Custom => self.training.custom_pattern.iter().map(Phase::job).collect(),
        };
        let mut seconds = 0.0;
        for (operation, algorithm, share) in jobs {
            let job = network::Job { operation, algorithm, ranks: Vec::new(), bytes: bytes * share, begin: 0.0 };
            let input =
                network::Input { shape: self.shape(), degraded: Vec::new(), routing: Routing::First, jobs: vec![job] };
            seconds += network::simulate(&input, 0, progress)?.seconds;
        }
        Ok(seconds)
    }
}

/// The rectangle with `n` places that is closest to a square.
fn rectangle(n: u32) -> [u32; 3] {
    let side = (1..=n).take_while(|side| u64::from(*side) * u64::from(*side) <= u64::from(n));
    let short = side.filter(|side| n.is_multiple_of(*side)).last().unwrap_or(1);
    [n / short, short, 1]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn rectangle_sides_are_as_equal_as_possible() {
        assert_eq!(rectangle(16), [4, 4, 1]);
        assert_eq!(rectangle(128), [16, 8, 1]);
        assert_eq!(rectangle(24), [6, 4, 1]);
        assert_eq!(rectangle(7), [7, 1, 1]);
    }

    #[test]
    fn presets_match_the_accelerator_counts_of_the_predecessor() {
        let sizes: Vec<f64> =
            ["small", "medium", "large"].iter().map(|name| Predecessor::preset(name).unwrap().accelerators()).collect();
        assert_eq!(sizes, [8.0, 32.0, 128.0]);
        assert!(Predecessor::preset("huge").is_none());
    }

    #[test]
    fn reduction_time_follows_from_pattern_and_topology() {
        let catalog = Catalog::built_in();
        let seconds = |pattern, topology| {
            let mut config = Predecessor::preset("small").unwrap();
            config.training.communication_pattern = pattern;
            config.network.topology_type = topology;
            config.reduction(1e8, &Progress::new()).unwrap()
        };
        // A ring all-reduce moves 7/8 of the bytes twice, with 14 latencies.
        let ideal = 1.75 * 1e8 / 100e9 + 14.0 * 5e-6;
        for topology in [Topology::FullMesh, Topology::Ring] {
            assert!((seconds(Pattern::Ring, topology) / ideal - 1.0).abs() < 1e-6);
            assert!((seconds(Pattern::ReduceScatter, topology) / ideal - 1.0).abs() < 1e-6);
        }
        // A direct exchange has two latencies on a mesh, and contention on a ring.
        let direct = seconds(Pattern::AllToAll, Topology::FullMesh);
        assert!(direct < ideal && seconds(Pattern::AllToAll, Topology::Ring) > direct);
        assert!(seconds(Pattern::Tree, Topology::Tree) > ideal);
        let system = Predecessor::preset("small").unwrap().system(&catalog).unwrap();
        assert!((system.arch.params() / 110e6 - 1.0).abs() < 0.1, "{}", system.arch.params());
    }
}
