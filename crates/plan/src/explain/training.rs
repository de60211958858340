//! Derivations of training metrics of the analytical engine: throughput, step time and its parts, operators, memory.
//! The terms are those that the engine returns.

mod memory;

use super::expression::{Written, ceiling, product, sum};
use super::origin::constants;
use super::{Context, Origin, Term, money, operators};
use crate::engine::answer::training;
use crate::estimate::{MetricId, TimePart, Training};
use crate::knob::Knob;
use atlas_perf::accelerator::Precision;
use atlas_perf::constants::Constants;
use atlas_perf::flops::TokenFlops;
use atlas_perf::training::terms::{Class, Operators};
use atlas_perf::training::{MicroBatch, TrainingEstimate, TrainingInput, layer, token_flops};

/// Communication parts of a step.
const COMMUNICATION: [TimePart; 5] = [
    TimePart::TensorParallel,
    TimePart::ContextParallel,
    TimePart::ExpertParallel,
    TimePart::PipelineTransfer,
    TimePart::DataParallel,
];

/// Parts of a step that use the bandwidth of the device memory.
const MEMORY_TRAFFIC: [TimePart; 5] =
    [TimePart::Elementwise, TimePart::Optimizer, TimePart::Gemm, TimePart::Attention, TimePart::Recompute];

/// Derivation of a metric; `None` for metrics that do not apply to training.
pub(super) fn explain(whole: &Context<'_>, id: MetricId, value: f64) -> Option<Term> {
    let (input, constants, out) = training::closed(whole.scenario, &whole.scenario.base)?;
    let detail = whole.estimate.detail?;
    let described = Reported {
        whole,
        training: detail.training?,
        step_seconds: whole.total.step_time_ms? / 1000.0,
        is_simulated: detail.simulated.is_some(),
        operators: layer::operators(&input, &constants, out.recompute),
        bf16_operators: layer::bf16_operators(&input, &constants, out.recompute)
            .filter(|_| out.micro_batch.bf16_layers > 0.0),
        input,
        constants,
        out,
    };
    Some(match id {
        MetricId::TokensPerSec => Term::stated("X", "", "tok/s", value, described.tokens() / described.step()),
        MetricId::StepTimeMs => Term::stated("T_ms", "", "ms", value, described.step() * 1000.0),
        MetricId::Mfu => {
            let flops = described.flops(&token_flops(&described.input, false));
            described.utilization("MFU", value, flops)
        }
        MetricId::MfuCausal | MetricId::FlopUtilization => {
            let flops = described.flops(&token_flops(&described.input, true));
            described.utilization("MFU_causal", value, flops)
        }
        MetricId::Hfu => {
            let executed = described.out.executed_flops_per_token;
            let flops = Term::input("F_hw", "FLOPs executed by the hardware per token", "FLOP", executed)
                .from(Origin::Engine("model FLOPs plus recomputed operators"))
                .depending_on(vec![described.knob("recompute", Knob::Recompute), described.recomputed()]);
            described.utilization("HFU", value, flops)
        }
        MetricId::CommComputeRatio => {
            let waited = described.parts(|part| COMMUNICATION.contains(&part)).into_iter();
            let waited: Written = waited.map(Written::from).reduce(|a, b| a + b).unwrap_or_else(|| Written::from(0.0));
            Term::stated("r_comm", "", "", value, waited / described.step())
        }
        MetricId::HbmBwUtil => {
            let bearing = described.parts(|part| MEMORY_TRAFFIC.contains(&part));
            let how = "memory-bound time and memory traffic of GEMMs / step time";
            Term::input("u_hbm", "", "", value).from(Origin::Engine(how)).depending_on(bearing)
        }
        _ => return money::hardware(whole, id, value, |part, term| described.with_memory_dependencies(part, term)),
    })
}

struct Reported<'a> {
    whole: &'a Context<'a>,
    training: Training,
    step_seconds: f64,
    is_simulated: bool,
    input: TrainingInput,
    constants: Constants,
    out: TrainingEstimate,
    /// Operators of an average layer and of the output layer; `None` for convolutional networks.
    operators: Option<[Operators; 2]>,
    /// Operators of an average layer in 16 bit; `None` if the slowest stage has no such layers besides others.
    bf16_operators: Option<Operators>,
}

