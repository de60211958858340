//! Input of a serving simulation: plain data.

use crate::kernel::{Distribution, MAX_EVENTS};
use crate::range::{OutOfRange, Ranges};
use atlas_perf::constants::Constants;
use atlas_perf::serving::machine::Machine;
use atlas_perf::serving::{Load, ServingInput, kv};
use thiserror::Error;

/// A deployment, its load, and its latency limits.
///
/// Settings of the engine are in [`Input::system`]: `max_num_seqs`, `max_num_batched_tokens`, `memory_utilization`,
/// `chunked_prefill`, `layout.dp` (replicas), `speculation`, `pools`. Its `isl`, `osl` and `load` are ignored in favor
/// of [`Input::lengths`] and [`Input::arrivals`].
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Accelerator, model, layout, formats, runtime and scheduler.
    pub system: ServingInput,
    /// Constants of the step time model.
    pub constants: Constants,
    /// Arrival process of requests.
    pub arrivals: Arrivals,
    /// Maximum number of concurrent requests over all replicas; the client holds back the rest. `None`: no limit.
    pub max_in_flight: Option<u64>,
    /// Lengths of prompts and outputs. Ignored for traces, which have their own.
    pub lengths: Lengths,
    /// Prefixes that prompts share.
    pub prefixes: Prefixes,
    /// Number of requests of the run; a trace or a schedule may have fewer.
    pub requests: u32,
    /// Number of first requests that are served but not counted, because the system starts empty.
    pub warm_up: u32,
    /// Tokens of a KV block (`block_size`).
    pub block_size: u32,
    /// Maximum prompt tokens of one request in a step, where limited (`long_prefill_token_threshold`).
    pub long_prefill_token_threshold: Option<u32>,
    /// Whether requests pass through the front end (HTTP, tokenization), which takes time. Otherwise they go directly
    /// to the engine, as in an offline batch.
    pub front_end: bool,
    /// Whether prompts arrive with their KV cache, so that only decoding is simulated.
    pub prefilled: bool,
    /// Whether the first requests of a closed load start at different positions in their outputs, as in a steady state.
    /// Otherwise all start together and, if they are identical, stay synchronized.
    pub staggered: bool,
    /// How requests are assigned to replicas.
    pub router: Router,
    /// Autoscaling of replicas, starting from the layout's `dp`.
    pub autoscaling: Option<Autoscaling>,
    /// Latency limits for goodput.
    pub slo: Slo,
    /// Maximum number of events of a run.
    pub max_events: u64,
}

/// Arrival process of requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// A Poisson process.
    Poisson {
        /// Requests per second.
        rate: f64,
    },
    /// Gamma-distributed gaps.
    Gamma {
        /// Requests per second.
        rate: f64,
        /// Standard deviation of a gap over its mean: 1 is Poisson, more is burstier.
        cv: f64,
    },
    /// Phases of a schedule, one after the other.
    Phases(Vec<Phase>),
    /// All requests at time zero.
    Burst,
    /// A constant number of concurrent requests: each request that finishes is immediately replaced.
    Closed {
        /// Number of concurrent requests.
        concurrency: u32,
    },
    /// A recorded trace, in order of time.
    Trace(Vec<TraceRequest>),
}

/// One phase of a schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Its length, seconds.
    pub seconds: f64,
    /// Requests per second; may be 0.
    pub rate: f64,
    /// Standard deviation of a gap over its mean.
    pub cv: f64,
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceRequest {
    /// Seconds after the trace's beginning.
    pub seconds: f64,
    /// Prompt tokens.
    pub isl: u32,
    /// Output tokens.
    pub osl: u32,
    /// Names of the successive pieces of the prompt, of the length given in [`Prefixes::Trace`]. Prompts with equal
    /// names up to some position share this prefix (Mooncake's `hash_ids`, arXiv 2407.00079).
    pub prefix: Vec<u64>,
}

/// Lengths in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lengths {
    /// Prompt.
    pub isl: Distribution,
    /// Output.
    pub osl: Distribution,
    /// Maximum length of prompt and output together (`max_model_len`); longer requests are truncated. `None`: no limit.
    pub max_model_len: Option<u32>,
}

/// Prefixes that prompts share and that may be in the prefix cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prefixes {
    /// No shared prefixes, or the prefix cache is off.
    None,
    /// This share of every prompt is cached, as with `prefix_hit` of the analytical engine.
    Share(f64),
    /// Requests belong to groups that share the beginning of their prompts (system prompts, documents); a block-wise
    /// cache with least-recently-used eviction determines the hits.
    Groups {
        /// Number of groups.
        groups: u32,
        /// Shared tokens of a group.
        tokens: Distribution,
        /// Popularity: the k-th group is requested in proportion to k^-skew (Zipf); 0 = all equally.
        skew: f64,
    },
    /// Prefixes named in the trace.
    Trace {
        /// Tokens of one named piece (Mooncake: 512).
        piece: u32,
    },
}

