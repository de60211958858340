//! Rates and times of requests: the turnover of a replica, TTFT, TPOT, and the time to the last token.

use super::Reported;
use crate::explain::expression::{Written, sum};
use crate::explain::{Origin, Term};
use crate::knob::Knob;
use atlas_perf::serving::Admission;
use atlas_perf::serving::terms::{Rate, TokenTime};

impl Reported<'_> {
    /// For which a sequence runs: the time of a token, for every token.
    pub(super) fn life(&self, seconds: f64) -> Term {
        let [_, tpot, _] = self.corrections();
        let all = self.token_time() * self.output();
        let all = match tpot {
            Some(factor) => all / factor,
            None => all,
        };
        Term::stated("t_life", "time for which a sequence runs", "s", seconds, all)
    }

    /// Requests per second of the deployment, as the engine computed them.
    pub(super) fn requests(&self) -> Written {
        let term = |symbol: &'static str, name: &'static str, unit: &'static str, value: f64, how: &'static str| {
            Term::input(symbol, name, unit, value).from(Origin::Engine(how))
        };
        // Factors of 1 are left out.
        let times = |written: Written, factor: Term| if factor.value == 1.0 { written } else { written * factor };
        let busy = |share| term("busy", "share of the replicas that have work", "", share, "requests over replicas");
        let drained = |share| {
            let how = "work of the run over that and the drain at its end";
            term("drained", "share of the rate that the end of the run leaves", "", share, how)
        };
        let replicas = self.knob("dp", Knob::Dp);
        let pools = self.input.pools.is_some();
        let of_all = |written: Written| if pools { written } else { replicas.clone() * written };
        let written = match self.out.rate {
            Rate::None => Written::from(0.0),
            Rate::Turnover { busy: share, sequences, seconds, between, drained: left } => {
                let running = Term { value: sequences, ..self.batch() };
                let life: Written = self.life(seconds).into();
                let cycle = if between == 0.0 {
                    life
                } else {
                    let name = "time between a sequence and the one that takes its place";
                    life + term("t_gap", name, "s", between, "front end").borne(self.constants(&["request_overhead"]))
                };
                of_all(times(times(running / cycle, busy(share)), drained(left)))
            }
            Rate::FrontEnd { busy: share, most, drained: left } => {
                let most = term("R_front", "requests that the front end takes", "req/s", most, "one after the other")
                    .borne(self.constants(&["front_end"]));
                of_all(times(times(most.into(), busy(share)), drained(left)))
            }
            Rate::PrefillPool { replicas, seconds } => {
                let count = term("n_prefill", "replicas that prefill", "", replicas, "of the prefill pool");
                let each =
                    term("t_prefill", "time for which one works on a request", "s", seconds, "its prompt, alone");
                count / each
            }
            Rate::Run { requests, seconds } => {
                let count = term("n_req", "requests of the run, a replica", "req", requests, "of the load");
                let length = term("t_run", "from the first request to the last answer", "s", seconds, "in turns")
                    .borne(vec![self.token_time(), self.batch()]);
                of_all(count / length)
            }
            Rate::Arrivals(_) => self.knob("request_rate", Knob::RequestRate).into(),
        };
        match self.corrections() {
            [Some(factor), ..] => written * factor,
            _ => written,
        }
    }

    /// The parts of the time to first token at its 99th percentile.
    pub(super) fn ttft_p99(&self, value: f64) -> Term {
        let [_, _, correction] = self.corrections();
        let first = self.out.first_token.p99();
        let names = [
            ("slot", first.slot, "waiting for a sequence to end"),
            ("queue", first.queue, "of an exponential distribution"),
            ("burst", first.burst, "of an even distribution"),
            ("prefill", first.prefill, "the own prompt"),
            ("overhead", first.overhead, "accepting, tokenizing, the first response"),
        ];
        let parts = names.into_iter().filter(|(_, seconds, _)| *seconds != 0.0).map(|(name, seconds, how)| {
            Term::input(format!("w_{name}"), format!("{name}, 99th percentile"), "ms", seconds * 1e3)
                .from(Origin::Engine(how))
        });
        let all = sum(parts);
        let all = match correction {
            Some(factor) => all * factor,
            None => all,
        };
        Term::stated("TTFT_p99", "", "ms", value, all).borne(vec![self.ttft(self.serving.ttft_ms[0])])
    }

    pub(super) fn ttft(&self, value: f64) -> Term {
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
                    ("the own prompt, in the company of decoding sequences", &["serving_products", "kernel_prefill"])
                }
                "overhead" => ("accepting, tokenizing, the first response", &["request_overhead", "batched_steps"]),
                _ => ("the engine's figure", &[]),
            };
            let mut bearing =
                self.constants(&names.iter().copied().filter(|name| self.bears(name)).collect::<Vec<_>>());
            if name == "overhead" && self.whole.scenario.base.served.admission == Admission::Polled {
                bearing.push(self.knob("n_poll", Knob::RecvInterval));
            }
            if name == "prefill" {
                bearing.extend([
                    self.prompt(),
                    self.knob("prefix_hit", Knob::PrefixHit),
                    self.knob("chunk", Knob::MaxNumBatchedTokens),
                ]);
                bearing.extend(self.stated_of_prefill());
            }
            Term::input(format!("w_{name}"), name, "ms", ms).from(Origin::Engine(how)).borne(bearing)
        });
        Term::stated("TTFT", "mean time to first token", "ms", value, sum(parts))
    }

    /// Time per output token, as the engine computed it.
    pub(super) fn tpot(&self, value: f64) -> Term {
        let name = "time per output token after the first, mean over requests";
        let after = |tokens: f64| -> Term {
            let output = self.output();
            Term::stated("n_after", "tokens after the first", "tok", tokens, output - 1.0)
        };
        let written: Written = match self.out.token_time {
            TokenTime::None => {
                return Term::input("TPOT", name, "ms", value).from(Origin::Engine("no token follows the first"));
            }
            TokenTime::Life { seconds, before, tokens } => {
                let life: Written = self.life(seconds).into();
                let decoding = if before == 0.0 {
                    life
                } else {
                    life - Term::input("before", "of that, before the first token", "s", before)
                        .from(Origin::Engine("own prefill, and waits that the cycle of a replica holds"))
                };
                decoding * 1000.0 / after(tokens)
            }
            TokenTime::Steps { steps, seconds, tokens } => {
                let steps = Term::input("steps", "decode steps of a sequence", "", steps)
                    .from(Origin::Engine("tokens after the first over the tokens that a step yields"));
                let each = Term::input("t_step", "a decode step", "s", seconds)
                    .from(Origin::Engine("of the sequences that run"))
                    .borne(vec![self.token_time()]);
                let yielded = Term::input("n_after", "tokens that these steps yield", "tok", tokens)
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

    /// From request to last token.
    pub(super) fn whole_request(&self, quantile: usize, what: &'static str, value: f64) -> Term {
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
}
