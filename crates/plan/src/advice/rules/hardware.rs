//! Rules for specific families of hardware.

use super::super::Rule;
use super::super::case::{floor_power, number, toggle, word};
use super::{serving, training};
use crate::knob::Knob;
use atlas_core::plan::{Format, Sharding};
use atlas_perf::accelerator::{Generation, Precision};

/// Memory in bytes from which a device holds models that others must split: MI300X and its successors.
const LARGE_MEMORY: f64 = 180e9;
/// Number of devices from which a scale-up domain counts as a rack rather than a node.
const RACK_SCALE_DEVICES: f64 = 16.0;

fn is_amd(generation: Generation) -> bool {
    matches!(generation, Generation::Cdna2 | Generation::Cdna3 | Generation::Cdna4)
}

/// Whether whole programs are compiled for the device.
fn compiles(generation: Generation) -> bool {
    matches!(generation, Generation::Tpu | Generation::Trainium | Generation::Gaudi)
}

pub(super) static RULES: &[Rule] = &[
    training(
        "NVL72: tensor and expert parallelism beyond eight accelerators",
        "NVLink connects the whole rack, so tensor and expert parallelism can span it",
        "NVIDIA, GB200 NVL72 reference architecture; Megatron Core documentation, parallelism strategies",
        |case, out| {
            if case.device.generation == Generation::Blackwell && case.domain >= RACK_SCALE_DEVICES {
                out.push(case.layout(16.0, (case.pp / 2.0).ceil(), case.cp));
                let ep = floor_power(case.domain.min(case.arch.experts.into()));
                if case.arch.is_moe() && ep > case.ep {
                    out.push(vec![number(Knob::Ep, ep)]);
                }
            }
        },
    ),
    serving(
        "NVL72: use wider replicas",
        "the rack is one scale-up domain: wider replicas hold fewer copies of the weights and leave more memory for \
         the KV cache",
        "NVIDIA, Scaling Large MoE Models with Wide Expert Parallelism on NVL72 (2025)",
        |case, out| {
            if case.device.generation == Generation::Blackwell && case.domain >= RACK_SCALE_DEVICES {
                for tp in [16.0, 32.0] {
                    if tp > case.tp && tp <= case.devices {
                        let mut changes = case.layout(tp, 1.0, 1.0);
                        if case.arch.is_moe() && !changes.is_empty() {
                            changes.push(number(Knob::Ep, tp));
                        }
                        out.push(changes);
                    }
                }
            }
        },
    ),
    training(
        "Hopper: fp8 with a larger micro-batch",
        "fp8 halves the activations that projections keep for the backward pass, which leaves memory for a larger \
         micro-batch",
        "NVIDIA, Transformer Engine documentation; Micikevicius et al., arXiv 2209.05433",
        |case, out| {
            if case.device.generation == Generation::Hopper && matches!(case.format, Format::Bf16 | Format::Fp16) {
                let mut changes = case.micro(2.0 * case.micro);
                if !changes.is_empty() {
                    changes.push(word(Knob::Precision, "fp8"));
                    out.push(changes);
                }
            }
        },
    ),
    training(
        "AMD: use FSDP without tensor parallelism",
        "with 192 GB or more per device, layers that other devices shard over two to four fit on one",
        "AMD, ROCm documentation, Training performance on Instinct MI300X",
        |case, out| {
            if is_amd(case.device.generation) && case.device.mem_bytes >= LARGE_MEMORY {
                let mut changes = case.cut(1.0, 1.0, case.cp, 2.0 * case.micro);
                if !changes.is_empty() && case.sharding != Sharding::Zero3 {
                    changes.push(word(Knob::Sharding, Sharding::Zero3.name()));
                }
                out.push(changes);
            }
        },
    ),
    serving(
        "AMD: one replica per accelerator",
        "models of up to 70B fit in 192 GB, and the eight devices are connected without a switch",
        "AMD, ROCm documentation, Inference optimization on Instinct MI300X (vLLM)",
        |case, out| {
            if is_amd(case.device.generation) && case.device.mem_bytes >= LARGE_MEMORY && case.tp > 1.0 {
                let mut changes = case.layout(1.0, 1.0, 1.0);
                if !changes.is_empty() && case.device.supports(Precision::Fp8) && case.format == Format::Bf16 {
                    changes.push(word(Knob::Precision, "fp8"));
                }
                out.push(changes);
            }
        },
    ),
    training(
        "TPU: use fully sharded data parallelism",
        "ICI runs all-gathers at its full rate along every axis of the torus, so fully sharded data parallelism is \
         the first choice",
        "Austin et al., How to Scale Your Model (Google DeepMind, 2025), part 5",
        |case, out| {
            if case.device.generation == Generation::Tpu && (case.sharding != Sharding::Zero3 || case.tp > 1.0) {
                let mut changes = case.layout(1.0, 1.0, case.cp);
                if case.sharding != Sharding::Zero3 {
                    changes.push(word(Knob::Sharding, Sharding::Zero3.name()));
                }
                out.push(changes);
            }
        },
    ),
    training(
        "TPU: int8 training",
        "int8 multiplications have twice the bf16 rate; the forward pass and input gradients are quantized, weight \
         gradients are not",
        "Google Cloud, Accurate Quantized Training (AQT) for TPU v5e (2023)",
        |case, out| {
            let wide = matches!(case.format, Format::Bf16 | Format::Fp16 | Format::Fp32);
            if case.device.generation == Generation::Tpu && wide && case.gains_from(Precision::Int8) {
                out.push(vec![word(Knob::Precision, "int8")]);
            }
        },
    ),
    training(
        "TPU, Trainium, Gaudi: compile the whole step",
        "XLA, Neuron and Synapse run a step as one program, without launches by the host",
        "OpenXLA documentation; AWS Neuron documentation, NeuronX Distributed training",
        |case, out| {
            if compiles(case.device.generation) && !case.scenario.cuda_graphs {
                out.push(vec![toggle(Knob::CudaGraphs, true)]);
            }
        },
    ),
    training(
        "Trainium: tensor parallelism within a chip group, ZeRO-1 across groups",
        "cores have little memory and fast links to their neighbors: shard each layer over 8 of them and the \
         optimizer over all groups",
        "AWS Neuron documentation, NeuronX Distributed: Llama 2 and 3 training tutorials (tp 8, 32)",
        |case, out| {
            if case.device.generation == Generation::Trainium {
                for tp in [8.0, 32.0] {
                    let mut changes = case.layout(tp, case.pp, case.cp);
                    if !changes.is_empty() && case.sharding != Sharding::Zero1 {
                        changes.push(word(Knob::Sharding, Sharding::Zero1.name()));
                    }
                    out.push(changes);
                }
            }
        },
    ),
    serving(
        "Trainium and Inferentia: tensor parallelism over the whole instance",
        "TPOT is bound by reading weights, and NeuronLink connects all cores of the instance",
        "AWS Neuron documentation, NeuronX Distributed Inference: Llama 3 tutorials (tp 32, 64)",
        |case, out| {
            let tp = floor_power(case.domain.min(case.devices)).min(floor_power(f64::from(case.arch.heads)));
            if case.device.generation == Generation::Trainium && tp > case.tp {
                out.push(case.layout(tp, 1.0, 1.0));
            }
        },
    ),
    serving(
        "consumer and workstation GPUs: quantize weights to 4 bits",
        "with GDDR memory and PCIe between cards, the bytes read per token determine the speed",
        "Lin et al., AWQ, arXiv 2306.00978; llama.cpp documentation, quantization",
        |case, out| {
            let card = case.device.generation == Generation::Workstation;
            if card && !matches!(case.format, Format::Int4 | Format::Fp4) {
                let mut changes = case.layout((case.tp / 2.0).ceil(), case.pp, 1.0);
                changes.push(word(Knob::Precision, "int4"));
                out.push(changes);
            }
        },
    ),
];