/// How requests are assigned to replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Router {
    /// In turn.
    RoundRobin,
    /// At random.
    Random,
    /// To the replica with the fewest requests.
    #[default]
    LeastRequests,
    /// To the less loaded of two drawn at random (Mitzenmacher, IEEE TPDS 12 (2001)).
    TwoChoices,
    /// By a hash of the prompt's first piece, so that equal prefixes go to the same replica.
    PrefixAffinity,
}

/// Autoscaling of replicas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Autoscaling {
    /// Minimum replicas.
    pub min_replicas: u32,
    /// Maximum replicas.
    pub max_replicas: u32,
    /// Target number of concurrent requests per replica.
    pub target: f64,
    /// Seconds between two decisions.
    pub interval: f64,
    /// Seconds until a new replica serves: provisioning, loading of weights.
    pub start: f64,
    /// Seconds for which fewer replicas must have been enough before one is removed.
    pub scale_down_delay: f64,
}

/// Latency limits that a request must meet to count as good, seconds. `None`: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Slo {
    /// Time to first token.
    pub ttft: Option<f64>,
    /// Time per output token.
    pub tpot: Option<f64>,
    /// Time to last token.
    pub e2e: Option<f64>,
}

/// A problem of the input.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum Problem {
    /// A number is out of range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// A trace is not in order of time.
    #[error("request {index} of the trace arrives before the preceding one; sort the trace by arrival time")]
    TraceOrder {
        /// Index of the first request that is out of order, from 0.
        index: usize,
    },
    /// No memory is left for the KV cache.
    #[error(
        "no memory is left for the KV cache: one block needs {missing_bytes:.3e} more bytes per rank; use more ranks, \
         a narrower number format or a higher gpu_memory_utilization"
    )]
    NoKvMemory {
        /// Bytes per rank that are missing for one block.
        missing_bytes: f64,
    },
    /// Pieces of prefixes are not whole blocks.
    #[error(
        "the trace has prefix blocks of {piece} tokens, expected a multiple of block_size ({block}); choose another \
         block_size"
    )]
    Pieces {
        /// Tokens per piece.
        piece: u32,
        /// Tokens per block.
        block: u32,
    },
    /// The run exceeded its maximum number of events.
    #[error(
        "the simulation exceeded its maximum number of events: {left} of {requests} requests finished in {events} \
         events and {seconds:.3e} simulated seconds; use fewer requests, more tokens per step, or shorter prompts"
    )]
    Endless {
        /// Events handled.
        events: u64,
        /// Simulated seconds.
        seconds: f64,
        /// Requests that have finished.
        left: u64,
        /// Number of requests of the run.
        requests: u64,
    },
    /// Two settings cannot be combined.
    #[error("{what} cannot be simulated together; disable one of them")]
    Unsupported {
        /// The settings.
        what: &'static str,
    },
}

/// Maximum number of requests of a run: their records must fit in memory.
const MAX_REQUESTS: f64 = 50e6;
/// Maximum number of replicas of a run.
const MAX_REPLICAS: f64 = 65_536.0;

impl Input {
    /// Whether the outputs of equal requests differ a little. Attention groups compute whole prompts in parallel, and a
    /// request that arrives while others are computed begins and ends with them: without an end, all requests would
    /// meet and never part.
    #[must_use]
    pub fn spreads_outputs(&self) -> bool {
        let ends = matches!(self.system.load, Load::Closed { requests, .. } if requests.is_finite());
        self.staggered && self.system.pools.is_none() && self.system.layout.attention_dp > 1.0 && !ends
    }

    /// Returns the input that simulates the scenario of the analytical engine for `system`, with its load as arrivals
    /// and constant lengths. `requests` is the number of requests for loads without an end.
    pub fn of(system: &ServingInput, constants: &Constants, requests: u32) -> Input {
        let known = |n: f64| if n.is_finite() { n.max(1.0) as u32 } else { requests };
        let (arrivals, requests) = match system.load {
            Load::Static { batch } | Load::DecodeOnly { batch } | Load::PrefillOnly { batch } => {
                (Arrivals::Burst, known(batch))
            }
            Load::Closed { concurrency, requests } => {
                (Arrivals::Closed { concurrency: concurrency.round().max(1.0) as u32 }, known(requests))
            }
            Load::Burst { requests } => (Arrivals::Burst, known(requests)),
            Load::Open { rate } => (Arrivals::Poisson { rate }, requests),
        };
        Input {
            system: *system,
            constants: *constants,
            arrivals,
            max_in_flight: match system.load {
                Load::Open { .. } if system.max_in_flight.is_finite() => {
                    Some(system.max_in_flight.round().max(1.0) as u64)
                }
                _ => None,
            },
            lengths: Lengths {
                isl: Distribution::Constant(system.isl),
                // A prefill ends with its first token.
                osl: Distribution::Constant(match system.load {
                    Load::PrefillOnly { .. } => 1.0,
                    _ => system.osl,
                }),
                max_model_len: None,
            },
            prefixes: if system.prefix_hit > 0.0 { Prefixes::Share(system.prefix_hit) } else { Prefixes::None },
            requests,
            warm_up: 0,
            block_size: system.kv_block.get(),
            long_prefill_token_threshold: None,
            front_end: !matches!(system.load, Load::Static { .. } | Load::DecodeOnly { .. } | Load::PrefillOnly { .. }),
            prefilled: matches!(system.load, Load::DecodeOnly { .. }),
            staggered: false,
            router: Router::default(),
            autoscaling: None,
            slo: Slo::default(),
            max_events: MAX_EVENTS,
        }
    }

