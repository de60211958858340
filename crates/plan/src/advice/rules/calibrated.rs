//! Rules for the calibrated model, which cover its own knobs.

use super::super::Rule;
use super::super::case::{number, toggle, word};
use crate::knob::{Knob, Setting};
use atlas_core::plan::Engine;

const fn calibrated(name: &'static str, reason: &'static str, source: &'static str, propose: super::Propose) -> Rule {
    Rule { name, reason, source, mode: None, engine: Some(Engine::SemiEmpirical), propose, worth: super::any_gain }
}

pub(super) static RULES: &[Rule] = &[
    calibrated(
        "use CUDA graphs",
        "graphs launch kernels with less overhead",
        "NVIDIA, CUDA Programming Guide, CUDA Graphs; the profile's delta_rho_cuda",
        |case, out| {
            if !case.scenario.cuda_graphs {
                out.push(vec![toggle(Knob::CudaGraphs, true)]);
            }
        },
    ),
    calibrated(
        "enable GPUDirect RDMA",
        "NICs access accelerator memory directly, without a copy through the host",
        "NVIDIA, GPUDirect RDMA documentation; the profile's gpudirect_multiplier",
        |case, out| {
            if !case.scenario.gpudirect_rdma && case.scenario.num_nodes > 1.0 {
                out.push(vec![toggle(Knob::GpudirectRdma, true)]);
            }
        },
    ),
    calibrated(
        "use bare metal instead of SR-IOV",
        "shared NICs add jitter, and collectives wait for the slowest rank",
        "the profile's jitter_per_sriov and sriov_tail",
        |case, out| {
            if case.scenario.sriov && case.scenario.num_nodes > 1.0 {
                out.push(vec![word(Knob::Virt, "bare")]);
            }
        },
    ),
    calibrated(
        "use the fabric with the smallest factor",
        "communication time is multiplied by the fabric's calibrated factor",
        "the profile's fabric_factors",
        |case, out| {
            for (name, factor) in case.fabrics {
                if case.scenario.fabric_factor.is_some_and(|used| *factor < used) {
                    out.push(vec![(Knob::Fabric, Setting::Choice(name.clone()))]);
                }
            }
        },
    ),
    calibrated(
        "reduce model parallelism",
        "each tensor-parallel rank and pipeline stage adds communication",
        "the profile's intensity per_tp and per_pp",
        |case, out| {
            if case.tp > 1.0 {
                out.push(vec![number(Knob::Tp, (case.tp / 2.0).floor())]);
            }
            if case.pp > 1.0 {
                out.push(vec![number(Knob::Pp, (case.pp / 2.0).floor())]);
            }
        },
    ),
];
