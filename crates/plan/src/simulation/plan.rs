//! Plan of a simulation: everything that a run needs, derived from a scenario and options.

mod load;

use super::options::Options;
use super::words::{HostsWord, Window};
use super::{Problems, UNCALIBRATED, serving, training};
use crate::engine::answer;
use crate::engine::{analytical_scenario, estimate as estimate_of};
use crate::scenario::Scenario;
use atlas_catalog::Catalog;
use atlas_catalog::datasheet;
use atlas_config::Mode;
use atlas_perf::accelerator::Accelerator;
use atlas_perf::training::estimate;
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
                let requested = load::serving_input(scenario, &input, options, &mut notes, &mut problems);
                let held = load::replicas_held(scenario);
                notes.extend(load::autoscaling_note(&requested));
                problems.extend(load::too_many_replicas(&requested, held));
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
