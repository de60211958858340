//! Deployment and load of a serving simulation.

use super::super::options::Options;
use super::super::words::{ArrivalsWord, Millis};
use super::super::{serving, trace};
use crate::engine::answer;
use crate::knob::Knob;
use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::units;
use atlas_perf::constants::Constants;
use atlas_perf::serving as closed;
use atlas_perf::serving::{Load, ServingInput};
use atlas_sim::serving as event_serving;
use atlas_sim::serving::{Arrivals, Autoscaling, Phase, Prefixes, Slo};

/// Default offered load relative to the capacity: high utilization without an unbounded queue.
const USUAL_LOAD: f64 = 0.8;
/// Default number of counted requests.
const REQUESTS: u32 = 2000;
/// Default maximum number of requests of a trace.
const MAX_REQUESTS: u32 = 200_000;
/// Default number of requests of a schedule: enough to cover every phase within seconds of computing.
const SCHEDULED_REQUESTS: u32 = 20_000;

pub(super) fn serving_input(
    scenario: &Scenario,
    system: &ServingInput,
    options: &Options,
    notes: &mut Vec<String>,
    problems: &mut Vec<String>,
) -> event_serving::Input {
    let constants = answer::throttle::serving(scenario, system);
    let closed = closed::estimate(system, &constants);
    let traced = matches!(options.arrivals, Some(ArrivalsWord::Trace(_)));
    let reused = answer::event::serving::with_hits_of_conversations(system, &constants, &closed);
    let system = if traced { system } else { &reused };
    notes.extend(reuse_notes(scenario, system, traced));
    let mut input = event_serving::Input::of(system, &constants, REQUESTS);
    if let Some(isl) = options.isl {
        input.lengths.isl = isl.0;
    }
    if let Some(osl) = options.osl {
        input.lengths.osl = osl.0;
    }
    input.lengths.max_model_len = options.max_model_len;
    input.block_size = options.block_size.unwrap_or(input.block_size);
    input.router = options.router.map_or(input.router, |router| router.0);
    let limit = |millis: Option<Millis>| millis.map(|millis| millis.0);
    input.slo = Slo { ttft: limit(options.slo_ttft), tpot: limit(options.slo_tpot), e2e: limit(options.slo_e2e) };
    input.autoscaling = options.autoscale.map(|scale| Autoscaling {
        min_replicas: scale.least,
        max_replicas: scale.most,
        target: scale.target,
        ..AUTOSCALING
    });
    input.system.isl = input.lengths.isl.mean();
    input.system.osl = input.lengths.osl.mean();
    arrive(scenario, &mut input, options, notes, problems);
    notes.extend(overload(&input));
    let alike = input.lengths.isl.cv() <= 0.0 && input.lengths.osl.cv() <= 0.0;
    input.staggered = alike && matches!(input.arrivals, Arrivals::Closed { .. });
    let all = match &input.arrivals {
        Arrivals::Trace(trace) => Some((trace.len() as u32).min(MAX_REQUESTS)),
        Arrivals::Phases(phases) => {
            let expected: f64 = phases.iter().map(|phase| phase.rate * phase.seconds).sum();
            let requests = f64::from(options.requests.unwrap_or(SCHEDULED_REQUESTS));
            let by = (requests / expected.max(1.0)).min(1.0);
            if by < 1.0 {
                notes.push(format!(
                    "the schedule has about {expected:.0} requests; every phase is shortened to {:.3} % of its length, so that \
                     about {requests} come (--requests for more)",
                    100.0 * by
                ));
                let shorter = phases.iter().map(|phase| Phase { seconds: by * phase.seconds, ..*phase });
                input.arrivals = Arrivals::Phases(shorter.collect());
            }
            // The number of arrivals is random: allow a margin over the expected number.
            Some((1.2 * by * expected + 100.0) as u32)
        }
        // A batch or burst consists of the requests of the load, or, for a closed load, of as many as are concurrent.
        Arrivals::Burst => Some(match (&options.arrivals, system.load) {
            (Some(ArrivalsWord::Burst), Load::Closed { concurrency, .. }) => concurrency.round().max(1.0) as u32,
            _ => input.requests,
        }),
        _ => None,
    };
    let requested = options.requests.filter(|_| !matches!(input.arrivals, Arrivals::Phases(_)));
    let counted = requested.or(all).unwrap_or(REQUESTS);
    let warm_up = options.warm_up.unwrap_or(match (&input.arrivals, all) {
        // The requests of a closed load stay in lockstep until every slot was reused twice.
        (Arrivals::Closed { concurrency }, _) => concurrency.saturating_mul(2).min(counted),
        (_, Some(_)) => 0,
        _ => counted / 10,
    });
    (input.requests, input.warm_up) = match (&input.arrivals, all) {
        (Arrivals::Trace(_), _) => (counted.max(1), warm_up),
        _ => (counted.saturating_add(warm_up), warm_up),
    };
    input
}

