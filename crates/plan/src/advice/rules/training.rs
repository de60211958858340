//! Rules on batch, recomputation, formats and overlap in training.

use super::super::Rule;
use super::super::case::{further_offloads, number, smaller_optimizers, toggle, word};
use super::training;
use crate::estimate::TimePart;
use crate::knob::Knob;
use atlas_core::math;
use atlas_core::plan::{Format, Recompute};
use atlas_perf::accelerator::{Generation, Precision};

/// Largest batch of published language model training, tokens per step: the final batch of Llama 3 405B (arXiv
/// 2407.21783, section 3.4.1).
const MAX_TOKENS_PER_STEP: f64 = 16.8e6;
/// Rows of activations in a tile of a GEMM (NVIDIA, Matrix Multiplication Background).
const TILE: f64 = 128.0;

pub(super) static RULES: &[Rule] = &[
    training(
        "recompute only as much as memory requires",
        "recomputing some layers, or only attention, can free enough memory; full recomputation takes a quarter of \
         the step",
        "Korthikanti et al., arXiv 2205.05198, section 5; Megatron-Core, --recompute-num-layers",
        |case, out| {
            let layers = case.scenario.base.plan.recompute_layers.is_some();
            if layers || matches!(case.recompute, Recompute::Full | Recompute::None) {
                let mut changes = vec![word(Knob::Recompute, Recompute::Auto.name())];
                if layers {
                    changes.push(number(Knob::RecomputeLayers, 0.0));
                }
                out.push(changes);
            }
        },
    ),
    training(
        "recompute less",
        "full recomputation adds a third to the time of a layer; selective recomputation saves most of the memory for \
         less",
        "Korthikanti et al., arXiv 2205.05198, sections 5 and 6",
        |case, out| match case.recompute {
            Recompute::Full => {
                out.push(vec![word(Knob::Recompute, "selective")]);
                out.push(vec![word(Knob::Recompute, "none")]);
            }
            Recompute::Selective => out.push(vec![word(Knob::Recompute, "none")]),
            Recompute::None | Recompute::Auto => {}
        },
    ),
    training(
        "recompute all activations",
        "a layer then keeps only its input, at the cost of a second forward pass",
        "Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv 1604.06174",
        |case, out| {
            if case.recompute != Recompute::Full {
                out.push(vec![word(Knob::Recompute, Recompute::Full.name())]);
            }
        },
    ),
    training(
        "use an optimizer with smaller states",
        "Adam with moments in 8 bit keeps 6 instead of 12 bytes per weight with its master copy, and matches the loss of 32 bit",
        "Dettmers et al., 8-bit Optimizers via Block-wise Quantization, arXiv 2110.02861",
        |case, out| out.extend(smaller_optimizers(case).map(|optimizer| vec![(Knob::Optimizer, optimizer)])),
    ),
    training(
        "offload states to host memory",
        "the host keeps and updates the optimizer states; gradients and weights cross its link in every step",
        "Ren et al., ZeRO-Offload, arXiv 2101.06840",
        |case, out| out.extend(further_offloads(case).map(|offload| vec![(Knob::CpuOffload, offload)])),
    ),
    training(
        "recompute more and use a larger micro-batch",
        "the memory saved allows a larger micro-batch, whose larger matrix multiplications can gain more than \
         recomputation costs",
        "Chen et al., arXiv 1604.06174; Korthikanti et al., arXiv 2205.05198, section 5",
        |case, out| {
            // With `auto`, a larger micro-batch recomputes as much as it needs without changing this knob.
            let mode = match case.recompute {
                Recompute::None => "selective",
                Recompute::Selective => "full",
                Recompute::Full | Recompute::Auto => return,
            };
            let mut changes = case.micro(2.0 * case.micro);
            if !changes.is_empty() {
                changes.push(word(Knob::Recompute, mode));
                out.push(changes);
            }
        },
    ),
    training(
        "use a larger micro-batch",
        "larger matrix multiplications are more efficient and amortize launches and all-gathers, as long as the \
         pipeline stays full",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 3",
        |case, out| {
            out.push(case.micro(2.0 * case.micro));
            out.push(case.micro(4.0 * case.micro));
        },
    ),
    training(
        "use a smaller micro-batch",
        "with more, smaller micro-batches the bubble is a smaller share of the step, and memory use falls",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 3",
        |case, out| {
            if case.micro > 1.0 {
                out.push(case.micro((case.micro / 2.0).floor()));
            }
        },
    ),
    training(
        "accumulate gradients over a larger batch",
        "bubble, gradient reduction and optimizer occur once per step; below the critical batch size, convergence per \
         token does not suffer",
        "McCandlish et al., An Empirical Model of Large-Batch Training, arXiv 1812.06162",
        |case, out| {
            for global in [2.0 * case.global, 4.0 * case.global] {
                if global * case.sequence <= MAX_TOKENS_PER_STEP {
                    out.push(vec![number(Knob::Global, global)]);
                }
            }
        },
    ),
    training(
        "make the batch a multiple of dp x micro-batch",
        "otherwise some replicas have fewer micro-batches and wait for the others",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3.1",
        |case, out| {
            let unit = case.dp * case.micro;
            if case.global % unit != 0.0 {
                out.push(vec![number(Knob::Global, (case.global / unit).ceil() * unit)]);
            }
        },
    ),
    training(
        "use sequence lengths that are multiples of 128",
        "matrix multiplication kernels work in tiles of 128 rows; a remainder costs a whole tile and often a whole \
         wave",
        "NVIDIA, Matrix Multiplication Background User's Guide, tile and wave quantization",
        |case, out| {
            let prompt = case.number(Knob::Prompt);
            if prompt >= TILE && prompt % TILE != 0.0 {
                out.push(vec![number(Knob::Prompt, (prompt / TILE).ceil() * TILE)]);
            }
        },
    ),
    training(
        "use a power of two as micro-batch",
        "the tokens of a micro-batch then fill whole waves of tiles on most devices",
        "NVIDIA, Matrix Multiplication Background User's Guide, tile and wave quantization",
        |case, out| {
            let power = math::exp2(math::log2(case.micro).round());
            if power != case.micro {
                out.push(case.micro(power));
            }
        },
    ),
    training(
        "train in bf16",
        "bf16 matrix multiplications are at least twice as fast as fp32, and bf16 has the range of fp32",
        "Micikevicius et al., Mixed Precision Training, arXiv 1710.03740; Kalamkar et al., arXiv 1905.12322",
        |case, out| {
            if matches!(case.format, Format::Fp32 | Format::Tf32) {
                out.push(vec![word(Knob::Precision, "bf16")]);
            }
        },
    ),
    training(
        "train in fp8",
        "8-bit matrix multiplications have twice the 16-bit rate; published runs report no loss of accuracy",
        "Micikevicius et al., FP8 Formats for Deep Learning, arXiv 2209.05433; DeepSeek-V3, arXiv 2412.19437, section \
         3.3",
        |case, out| {
            let wide = matches!(case.format, Format::Bf16 | Format::Fp16 | Format::Tf32 | Format::Fp32);
            // Where the hardware scales blocks, the rule below applies.
            if wide && case.gains_from(Precision::Fp8) && !case.device.scales_blocks() {
                out.push(vec![word(Knob::Precision, "fp8")]);
            }
        },
    ),
    training(
        "train in MXFP8",
        "the hardware applies a scale per block of 32 values, without a history of maxima",
        "Mishra et al., Recipes for Pre-training LLMs with MXFP8, arXiv 2506.08027",
        |case, out| {
            let wide = matches!(case.format, Format::Bf16 | Format::Fp16 | Format::Tf32 | Format::Fp32);
            if wide && case.gains_from(Precision::Fp8) && case.device.scales_blocks() {
                out.push(vec![word(Knob::Precision, "mxfp8")]);
            }
        },
    ),
    training(
        "train in NVFP4",
        "4-bit matrix multiplications have at least twice the 8-bit rate; a 12B model trained on 10T tokens matched \
         its fp8 baseline",
        "NVIDIA, Pretraining Large Language Models with NVFP4, arXiv 2509.25149",
        |case, out| {
            if case.device.generation == Generation::Blackwell && case.gains_from(Precision::Fp4) {
                out.push(vec![word(Knob::Precision, "fp4")]);
            }
        },
    ),
    training(
        "overlap communication with computation",
        "gradient reductions and weight all-gathers can run while other layers compute",
        "Li et al., PyTorch Distributed, arXiv 2006.15704, section 3.2",
        |case, out| {
            if case.scenario.base.plan.overlap == Some(false) {
                out.push(vec![toggle(Knob::Overlap, true)]);
            }
        },
    ),
    training(
        "use CUDA graphs",
        "a captured graph is launched at once, so the device does not wait for the host",
        "PyTorch, Accelerating PyTorch with CUDA Graphs (2021)",
        |case, out| {
            if case.device.generation.captures_graphs() && !case.scenario.cuda_graphs && case.part(TimePart::Host) > 0.0
            {
                out.push(vec![toggle(Knob::CudaGraphs, true)]);
            }
        },
    ),
];