impl Reported<'_> {
    fn knob(&self, symbol: &'static str, knob: Knob) -> Term {
        self.whole.inputs.knob(symbol, knob)
    }

    fn constants(&self, names: &[&'static str]) -> Vec<Term> {
        // Default values of the constants, and the efficiency factors of the target that scale them.
        let mut all = constants(Constants::default().table().collect::<Vec<_>>().into_iter(), names);
        all.extend(self.whole.inputs.efficiency(names, false));
        all
    }

    /// Tokens per step.
    fn tokens(&self) -> Term {
        let value = self.training.tokens_per_step;
        Term::stated("D", "tokens per step", "tok", value, self.knob("global", Knob::Global) * self.sequence())
    }

    fn sequence(&self) -> Term {
        let prompt = self.knob("prompt", Knob::Prompt);
        if self.whole.scenario.base.shape.generate <= 0.0 {
            return Term { symbol: "s".into(), name: "tokens per sequence".into(), ..prompt };
        }
        Term::derived("s", "tokens per sequence", "tok", prompt + self.knob("generate", Knob::Generate))
    }

    /// Step time in seconds: the sum of its parts.
    fn step(&self) -> Term {
        Term::stated("T", "optimizer step time", "s", self.step_seconds, sum(self.parts(|_| true)))
    }

    fn parts(&self, wanted: impl Fn(TimePart) -> bool) -> Vec<Term> {
        let Some(detail) = &self.whole.estimate.detail else { return Vec::new() };
        let parts = detail.time.parts().filter(|(part, seconds)| wanted(*part) && *seconds != 0.0);
        parts.map(|(part, seconds)| self.part(part, seconds)).collect()
    }

    /// Micro-batches that a pipeline processes per step.
    fn micro_batches(&self) -> Term {
        let value = self.training.micro_batches;
        let written =
            self.knob("global", Knob::Global) / (self.knob("dp", Knob::Dp) * self.knob("micro", Knob::Microbatch));
        Term::stated("m", "micro-batches per pipeline and step", "", value, ceiling(written))
    }

    /// One part of the step.
    fn part(&self, part: TimePart, seconds: f64) -> Term {
        let term = Term::part("T", part, "s", seconds);
        let (how, bearing) = self.cause(part);
        match self.composed(part) {
            Some(written) => Term::stated(term.symbol, term.name, "s", seconds, written).depending_on(bearing),
            None => term.from(Origin::Engine(how)).depending_on(bearing),
        }
    }

    /// Terms of a part. `None` if the engine returns only its total.
    fn composed(&self, part: TimePart) -> Option<Written> {
        if self.is_simulated {
            return None;
        }
        let once = |symbol: &'static str, what: &'static str, value: f64| {
            Term::input(symbol, what, "s", value).from(Origin::Engine("slowest stage, one micro-batch"))
        };
        let of: MicroBatch = self.out.micro_batch;
        let a_layer = |what: &'static str, value: f64| self.layers() * once("t_layer", what, value);
        let one: Written = match part {
            TimePart::Gemm => self.passes(Class::Gemm)?,
            TimePart::Attention => self.passes(Class::Attention)?,
            TimePart::Elementwise => {
                let passes = self.passes(Class::Elementwise)?;
                if of.sums == 0.0 { passes } else { passes + once("t_sums", "accumulating gradients in fp32", of.sums) }
            }
            TimePart::Recompute => {
                self.in_layers(|layer| operators::recomputed("t_again", "recomputation of an average layer", layer))?
            }
            TimePart::Host => once("t_host", "kernel launches that the device waits for", of.host).into(),
            TimePart::TensorParallel => a_layer("exposed tensor-parallel communication per layer", of.tensor),
            TimePart::ContextParallel => a_layer("exposed context-parallel communication per layer", of.context),
            TimePart::ExpertParallel => a_layer("exposed expert dispatch and combine of an average layer", of.expert),
            TimePart::PipelineTransfer => once("t_send", "exposed transfers between stages", of.transfer).into(),
            TimePart::Images => once("t_images", "passes of the vision encoder", of.images).into(),
            _ => return None,
        };
        let all = self.micro_batches() * one;
        Some(match self.correction() {
            Some(factor) => all / factor,
            None => all,
        })
    }

    /// Seconds of the operators of a class: slowest stage, one micro-batch.
    fn passes(&self, class: Class) -> Option<Written> {
        let [_, head] = self.operators.as_ref()?;
        let layers = self.in_layers(|layer| operators::passes("t_layer", "passes of an average layer", layer, class));
        let head = operators::passes("t_head", "passes of the output layer", head, class);
        let times = self.out.micro_batch.output;
        let head = head.filter(|_| times > 0.0).map(|head| match times {
            1.0 => Written::from(head),
            times => {
                let what = "passes of the output layer, including multi-token prediction";
                Term::input("N_head", what, "", times).from(Origin::Engine("mtp_layers and the schedule")) * head
            }
        });
        match (layers, head) {
            (Some(layers), Some(head)) => Some(layers + head),
            (Some(layers), None) => Some(layers),
            (None, head) => head,
        }
    }

    /// Seconds of the layers of the slowest stage, if a layer with these operators takes `of` them.
    fn in_layers(&self, of: impl Fn(&Operators) -> Option<Term>) -> Option<Written> {
        let [own, _] = self.operators.as_ref()?;
        let Some(bf16) = &self.bf16_operators else { return of(own).map(|own| self.layers() * own) };
        let count = || {
            Term::input("L_16", "of these layers, those in 16 bit", "", self.out.micro_batch.bf16_layers)
                .from(Origin::Engine("bf16_layers, at the start and the end of the model"))
                .depending_on(vec![self.knob("bf16_layers", Knob::Bf16Layers)])
        };
        let own = of(own).map(|own| (self.layers() - count()) * own);
        let bf16 = of(bf16).map(|bf16| count() * Term { symbol: format!("{}_16", bf16.symbol).into(), ..bf16 });
        match (own, bf16) {
            (Some(own), Some(bf16)) => Some(own + bf16),
            (own, bf16) => own.or(bf16),
        }
    }

    /// Number of layers of the slowest stage.
    fn layers(&self) -> Term {
        let depth = self.whole.inputs.model("L_all", "layers of the model", "", self.input.arch.depth());
        let written = depth / self.knob("pp", Knob::Pp);
        Term::stated("L", "layers of the slowest stage", "", self.out.micro_batch.layers, written)
    }

    /// Correction of the throughput by measurements of this cluster.
    fn correction(&self) -> Option<Term> {
        let found = self.whole.estimate.detail.as_ref()?.adjustments?.throughput?;
        Some(
            Term::input("k", "throughput correction from runs on this cluster", "", found.factor)
                .from(Origin::Engine("current calibration")),
        )
    }

    /// Describes how the engine computes a part, with its dependencies.
    fn cause(&self, part: TimePart) -> (&'static str, Vec<Term>) {
        let Cause { how, knobs, constants } = cause(part);
        let mut bearing: Vec<Term> = knobs.iter().map(|(name, knob)| self.knob(name, *knob)).collect();
        let inputs = &self.whole.inputs;
        let device = self.whole.scenario.machine.map(|machine| machine.device);
        let link = || {
            let rate = device.map_or(0.0, |device| device.link_bw);
            inputs.sheet("link", "scale-up bandwidth, one way", "B/s", rate, &["interconnect", "bw_GBps"])
        };
        match part {
            TimePart::Gemm => bearing.extend(self.products()),
            TimePart::Attention | TimePart::Images => bearing.push(self.peak(Precision::Bf16)),
            TimePart::Elementwise => {
                let rate = device.map_or(0.0, |device| device.mem_bw);
                bearing.push(inputs.sheet("bw", "memory bandwidth", "B/s", rate, &[]));
            }
            TimePart::Recompute => bearing.push(self.recomputed()),
            TimePart::TensorParallel | TimePart::ContextParallel => bearing.push(link()),
            TimePart::ExpertParallel => bearing.extend([link(), self.knob("network", Knob::NetworkGbps)]),
            TimePart::PipelineBubble => bearing.push(self.micro_batches()),
            _ => {}
        }
        bearing.extend(self.constants(constants));
        (how, bearing)
    }

    /// Share of the layers that are fully recomputed.
    fn recomputed(&self) -> Term {
        let name = format!("fully recomputed layers, mode {}", self.training.recompute.name());
        Term::input("full", name, "", self.training.full_recompute_share)
            .from(Origin::Engine("the minimum that fits, if recompute is auto"))
    }

    /// Dense peak rate of a device in a format.
    fn peak(&self, format: Precision) -> Term {
        let rate = self.input.accelerator.peak(format);
        self.whole.inputs.sheet("peak", "dense peak rate of a device in this format", "FLOP/s", rate, &[])
    }

    /// Dependencies of the GEMM time.
    fn products(&self) -> Vec<Term> {
        let best = self.input.accelerator.generation.properties().gemm_share.name;
        let mut names = vec![best, "gemm_k_half", "block_intensity", "wave_loss", "kernel_gap"];
        if self.input.arch.is_moe() {
            names.push("grouped_gemm");
        }
        if self.input.precision.is_narrow() {
            names.push("cast_traffic");
        }
        let mut all = vec![self.peak(self.input.precision)];
        all.extend(self.constants(&names));
        all
    }

    /// Model FLOPs per token, by part of the model.
    fn flops(&self, flops: &TokenFlops) -> Term {
        let inputs = self.whole.inputs;
        let parts = TokenFlops::NAMES.into_iter().zip(flops.values()).filter(|(_, flops)| *flops != 0.0);
        let parts = parts.map(|(name, flops)| {
            let symbol = format!("F_{}", name.split(' ').next().unwrap_or(name));
            Term::input(symbol, name, "FLOP", flops)
                .from(Origin::Engine("from model architecture and sequence length (arXiv 2204.02311, appendix B)"))
        });
        let weights = self.input.arch.matmul_params();
        let bearing = vec![
            inputs.model("W", "active parameters per token, without the embedding lookup", "", weights),
            self.sequence(),
        ];
        let name = "model FLOPs per token (arXiv 2204.02311, appendix B)";
        Term::stated("F", name, "FLOP", flops.total(), sum(parts)).depending_on(bearing)
    }

    /// FLOPs per second relative to the peak of the devices in use.
    fn utilization(&self, symbol: &'static str, value: f64, flops: Term) -> Term {
        let rate = Term::derived("X", "tokens per second of all devices", "tok/s", self.tokens() / self.step());
        let devices = [("tp", Knob::Tp), ("pp", Knob::Pp), ("cp", Knob::Cp), ("dp", Knob::Dp)];
        let devices = product(devices.map(|(symbol, knob)| self.knob(symbol, knob)));
        let devices = Term::derived("A", "devices in use", "", devices);
        Term::stated(symbol, "", "", value, rate * flops / (devices * self.peak(self.input.fastest_format())))
    }
}

