//! Arrivals, lengths and prefixes of requests. Each request is drawn from its own random streams, so that compared
//! systems receive the same requests.

use super::input::{Arrivals, Input, Phase, Prefixes};
use crate::kernel::{Distribution, Stream, Time};
use atlas_core::count::Count;
use atlas_core::math;
use atlas_perf::serving::bursts;

/// Purposes of the random streams.
const ARRIVAL_STREAM: u32 = 0;
const LENGTHS: u32 = 1;
const GROUPS: u32 = 2;
const GROUP_LENGTHS: u32 = 3;

/// Share by which the outputs of equal requests differ where they must not stay together.
const SPREAD: f64 = 0.05;

/// Longest prompt or output that is simulated, tokens.
const MAX_TOKENS: u32 = 1 << 29;

/// Lengths and prefix of an arriving request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Prompt tokens, at least 1.
    pub isl: u32,
    /// Output tokens, at least 1.
    pub osl: u32,
    /// Names of the shared pieces of the prompt in [`Workload::names`]: first and count.
    pub prefix: (u32, u32),
    /// Whether its output starts at the beginning.
    pub whole: bool,
}

/// Draws requests in order.
#[derive(Debug, Clone)]
pub struct Workload<'a> {
    input: &'a Input,
    seed: u64,
    gaps: Stream,
    /// Seconds since the beginning; operational time if the load is a schedule of phases.
    clock: f64,
    next: u32,
    /// Names of the shared pieces of all requests, concatenated.
    names: Vec<u64>,
    /// Range of the names of each group, and the cumulative popularity.
    groups: Vec<((u32, u32), f64)>,
}

impl<'a> Workload<'a> {
    /// Creates a workload positioned before the first request.
    pub fn new(input: &'a Input, seed: u64) -> Self {
        let mut out = Workload {
            input,
            seed,
            gaps: Stream::new(seed, ARRIVAL_STREAM, 0),
            clock: 0.0,
            next: 0,
            names: Vec::new(),
            groups: Vec::new(),
        };
        if let Prefixes::Groups { groups, tokens, skew } = input.prefixes {
            out.form_groups(groups, tokens, skew);
        }
        out
    }

    /// Number of requests of the run.
    pub fn total(&self) -> u32 {
        match &self.input.arrivals {
            Arrivals::Trace(trace) => self.input.requests.min(trace.len() as u32),
            _ => self.input.requests,
        }
    }

    /// Tokens per shared piece.
    pub fn piece(&self) -> u32 {
        match self.input.prefixes {
            Prefixes::Trace { piece } => piece,
            _ => self.input.block_size,
        }
    }

    /// Names of the shared pieces of a request.
    pub fn names(&self, (first, count): (u32, u32)) -> &[u64] {
        self.names.get(first as usize..first as usize + count as usize).unwrap_or(&[])
    }

    /// Time of the next arrival of an open load, or of the initial requests of a closed one; `None` after the last.
    pub fn arrival(&mut self) -> Option<Time> {
        if self.next >= self.total() {
            return None;
        }
        match &self.input.arrivals {
            Arrivals::Poisson { rate } => {
                self.clock += self.gaps.exponential() / rate;
                Some(Time::from_seconds(self.clock))
            }
            Arrivals::Gamma { rate, cv } => {
                self.clock += Distribution::Gamma { mean: 1.0 / rate, cv: *cv }.draw(&mut self.gaps);
                Some(Time::from_seconds(self.clock))
            }
            Arrivals::Phases(phases) => {
                let (clock, at) = next_in_phases(phases, self.clock, &mut self.gaps)?;
                self.clock = clock;
                Some(Time::from_seconds(at))
            }
            Arrivals::Burst => Some(Time::ZERO),
            Arrivals::Closed { concurrency } => (self.next < *concurrency).then_some(Time::ZERO),
            Arrivals::Trace(trace) => trace.get(self.next as usize).map(|r| Time::from_seconds(r.seconds)),
        }
    }

