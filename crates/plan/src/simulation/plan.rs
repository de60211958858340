//! Plan of a simulation: everything that a run needs, derived from a scenario and options.

use std::path::Path;

use super::options::Options;
use super::trace;
use super::words::{ArrivalsWord, HostsWord, Window};
use super::{Problems, UNCALIBRATED, serving, training};
use crate::engine::answer;
use crate::engine::{analytical_scenario, estimate as estimate_of};
use crate::knob::Knob;
use crate::scenario::Scenario;
use atlas_catalog::Catalog;
use atlas_catalog::datasheet;
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::units;
use atlas_document::sources::read_bytes;
use atlas_perf::accelerator::Accelerator;
use atlas_perf::constants::Constants;
use atlas_perf::serving as closed;
use atlas_perf::serving::{Load, ServingInput};
use atlas_perf::training::estimate;
use atlas_sim::serving as event_serving;
use atlas_sim::serving::{Arrivals, Autoscaling, Phase, Prefixes, Slo, TraceRequest};
use atlas_sim::training::{Compression, Hosts, Input, OtherKind};

/// Complete description of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Name.
    pub name: String,
    /// Training job or deployment to run.
    pub work: Work,
    /// Seed of the first run; the seeds of further runs count up from it.
    pub seed: u64,
    /// Number of independent runs.
    pub replications: u32,
    /// Notes on assumed values.
    pub notes: Vec<String>,
    /// Rent and energy of all hardware in use, USD per hour, if a price is known.
    pub usd_per_hour: Option<f64>,
}

/// Training job or deployment to run.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// A training job.
    Training(Box<training::Work>),
    /// A deployment under load.
    Serving(Box<serving::Work>),
}

/// Default offered load relative to the capacity: high utilization without an unbounded queue.
pub const USUAL_LOAD: f64 = 0.8;
/// Default number of counted requests.
const REQUESTS: u32 = 2000;
/// Default maximum number of requests of a trace.
const MAX_REQUESTS: u32 = 200_000;
/// Default number of requests of a schedule: enough to cover every phase within seconds of computing.
const SCHEDULED_REQUESTS: u32 = 20_000;

impl Plan {
    /// Creates the plan of a scenario.
    ///
    /// # Errors
    ///
    /// If options are not applicable, a trace cannot be read, or the scenario lacks machine or model or cannot run.
    pub fn of(name: String, scenario: &Scenario, options: &Options, window: Option<Window>) -> Result<Plan, Problems> {
        let mut notes = Vec::new();
        let mut problems = inapplicable_options(options, scenario.mode());
        let options = &options.clone().or(Options::stated(scenario));
        let lacking = || Problems(vec!["the scenario needs an accelerator and a model".to_owned()]);
        let work = match scenario.mode() {
            Mode::Training => {
                let input = scenario.training_input(&scenario.base).ok_or_else(lacking)?;
                let usual = answer::event::training::input(scenario, &scenario.simulation(&scenario.base), &input);
                let work = training_work(usual, answer::event::training::hosts(scenario, &input), options, window);
                problems.extend(too_many(&work));
                Work::Training(Box::new(work))
            }
            Mode::Inference => {
                let input = scenario.serving_input(&scenario.base).ok_or_else(lacking)?;
                let requested = serving_input(scenario, &input, options, &mut notes, &mut problems);
                let held = replicas_held(scenario);
                notes.extend(autoscaling_note(&requested));
                problems.extend(too_many_replicas(&requested, held));
                Work::Serving(Box::new(serving::Work { input: requested, held }))
            }
        };
        // The simulation has no check of memory, formats or the number of accelerators; the closed form does.
        let closed = estimate_of(&analytical_scenario(scenario));
        if let Some(detail) = closed.detail.filter(|_| !closed.runs()) {
            problems.push(format!("{name}: {}", detail.verdict.describe()));
        }
        if scenario.corrections.is_some() {
            notes.push(UNCALIBRATED.to_owned());
        }
        if problems.is_empty() {
            let usd_per_hour = Some(closed.cost.usd_per_hour).filter(|usd| *usd > 0.0);
            let (seed, replications) = (options.seed(), options.replications());
            Ok(Plan { name, work, seed, replications, notes, usd_per_hour })
        } else {
            Err(Problems(problems))
        }
    }
}

