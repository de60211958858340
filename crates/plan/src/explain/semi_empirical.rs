//! The calibrated model, in the calibration guide's symbols.

use super::expression::{Written, max, min};
use super::{Origin, Term, Whole, mean_over_phases};
use crate::estimate::{Figures, Latency, Queue};
use crate::knob::Knob;
use crate::scenario::Phase;
use atlas_config::Mode;

/// The derivation of a figure; `None` for figures that the model does not have.
pub(super) fn explain(whole: &Whole<'_>, name: &str, value: f64) -> Option<Term> {
    let scenario = whole.scenario;
    if scenario.phases.is_empty() {
        let described = Reported { whole, phase: &scenario.base, figures: whole.total };
        return described.figure(name, value);
    }
    let units = |name: &str| if name.ends_with("_ms") { "ms" } else { unit(name) };
    if name == "peak_mem_gb" {
        let each: Option<Vec<Term>> = scenario
            .phases
            .iter()
            .zip(&whole.estimate.phases)
            .map(|(phase, figures)| Reported { whole, phase, figures }.figure(name, figures.peak_mem_gb))
            .collect();
        let largest = each?.into_iter().map(Written::from).reduce(max)?;
        return Some(Term::stated("M", "", "GB", value, largest));
    }
    mean_over_phases(whole, value, units(name), |i, figures| {
        let phase = scenario.phases.get(i)?;
        let described = Reported { whole, phase, figures };
        described.figure(name, read(name, figures)?)
    })
}

fn unit(name: &str) -> &'static str {
    match name {
        "tokens_per_sec" => "tok/s",
        "node_power_w" => "W",
        _ => "",
    }
}

/// A figure of a phase; with its queue where there is one.
fn read(name: &str, figures: &Figures) -> Option<f64> {
    let latency: Latency = figures.queue.map_or(figures.latency, |queue| queue.latency);
    let queued = |get: fn(&Queue) -> f64| figures.queue.as_ref().map_or(0.0, get);
    Some(match name {
        "tokens_per_sec" => figures.tokens_per_sec,
        "step_time_ms" => figures.step_time_ms,
        "p50_ms" => latency.p50,
        "p95_ms" => latency.p95,
        "p99_ms" => latency.p99,
        "ttft_ms" => latency.ttft,
        "queue_wait_p99_ms" => queued(|queue| queue.wait.p99),
        "queue_utilization" => queued(|queue| queue.utilization),
        "node_power_w" => figures.node_power_w,
        "flop_utilization" => figures.flop_utilization,
        "hbm_bw_util" => figures.hbm_bw_util,
        "comm_compute_ratio" => figures.comm_compute_ratio,
        _ => return None,
    })
}

/// One phase, or the whole where there is no schedule.
struct Reported<'a> {
    whole: &'a Whole<'a>,
    phase: &'a Phase,
    figures: &'a Figures,
}

