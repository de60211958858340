//! A training step under the analytical engine: throughput, step time and its parts, operators, memory.

use super::expression::{Written, ceiling, product, sum};
use super::origin::constants;
use super::{Origin, Term, Whole, money};
use crate::engine::answer::training;
use crate::estimate::Training;
use crate::knob::Knob;
use atlas_core::plan::Sharding;
use atlas_perf::accelerator::{Generation, Precision};
use atlas_perf::constants::Constants;
use atlas_perf::ops;
use atlas_perf::ops::{Op, Work};

/// The derivation of a figure; `None` for figures that training does not have.
pub(super) fn explain(whole: &Whole<'_>, name: &str, value: f64) -> Option<Term> {
    let described = Reported { whole, training: whole.estimate.detail?.training? };
    Some(match name {
        "tokens_per_sec" => Term::stated("X", "", "tok/s", value, described.tokens() / described.step()),
        "step_time_ms" => Term::stated("T_ms", "", "ms", value, described.step() * 1000.0),
        "mfu" => described.mfu("MFU", value, false),
        "mfu_causal" | "flop_utilization" => described.mfu("MFU_causal", value, true),
        "hfu" => {
            let again = value / described.training.mfu_causal - 1.0;
            let again = Term::input("r", "recomputed FLOPs over the model's", "", again)
                .from(Origin::Engine("operators that run forward again in the backward pass"))
                .borne(vec![whole.inputs.knob("recompute", Knob::Recompute), described.recomputed()]);
            Term::stated(
                "HFU",
                "",
                "",
                value,
                described.mfu("MFU_causal", described.training.mfu_causal, true) * (again + 1.0),
            )
        }
        "comm_compute_ratio" => {
            let names =
                ["tensor parallel", "context parallel", "expert parallel", "pipeline transfer", "data parallel"];
            let waited = sum(described.parts().into_iter().filter(|part| names.contains(&&*part.name)));
            Term::stated("r_comm", "", "", value, waited / described.step())
        }
        "hbm_bw_util" => {
            let names = ["elementwise", "optimizer", "gemm", "attention", "recompute"];
            let bearing = described.parts().into_iter().filter(|part| names.contains(&&*part.name)).collect();
            let how = "memory-bound time at the bandwidth, and what multiplications stream, over the step";
            Term::input("u_hbm", "", "", value).from(Origin::Engine(how)).borne(bearing)
        }
        _ => return money::hardware(whole, name, value, |part, term| described.held(part, term)),
    })
}

struct Reported<'a> {
    whole: &'a Whole<'a>,
    training: Training,
}