/// Errors for options that apply only to the other mode, and for options that require another option.
pub(super) fn inapplicable_options(options: &Options, mode: Mode) -> Vec<String> {
    let o = options;
    let training = [
        ("--steps", o.steps.is_some()),
        ("--slow-nodes", o.slow_nodes.is_some()),
        ("--slow-factor", o.slow_factor.is_some()),
        ("--hosts", o.hosts.is_some()),
        ("--jitter", o.jitter.is_some()),
        ("--dynamic-batch", o.dynamic_batch.is_some()),
        ("--buckets", o.buckets.is_some()),
        ("--compression", o.compression.is_some()),
        ("--loading", o.loading.is_some()),
        ("--every-replica", o.every_replica.is_some()),
        ("--study goodput", o.study.is_some()),
        ("--accelerator-mtbf", o.accelerator_mtbf.is_some()),
        ("--detection", o.detection.is_some()),
        ("--restart-time", o.restart_time.is_some()),
        ("--spares", o.spares.is_some()),
        ("--repair", o.repair.is_some()),
        ("--checkpoint-seconds", o.checkpoint_seconds.is_some()),
        ("--checkpoint-flush", o.checkpoint_flush.is_some()),
        ("--checkpoint-interval", o.checkpoint_interval.is_some()),
        ("--storage-gbytes-per-sec", o.storage_gbytes_per_sec.is_some()),
        ("--work", o.work.is_some()),
    ];
    let serving = [
        ("--requests", o.requests.is_some()),
        ("--warm-up", o.warm_up.is_some()),
        ("--arrivals", o.arrivals.is_some()),
        ("--rate", o.rate.is_some()),
        ("--isl", o.isl.is_some()),
        ("--osl", o.osl.is_some()),
        ("--max-model-len", o.max_model_len.is_some()),
        ("--block-size", o.block_size.is_some()),
        ("--router", o.router.is_some()),
        ("--autoscale", o.autoscale.is_some()),
        ("--slo-ttft", o.slo_ttft.is_some()),
        ("--slo-tpot", o.slo_tpot.is_some()),
        ("--slo-e2e", o.slo_e2e.is_some()),
    ];
    let (others, what): (&[(&str, bool)], &str) = match mode {
        Mode::Training => (&serving, "serving workloads"),
        Mode::Inference => (&training, "training workloads"),
    };
    let mut problems: Vec<String> = others
        .iter()
        .filter(|(_, given)| *given)
        .map(|(flag, _)| format!("{flag} is supported only for {what}"))
        .collect();
    if o.slow_factor.is_some() && o.slow_nodes.is_none() {
        problems.push("--slow-factor requires --slow-nodes".to_owned());
    }
    problems
}

impl Plan {
    /// Replaces the accelerators of the job's last hosts by those that the options name.
    ///
    /// # Errors
    ///
    /// If the catalog does not have an accelerator, or the job has fewer hosts.
    pub fn mix(mut self, options: &Options, catalog: &Catalog) -> Result<Plan, Problems> {
        let (Some(HostsWord(named)), Work::Training(work)) = (&options.hosts, &mut self.work) else { return Ok(self) };
        let mut problems = Vec::new();
        let (hosts, wanted) = (work.hosts.count(), named.iter().map(|(_, count)| count).sum::<u32>());
        if wanted > hosts {
            problems.push(format!("--hosts: found {wanted}, but the job has only {hosts} hosts"));
        }
        let system = work.input.system;
        for (name, count) in named {
            let Some(sheet) = catalog.find_accelerator_by_description(name, None) else {
                let unknown = catalog.accelerator(name).err().map(|problem| problem.to_string());
                problems.push(format!("--hosts: {}", unknown.unwrap_or_default()));
                continue;
            };
            let accelerator = datasheet::accelerator(&sheet);
            // The network limits the bandwidth of the replacement's NIC.
            let nic_bw = accelerator.nic_bw.min(system.accelerator.nic_bw);
            let kind = OtherKind { accelerator: Accelerator { nic_bw, ..accelerator }, places: Vec::new() };
            let there = estimate(&kind.system(&system), &work.input.constants);
            if !there.fits {
                self.notes.push(format!(
                    "{} may run out of memory: up to {:.1} GB of {:.1} GB",
                    sheet.id,
                    there.memory_upper / atlas_core::units::BYTES_PER_GB,
                    accelerator.capacity() / atlas_core::units::BYTES_PER_GB
                ));
            }
            self.notes.push(format!("the last {count} of {hosts} hosts have {}", sheet.id));
            work.kinds.push((kind, *count));
        }
        if problems.is_empty() { Ok(self) } else { Err(Problems(problems)) }
    }
}