/// What the engine computes a part from.
struct Cause {
    how: &'static str,
    /// Knobs, each with its symbol.
    knobs: &'static [(&'static str, Knob)],
    /// Names of constants.
    constants: &'static [&'static str],
}

/// How the engine computes a part, apart from terms that other terms derive.
fn cause(part: TimePart) -> Cause {
    let of = |how, knobs, constants| Cause { how, knobs, constants };
    match part {
        TimePart::Gemm => of("GEMMs, forward and backward", &[], &[]),
        TimePart::Attention => of(
            "attention kernels, forward and backward",
            &[],
            &["attention_fraction", "attention_first", "attention_head_half", "attention_backward", "kernel_gap"],
        ),
        TimePart::Elementwise => of(
            "bytes of norms, residuals, activation functions and gradient sums / memory bandwidth",
            &[],
            &["memory_fraction", "fused_traffic", "eager_traffic", "kernel_gap"],
        ),
        TimePart::Recompute => {
            of("forward passes recomputed in the backward pass", &[("recompute", Knob::Recompute)], &[])
        }
        TimePart::Host => of(
            "kernel launches that the device waits for because the host is slower",
            &[("graphs", Knob::CudaGraphs)],
            &["issue", "routing_issue", "compiled_kernels"],
        ),
        TimePart::TensorParallel => of(
            "two collectives of the hidden state per layer and pass, minus overlap",
            &[("tp", Knob::Tp), ("sp", Knob::Sp)],
            &["tensor_exposed", "link_fraction", "pcie_fraction", "link_latency", "message_ramp", "in_switch_gain"],
        ),
        TimePart::ContextParallel => of(
            "KV passed around the ring, minus overlap with attention",
            &[("cp", Knob::Cp)],
            &["link_fraction", "nic_fraction"],
        ),
        TimePart::ExpertParallel => of(
            "dispatch and combine of routed tokens, minus overlap",
            &[("ep", Knob::Ep), ("imbalance", Knob::ExpertImbalance)],
            &["expert_exposed", "nic_fraction", "congestion"],
        ),
        TimePart::PipelineTransfer => of(
            "activations sent between stages, minus overlap",
            &[("pp", Knob::Pp), ("vpp", Knob::Vpp), ("network", Knob::NetworkGbps)],
            &["pipeline_exposed"],
        ),
        TimePart::PipelineBubble => of(
            "time of a micro-batch through all stages, reduced by interleaving and the schedule",
            &[("pp", Knob::Pp), ("vpp", Knob::Vpp), ("schedule", Knob::PipelineSchedule)],
            &[],
        ),
        TimePart::DataParallel => of(
            "gradient reduction and weight all-gather, minus overlap with computation",
            &[
                ("dp", Knob::Dp),
                ("sharding", Knob::Sharding),
                ("overlap", Knob::Overlap),
                ("network", Knob::NetworkGbps),
            ],
            &["overlap_share", "overlap_slowdown", "nic_fraction", "congestion"],
        ),
        TimePart::Optimizer => of(
            "optimizer states read and written once, and other costs of a step",
            &[("sharding", Knob::Sharding)],
            &["memory_fraction", "step_overhead"],
        ),
        TimePart::Offload => {
            of("exposed host transfers and host optimizer updates", &[("cpu_offload", Knob::CpuOffload)], &[])
        }
        TimePart::Images => of(
            "passes of the vision encoder (backward if trained) on the first stage",
            &[("images", Knob::Images), ("image_size", Knob::ImageSize), ("freeze_vision", Knob::FreezeVision)],
            &["attention_fraction", "memory_fraction", "kernel_gap"],
        ),
        _ => of("computed by the engine", &[], &[]),
    }
}
