//! How a workload is simulated: length of a run, stragglers, failures. Only engines that simulate use it.

use crate::read_field::ReadField as _;
use atlas_core::field::Knob;
use atlas_core::plan::Arrivals;
use atlas_document::decode::Fields;

/// As written; `None` where the file is silent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulationSpec {
    /// `simulation.replications`: independent runs.
    pub replications: Option<f64>,
    /// `simulation.requests`: requests of a run; 0 = as many as the load asks for.
    pub requests: Option<f64>,
    /// `simulation.steps`: optimizer steps of a run.
    pub steps: Option<f64>,
    /// `simulation.jitter`: standard deviation of one rank's pass over its mean.
    pub jitter: Option<f64>,
    /// `simulation.slow_nodes`: nodes that are slow all the time.
    pub slow_nodes: Option<f64>,
    /// `simulation.slow_factor`: time of their passes over the others'.
    pub slow_factor: Option<f64>,
    /// `simulation.node_mtbf_h`: mean time between failures of a node, h; 0 = none fails.
    pub node_mtbf_h: Option<f64>,
    /// `simulation.checkpoint_interval_s`: work between two checkpoints.
    pub checkpoint_interval_s: Option<f64>,
    /// `simulation.checkpoint_s`: what a checkpoint costs.
    pub checkpoint_s: Option<f64>,
    /// `simulation.checkpoint_async`: a checkpoint is written beside the work, from a copy in host memory.
    pub checkpoint_async: Option<bool>,
    /// `simulation.restart_s`: what a failure costs besides lost work.
    pub restart_s: Option<f64>,
    /// `serving.arrivals`: how requests come.
    pub arrivals: Option<Arrivals>,
    /// `serving.arrival_cv`: standard deviation of gamma arrivals' gaps over their mean.
    pub arrival_cv: Option<f64>,
    /// `sequence.prompt_cv`: spread of the prompts' lengths.
    pub prompt_cv: Option<f64>,
    /// `sequence.generate_cv`: spread of the outputs' lengths.
    pub generate_cv: Option<f64>,
    /// `serving.slo.ttft_ms`; 0 = none.
    pub slo_ttft_ms: Option<f64>,
    /// `serving.slo.tpot_ms`; 0 = none.
    pub slo_tpot_ms: Option<f64>,
    /// `serving.slo.e2e_ms`; 0 = none.
    pub slo_e2e_ms: Option<f64>,
}

impl SimulationSpec {
    /// Reads `simulation`.
    pub(super) fn section(&mut self, s: &mut Fields<'_>) {
        self.replications = s.number_of(Knob::Replications);
        self.requests = s.number_of(Knob::Requests);
        self.steps = s.number_of(Knob::Steps);
        self.jitter = s.number_of(Knob::Jitter);
        self.slow_nodes = s.number_of(Knob::SlowNodes);
        self.slow_factor = s.number_of(Knob::SlowFactor);
        self.node_mtbf_h = s.number_of(Knob::NodeMtbf);
        self.checkpoint_interval_s = s.number_of(Knob::CheckpointInterval);
        self.checkpoint_s = s.number_of(Knob::Checkpoint);
        self.checkpoint_async = s.flag_of(Knob::CheckpointAsync);
        self.restart_s = s.number_of(Knob::Restart);
    }

    /// Reads the fields in `serving`.
    pub(super) fn serving(&mut self, s: &mut Fields<'_>) {
        self.arrivals = s.word_of(Knob::Arrivals, Arrivals::named);
        self.arrival_cv = s.number_of(Knob::ArrivalCv);
        let limits =
            |slo: &mut Fields<'_>| [Knob::SloTtft, Knob::SloTpot, Knob::SloE2e].map(|limit| slo.number_of(limit));
        [self.slo_ttft_ms, self.slo_tpot_ms, self.slo_e2e_ms] = s.map("slo", limits).unwrap_or_default();
    }

    /// Reads the fields in `sequence`.
    pub(super) fn sequence(&mut self, s: &mut Fields<'_>) {
        self.prompt_cv = s.number_of(Knob::PromptCv);
        self.generate_cv = s.number_of(Knob::GenerateCv);
    }
}
