//! Derivations of serving metrics of the analytical engine: throughput from the turnover of a replica, latencies from
//! their parts. The terms are those that the engine returns.

mod memory;
mod stated;
mod times;

use super::expression::{Written, product, sum};
use super::origin::constants;
use super::{Context, Origin, Term, money};
use crate::engine::answer::serving;
use crate::estimate::{Detail, MemoryPart, MetricId, Serving, TimePart};
use crate::knob::{Knob, Setting};
use atlas_perf::accelerator::Precision;
use atlas_perf::constants::Constants;
use atlas_perf::constants::generation::ServingArithmetic;
use atlas_perf::serving::{Admission, ServingEstimate, ServingInput, Stack, StepInputs};
use atlas_perf::traits::ExpertProducts;

/// Derivation of a metric; `None` for metrics that do not apply to serving.
pub(super) fn explain(whole: &Context<'_>, id: MetricId, value: f64) -> Option<Term> {
    let detail = whole.estimate.detail.as_ref()?;
    let (input, constants, out) = serving::closed(whole.scenario, &whole.scenario.base)?;
    let described = Reported { whole, detail, serving: detail.serving?, input, constants, out };
    let serving = &described.serving;
    Some(match id {
        MetricId::TokensPerSec => Term::stated(
            "X",
            "output tokens per second of all replicas",
            "tok/s",
            value,
            described.requests() * described.counted(),
        ),
        MetricId::RequestsPerSec => Term::stated("R", "", "req/s", value, described.requests()),
        MetricId::TotalTokensPerSec => {
            let all = match described.input.counts_prompts() {
                true => described.requests() * described.prompt(),
                false => described.requests() * (described.output() + described.prompt()),
            };
            Term::stated("X_all", "", "tok/s", value, all)
        }
        MetricId::TokensPerSecPerUser => {
            Term::stated("X_user", "", "tok/s", value, Written::from(1000.0) / described.tpot(serving.tpot_ms.mean))
        }
        MetricId::MaxConcurrency => described.sequences(value),
        MetricId::TtftMs => described.ttft(value),
        MetricId::TtftP99Ms => described.ttft_p99(value),
        MetricId::TpotMs => described.tpot(value),
        MetricId::ItlP99Ms => {
            let how = "of steps that include a prompt chunk of another request, if at least one in a hundred does";
            Term::input("ITL_p99", "", "ms", value)
                .from(Origin::Engine(how))
                .depending_on(vec![described.tpot(serving.tpot_ms.mean)])
        }
        MetricId::P50Ms => described.whole_request(|all| all.p50, "median", value),
        MetricId::P95Ms => described.whole_request(|all| all.p95, "p95", value),
        MetricId::P99Ms => described.whole_request(|all| all.p99, "p99", value),
        MetricId::CommComputeRatio => {
            let waited = described.parts(|part| part == TimePart::Communication).into_iter().next();
            let waited = waited.map_or_else(|| Written::from(0.0), Written::from);
            Term::stated("r_comm", "", "", value, waited / described.token_time())
        }
        MetricId::FlopUtilization => described.arithmetic(value),
        MetricId::HbmBwUtil => {
            let streamed = [TimePart::Weights, TimePart::KvCache, TimePart::Activations, TimePart::Compute];
            let bearing = described.parts(|part| streamed.contains(&part));
            let how = "time to stream weights, KV cache and activations / time per token";
            Term::input("u_hbm", "", "", value).from(Origin::Engine(how)).depending_on(bearing)
        }
        _ => return money::hardware(whole, id, value, |part, term| described.with_memory_dependencies(part, term)),
    })
}

struct Reported<'a> {
    whole: &'a Context<'a>,
    detail: &'a Detail,
    serving: Serving,
    input: ServingInput,
    constants: Constants,
    out: ServingEstimate,
}