impl Reported<'_> {
    fn infer(&self) -> bool {
        self.phase.shape.mode == Mode::Inference
    }

    fn coefficient(&self, symbol: &'static str, path: &'static str, value: f64) -> Term {
        self.whole.inputs.coefficient(symbol, path, "", value)
    }

    /// A number of the phase: the workload's knob, or the phase's own value of it.
    fn shape(&self, symbol: &'static str, knob: Knob, value: f64) -> Term {
        let term = self.whole.inputs.knob(symbol, knob);
        if self.phase.pinned.pins(knob) {
            let place = self.whole.inputs.in_workload(&["schedule"]);
            let origin = place.map_or(Origin::Default("the phase's override"), Origin::File);
            return Term { value, ..term }.from(origin);
        }
        Term { value, ..term }
    }

    fn figure(&self, name: &str, value: f64) -> Option<Term> {
        let (c, scenario) = (&self.whole.scenario.coefficients, self.whole.scenario);
        Some(match name {
            "tokens_per_sec" => self.throughput(value),
            "step_time_ms" if self.infer() => Term::input("T_step", "", "ms", value),
            "step_time_ms" => {
                let tokens = self.shape("dp", Knob::Dp, self.phase.shape.dp)
                    * self.whole.inputs.knob("micro", Knob::Microbatch)
                    * self.sequence();
                Term::stated("T_step", "", "ms", value, tokens / self.throughput(self.figures.tokens_per_sec) * 1000.0)
            }
            "p50_ms" | "p95_ms" | "p99_ms" | "ttft_ms" => self.latency(name, value),
            "queue_wait_p99_ms" | "queue_utilization" => self.queue(name, value),
            "node_power_w" => {
                let nominal = self.whole.inputs.node_watts();
                let draw = self.coefficient("phi_idle", "power.idle_fraction", c.phi_idle)
                    + self.coefficient("phi_util", "power.util_fraction", c.phi_util) * self.rho();
                Term::stated("P_node", "", "W", value, nominal * draw)
            }
            "flop_utilization" => {
                let kappa = self.coefficient("kappa_comm", "compute.comm_penalty_coeff", c.kappa_comm);
                let written = self.rho() * (Written::from(1.0) - kappa * self.overhead());
                Term::stated("u_flop", "", "", value, min(max(written, 0.0), 1.0))
            }
            "hbm_bw_util" => {
                let base = self.coefficient("hbm_base", "hbm.base", c.hbm_base);
                let scale = self.coefficient("hbm_seq_scale", "hbm.seq_scale", c.hbm_seq_scale);
                let norm = self.coefficient("hbm_seq_norm", "hbm.seq_norm", c.hbm_seq_norm);
                let most = self.coefficient("hbm_max", "hbm.max", c.hbm_max);
                let written = min(most, base + scale * self.sequence() / norm);
                Term::stated("u_hbm", "", "", value, min(max(written, 0.0), 1.0))
            }
            "comm_compute_ratio" => {
                let omega = self.overhead();
                let written = omega.clone() / (omega + 1.0);
                Term::stated("r_comm", "", "", value, min(max(written, 0.01), 0.99))
            }
            "peak_mem_gb" => {
                let has = Term::input("memory", "memory of an accelerator", "GB", scenario.memory_gb_per_accel)
                    .from(self.whole.inputs.target(&["memory_gb_per_accel"], "the files do not say"));
                let factor = self.whole.inputs.coefficient(
                    "peak_tokens_factor",
                    "memory.peak_tokens_factor",
                    "GB",
                    c.peak_tokens_factor,
                );
                let of = |symbol, path: [&'static str; 2], value| {
                    let origin = self.whole.inputs.in_workload(&path);
                    let origin = origin.map_or(Origin::Default("the files do not say"), Origin::File);
                    Term::input(symbol, path[1], "", value).from(origin)
                };
                let hidden = of("hidden", ["params", "hidden_size"], self.phase.shape.hidden);
                let layers = of("layers", ["params", "n_layers"], self.phase.shape.layers);
                Term::stated("M", "", "GB", value, min(has, factor * hidden * layers))
            }
            _ => return None,
        })
    }

    /// rho: utilisation.
    fn rho(&self) -> Term {
        let (c, scenario) = (&self.whole.scenario.coefficients, self.whole.scenario);
        let mut all = Written::from(self.coefficient("rho_base", "utilization.base", c.rho_base));
        let increments = [
            (scenario.cuda_graphs, "delta_rho_cuda", "utilization.knob_increments.cuda_graphs", c.delta_rho_cuda),
            (
                scenario.gpudirect_rdma,
                "delta_rho_gpudirect",
                "utilization.knob_increments.gpudirect_rdma",
                c.delta_rho_gpudirect,
            ),
            (self.infer(), "delta_rho_infer", "utilization.knob_increments.inference_bonus", c.delta_rho_infer),
        ];
        for (_, symbol, path, value) in increments.into_iter().filter(|(on, ..)| *on) {
            all = all + self.coefficient(symbol, path, value);
        }
        Term::derived("rho", "utilisation", "", min(all, self.coefficient("rho_max", "utilization.max", c.rho_max)))
    }

    /// omega_comm: overhead of communication.
    fn overhead(&self) -> Term {
        let (c, scenario, inputs) = (&self.whole.scenario.coefficients, self.whole.scenario, self.whole.inputs);
        let per = |symbol, path, value, ranks: Term| self.coefficient(symbol, path, value) * (ranks - 1.0);
        let tp = self.shape("tp", Knob::Tp, self.phase.shape.tp);
        let pp = self.shape("pp", Knob::Pp, self.phase.shape.pp);
        let mut chi = self.coefficient("chi_base", "communication.intensity.base", c.chi_base)
            + per("chi_tp", "communication.intensity.per_tp", c.chi_tp, tp)
            + per("chi_pp", "communication.intensity.per_pp", c.chi_pp, pp);
        if self.infer() {
            chi =
                chi * self.coefficient("chi_infer_scale", "communication.intensity.inference_scale", c.chi_infer_scale);
        }
        let chi = Term::derived("chi", "intensity of communication", "", chi);
        let fabric = inputs.knob("gamma_fabric", Knob::Fabric);
        let mut all = chi
            * Term {
                value: scenario.fabric_factor,
                name: format!("factor of fabric {}", scenario.fabric).into(),
                word: None,
                ..fabric
            };
        if scenario.sriov {
            let jitter = self.coefficient("jitter", "communication.jitter_per_sriov", c.jitter_sriov);
            all = all * Term::derived("gamma_jitter", "jitter of shared NICs", "", jitter + 1.0);
        }
        if scenario.gpudirect_rdma {
            let factor = c.gamma_gpudirect;
            all = all * self.coefficient("gamma_gpudirect", "communication.gpudirect_multiplier", factor);
        }
        let least = self.coefficient("omega_min", "communication.min_overhead", c.omega_min);
        Term::derived("omega_comm", "overhead of communication", "", max(least, all))
    }

    /// Tokens of a sequence.
    fn sequence(&self) -> Term {
        let prompt = self.shape("prompt", Knob::Prompt, self.phase.shape.prompt);
        let generate = self.shape("g", Knob::Generate, self.phase.shape.generate);
        Term::derived("s", "tokens of a sequence", "tok", prompt + generate)
    }

    /// Rate of all accelerators before communication.
    fn rate(&self) -> Term {
        let c = &self.whole.scenario.coefficients;
        let (path, factor) = if self.infer() {
            ("compute.factors.inference", c.f_inference)
        } else {
            ("compute.factors.training", c.f_training)
        };
        let base = self.whole.inputs.coefficient("B_base", "compute.base_tokens_per_accel", "tok/s", c.b_base);
        let written = self.coefficient("f_vendor", path, factor) * self.rho() * self.whole.inputs.accelerators() * base;
        Term::derived("rate", "rate of all accelerators before communication", "tok/s", written)
    }

    /// The noise of the run.
    fn noise(&self) -> Term {
        let c = &self.whole.scenario.coefficients;
        let draw = Term::input("U", "first draw of the generator", "", self.phase.draw)
            .from(self.whole.inputs.of_knob(Knob::Seed));
        let sigma = self.coefficient("sigma_noise", "noise.amplitude", c.sigma_noise);
        Term::derived("eps", "noise of the run", "", (draw - 0.5) * sigma)
    }

    fn throughput(&self, value: f64) -> Term {
        let c = &self.whole.scenario.coefficients;
        let weight = self.coefficient("omega", "throughput.overhead_weight", c.omega);
        let mut written = self.rate() / (weight * self.overhead() + 1.0);
        if self.infer() && self.phase.shape.generate > 0.0 {
            let generated = self.shape("g", Knob::Generate, self.phase.shape.generate);
            written = written * generated / max(self.sequence(), 1.0);
        }
        if self.whole.scenario.noise {
            written = written * (self.noise() + 1.0);
        }
        let scale = self.phase.tokens_scale * self.phase.autoscale_factor;
        if !self.whole.scenario.phases.is_empty() && scale != 1.0 {
            let place = self.whole.inputs.in_workload(&["schedule"]);
            let origin = place.map_or(Origin::Default("the phase's scales"), Origin::File);
            let name = "tokens_scale times autoscale_factor of the phase";
            written = written * Term::input("scale", name, "", scale).from(origin);
        }
        Term::stated("X", "tokens per second of all accelerators", "tok/s", value, max(written, 1.0))
    }

    /// Median of the service alone.
    fn median(&self) -> Term {
        let c = &self.whole.scenario.coefficients;
        let least = self.whole.inputs.coefficient("lat_min", "latency.min_p50_ms", "ms", c.lat_min);
        let base = self.coefficient("lat_base_coeff", "latency.base_p50_coeff", c.lat_base_coeff);
        let written = max(least, base / max(self.rate() / self.whole.inputs.accelerators(), 1.0));
        Term::stated("p50_service", "median of the service", "ms", self.figures.latency.p50, written)
    }

    fn latency(&self, name: &str, value: f64) -> Term {
        let c = &self.whole.scenario.coefficients;
        let wait = self.figures.queue.map(|queue| queue.wait).unwrap_or_default();
        let alone = self.figures.latency;
        let tailed = |symbol: &'static str, what: &'static str, m: Term, value: f64| {
            let mut tail = self.coefficient("tail_comm", "latency.tail.comm_tail", c.tail_comm) * self.overhead() + 1.0;
            if self.whole.scenario.sriov {
                tail = tail + self.coefficient("tail_sriov", "latency.tail.sriov_tail", c.tail_sriov);
            }
            let tail = Term::derived("tail", "stretch of the tail by communication", "", tail);
            let mut written = self.median() * m * tail;
            if self.whole.scenario.noise {
                let sigma = self.coefficient("sigma_tail", "noise.tail_scale", c.sigma_tail);
                written = written * (self.noise() * sigma + 1.0);
            }
            Term::stated(symbol, what, "ms", value, written)
        };
        let (service, wait) = match name {
            "p50_ms" => (self.median(), wait.p50),
            "p95_ms" => {
                let m = self.coefficient("m95", "latency.tail.p95_multiplier", c.m95);
                (tailed("p95_service", "p95 of the service", m, alone.p95), wait.p95)
            }
            "p99_ms" => {
                let m = self.coefficient("m99", "latency.tail.p99_multiplier", c.m99);
                (tailed("p99_service", "p99 of the service", m, alone.p99), wait.p99)
            }
            _ => {
                let ratio = self.coefficient("r_ttft", "latency.ttft_ratio", c.r_ttft);
                let written = self.median() * ratio;
                (
                    Term::stated("ttft_service", "time to first token of the service", "ms", alone.ttft, written),
                    wait.ttft,
                )
            }
        };
        if !self.infer() {
            return Term::input("latency", "", "ms", value).from(Origin::Default("training answers no requests"));
        }
        match self.figures.queue {
            None => Term { name: "".into(), ..service },
            Some(queue) => {
                let waited = Term::input("wait", "waiting in line", "ms", wait)
                    .from(Origin::Engine("Allen–Cunneen in the predecessor system's form, bounded by the service"))
                    .borne(queueing(&queue));
                Term::stated("latency", "", "ms", value, service + waited)
            }
        }
    }

    fn queue(&self, name: &str, value: f64) -> Term {
        let how = Origin::Engine("Allen–Cunneen in the predecessor system's form, bounded by the service");
        let queue = self.figures.queue.unwrap_or_default();
        let unit = if name.ends_with("_ms") { "ms" } else { "" };
        Term::input(if unit.is_empty() { "rho_queue" } else { "w99" }, "", unit, value)
            .from(how)
            .borne(queueing(&queue))
    }
}

/// What a wait depends on.
fn queueing(queue: &Queue) -> Vec<Term> {
    let engine = |symbol: &'static str, name: &'static str, unit: &'static str, value: f64| {
        Term::input(symbol, name, unit, value).from(Origin::Engine("of the phase's arrivals and its request profile"))
    };
    vec![
        engine("lambda", "arrivals", "req/s", queue.arrival_rate),
        engine("m", "parallel servers", "", queue.servers),
        engine("S", "mean service time", "ms", queue.service_mean_ms),
        engine("ca", "variability of arrivals", "", queue.arrival_cv),
        engine("cs", "variability of the service", "", queue.service_cv),
    ]
}