    /// Draws the next request and counts it.
    pub fn demand(&mut self) -> Demand {
        let index = self.next;
        self.next += 1;
        if let Arrivals::Trace(trace) = &self.input.arrivals
            && let Some(r) = trace.get(index as usize)
        {
            let named = matches!(self.input.prefixes, Prefixes::Trace { .. });
            let prefix = if named { self.add_names(r.prefix.iter().copied()) } else { (0, 0) };
            return Demand { isl: r.isl.clamp(1, MAX_TOKENS), osl: r.osl.clamp(1, MAX_TOKENS), prefix, whole: true };
        }
        let mut stream = Stream::new(self.seed, LENGTHS, index);
        let lengths = &self.input.lengths;
        let longest = f64::from(lengths.max_model_len.unwrap_or(MAX_TOKENS).clamp(2, MAX_TOKENS));
        let draw = |law: &Distribution, stream: &mut Stream, most: f64| law.draw(stream).round().clamp(1.0, most);
        let isl = draw(&lengths.isl, &mut stream, longest - 1.0);
        let mut osl = draw(&lengths.osl, &mut stream, longest - isl);
        let mut whole = true;
        if let (Arrivals::Closed { concurrency }, true) = (&self.input.arrivals, self.input.staggered) {
            if self.input.spreads_outputs() {
                osl = (osl * (1.0 + SPREAD * (2.0 * stream.uniform() - 1.0))).round().max(1.0);
            }
            if index < *concurrency {
                whole = false;
                osl = (osl * self.remaining_share(index, *concurrency)).ceil().max(1.0);
            }
        }
        let prefix = self.group_of(index);
        Demand { isl: isl as u32, osl: osl as u32, prefix, whole }
    }

    /// Share of the output that is left for request `index` of a closed load that is already in its steady state.
    ///
    /// At a random moment, the remaining share of a length is uniformly distributed (residual life in renewal theory;
    /// Cox, *Renewal Theory*, 1962). But some of the requests that began together are still synchronized: those of one
    /// burst have the same share left, and the shares of the bursts are evenly spaced.
    fn remaining_share(&self, index: u32, concurrency: u32) -> f64 {
        let system = &self.input.system;
        let replicas = system.pools.map_or(system.layout.dp, |pools| pools.prefill.dp).max(Count::ONE);
        let each = (f64::from(concurrency) / replicas).max(1.0);
        let share = bursts::later_burst_share(system, &self.input.constants);
        let together = 1.0 + share * (each - 1.0);
        let bursts = (each / together).round().max(1.0);
        // Requests are assigned to the replicas in turn.
        let burst = (f64::from(index) / replicas).floor() % bursts;
        (burst + 0.5) / bursts
    }

    fn add_names(&mut self, names: impl Iterator<Item = u64>) -> (u32, u32) {
        let first = self.names.len();
        self.names.extend(names);
        (first as u32, (self.names.len() - first) as u32)
    }

    fn form_groups(&mut self, groups: u32, tokens: Distribution, skew: f64) {
        let piece = f64::from(self.piece());
        let mut popularity = 0.0;
        for group in 0..groups {
            let mut stream = Stream::new(self.seed, GROUP_LENGTHS, group);
            let pieces = (tokens.draw(&mut stream).min(1e7) / piece) as u64;
            let range = self.add_names((0..pieces).map(|k| u64::from(group) << 32 | k));
            popularity += math::powf(f64::from(group + 1), -skew);
            self.groups.push((range, popularity));
        }
    }

    fn group_of(&self, index: u32) -> (u32, u32) {
        let Some(&(_, all)) = self.groups.last() else { return (0, 0) };
        let at = Stream::new(self.seed, GROUPS, index).uniform() * all;
        let group = self.groups.partition_point(|&(_, upto)| upto < at);
        self.groups.get(group).map_or((0, 0), |g| g.0)
    }
}

/// Returns the next arrival after the operational time `clock`, as operational time and real time, s. In operational
/// time the rate is always 1. Returns `None` past the end of the schedule.
fn next_in_phases(phases: &[Phase], clock: f64, gaps: &mut Stream) -> Option<(f64, f64)> {
    let mut done = 0.0;
    let cv = phases
        .iter()
        .find(|phase| {
            done += phase.rate * phase.seconds;
            clock < done
        })?
        .cv;
    let clock = clock + Distribution::Gamma { mean: 1.0, cv }.draw(gaps);
    let (mut work, mut seconds) = (0.0, 0.0);
    for phase in phases {
        let here = phase.rate * phase.seconds;
        if clock < work + here {
            return Some((clock, seconds + (clock - work) / phase.rate));
        }
        work += here;
        seconds += phase.seconds;
    }
    None
}