impl Reported<'_> {
    fn knob(&self, symbol: &'static str, knob: Knob) -> Term {
        self.whole.inputs.knob(symbol, knob)
    }

    fn constants(&self, names: &[&'static str]) -> Vec<Term> {
        // Default values of the constants, and the efficiency factors of the target that scale them.
        let mut all = constants(Constants::default().table().collect::<Vec<_>>().into_iter(), names);
        all.extend(self.whole.inputs.efficiency(names, true));
        all
    }

    /// Whether a constant affects this deployment.
    fn affects(&self, constant: &str) -> bool {
        let served = &self.whole.scenario.base.serving_defaults;
        let formats = &served.formats;
        let mixture = self.whole.scenario.model.is_some_and(|model| model.is_moe());
        let eager = served.stack == Stack::Eager;
        let in_python = matches!(served.stack, Stack::Graphed | Stack::Eager);
        let chunked = self.whole.scenario.get(Knob::ChunkedPrefill) == Setting::Toggle(true);
        let multiplies = |all: &[Precision]| all.contains(&formats.dense) || (mixture && all.contains(&formats.expert));
        match constant {
            "narrow8_fraction" => multiplies(&[Precision::Fp8, Precision::Int8]),
            "narrow4_fraction" => multiplies(&[Precision::Fp4, Precision::Fp6]),
            "unpack_fraction" => formats.dense_unpack || formats.expert_unpack,
            "grouped_fraction" => mixture,
            "triton_fraction" => mixture && served.expert_products == ExpertProducts::Triton,
            "kernel_eager" => eager || served.eager_prompts,
            "neuron_fraction" => {
                self.whole.scenario.machine.and_then(|m| m.device.generation.properties().serving_shares).is_some_and(
                    |shares| matches!(shares.arithmetic, ServingArithmetic::Less(share) if share.name == constant),
                )
            }
            "kernel_graph" | "kernel_prefill" => !eager,
            "step_compiled" => served.stack == Stack::Compiled,
            "front_end" => served.stack == Stack::Graphed,
            "step_python" => in_python && served.inputs == StepInputs::Rebuilt,
            "step_incremental" => in_python && served.inputs == StepInputs::Incremental,
            "burst_share" => chunked,
            "burst_share_separate" => !chunked,
            "batched_steps" => served.admission == Admission::Batched,
            _ => true,
        }
    }

    fn prompt(&self) -> Term {
        let text = self.knob("ISL", Knob::Prompt);
        let Some(images) = self.input.images else { return text };
        let how = "from images, image_size and the vision encoder of the model";
        let images = Term::input("n_images", "image tokens per request", "tok", images.tokens)
            .from(Origin::Engine(how))
            .depending_on(self.stated(&[Knob::Images, Knob::ImageSize]));
        let text = Term { symbol: "n_text".into(), ..text };
        Term::derived("ISL", "input tokens, including images", "tok", text + images)
    }

    /// Tokens per request that the throughput counts.
    fn counted(&self) -> Term {
        if self.input.counts_prompts() { self.prompt() } else { self.output() }
    }

    /// Output tokens per request, at least one.
    fn output(&self) -> Term {
        let term = self.knob("OSL", Knob::Generate);
        let value = if self.input.counts_prompts() { 1.0 } else { term.value.max(1.0) };
        Term { value, ..term }
    }

    /// Time per output token of a replica, for its whole batch.
    fn token_time(&self) -> Term {
        let value = self.detail.time.total();
        Term::stated(
            "t",
            "time per token of every running sequence, including its share of prefill",
            "s",
            value,
            sum(self.parts(|_| true)),
        )
        .depending_on(self.drafting().into_iter().collect())
    }

    fn parts(&self, wanted: impl Fn(TimePart) -> bool) -> Vec<Term> {
        let parts = self.detail.time.parts().filter(|(part, seconds)| wanted(*part) && *seconds != 0.0);
        parts.map(|(part, seconds)| self.part(part, seconds)).collect()
    }

    fn part(&self, part: TimePart, seconds: f64) -> Term {
        let machine = self.whole.scenario.machine;
        let device = machine.map(|machine| machine.device).unwrap_or_default();
        let inputs = self.whole.inputs;
        let formats = self.whole.scenario.base.serving_defaults.formats;
        let bandwidth = || inputs.sheet("bw", "memory bandwidth of a device", "B/s", device.mem_bw, &[]);
        let (how, mut bearing, names): (&'static str, Vec<Term>, &[&'static str]) = match part {
            TimePart::Compute => (
                "compute of linear layers and attention at the sustained rate",
                vec![
                    inputs.sheet(
                        "peak",
                        "dense peak rate of a device in this format",
                        "FLOP/s",
                        device.peak(formats.dense),
                        &[],
                    ),
                    self.active(),
                    self.batch(),
                    self.knob("precision", Knob::Precision),
                ],
                &[
                    "serving_products",
                    "narrow8_fraction",
                    "narrow4_fraction",
                    "unpack_fraction",
                    "grouped_fraction",
                    "triton_fraction",
                    "attention_fraction",
                    "neuron_fraction",
                    "overlap_loss",
                ],
            ),
            TimePart::Weights => (
                "weights of a rank, read once per step",
                vec![bandwidth(), self.weights(), self.knob("tp", Knob::Tp), self.knob("precision", Knob::Precision)],
                &["memory_fraction", "overlap_loss"],
            ),
            TimePart::KvCache => (
                "KV cache of every running sequence, read once per step",
                vec![
                    bandwidth(),
                    self.batch(),
                    self.prompt(),
                    self.output(),
                    self.knob("kv_precision", Knob::KvPrecision),
                ],
                &["kv_fraction"],
            ),
            TimePart::Activations => {
                ("activations read and written outside GEMMs and attention", vec![bandwidth()], &["activation_passes"])
            }
            TimePart::Communication => (
                "two tensor-parallel all-reduces per layer, expert exchanges, pipeline transfers",
                vec![
                    self.knob("tp", Knob::Tp),
                    self.knob("pp", Knob::Pp),
                    inputs.sheet(
                        "link",
                        "scale-up bandwidth, one way",
                        "B/s",
                        device.link_bw,
                        &["interconnect", "bw_GBps"],
                    ),
                ],
                &[
                    "link_latency",
                    "pcie_latency",
                    "one_shot_latency",
                    "library_latency",
                    "nic_latency",
                    "link_fraction",
                    "pcie_fraction",
                ],
            ),
            TimePart::Launch => (
                "gaps between kernels, with or without captured graphs",
                vec![self.knob("graphs", Knob::CudaGraphs), self.knob("server", Knob::Software)],
                &["kernel_graph", "kernel_prefill", "kernel_eager"],
            ),
            TimePart::Host => (
                "scheduling, input preparation, sampling, streaming and admission between steps",
                vec![self.knob("server", Knob::Software), self.batch()],
                &["step_python", "step_incremental", "step_compiled", "host_per_sequence", "host_exposed", "front_end"],
            ),
            TimePart::Images => (
                "GEMMs, attention, activations and all-reduces of the vision encoder, per request",
                vec![bandwidth(), self.knob("tp", Knob::Tp)],
                &["serving_products", "attention_fraction", "memory_fraction", "kernel_prefill"],
            ),
            _ => ("computed by the engine", Vec::new(), &[]),
        };
        bearing.extend(self.stated_of_part(part));
        let best = (part == TimePart::Compute).then(|| device.generation.properties().gemm_share.name);
        let names = best.into_iter().chain(names.iter().copied().filter(|name| self.affects(name)));
        bearing.extend(self.constants(&names.collect::<Vec<_>>()));
        Term::part("t", part, "s", seconds).from(Origin::Engine(how)).depending_on(bearing)
    }

    /// Number of sequences running on a replica.
    fn batch(&self) -> Term {
        let how = "requests in flight / replicas, capped by max_num_seqs, the token budget of a step and the KV cache; Little's law with a request rate";
        let load = if self.whole.scenario.base.plan.serving.request_rate.is_some() {
            self.knob("request_rate", Knob::RequestRate)
        } else {
            self.knob("concurrency", Knob::Concurrency)
        };
        let limit = Term::input(
            "b_max",
            "sequences that fit in the KV cache of a replica",
            "seq",
            self.serving.max_concurrency,
        )
        .from(Origin::Engine("KV cache memory / memory per sequence"));
        Term::input("b", "sequences running on a replica", "seq", self.serving.batch)
            .from(Origin::Engine(how))
            .depending_on(vec![load, self.knob("max_num_seqs", Knob::MaxNumSeqs), limit])
    }

    fn active(&self) -> Term {
        let active = self.whole.scenario.model.map_or(0.0, |model| model.active_params());
        self.whole.inputs.model("W", "active parameters per token", "", active)
    }

    fn weights(&self) -> Term {
        let bytes = self.detail.memory.parts.part(MemoryPart::Weights);
        Term::input("M_weights", "weights on the fullest device", "bytes", bytes)
            .from(Origin::Engine("from the model, its format and sharding"))
    }

    /// Corrections of throughput, TPOT and TTFT by measurements of this cluster.
    fn corrections(&self) -> [Option<Term>; 3] {
        let found = self.detail.adjustments;
        let term = |symbol: &'static str, name: &'static str, factor: f64| {
            Term::input(symbol, name, "", factor).from(Origin::Engine("current calibration"))
        };
        let Some(found) = found else { return [None, None, None] };
        [
            found.throughput.map(|one| term("k_X", "throughput correction from runs on this cluster", one.factor)),
            found.tpot.map(|one| term("k_TPOT", "TPOT correction from runs on this cluster", one.factor)),
            found.ttft.map(|one| term("k_TTFT", "TTFT correction from runs on this cluster", one.factor)),
        ]
    }

    fn arithmetic(&self, value: f64) -> Term {
        let machine = self.whole.scenario.machine;
        let device = machine.map(|machine| machine.device).unwrap_or_default();
        let peak = device.peak(self.whole.scenario.base.serving_defaults.formats.dense);
        let peak = self.whole.inputs.sheet("peak", "dense peak rate of a device in this format", "FLOP/s", peak, &[]);
        let rate =
            Term::input("X_all", "input and output tokens per second", "tok/s", self.serving.total_tokens_per_sec)
                .from(Origin::Engine("computed by the engine"));
        let devices =
            [("tp", Knob::Tp), ("pp", Knob::Pp), ("dp", Knob::Dp)].map(|(symbol, knob)| self.knob(symbol, knob));
        let devices = Term::derived("A", "devices in use", "", product(devices));
        Term::input("u_flop", "", "", value)
            .from(Origin::Engine("2 FLOPs per weight and token / peak of the devices in use, at most 1"))
            .depending_on(vec![self.active(), rate, devices, peak])
    }
}
