//! Serving under the analytical engine: throughput from the time of an output token, latencies from their parts.

use super::expression::{Written, product, sum};
use super::origin::constants;
use super::{Origin, Term, Whole, money};
use crate::estimate::{Detail, Serving};
use crate::knob::{Knob, Setting};
use atlas_perf::accelerator::{Generation, Precision};
use atlas_perf::constants::Constants;
use atlas_perf::serving::{Admission, Stack};

/// The derivation of a figure; `None` for figures that serving does not have.
pub(super) fn explain(whole: &Whole<'_>, name: &str, value: f64) -> Option<Term> {
    let detail = whole.estimate.detail.as_ref()?;
    let described = Reported { whole, detail, serving: detail.serving? };
    let serving = &described.serving;
    Some(match name {
        "tokens_per_sec" => described.throughput(value),
        "requests_per_sec" => {
            Term::stated("R", "", "req/s", value, described.throughput(whole.total.tokens_per_sec) / described.output())
        }
        "total_tokens_per_sec" => {
            let all = described.throughput(whole.total.tokens_per_sec) / described.output()
                * (described.output() + described.prompt());
            Term::stated("X_all", "", "tok/s", value, all)
        }
        "tokens_per_sec_per_user" => {
            Term::stated("X_user", "", "tok/s", value, Written::from(1000.0) / described.tpot(serving.tpot_ms[0]))
        }
        "max_concurrency" => described.sequences(value),
        "ttft_ms" => described.ttft(value),
        "ttft_p99_ms" => {
            described.quantile("TTFT", value, described.ttft(serving.ttft_ms[0]), "queues and bursts beyond their mean")
        }
        "tpot_ms" => described.tpot(value),
        "itl_p99_ms" => {
            let how = "steps that carry another request's prompt chunk";
            described.quantile("ITL", value, described.tpot(serving.tpot_ms[0]), how)
        }
        "p50_ms" => described.whole_request(1, "median", value),
        "p95_ms" => described.whole_request(2, "p95", value),
        "p99_ms" => described.whole_request(3, "p99", value),
        "comm_compute_ratio" => {
            let waited = sum(described.parts().into_iter().filter(|part| part.name == "communication"));
            let waited = if waited.terms.is_empty() { Written::from(0.0) } else { waited };
            Term::stated("r_comm", "", "", value, waited / described.token_time())
        }
        "flop_utilization" => described.arithmetic(value),
        "hbm_bw_util" => {
            let names = ["weights", "KV cache", "activations", "compute"];
            let bearing = described.parts().into_iter().filter(|part| names.contains(&&*part.name)).collect();
            let how = "time in which weights, keys and activations stream, over the time of a token";
            Term::input("u_hbm", "", "", value).from(Origin::Engine(how)).borne(bearing)
        }
        _ => return money::hardware(whole, name, value, |part, term| described.held(part, term)),
    })
}

struct Reported<'a> {
    whole: &'a Whole<'a>,
    detail: &'a Detail,
    serving: Serving,
}