/// Notes on conversations and tiers of the KV cache, which the simulation does not follow block by block.
fn reuse_notes(scenario: &Scenario, system: &ServingInput, traced: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let conversations = scenario.base.conversations().is_some();
    if conversations && traced {
        notes.push("conversations have no effect: the trace states which requests share a prefix".to_owned());
    } else if conversations {
        notes.push(format!(
            "conversations are not followed one by one: {} of the prompt tokens are cached, as the closed form estimates",
            units::percent(system.prefix_hit)
        ));
    }
    let tiers = [Knob::KvHostGb, Knob::KvSsdGb, Knob::KvRemoteGb];
    let tiers = tiers.into_iter().zip(scenario.base.kv_tiers()).filter(|(_, tier)| tier.bytes > 0.0);
    let tiers: Vec<&str> = tiers.map(|(knob, _)| knob.name()).collect();
    if !tiers.is_empty() && (traced || !conversations) {
        notes.push(format!(
            "{} not simulated: blocks that leave the memory of the accelerators are lost",
            if tiers.len() == 1 { format!("{} is", tiers.join("")) } else { format!("{} are", tiers.join(" and ")) }
        ));
    }
    notes
}

/// Default autoscaling. The intervals are those of Kubernetes' horizontal autoscaler (15 s between decisions, 300 s
/// until scaling down). A replica starts in 120 s, the time in which a node loads the weights of a 70B model.
const AUTOSCALING: Autoscaling = Autoscaling {
    min_replicas: 1,
    max_replicas: 1,
    target: 1.0,
    interval: 15.0,
    start: 120.0,
    scale_down_delay: 300.0,
};

/// Replicas that the accelerators of the target hold.
pub(super) fn replicas_held(scenario: &Scenario) -> f64 {
    let dies = scenario.machine.map_or(1.0, |machine| machine.dies);
    let replica = scenario.working_devices() / scenario.base.shape.dp.max(Count::ONE);
    (scenario.accelerators() * dies / replica.max(1.0)).floor().max(1.0)
}

/// Error if more replicas may start than the target holds.
pub(super) fn too_many_replicas(input: &event_serving::Input, held: f64) -> Option<String> {
    let most = input.autoscaling?.max_replicas;
    (f64::from(most) > held)
        .then(|| format!("--autoscale: found {most} replicas, expected at most the {held} that the target holds"))
}

/// Note that a run ends before autoscaling takes effect.
pub(super) fn autoscaling_note(input: &event_serving::Input) -> Option<String> {
    let scaling = input.autoscaling?;
    let seconds = f64::from(input.requests) / serving::offered(input)?;
    (seconds < scaling.scale_down_delay).then(|| {
        format!(
            "the requests arrive within {}: a replica starts in {}, and stops after {} of low load (more --requests)",
            units::duration(seconds),
            units::duration(scaling.start),
            units::duration(scaling.scale_down_delay)
        )
    })
}

