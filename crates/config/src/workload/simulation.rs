//! What a workload says of how it is simulated: how long a run is watched, what befalls it. Only an engine that
//! simulates heeds it.

use super::plan::word;
use atlas_core::plan::Arrivals;
use atlas_document::decode::{Bounds, Fields};

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

/// A number that is not negative, up to `max`.
const fn upto(max: f64) -> Bounds {
    Bounds { min: 0.0, max, whole: false }
}

impl SimulationSpec {
    /// Reads `simulation`.
    pub(super) fn section(&mut self, s: &mut Fields<'_>) {
        self.replications = s.number("replications", Bounds { max: 1000.0, ..Bounds::COUNT });
        self.requests = s.number("requests", Bounds { max: 1e6, ..Bounds::NATURAL });
        self.steps = s.number("steps", Bounds { max: 10_000.0, ..Bounds::COUNT });
        self.jitter = s.number("jitter", upto(2.0));
        self.slow_nodes = s.number("slow_nodes", Bounds { max: 1e6, ..Bounds::NATURAL });
        self.slow_factor = s.number("slow_factor", Bounds { min: 1.0, ..upto(100.0) });
        self.node_mtbf_h = s.number("node_mtbf_h", upto(1e7));
        self.checkpoint_interval_s = s.number("checkpoint_interval_s", upto(1e7));
        self.checkpoint_s = s.number("checkpoint_s", upto(1e5));
        self.checkpoint_async = s.boolean("checkpoint_async");
        self.restart_s = s.number("restart_s", upto(1e6));
    }

    /// Reads what stands in `serving`.
    pub(super) fn serving(&mut self, s: &mut Fields<'_>) {
        self.arrivals = word(s, "arrivals", Arrivals::named, Arrivals::NAMES);
        self.arrival_cv = s.number("arrival_cv", upto(20.0));
        let limits = |slo: &mut Fields<'_>| {
            ["ttft_ms", "tpot_ms", "e2e_ms"]
                .map(|name| slo.number(name, upto(if name == "e2e_ms" { 1e8 } else { 1e7 })))
        };
        [self.slo_ttft_ms, self.slo_tpot_ms, self.slo_e2e_ms] = s.map("slo", limits).unwrap_or_default();
    }

    /// Reads what stands in `sequence`.
    pub(super) fn sequence(&mut self, s: &mut Fields<'_>) {
        self.prompt_cv = s.number("prompt_cv", upto(10.0));
        self.generate_cv = s.number("generate_cv", upto(10.0));
    }
}