impl Reported<'_> {
    fn knob(&self, symbol: &'static str, knob: Knob) -> Term {
        self.whole.inputs.knob(symbol, knob)
    }

    fn constants(&self, names: &[&'static str]) -> Vec<Term> {
        // The constants as they ship, and the target's factors that move them.
        let mut all = constants(Constants::default().table().collect::<Vec<_>>().into_iter(), names);
        all.extend(self.whole.inputs.efficiency(names, false));
        all
    }

    /// Tokens of a step.
    fn tokens(&self) -> Term {
        let value = self.training.tokens_per_step;
        Term::stated("D", "tokens of a step", "tok", value, self.knob("global", Knob::Global) * self.sequence())
    }

    fn sequence(&self) -> Term {
        let prompt = self.knob("prompt", Knob::Prompt);
        if self.whole.scenario.base.shape.generate <= 0.0 {
            return Term { symbol: "s".into(), name: "tokens of a sequence".into(), ..prompt };
        }
        Term::derived("s", "tokens of a sequence", "tok", prompt + self.knob("generate", Knob::Generate))
    }

    /// Seconds of a step: the sum of its parts.
    fn step(&self) -> Term {
        let seconds = self.whole.total.step_time_ms / 1000.0;
        Term::stated("T", "time of an optimizer step", "s", seconds, sum(self.parts()))
    }

    fn parts(&self) -> Vec<Term> {
        let Some(detail) = &self.whole.estimate.detail else { return Vec::new() };
        let parts = detail.time.parts().filter(|(_, seconds)| *seconds != 0.0);
        parts.map(|(name, seconds)| self.part(name, seconds)).collect()
    }

    /// Micro-batches that a pipeline processes in a step.
    fn micro_batches(&self) -> Term {
        let value = self.training.micro_batches;
        let written =
            self.knob("global", Knob::Global) / (self.knob("dp", Knob::Dp) * self.knob("micro", Knob::Microbatch));
        Term::stated("m", "micro-batches of a pipeline in a step", "", value, ceiling(written))
    }

    /// One part of the step.
    fn part(&self, name: &'static str, seconds: f64) -> Term {
        let symbol = format!("T_{}", name.replace(' ', "_"));
        let plain = |how: &'static str, bearing: Vec<Term>| {
            Term::input(symbol.clone(), name, "s", seconds).from(Origin::Engine(how)).borne(bearing)
        };
        let with = |mut bearing: Vec<Term>, names: &[&'static str]| {
            bearing.extend(self.constants(names));
            bearing
        };
        let machine = self.whole.scenario.machine;
        let link = || {
            let rate = machine.map_or(0.0, |machine| machine.device.link_bw);
            self.whole.inputs.sheet(
                "link",
                "rate of the close fabric, one way",
                "B/s",
                rate,
                &["interconnect", "bw_GBps"],
            )
        };
        let network = || self.knob("network", Knob::NetworkGbps);
        match name {
            "gemm" => self.multiplications(symbol.clone(), seconds),
            "attention" => self.attention(symbol.clone(), seconds),
            "elementwise" => {
                let bw = machine.map_or(0.0, |machine| machine.device.mem_bw);
                let bw = self.whole.inputs.sheet("bw", "memory bandwidth", "B/s", bw, &[]);
                plain(
                    "bytes of norms, residuals, activation functions and gradient sums over the memory's bandwidth",
                    with(vec![bw], &["memory_fraction", "fused_traffic", "eager_traffic", "kernel_gap"]),
                )
            }
            "recompute" => plain(
                "forward passes of what is recomputed in the backward pass",
                vec![self.knob("recompute", Knob::Recompute), self.recomputed()],
            ),
            "host" => plain(
                "launches that the device waits for, where the host is slower than the device",
                with(vec![self.knob("graphs", Knob::CudaGraphs)], &["issue", "collective_issue", "compiled_kernels"]),
            ),
            "tensor parallel" => {
                let bearing = vec![self.knob("tp", Knob::Tp), self.knob("sp", Knob::Sp), link()];
                let names = [
                    "tensor_exposed",
                    "link_fraction",
                    "pcie_fraction",
                    "link_latency",
                    "message_ramp",
                    "in_switch_gain",
                ];
                plain("two collectives of the hidden state a layer and pass, less what overlaps", with(bearing, &names))
            }
            "context parallel" => plain(
                "keys and values gathered round the ring, less what attention hides",
                with(vec![self.knob("cp", Knob::Cp), link()], &["link_fraction", "nic_fraction"]),
            ),
            "expert parallel" => plain(
                "dispatch and combine of routed tokens, less what overlaps",
                with(
                    vec![self.knob("ep", Knob::Ep), self.knob("imbalance", Knob::ExpertImbalance), link(), network()],
                    &["expert_exposed", "nic_fraction", "congestion"],
                ),
            ),
            "pipeline transfer" => plain(
                "activations handed from stage to stage, less what overlaps",
                with(vec![self.knob("pp", Knob::Pp), self.knob("vpp", Knob::Vpp), network()], &["pipeline_exposed"]),
            ),
            "pipeline bubble" => self.bubble(symbol.clone(), seconds),
            "data parallel" => plain(
                "gradients reduced and weights gathered, less what computation hides",
                with(
                    vec![
                        self.knob("dp", Knob::Dp),
                        self.knob("sharding", Knob::Sharding),
                        self.knob("overlap", Knob::Overlap),
                        network(),
                    ],
                    &["overlap_share", "overlap_slowdown", "nic_fraction", "congestion"],
                ),
            ),
            "optimizer" => plain(
                "states read and written once, and what a step costs beside",
                with(vec![self.knob("sharding", Knob::Sharding)], &["memory_fraction", "step_overhead"]),
            ),
            "straggler" => plain(
                "waiting for the slowest rank: a share of the step per doubling of the domains",
                with(vec![self.knob("nodes", Knob::NumNodes)], &["straggler"]),
            ),
            _ => plain("the engine's figure", Vec::new()),
        }
    }

    /// Share of the layers that is recomputed in full.
    fn recomputed(&self) -> Term {
        let name = format!("layers recomputed in full, mode {}", self.training.recompute.name());
        Term::input("full", name, "", self.training.full_recompute_share)
            .from(Origin::Engine("the least that fits, where recompute is auto"))
    }

    fn bubble(&self, symbol: String, seconds: f64) -> Term {
        let pp = self.knob("pp", Knob::Pp);
        let idle = pp.value - 1.0;
        let unit = Term::input("t_idle", "time that each stage before it costs the last one", "s", seconds / idle)
            .from(Origin::Engine("a micro-batch through one stage, shortened by interleaving and by the schedule"))
            .borne(vec![self.knob("vpp", Knob::Vpp), self.knob("schedule", Knob::PipelineSchedule)]);
        Term::stated(symbol, "pipeline bubble", "s", seconds, (pp - 1.0) * unit)
    }

    /// FLOP/s of a device in a format, and what the operators need.
    fn at_the_peak(
        &self,
        symbol: String,
        name: &'static str,
        seconds: f64,
        flops: Term,
        rate: f64,
        names: &[&'static str],
    ) -> Term {
        let peak = self.whole.inputs.sheet("peak", "dense peak of a device in the format", "FLOP/s", rate, &[]);
        let share = flops.value / (rate * seconds);
        let share = Term::input("eta", "share of the peak that the operators sustain", "", share)
            .from(Origin::Engine("best large product, inner dimension, tiles and waves, casts, gaps between kernels"))
            .borne(self.constants(names));
        Term::stated(symbol, name, "s", seconds, flops / (peak * share))
    }

    /// Matrix multiplications: operator by operator.
    fn multiplications(&self, symbol: String, seconds: f64) -> Term {
        let Some(input) = training::input(self.whole.scenario, &self.whole.scenario.base) else {
            return Term::input(symbol, "gemm", "s", seconds);
        };
        let passes = Term::input("passes", "forward, input gradient, weight gradient", "", 3.0)
            .from(Origin::Engine("each product once forward and twice backward (arXiv 2104.04473, appendix)"));
        let layers = self.layers(|op| matches!(op.work, Work::Gemm(_)));
        let a = &input.arch;
        let tokens = input.micro * input.seq / input.cp;
        let head = ops::head(a, tokens, input.tp, true);
        let head = head.iter().filter(|op| matches!(op.work, Work::Gemm(_))).map(|op| self.operator(op));
        let head = Term::derived("F_head", "output layer, a micro-batch", "FLOP", sum(head));
        let flops = self.micro_batches() * passes * (Written::from(layers) + head);
        let flops = Term::derived("F_gemm", "FLOPs of matrix products on a device in a step", "FLOP", flops);
        let best = match input.accelerator.generation {
            Generation::Volta | Generation::Ampere | Generation::Workstation => "gemm_ampere",
            Generation::Hopper => "gemm_hopper",
            Generation::Blackwell => "gemm_blackwell",
            Generation::Cdna2 | Generation::Cdna3 | Generation::Cdna4 => "gemm_young",
            Generation::Ascend | Generation::Trainium => "gemm_young",
            Generation::Tpu => "gemm_systolic",
            _ => "gemm_other",
        };
        let mut names = vec![best, "gemm_k_half", "block_intensity", "traffic_exposed", "wave_loss", "kernel_gap"];
        if a.is_moe() {
            names.push("grouped_gemm");
        }
        if input.precision.is_narrow() {
            names.push("cast_traffic");
        }
        let rate = input.accelerator.peak(input.precision);
        self.at_the_peak(symbol, "gemm", seconds, flops, rate, &names)
    }

    fn attention(&self, symbol: String, seconds: f64) -> Term {
        let Some(input) = training::input(self.whole.scenario, &self.whole.scenario.base) else {
            return Term::input(symbol, "attention", "s", seconds);
        };
        let passes = Term::input("passes", "forward, and backward with the scores computed again", "", 3.5)
            .from(Origin::Engine("backward is 2.5 times forward (FlashAttention-2, arXiv 2307.08691, section 3.1)"));
        let flops = self.micro_batches() * passes * self.layers(|op| matches!(op.work, Work::Attention { .. }));
        let flops = Term::derived("F_attention", "FLOPs of attention on a device in a step", "FLOP", flops);
        let names: &[&'static str] =
            &["attention_fraction", "attention_first", "attention_head_half", "attention_backward", "kernel_gap"];
        let rate = input.accelerator.peak(Precision::Bf16);
        self.at_the_peak(symbol, "attention", seconds, flops, rate, names)
    }

    /// Forward FLOPs of the layers of a stage for a micro-batch: the operators that `wanted` picks.
    fn layers(&self, wanted: impl Fn(&Op) -> bool) -> Term {
        let (scenario, inputs) = (self.whole.scenario, self.whole.inputs);
        let Some(i) = training::input(scenario, &scenario.base) else { return Term::input("F", "", "FLOP", 0.0) };
        let slice = atlas_perf::training::slice(&i);
        let mut kinds = Vec::new();
        let mixed = i.arch.moe_layers();
        for (moe, count, symbol, name) in [
            (false, i.arch.layers - mixed, "F_layer", "a dense layer, a micro-batch, forward"),
            (true, mixed, "F_moe", "a layer with experts, a micro-batch, forward"),
        ] {
            if count <= 0.0 {
                continue;
            }
            let list = ops::layer(&i.arch, &slice, moe);
            let one = sum(list.iter().filter(|op| wanted(op)).map(|op| self.operator(op)));
            let one = Term::derived(symbol, name, "FLOP", one);
            let (symbol, name) = if moe { ("L_moe", "layers with experts") } else { ("L", "layers") };
            let layers = inputs.model(symbol, name, "", count);
            kinds.push(layers / self.knob("pp", Knob::Pp) * one);
        }
        let all = kinds.into_iter().reduce(|a, b| a + b).unwrap_or_else(|| Written::from(0.0));
        Term::derived("F_stage", "layers of a stage, a micro-batch, forward", "FLOP", all)
    }

    /// One operator's FLOPs.
    fn operator(&self, op: &Op) -> Term {
        let name = spoken(&format!("{:?}", op.name));
        let symbol = format!("F_{}", name.replace(' ', "_"));
        match op.work {
            Work::Gemm(g) => {
                let dimension = |symbol: &'static str, name: &'static str, value: f64| {
                    Term::input(symbol, name, "", value).from(Origin::Engine("of the model's widths and the cut"))
                };
                let mut all = vec![
                    dimension("rows", "tokens of the micro-batch on the device", g.m),
                    dimension("columns", "width of the result on the device", g.n),
                    dimension("inner", "inner dimension", g.k),
                ];
                if g.batch != 1.0 {
                    all.push(dimension("groups", "products side by side", g.batch));
                }
                Term::derived(symbol, name, "FLOP", product(all) * 2.0)
            }
            _ => Term::input(symbol, name, "FLOP", op.flops()).from(Origin::Engine(
                "2 × tokens × keys seen × (query width + value width), of one layer on the device",
            )),
        }
    }

    /// Model FLOPs utilisation.
    fn mfu(&self, symbol: &'static str, value: f64, causal: bool) -> Term {
        let (scenario, inputs) = (self.whole.scenario, self.whole.inputs);
        let input = training::input(scenario, &scenario.base);
        let rate = Term::derived("X", "tokens per second of all devices", "tok/s", self.tokens() / self.step());
        let Some(i) = input else { return Term::input(symbol, "", "", value) };
        let flops = i.arch.palm_flops_per_token(i.seq, causal);
        let weights = inputs.model(
            "W",
            "weights that a token multiplies, without the embedding's look-up",
            "",
            i.arch.matmul_params(),
        );
        let width = inputs.model("q", "width of queries and values together", "", i.arch.q_width() + i.arch.v_width());
        let layers = inputs.model("L", "layers", "", i.arch.layers);
        let keys = if causal { i.arch.mean_context(i.seq) } else { i.seq };
        let keys = Term::input("keys", "keys that a token attends to", "", keys)
            .from(Origin::Engine("PaLM counts the whole sequence; causal attention sees half of it"));
        let flops = Term::stated(
            "F",
            "model FLOPs of a token (arXiv 2204.02311, appendix B)",
            "FLOP",
            flops,
            weights * 6.0 + layers * keys * width * 6.0,
        );
        let peak = inputs.sheet(
            "peak",
            "dense peak of a device in the format",
            "FLOP/s",
            i.accelerator.peak(i.precision),
            &[],
        );
        let devices = [("tp", Knob::Tp), ("pp", Knob::Pp), ("cp", Knob::Cp), ("dp", Knob::Dp)];
        let devices = product(devices.map(|(symbol, knob)| self.knob(symbol, knob)));
        let devices = Term::derived("A", "devices at work", "", devices);
        Term::stated(symbol, "", "", value, rate * flops / (devices * peak))
    }

    /// Weights, gradients or optimizer states of a dense model: parameters of the fullest stage, bytes of each, and the
    /// replicas that they are spread over.
    fn states(&self, name: &'static str, term: Term) -> Term {
        let plan = &self.whole.scenario.base.plan;
        let sharding = plan.sharding.unwrap_or(Sharding::Zero1);
        let Some(input) = training::input(self.whole.scenario, &self.whole.scenario.base) else { return term };
        let (bytes, what, spread) = match name {
            "weights" => (input.weight_bytes, "bytes of a weight as it is multiplied", sharding == Sharding::Zero3),
            "gradients" => (
                input.grad_bytes,
                "bytes of a gradient as it is kept",
                matches!(sharding, Sharding::Zero2 | Sharding::Zero3),
            ),
            _ => (input.optimizer_bytes, "bytes of master weight and moments", sharding != Sharding::None),
        };
        let ranks = input.dp * input.cp;
        let over = if input.shard > 0.0 { input.shard.min(ranks) } else { ranks };
        let over = if spread { over } else { 1.0 };
        let held = Term::input(
            "P",
            "parameters of the fullest stage on a device, before sharding",
            "",
            term.value * over / bytes,
        )
        .from(Origin::Engine("layers and embedding, cut by tp and pp"))
        .borne(vec![self.parameters(), self.knob("tp", Knob::Tp), self.knob("pp", Knob::Pp)]);
        let bytes = Term::input("bytes", what, "bytes", bytes).from(Origin::Engine(
            "mixed-precision Adam keeps 2 + 4 + 12 bytes a parameter (arXiv 1910.02054, section 3.1)",
        ));
        let over = Term::input("shards", "replicas that they are spread over", "", over)
            .from(Origin::Engine("of sharding, shard, dp and cp"))
            .borne(vec![
                self.knob("sharding", Knob::Sharding),
                self.knob("shard", Knob::Shard),
                self.knob("dp", Knob::Dp),
                self.knob("cp", Knob::Cp),
            ]);
        let Term { symbol, name, unit, value, .. } = term;
        Term::stated(symbol, name, unit, value, held * bytes / over)
    }

    /// What a part of the memory depends on.
    fn held(&self, name: &'static str, term: Term) -> Term {
        let dense = self.whole.scenario.model.is_some_and(|model| !model.is_moe());
        if dense && matches!(name, "weights" | "gradients" | "optimizer") {
            return self.states(name, term);
        }
        let bearing = match name {
            "weights" | "gradients" | "optimizer" => vec![
                self.parameters(),
                self.knob("tp", Knob::Tp),
                self.knob("pp", Knob::Pp),
                self.knob("dp", Knob::Dp),
                self.knob("sharding", Knob::Sharding),
                self.knob("shard", Knob::Shard),
                self.knob("precision", Knob::Precision),
            ],
            "activations" => vec![
                self.knob("micro", Knob::Microbatch),
                self.sequence(),
                self.knob("tp", Knob::Tp),
                self.knob("cp", Knob::Cp),
                self.knob("sp", Knob::Sp),
                self.knob("recompute", Knob::Recompute),
                self.recomputed(),
            ],
            "logits" => {
                let vocabulary = self.whole.scenario.model.map_or(0.0, |model| model.vocab);
                vec![self.knob("micro", Knob::Microbatch), self.whole.inputs.model("V", "vocabulary", "", vocabulary)]
            }
            "buffers" => self.constants(&["workspace"]),
            "reserve" => self.constants(&["reserve"]),
            _ => Vec::new(),
        };
        let how = match name {
            "weights" => "weights of the fullest stage, cut by tp, pp and ep, and over replicas under zero3",
            "gradients" => "gradients as they are kept, over replicas from zero2 on",
            "optimizer" => "fp32 master weights and two moments, over replicas from zero1 on",
            "activations" => {
                "what the backward pass needs of every layer and micro-batch in flight (arXiv 2205.05198, section 4)"
            }
            "logits" => "bf16 logits, fp32 softmax and its gradient on the last stage",
            "buffers" => "gathered layers and libraries' workspaces",
            "reserve" => "driver context and what frameworks keep outside the allocator",
            _ => "the engine's figure",
        };
        term.from(Origin::Engine(how)).borne(bearing)
    }

    fn parameters(&self) -> Term {
        let count = self.whole.scenario.model.map_or(0.0, |model| model.params());
        self.whole.inputs.model("W_all", "parameters of the model", "", count)
    }
}

/// `QueryKeyValue` as people say it.
fn spoken(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
}