/// Error if there are more slow nodes than nodes.
pub(super) fn too_many(work: &training::Work) -> Option<String> {
    let hosts = work.hosts.count();
    (work.slow_nodes > hosts)
        .then(|| format!("--slow-nodes: found {}, but the job has only {hosts} nodes", work.slow_nodes))
}

/// Training job with the variation that the options request.
pub(super) fn training_work(usual: Input, hosts: Hosts, options: &Options, window: Option<Window>) -> training::Work {
    let images = usual.system.arch.convolutions.is_some();
    let input = Input {
        steps: options.steps.unwrap_or(usual.steps),
        buckets: options.buckets.unwrap_or(usual.buckets),
        jitter: options.jitter.unwrap_or(usual.jitter),
        lengths: options.dynamic_batch.unwrap_or(0.0),
        compression: options.compression.map(|c| Compression { ratio: c.ratio, seconds: c.seconds }),
        loading: options.loading.map_or(0.0, |span| span.0),
        every_replica: options.every_replica.unwrap_or(false),
        ..usual
    };
    training::Work {
        hosts,
        slow_nodes: options.slow_nodes.unwrap_or(0),
        slow_factor: options.slow_factor.unwrap_or(crate::scenario::SLOW_FACTOR),
        kinds: Vec::new(),
        sample: if images { "image" } else { "sequence" },
        window,
        input,
    }
}

fn serving_input(
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
    let limit = |millis: Option<super::words::Millis>| millis.map(|millis| millis.0);
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
fn replicas_held(scenario: &Scenario) -> f64 {
    let dies = scenario.machine.map_or(1.0, |machine| machine.dies);
    let replica = scenario.working_devices() / scenario.base.shape.dp.max(Count::ONE);
    (scenario.accelerators() * dies / replica.max(1.0)).floor().max(1.0)
}

/// Error if more replicas may start than the target holds.
fn too_many_replicas(input: &event_serving::Input, held: f64) -> Option<String> {
    let most = input.autoscaling?.max_replicas;
    (f64::from(most) > held)
        .then(|| format!("--autoscale: found {most} replicas, expected at most the {held} that the target holds"))
}

/// Note that a run ends before autoscaling takes effect.
fn autoscaling_note(input: &event_serving::Input) -> Option<String> {
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
            match read_trace(&file) {
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

/// Maximum size of a trace file, bytes.
const MAX_TRACE_BYTES: u64 = 1 << 30;

/// Reads a trace in any of the supported formats.
///
/// # Errors
///
/// If the file cannot be read or is not a trace.
pub fn read_trace(file: &Path) -> Result<Vec<TraceRequest>, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let bytes = read_bytes(file, MAX_TRACE_BYTES).map_err(|error| named(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| named(&error.utf8_error()))?;
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let read = if first.trim_start().starts_with('{') {
        // An object per line with its own timestamp is Mooncake's format; a complete result is a benchmark's.
        let timed = ["timestamp", "input_length"].iter().any(|key| first.contains(&format!("\"{key}\"")));
        if timed { trace::mooncake(&text) } else { trace::benchmark(&text) }
    } else {
        trace::azure(&text)
    };
    let requests = read.map_err(|error| named(&error))?;
    if requests.is_empty() { Err(named(&"found no requests")) } else { Ok(requests) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::{Options, Plan, Work};
    use crate::scenario::Scenario;
    use crate::testing;
    use atlas_core::plan::Engine;

    fn plan(sets: &[&str]) -> Plan {
        let parts = testing::parts("h100-sxm-8", "llama3.1-70b-serve");
        let knobs = testing::with_engine(Engine::Analytical, sets);
        let scenario = Scenario::resolve(&parts, &knobs).unwrap();
        Plan::of("test".to_owned(), &scenario, &Options::default(), None).unwrap()
    }

    #[test]
    fn conversations_determine_the_hit_rate_and_tiers_without_them_are_noted() {
        let lengths = ["prompt=4096", "generate=256", "shared_prefix=3000", "conversations=2000", "turns=1"];
        let talk = plan(&lengths);
        let Work::Serving(work) = &talk.work else { panic!("{talk:?}") };
        assert!(work.input.system.prefix_hit > 0.7, "{}", work.input.system.prefix_hit);
        assert!(talk.notes.iter().any(|note| note.contains("as the closed form estimates")), "{:?}", talk.notes);
        let tiers = plan(&["kv_host_gb=100"]);
        assert!(tiers.notes.iter().any(|note| note.contains("kv_host_gb is not simulated")), "{:?}", tiers.notes);
        assert!(plan(&[]).notes.iter().all(|note| !note.contains("simulated")), "{:?}", plan(&[]).notes);
    }
}