/// Sets the arrivals: those of the options, otherwise the workload's schedule, rate or concurrency.
fn arrive(
    scenario: &Scenario,
    input: &mut event_serving::Input,
    options: &Options,
    notes: &mut Vec<String>,
    problems: &mut Vec<String>,
) {
    let (system, constants) = (input.system, input.constants);
    let stated = options.rate.or(match system.load {
        Load::Open { rate } => Some(rate),
        _ => None,
    });
    let mut open = |own: Option<f64>| {
        own.or(stated).unwrap_or_else(|| {
            let rate = USUAL_LOAD * capacity(&system, &constants);
            notes.push(format!(
                "the request rate is not set: using {rate:.3} requests/s, {USUAL_LOAD} of what the deployment can serve \
                 (--rate, or knob request_rate)"
            ));
            rate
        })
    };
    let scheduled = !scenario.phases.is_empty() && scenario.phases.iter().all(|p| p.shape.mode == Mode::Inference);
    let fixed = |problems: &mut Vec<String>| {
        if options.rate.is_some() {
            problems.push("--rate requires open arrivals: poisson or gamma".to_owned());
        }
    };
    match options.arrivals.clone() {
        None if options.rate.is_some() => input.arrivals = Arrivals::Poisson { rate: open(None) },
        None if scheduled => input.arrivals = Arrivals::Phases(phases(scenario, &system, &constants)),
        None => {}
        Some(ArrivalsWord::Poisson(own)) => input.arrivals = Arrivals::Poisson { rate: open(own) },
        Some(ArrivalsWord::Gamma(cv, own)) => input.arrivals = Arrivals::Gamma { rate: open(own), cv },
        Some(ArrivalsWord::Closed(own)) => {
            fixed(problems);
            let concurrency = own.unwrap_or_else(|| scenario.concurrency(&scenario.base).round().max(1.0) as u32);
            input.arrivals = Arrivals::Closed { concurrency };
        }
        Some(ArrivalsWord::Burst) => {
            fixed(problems);
            input.arrivals = Arrivals::Burst;
        }
        Some(ArrivalsWord::Schedule) => {
            fixed(problems);
            if scheduled {
                input.arrivals = Arrivals::Phases(phases(scenario, &system, &constants));
            } else {
                problems.push("--arrivals schedule: the workload has no serving schedule".to_owned());
            }
        }
        Some(ArrivalsWord::Trace(file)) => {
            fixed(problems);
            for (flag, given) in [("--isl", options.isl.is_some()), ("--osl", options.osl.is_some())] {
                if given {
                    problems
                        .push(format!("{flag} does not apply to a trace, which states the lengths of its requests"));
                }
            }
            match trace::read(&file) {
                Ok(requests) => {
                    // Mooncake's traces, the only ones with prefix blocks, use blocks of 512 tokens.
                    if requests.iter().any(|request| !request.prefix.is_empty()) {
                        input.prefixes = Prefixes::Trace { piece: 512 };
                    }
                    if let Some(requested) = options.requests.filter(|requested| *requested as usize > requests.len()) {
                        notes.push(format!("--requests {requested}: the trace has only {} requests", requests.len()));
                    }
                    input.arrivals = Arrivals::Trace(requests);
                }
                Err(problem) => problems.push(format!("--arrivals: {problem}")),
            }
        }
    }
}

/// Note that an open load exceeds the capacity.
fn overload(input: &event_serving::Input) -> Option<String> {
    let rate = match &input.arrivals {
        Arrivals::Poisson { rate } | Arrivals::Gamma { rate, .. } => *rate,
        Arrivals::Phases(phases) => phases.iter().map(|phase| phase.rate).fold(0.0, f64::max),
        _ => return None,
    };
    let capacity = capacity(&input.system, &input.constants);
    let scales = input.autoscaling.is_some_and(|scaling| f64::from(scaling.max_replicas) > input.system.layout.dp);
    (rate > capacity && input.max_in_flight.is_none() && !scales).then(|| {
        let whole = if matches!(input.arrivals, Arrivals::Phases(_)) { " in its busiest phase" } else { "" };
        format!(
            "overload{whole}: {rate:.3} requests/s arrive, but at most {capacity:.3} can be served, so the queue grows without bound, \
             and latencies only say how long the run was"
        )
    })
}

/// Requests per second that the deployment can serve, by the closed form.
fn capacity(system: &ServingInput, constants: &Constants) -> f64 {
    let full = ServingInput { load: Load::Burst { requests: f64::INFINITY }, ..*system };
    closed::estimate(&full, constants).requests_per_sec.max(1e-9)
}

/// Arrivals of the workload's phases: their own rates, otherwise the load factors of their profiles times the capacity.
fn phases(scenario: &Scenario, system: &ServingInput, constants: &Constants) -> Vec<Phase> {
    let capacity = capacity(system, constants);
    let phase = |phase: &crate::scenario::Phase| Phase {
        seconds: phase.minutes * 60.0,
        rate: phase
            .arrival
            .requests_per_sec
            .filter(|rate| *rate > 0.0)
            .unwrap_or(capacity * phase.traffic.load_factor * phase.autoscale_factor),
        cv: phase.arrival.arrival_cv.unwrap_or(phase.traffic.cv),
    };
    scenario.phases.iter().map(phase).filter(|phase| phase.seconds > 0.0).collect()
}