    /// Returns all problems of the input.
    pub fn problems(&self) -> Vec<Problem> {
        let mut out = Vec::new();
        let mut ranges = Ranges::default();
        let r = &mut ranges;
        let s = &self.system;
        r.check("requests", f64::from(self.requests), 1.0, MAX_REQUESTS);
        r.check("warm_up", f64::from(self.warm_up), 0.0, f64::from(self.requests.saturating_sub(1)));
        r.check("block_size", f64::from(self.block_size), 1.0, 65_536.0);
        if let Some(most) = s.max_num_seqs {
            r.check("max_num_seqs", most.into(), 1.0, f64::INFINITY);
        }
        r.check("max_num_batched_tokens", s.max_num_batched_tokens, 1.0, f64::INFINITY);
        r.check("gpu_memory_utilization", s.memory_utilization, 0.05, 1.0);
        r.check("draft tokens", f64::from(s.speculation.tokens), 0.0, 64.0);
        r.check("acceptance rate of draft tokens", s.speculation.acceptance, 0.0, 1.0);
        r.check("decline of the acceptance rate", s.speculation.decline, 0.0, 1.0);
        r.check("dp", f64::from(s.layout.dp), 1.0, MAX_REPLICAS);
        match &self.arrivals {
            Arrivals::Poisson { rate } => r.positive("rate", *rate),
            Arrivals::Gamma { rate, cv } => {
                r.positive("rate", *rate);
                r.check("coefficient of variation of the arrivals", *cv, 0.0, 100.0);
            }
            Arrivals::Phases(phases) => {
                r.positive("number of phases", phases.len() as f64);
                for phase in phases {
                    r.positive("duration of a phase in seconds", phase.seconds);
                    r.check("request rate of a phase", phase.rate, 0.0, 1e9);
                    r.check("coefficient of variation of a phase", phase.cv, 0.0, 100.0);
                }
            }
            Arrivals::Burst => {}
            Arrivals::Closed { concurrency } => r.positive("concurrency", f64::from(*concurrency)),
            Arrivals::Trace(trace) => {
                r.positive("number of requests in the trace", trace.len() as f64);
                let back = trace.windows(2).position(|pair| matches!(pair, [a, b] if b.seconds < a.seconds));
                out.extend(back.map(|index| Problem::TraceOrder { index: index + 1 }));
            }
        }
        match self.prefixes {
            Prefixes::None => {}
            Prefixes::Share(share) => r.check("prefix cache hit rate", share, 0.0, 1.0),
            Prefixes::Groups { groups, skew, .. } => {
                r.check("number of prefix groups", f64::from(groups), 1.0, 1e6);
                r.check("skew of the prefix groups", skew, 0.0, 10.0);
            }
            Prefixes::Trace { piece } => {
                r.check("tokens per prefix block of the trace", f64::from(piece), 1.0, 1e6);
                if !piece.is_multiple_of(self.block_size.max(1)) {
                    out.push(Problem::Pieces { piece, block: self.block_size });
                }
            }
        }
        if let Some(a) = &self.autoscaling {
            r.check("minimum number of replicas", f64::from(a.min_replicas), 1.0, f64::from(a.max_replicas));
            r.check("maximum number of replicas", f64::from(a.max_replicas), 1.0, MAX_REPLICAS);
            r.positive("target number of requests per replica", a.target);
            r.positive("interval between scaling decisions in seconds", a.interval);
            r.check("startup time of a replica in seconds", a.start, 0.0, 1e6);
            r.check("scale-down delay in seconds", a.scale_down_delay, 0.0, 1e6);
            if s.pools.is_some() {
                out.push(Problem::Unsupported { what: "autoscaling and separate prefill and decode pools" });
            }
        }
        self.check_kv_memory(&mut out);
        out.extend(ranges.0.into_iter().map(Problem::from));
        out
    }

    /// Checks that the memory of each pool holds at least one block.
    fn check_kv_memory(&self, out: &mut Vec<Problem>) {
        let s = &self.system;
        let layouts = s.pools.map_or([Some(s.layout), None], |p| [Some(p.prefill), Some(p.decode)]);
        for layout in layouts.into_iter().flatten() {
            let machine = Machine::new(s, &layout, &self.constants);
            let capacity = kv::capacity(s, &layout, &machine.shape, &self.constants);
            let block = f64::from(self.block_size) * machine.shape.kv_bytes_token;
            // Also if the result is NaN.
            if capacity.free_bytes.is_nan() || capacity.free_bytes < block {
                out.push(Problem::NoKvMemory { missing_bytes: block - capacity.free_bytes });
            }
        }
    }
}
