//! Rates and latencies of requests: turnover of a replica, TTFT, TPOT, end-to-end latency.

use super::Reported;
use crate::estimate::FirstTokenPart;
use crate::explain::expression::{Written, sum};
use crate::explain::{Origin, Term};
use crate::knob::Knob;
use atlas_perf::serving::Admission;
use atlas_perf::serving::latency::Spread;
use atlas_perf::serving::terms::{Rate, TokenTime};

impl Reported<'_> {
    /// Time for which a sequence runs: time per token times output tokens.
    pub(super) fn life(&self, seconds: f64) -> Term {
        let [_, tpot, _] = self.corrections();
        let all = self.token_time() * self.output();
        let all = match tpot {
            Some(factor) => all / factor,
            None => all,
        };
        Term::stated("t_life", "time in the batch, from admission to the last token", "s", seconds, all)
    }

    /// Requests per second of the deployment, with the terms of the engine.
    pub(super) fn requests(&self) -> Written {
        let term = |symbol: &'static str, name: &'static str, unit: &'static str, value: f64, how: &'static str| {
            Term::input(symbol, name, unit, value).from(Origin::Engine(how))
        };
        // Omit factors of 1.
        let times = |written: Written, factor: Term| if factor.value == 1.0 { written } else { written * factor };
        let busy = |share| {
            term("busy", "share of replicas with at least one request", "", share, "requests / replicas, at most 1")
        };
        let drained = |share| {
            let how = "work of the run / (work + drain at its end)";
            term("drained", "throughput after the loss at the end of the run", "", share, how)
        };
        let replicas = self.knob("dp", Knob::Dp);
        let pools = self.input.pools.is_some();
        let of_all = |written: Written| if pools { written } else { replicas.clone() * written };
        let written = match self.out.rate {
            Rate::None => Written::from(0.0),
            Rate::ClosedLoop { busy: share, sequences, seconds, between, drained: left } => {
                let running = Term { value: sequences, ..self.batch() };
                let life: Written = self.life(seconds).into();
                let cycle = if between == 0.0 {
                    life
                } else {
                    let name = "time from the end of a sequence to the start of the next one in its slot";
                    life + term("t_gap", name, "s", between, "front-end overhead of a request")
                        .depending_on(self.constants(&["request_overhead"]))
                };
                of_all(times(times(running / cycle, busy(share)), drained(left)))
            }
            Rate::FrontEnd { busy: share, most, drained: left } => {
                let most = term(
                    "R_front",
                    "maximum request rate of the front end",
                    "req/s",
                    most,
                    "requests are processed one at a time",
                )
                .depending_on(self.constants(&["front_end"]));
                of_all(times(times(most.into(), busy(share)), drained(left)))
            }
            Rate::PrefillPool { replicas, seconds } => {
                let count = term("n_prefill", "prefill replicas", "", replicas, "replicas of the prefill pool");
                let each =
                    term("t_prefill", "prefill time of one request", "s", seconds, "prompts that share full steps");
                count / each
            }
            Rate::KvLinks { links, seconds } => {
                let count = term("n_links", "links between the pools", "", links, "replicas or attention groups");
                let each = term("t_kv", "transfer time of one request", "s", seconds, "KV cache of one prompt");
                count / each
            }
            Rate::Run { requests, seconds } => {
                let count = term("n_req", "requests of the run per replica", "req", requests, "from the load");
                let length = term(
                    "t_run",
                    "time from the first request to the last token",
                    "s",
                    seconds,
                    "requests run in waves",
                )
                .depending_on(vec![self.token_time(), self.batch()]);
                of_all(count / length)
            }
            Rate::Arrivals(_) => self.knob("request_rate", Knob::RequestRate).into(),
        };
        match self.corrections() {
            [Some(factor), ..] => written * factor,
            _ => written,
        }
    }

    /// 99th percentile of TTFT and its parts.
    pub(super) fn ttft_p99(&self, value: f64) -> Term {
        let [_, _, correction] = self.corrections();
        let first = self.out.first_token.p99();
        let parts = [
            (FirstTokenPart::Slot, first.slot, "wait for a free batch slot"),
            (FirstTokenPart::Queue, first.queue, "prompts ahead: exponential, steps in flight: uniform"),
            (FirstTokenPart::Burst, first.burst, "uniform distribution of the wait in a burst"),
            (FirstTokenPart::Prefill, first.prefill, "prefill of the request itself"),
            (FirstTokenPart::Overhead, first.overhead, "accepting, tokenizing and the first response"),
        ];
        let parts = parts.into_iter().filter(|(_, seconds, _)| *seconds != 0.0).map(|(part, seconds, how)| {
            let name = part.name();
            Term::input(format!("w_{name}"), format!("{name}, 99th percentile"), "ms", seconds * 1e3)
                .from(Origin::Engine(how))
        });
        let all = sum(parts);
        let all = match correction {
            Some(factor) => all * factor,
            None => all,
        };
        Term::stated("TTFT_p99", "", "ms", value, all).depending_on(vec![self.ttft(self.serving.ttft_ms.mean)])
    }

    pub(super) fn ttft(&self, value: f64) -> Term {
        let first = &self.serving.first_token;
        let parts = first.parts().map(|(part, ms)| {
            let (how, names): (&'static str, &[&'static str]) = match part {
                FirstTokenPart::Slot => ("wait for a free batch slot", &["variability"]),
                FirstTokenPart::Queue => (
                    "wait for the current step and for earlier prompts; G/G/m, Allen–Cunneen",
                    &["variability", "boundary_steps"],
                ),
                FirstTokenPart::Burst => (
                    "wait behind other prompts, as requests that end together are replaced together",
                    &["burst_share", "burst_share_separate"],
                ),
                FirstTokenPart::Prefill => (
                    "prefill of the request itself, with decode in the same steps",
                    &["serving_products", "kernel_prefill"],
                ),
                FirstTokenPart::Overhead => {
                    ("accepting, tokenizing and the first response", &["request_overhead", "batched_steps"])
                }
            };
            let mut bearing =
                self.constants(&names.iter().copied().filter(|name| self.affects(name)).collect::<Vec<_>>());
            if part == FirstTokenPart::Overhead
                && self.whole.scenario.base.serving_defaults.admission == Admission::Polled
            {
                bearing.push(self.knob("n_poll", Knob::RecvInterval));
            }
            if part == FirstTokenPart::Prefill {
                bearing.extend([
                    self.prompt(),
                    self.knob("prefix_hit", Knob::PrefixHit),
                    self.knob("chunk", Knob::MaxNumBatchedTokens),
                ]);
                bearing.extend(self.stated_of_prefill());
            }
            Term::part("w", part, "ms", ms).from(Origin::Engine(how)).depending_on(bearing)
        });
        Term::stated("TTFT", "mean time to first token", "ms", value, sum(parts))
    }

    /// Time per output token, with the terms of the engine.
    pub(super) fn tpot(&self, value: f64) -> Term {
        let name = "time per output token after the first, mean over requests";
        let after = |tokens: f64| -> Term {
            let output = self.output();
            Term::stated("n_after", "tokens after the first", "tok", tokens, output - 1.0)
        };
        let written: Written = match self.out.token_time {
            TokenTime::None => {
                return Term::input("TPOT", name, "ms", value).from(Origin::Engine("there is only one output token"));
            }
            TokenTime::SequenceDuration { seconds, before, tokens } => {
                let life: Written = self.life(seconds).into();
                let decoding = if before == 0.0 {
                    life
                } else {
                    life - Term::input("before", "part of t_life before the first token", "s", before)
                        .from(Origin::Engine("prefill of the request itself and waits within the batch"))
                };
                decoding * 1000.0 / after(tokens)
            }
            TokenTime::Interrupted { decoding, behind, interrupted, before_end, tokens } => {
                let decoding = Term::input("t_decode", "decode steps of a sequence without prompts", "s", decoding)
                    .from(Origin::Engine("steps of the running sequences"))
                    .depending_on(vec![self.token_time()]);
                let behind =
                    Term::input("t_behind", "prefill of prompts that arrived before its first token", "s", behind)
                        .from(Origin::Engine("arrivals during its wait and prefill"));
                let share =
                    Term::input("u_prefill", "share of the time for which others are prefilled", "", interrupted)
                        .from(Origin::Engine("arrivals per replica and second x prefill of one"));
                let whole = (Written::from(decoding.clone()) + behind) / (Written::from(1.0) - share);
                let seconds = if before_end == 1.0 {
                    whole
                } else {
                    let within =
                        Term::input("f_end", "share of the interruptions before the last token", "", before_end)
                            .from(Origin::Engine("each step computes at most the prompts of its token budget"));
                    Written::from(decoding.clone()) + (whole - decoding) * within
                };
                seconds * 1000.0 / after(tokens)
            }
            TokenTime::Steps { steps, seconds, tokens } => {
                let steps = Term::input("steps", "decode steps of a sequence", "", steps)
                    .from(Origin::Engine("tokens after the first / tokens per step"));
                let each = Term::input("t_step", "a decode step", "s", seconds)
                    .from(Origin::Engine("step of the running sequences"))
                    .depending_on(vec![self.token_time()]);
                let yielded = Term::input("n_after", "tokens generated by these steps", "tok", tokens)
                    .from(Origin::Engine("tokens after the first, or accepted drafts"));
                steps * each * 1000.0 / yielded
            }
        };
        let [_, correction, _] = self.corrections();
        let written = match correction {
            Some(factor) => written * factor,
            None => written,
        };
        Term::stated("TPOT", name, "ms", value, written)
    }

    /// End-to-end latency of a request. The equations are those of [`atlas_perf::serving::latency::end_to_end`].
    pub(super) fn whole_request(&self, at: fn(Spread) -> f64, what: &'static str, value: f64) -> Term {
        let term = |symbol: &'static str, name: String, value: f64, mean: Term| {
            Term::input(symbol, name, "ms", value)
                .from(Origin::Engine(
                    "from its distribution: queueing exponential, steps in flight and bursts uniform, prefill constant",
                ))
                .depending_on(vec![mean])
        };
        let (ttft, tpot) = (self.serving.ttft_ms, self.serving.tpot_ms);
        let lengths = self.input.output_lengths();
        let tokens = at(lengths);
        let output = || match tokens == lengths.mean {
            true => self.output(),
            false => Term::input("OSL_q", format!("output length, {what}"), "tok", tokens)
                .from(Origin::Engine("from its distribution: uniform up to twice the mean, Beta beyond"))
                .depending_on([vec![self.output()], self.stated(&[Knob::GenerateSpread, Knob::GenerateMax])].concat()),
        };
        // The percentile of requests of mean length, unless that of long outputs is higher.
        let long = ttft.mean + (tokens - 1.0) * tpot.mean;
        if tokens > lengths.mean && long > at(ttft) + (lengths.mean - 1.0) * at(tpot) {
            let written = self.ttft(ttft.mean) + (output() - 1.0) * self.tpot(tpot.mean);
            return Term::stated("E2E", "", "ms", value, written);
        }
        let output = if tokens > lengths.mean { self.output() } else { output() };
        let first = term("TTFT_q", format!("time to first token, {what}"), at(ttft), self.ttft(ttft.mean));
        let next = term("TPOT_q", format!("time per output token, {what}"), at(tpot), self.tpot(tpot.mean));
        Term::stated("E2E", "", "ms", value, first + (output - 1.0) * next)
    }
}