impl Reported<'_> {
    fn knob(&self, symbol: &'static str, knob: Knob) -> Term {
        self.whole.inputs.knob(symbol, knob)
    }

    fn constants(&self, names: &[&'static str]) -> Vec<Term> {
        // The constants as they ship, and the target's factors that move them.
        let mut all = constants(Constants::default().table().collect::<Vec<_>>().into_iter(), names);
        all.extend(self.whole.inputs.efficiency(names, true));
        all
    }

    /// Whether a constant bears on this deployment at all.
    fn bears(&self, constant: &str) -> bool {
        let served = &self.whole.scenario.base.served;
        let formats = &served.formats;
        let mixture = self.whole.scenario.model.is_some_and(|model| model.is_moe());
        let eager = served.stack == Stack::Eager;
        let chunked = self.whole.scenario.get(Knob::ChunkedPrefill) == Setting::Toggle(true);
        let multiplies = |all: &[Precision]| all.contains(&formats.dense) || (mixture && all.contains(&formats.expert));
        match constant {
            "narrow8_fraction" => multiplies(&[Precision::Fp8, Precision::Int8]),
            "narrow4_fraction" => multiplies(&[Precision::Fp4, Precision::Fp6]),
            "unpack_fraction" => formats.dense_unpack || formats.expert_unpack,
            "grouped_fraction" => mixture,
            "kernel_eager" => eager || served.eager_prompts,
            "neuron_fraction" => {
                self.whole.scenario.machine.is_some_and(|m| m.device.generation == Generation::Trainium)
            }
            "kernel_graph" | "kernel_prefill" => !eager,
            "step_compiled" => served.stack == Stack::Compiled,
            "front_end" => served.stack == Stack::Graphed,
            "step_python" => matches!(served.stack, Stack::Graphed | Stack::Eager),
            "burst_share" => chunked,
            "burst_share_separate" => !chunked,
            "batched_steps" => served.admission == Admission::Batched,
            "polled_seconds" => served.admission == Admission::Polled,
            _ => true,
        }
    }

    fn prompt(&self) -> Term {
        self.knob("ISL", Knob::Prompt)
    }

    /// Generated tokens; a request gets one at least.
    fn output(&self) -> Term {
        let term = self.knob("OSL", Knob::Generate);
        Term { value: term.value.max(1.0), ..term }
    }

    /// What an output token costs a replica that serves its whole batch.
    fn token_time(&self) -> Term {
        let value = self.detail.time.total();
        Term::stated(
            "t",
            "time in which every running sequence gains a token, its share of prefill included",
            "s",
            value,
            sum(self.parts()),
        )
    }

    fn parts(&self) -> Vec<Term> {
        let parts = self.detail.time.parts().filter(|(_, seconds)| *seconds != 0.0);
        parts.map(|(name, seconds)| self.part(name, seconds)).collect()
    }

    fn part(&self, name: &'static str, seconds: f64) -> Term {
        let machine = self.whole.scenario.machine;
        let device = machine.map(|machine| machine.device).unwrap_or_default();
        let inputs = self.whole.inputs;
        let formats = self.whole.scenario.base.served.formats;
        let bandwidth = || inputs.sheet("bw", "memory bandwidth of a device", "B/s", device.mem_bw, &[]);
        let (how, mut bearing, names): (&'static str, Vec<Term>, &[&'static str]) = match name {
            "compute" => (
                "arithmetic of linear layers and attention at the sustained rate",
                vec![
                    inputs.sheet(
                        "peak",
                        "dense peak of a device in the format",
                        "FLOP/s",
                        device.peak(formats.dense),
                        &[],
                    ),
                    self.active(),
                    self.batch(),
                    self.knob("precision", Knob::Precision),
                ],
                &[
                    "gemm_fraction",
                    "narrow8_fraction",
                    "narrow4_fraction",
                    "unpack_fraction",
                    "slice_half",
                    "grouped_fraction",
                    "attention_fraction",
                    "neuron_fraction",
                    "overlap_loss",
                ],
            ),
            "weights" => (
                "weights of a rank read once a step",
                vec![bandwidth(), self.weights(), self.knob("tp", Knob::Tp), self.knob("precision", Knob::Precision)],
                &["weight_fraction", "overlap_loss"],
            ),
            "KV cache" => (
                "keys and values of every running sequence read once a step",
                vec![
                    bandwidth(),
                    self.batch(),
                    self.prompt(),
                    self.output(),
                    self.knob("kv_precision", Knob::KvPrecision),
                ],
                &["kv_fraction"],
            ),
            "activations" => (
                "hidden vectors read and written outside GEMMs and attention",
                vec![bandwidth()],
                &["activation_passes"],
            ),
            "communication" => (
                "two all-reduces a layer over the tensor-parallel ranks, exchanges of experts, hand-over of stages",
                vec![
                    self.knob("tp", Knob::Tp),
                    self.knob("pp", Knob::Pp),
                    inputs.sheet(
                        "link",
                        "rate of the close fabric, one way",
                        "B/s",
                        device.link_bw,
                        &["interconnect", "bw_GBps"],
                    ),
                ],
                &["link_latency", "pcie_latency", "hop_latency", "nic_latency", "link_fraction", "pcie_fraction"],
            ),
            "launch" => (
                "gaps between kernels, captured as graphs or launched one by one",
                vec![self.knob("graphs", Knob::CudaGraphs), self.knob("server", Knob::Software)],
                &["kernel_graph", "kernel_prefill", "kernel_eager"],
            ),
            "host" => (
                "scheduling, input preparation, sampling, streaming and taking requests in between steps",
                vec![self.knob("server", Knob::Software), self.batch()],
                &["step_python", "step_compiled", "host_per_sequence", "host_exposed", "front_end"],
            ),
            _ => ("the engine's figure", Vec::new(), &[]),
        };
        bearing.extend(self.constants(&names.iter().copied().filter(|name| self.bears(name)).collect::<Vec<_>>()));
        Term::input(format!("t_{}", name.replace(' ', "_")), name, "s", seconds)
            .from(Origin::Engine(how))
            .borne(bearing)
    }

    /// Sequences that run on a replica.
    fn batch(&self) -> Term {
        let how = "requests in flight over replicas, capped by max_num_seqs and by the KV cache; Little's law where they arrive at a rate";
        let load = if self.whole.scenario.base.plan.serving.request_rate.is_some() {
            self.knob("request_rate", Knob::RequestRate)
        } else {
            self.knob("concurrency", Knob::Concurrency)
        };
        let most = Term::input(
            "b_max",
            "sequences that the KV memory of a replica holds",
            "seq",
            self.serving.max_concurrency,
        )
        .from(Origin::Engine("memory left for keys and values over what a sequence needs"));
        Term::input("b", "sequences running on a replica", "seq", self.serving.batch)
            .from(Origin::Engine(how))
            .borne(vec![load, self.knob("max_num_seqs", Knob::MaxNumSeqs), most])
    }

    fn active(&self) -> Term {
        let active = self.whole.scenario.model.map_or(0.0, |model| model.active_params());
        self.whole.inputs.model("W", "weights that a token passes", "", active)
    }

    fn weights(&self) -> Term {
        let bytes = self.detail.memory.parts.part("weights");
        Term::input("M_weights", "weights on the fullest device", "bytes", bytes)
            .from(Origin::Engine("of the model, its format and the cut"))
    }

    fn throughput(&self, value: f64) -> Term {
        let dp = self.knob("dp", Knob::Dp);
        let (batch, token) = (self.batch(), self.token_time());
        let left = value * token.value / (dp.value * batch.value);
        let left = Term::input("phi", "share of that which is delivered", "", left)
            .from(Origin::Engine("the gap between requests, replicas that only prefill, drafts accepted"))
            .borne(self.constants(&["request_overhead"]));
        Term::stated("X", "generated tokens per second of all replicas", "tok/s", value, dp * batch / token * left)
    }

    fn ttft(&self, value: f64) -> Term {
        let first = &self.serving.first_token;
        let parts = first.parts().map(|(name, ms)| {
            let (how, names): (&'static str, &[&'static str]) = match name {
                "slot" => ("waiting for a sequence to end, where all slots are taken", &["variability"]),
                "queue" => (
                    "waiting for the step in flight and for prompts ahead; G/G/m, Allen–Cunneen",
                    &["variability", "boundary_steps"],
                ),
                "burst" => {
                    ("waiting because requests end, and so arrive, together", &["burst_share", "burst_share_separate"])
                }
                "prefill" => {
                    ("the own prompt, in the company of decoding sequences", &["gemm_fraction", "kernel_prefill"])
                }
                "overhead" => (
                    "accepting, tokenising, the first response",
                    &["request_overhead", "batched_steps", "polled_seconds"],
                ),
                _ => ("the engine's figure", &[]),
            };
            let mut bearing =
                self.constants(&names.iter().copied().filter(|name| self.bears(name)).collect::<Vec<_>>());
            if name == "prefill" {
                bearing.extend([
                    self.prompt(),
                    self.knob("prefix_hit", Knob::PrefixHit),
                    self.knob("chunk", Knob::MaxNumBatchedTokens),
                ]);
            }
            Term::input(format!("w_{name}"), name, "ms", ms).from(Origin::Engine(how)).borne(bearing)
        });
        Term::stated("TTFT", "mean time to first token", "ms", value, sum(parts))
    }

    /// Time per output token: a sequence's whole life less what passes before its first token, over the tokens after it.
    fn tpot(&self, value: f64) -> Term {
        let (token, output) = (self.token_time(), self.output());
        let rest = output.value - 1.0;
        let life = 1e3 * token.value * output.value;
        if rest <= 0.0 {
            return Term::input("TPOT", "time per output token after the first", "ms", value)
                .from(Origin::Engine("one token has none after it"));
        }
        let inside = Term::input("before", "of that, before the first token", "ms", life - value * rest)
            .from(Origin::Engine("own prefill, and waits that the cycle of a replica holds"));
        let written = (token * output.clone() * 1000.0 - inside) / (output - 1.0);
        Term::stated("TPOT", "time per output token after the first, mean over requests", "ms", value, written)
    }

    /// A quantile: the mean and what lies beyond it.
    fn quantile(&self, symbol: &'static str, value: f64, mean: Term, how: &'static str) -> Term {
        let beyond =
            Term::input("tail", "what p99 adds to the mean", "ms", value - mean.value).from(Origin::Engine(how));
        Term::stated(format!("{symbol}_p99"), "", "ms", value, mean + beyond)
    }

    /// From request to last token.
    fn whole_request(&self, quantile: usize, what: &'static str, value: f64) -> Term {
        let at = |all: [f64; 4]| all.get(quantile).copied().unwrap_or(f64::NAN);
        let term = |symbol: &'static str, name: String, value: f64, mean: Term| {
            Term::input(symbol, name, "ms", value)
                .from(Origin::Engine("of its distribution: queues exponential, bursts even, prefill fixed"))
                .borne(vec![mean])
        };
        let first = term(
            "TTFT_q",
            format!("time to first token, {what}"),
            at(self.serving.ttft_ms),
            self.ttft(self.serving.ttft_ms[0]),
        );
        let next = term(
            "TPOT_q",
            format!("time per output token, {what}"),
            at(self.serving.tpot_ms),
            self.tpot(self.serving.tpot_ms[0]),
        );
        Term::stated("E2E", "", "ms", value, first + (self.output() - 1.0) * next)
    }

    fn arithmetic(&self, value: f64) -> Term {
        let machine = self.whole.scenario.machine;
        let device = machine.map(|machine| machine.device).unwrap_or_default();
        let peak = device.peak(self.whole.scenario.base.served.formats.dense);
        let peak = self.whole.inputs.sheet("peak", "dense peak of a device in the format", "FLOP/s", peak, &[]);
        let rate =
            Term::input("X_all", "prompt and generated tokens per second", "tok/s", self.serving.total_tokens_per_sec)
                .from(Origin::Engine("the engine's figure"));
        let devices =
            [("tp", Knob::Tp), ("pp", Knob::Pp), ("dp", Knob::Dp)].map(|(symbol, knob)| self.knob(symbol, knob));
        let devices = Term::derived("A", "devices at work", "", product(devices));
        Term::stated("u_flop", "", "", value, self.active() * 2.0 * rate / (devices * peak))
    }

    fn sequences(&self, value: f64) -> Term {
        let memory = &self.detail.memory;
        let (weights, reserve) = (memory.parts.part("weights"), memory.parts.part("engine reserve"));
        let usable = Term::input("M_usable", "device memory that the engine may use", "bytes", memory.capacity)
            .from(Origin::Engine("device memory times gpu_memory_utilization"))
            .borne(vec![self.knob("share", Knob::GpuMemoryUtilization)]);
        let reserve = Term::input("M_reserve", "context, graphs, workspace", "bytes", reserve)
            .from(Origin::Engine("the engine's own needs"))
            .borne(self.constants(&["reserve_bytes", "reserve_share"]));
        let free = memory.capacity - weights - reserve.value;
        if value <= 0.0 || free <= 0.0 {
            return Term::input("b_max", "", "seq", value).from(Origin::Engine("nothing is left for keys and values"));
        }
        let one = self.sequence(free, value);
        Term::stated("b_max", "", "seq", value, (usable - self.weights() - reserve) / one)
    }

    /// Keys and values of one sequence, so that so many of them hold `bytes`.
    fn sequence(&self, bytes: f64, many: f64) -> Term {
        Term::input("M_sequence", "keys and values of a sequence, on a device", "bytes", bytes / many)
            .from(Origin::Engine("layers × KV width × bytes × tokens, the output at its mean length"))
            .borne(vec![self.prompt(), self.output(), self.knob("kv_precision", Knob::KvPrecision)])
    }

    fn held(&self, name: &'static str, term: Term) -> Term {
        let Term { symbol, name: called, unit, value, .. } = term.clone();
        if name == "KV cache" && value > 0.0 && self.serving.batch > 0.0 {
            let one = self.sequence(value, self.serving.batch);
            return Term::stated(symbol, called, unit, value, self.batch() * one);
        }
        if name == "weights" && value > 0.0 {
            let count = self.whole.scenario.model.map_or(0.0, |model| model.params());
            let all = self.whole.inputs.model("W_all", "parameters of the model", "", count);
            let (tp, pp) = (self.knob("tp", Knob::Tp), self.knob("pp", Knob::Pp));
            let each = Term::input(
                "bytes",
                "bytes of a parameter, scales and replicas counted",
                "bytes",
                value * tp.value * pp.value / count,
            )
            .from(Origin::Engine("of the format; embedding and output layer stay in 16 bit"))
            .borne(vec![self.knob("precision", Knob::Precision)]);
            return Term::stated(symbol, called, unit, value, all * each / (tp * pp));
        }
        let (how, bearing) = match name {
            "engine reserve" => ("context, graphs, workspace", self.constants(&["reserve_bytes", "reserve_share"])),
            _ => ("the engine's figure", Vec::new()),
        };
        term.from(Origin::Engine(how)).borne(bearing)
    }
}
