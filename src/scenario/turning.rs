//! Reading and turning the knobs of a scenario.

use std::sync::Arc;

use super::{Parts, Phase, Scenario, first_draw};
use crate::knob::{Knob, KnobError, Setting};
use crate::plan::{Arrivals, Engine, Format, PipelineSchedule, Recompute, Server, Sharding};
use crate::spec::Mode;

impl Scenario {
    /// The value of a knob in force: the user's, the files', or what follows from the rest.
    #[must_use]
    pub fn get(&self, knob: Knob) -> Setting {
        let Phase { shape, plan, served, .. } = &self.base;
        let number = Setting::Number;
        let word = |name: &str| Setting::Choice(name.into());
        match knob {
            Knob::Engine => word(self.engine.name()),
            Knob::Microbatch => number(self.microbatch),
            Knob::Global => number(self.global(&self.base)),
            Knob::Precision => word(self.format(&self.base).name()),
            Knob::KvPrecision => word(kv_format(&self.base).name()),
            Knob::Recompute => word(plan.recompute.unwrap_or(Recompute::Auto).name()),
            Knob::Overlap => Setting::Toggle(plan.overlap.unwrap_or(true)),
            Knob::ExpertImbalance => number(plan.imbalance.unwrap_or(1.0)),
            Knob::CudaGraphs => Setting::Toggle(self.graphs(&self.base)),
            Knob::GpudirectRdma => Setting::Toggle(self.gpudirect_rdma),
            Knob::Virt => word(if self.sriov { "sriov" } else { "bare" }),
            Knob::Fabric => Setting::Choice(Arc::clone(&self.fabric)),
            Knob::Tp => number(shape.tp),
            Knob::Pp => number(shape.pp),
            Knob::Vpp => number(plan.vpp.unwrap_or(1.0)),
            Knob::Dp => number(shape.dp),
            Knob::Cp => number(plan.cp.unwrap_or(1.0)),
            Knob::Ep => number(plan.ep.unwrap_or(1.0)),
            Knob::Sp => Setting::Toggle(plan.sp.unwrap_or(shape.tp > 1.0)),
            Knob::Sharding => word(plan.sharding.unwrap_or(Sharding::Zero1).name()),
            Knob::Shard => number(plan.shard.unwrap_or(0.0)),
            Knob::PipelineSchedule => word(plan.schedule.unwrap_or(PipelineSchedule::OneForwardOneBackward).name()),
            Knob::Prompt => number(shape.prompt),
            Knob::Generate => number(shape.generate),
            Knob::TrainTokens => number(plan.train_tokens.unwrap_or(1e12)),
            Knob::Server => word(served.server.name()),
            Knob::Concurrency => number(self.concurrency(&self.base)),
            Knob::RequestRate => number(plan.serving.request_rate.unwrap_or(0.0)),
            Knob::MaxNumSeqs => number(plan.serving.max_num_seqs.unwrap_or(served.max_num_seqs)),
            Knob::MaxNumBatchedTokens => {
                number(plan.serving.max_num_batched_tokens.unwrap_or(served.max_num_batched_tokens))
            }
            Knob::GpuMemoryUtilization => {
                number(plan.serving.gpu_memory_utilization.unwrap_or(served.gpu_memory_utilization))
            }
            Knob::ChunkedPrefill => Setting::Toggle(plan.serving.chunked_prefill.unwrap_or(served.chunked_prefill)),
            Knob::PrefixHit => number(plan.serving.prefix_hit.unwrap_or(0.0)),
            Knob::DraftTokens => number(plan.serving.draft_tokens.unwrap_or(0.0)),
            Knob::DraftAcceptance => number(plan.serving.draft_acceptance.unwrap_or(DRAFT_ACCEPTANCE)),
            Knob::PrefillAccelerators => number(plan.serving.prefill_accelerators.unwrap_or(0.0)),
            Knob::NumNodes => number(self.num_nodes),
            Knob::NetworkGbps => number(self.machine.map_or(0.0, |m| round(m.device.nic_bw * m.dies * 8e-9))),
            Knob::Oversubscription => number(self.machine.map_or(1.0, |machine| machine.oversubscription)),
            Knob::HourlyUsd => number(self.hourly_usd),
            Knob::UsdPerKwh => number(self.usd_per_kwh),
            Knob::Pue => number(self.pue),
            Knob::KgCo2ePerKwh => number(self.kg_co2e_per_kwh),
            Knob::CapexUsdNode => number(self.capex_usd_node),
            Knob::AmortizationYears => number(self.amortization_years),
            Knob::Utilization => number(self.utilization),
            Knob::Seed => Setting::Seed(self.seed),
            Knob::Noise => Setting::Toggle(self.noise),
            Knob::Replications => number(f64::from(self.simulation(&self.base).replications)),
            Knob::Requests => number(f64::from(self.simulation(&self.base).requests)),
            Knob::Steps => number(f64::from(self.simulation(&self.base).steps)),
            Knob::Arrivals => word(self.simulation(&self.base).arrivals.name()),
            Knob::ArrivalCv => number(self.simulation(&self.base).arrival_cv),
            Knob::PromptCv => number(self.simulation(&self.base).prompt_cv),
            Knob::GenerateCv => number(self.simulation(&self.base).generate_cv),
            Knob::SloTtft => number(plan.simulation.slo_ttft_ms.unwrap_or(0.0)),
            Knob::SloTpot => number(plan.simulation.slo_tpot_ms.unwrap_or(0.0)),
            Knob::SloE2e => number(plan.simulation.slo_e2e_ms.unwrap_or(0.0)),
            Knob::Jitter => number(self.simulation(&self.base).jitter),
            Knob::SlowNodes => number(self.simulation(&self.base).slow_nodes),
            Knob::SlowFactor => number(self.simulation(&self.base).slow_factor),
            Knob::NodeMtbf => number(plan.simulation.node_mtbf_h.unwrap_or(0.0)),
            Knob::CheckpointInterval => number(plan.simulation.checkpoint_interval_s.unwrap_or(0.0)),
            Knob::Checkpoint => number(round(self.simulation(&self.base).checkpoint)),
            Knob::Restart => number(self.simulation(&self.base).restart),
        }
    }

    /// Turns a knob. A phase that overrides the same value keeps its own.
    ///
    /// # Errors
    /// A setting of a kind that the knob does not take.
    pub fn set(&mut self, knob: Knob, setting: &Setting, parts: &Parts) -> Result<(), KnobError> {
        let turned = match setting {
            Setting::Number(value) => self.set_number(knob, *value),
            Setting::Toggle(on) => self.set_toggle(knob, *on),
            Setting::Choice(word) => self.set_word(knob, word, parts),
            Setting::Seed(seed) => {
                self.reseed(*seed, first_draw);
                knob == Knob::Seed
            }
        };
        if !turned {
            // A setting of the wrong kind can only come from a program, which then reads what it should have passed.
            let parsed = knob.parse(&setting.to_string(), parts.fabrics())?;
            if &parsed != setting {
                return self.set(knob, &parsed, parts);
            }
        }
        if matches!(knob, Knob::Precision | Knob::KvPrecision | Knob::Server) {
            self.serve(parts);
        }
        self.fill();
        Ok(())
    }

    fn set_number(&mut self, knob: Knob, value: f64) -> bool {
        match knob {
            Knob::Microbatch => self.microbatch = value,
            Knob::NumNodes => {
                self.num_nodes = value;
                let accelerators = self.accelerators();
                if let Some(machine) = &mut self.machine {
                    machine.spread(accelerators);
                }
            }
            Knob::HourlyUsd => self.hourly_usd = value,
            Knob::UsdPerKwh => self.usd_per_kwh = value,
            Knob::Pue => self.pue = value,
            Knob::KgCo2ePerKwh => self.kg_co2e_per_kwh = value,
            Knob::CapexUsdNode => self.capex_usd_node = value,
            Knob::AmortizationYears => self.amortization_years = value,
            Knob::Utilization => self.utilization = value,
            Knob::NetworkGbps => {
                if let Some(machine) = &mut self.machine {
                    machine.device.nic_bw = value * 1e9 / 8.0 / machine.dies;
                }
            }
            Knob::Oversubscription => {
                if let Some(machine) = &mut self.machine {
                    machine.oversubscription = value;
                }
            }
            Knob::Tp => self.each(knob, |phase| phase.shape.tp = value),
            Knob::Pp => self.each(knob, |phase| phase.shape.pp = value),
            Knob::Dp => self.each(knob, |phase| (phase.shape.dp, phase.plan.dp) = (value, Some(value))),
            Knob::Prompt => self.each(knob, |phase| phase.shape.prompt = value),
            Knob::Generate => self.each(knob, |phase| phase.shape.generate = value),
            _ => {
                let Some(slot) = number_slot(knob) else { return false };
                self.each(knob, |phase| *slot(phase) = Some(value));
            }
        }
        true
    }

    fn set_toggle(&mut self, knob: Knob, on: bool) -> bool {
        match knob {
            Knob::CudaGraphs => {
                self.cuda_graphs = on;
                self.each(knob, |phase| phase.plan.graphs = Some(on));
            }
            Knob::GpudirectRdma => self.gpudirect_rdma = on,
            Knob::Noise => self.noise = on,
            Knob::Overlap => self.each(knob, |phase| phase.plan.overlap = Some(on)),
            Knob::Sp => self.each(knob, |phase| phase.plan.sp = Some(on)),
            Knob::ChunkedPrefill => self.each(knob, |phase| phase.plan.serving.chunked_prefill = Some(on)),
            _ => return false,
        }
        true
    }

    fn set_word(&mut self, knob: Knob, word: &Arc<str>, parts: &Parts) -> bool {
        match knob {
            Knob::Virt => self.sriov = &**word == "sriov",
            Knob::Fabric => {
                self.fabric = Arc::clone(word);
                let factor = parts.profile.as_ref().and_then(|profile| profile.fabric_factor(word));
                self.fabric_factor = factor.unwrap_or(f64::NAN);
            }
            Knob::Engine => match Engine::named(word) {
                Some(engine) => self.engine = engine,
                None => return false,
            },
            Knob::Precision => return self.each_word(knob, Format::named(word), |phase| &mut phase.plan.format),
            Knob::KvPrecision => return self.each_word(knob, Format::named(word), |phase| &mut phase.plan.kv),
            Knob::Recompute => {
                return self.each_word(knob, Recompute::named(word), |phase| &mut phase.plan.recompute);
            }
            Knob::Sharding => return self.each_word(knob, Sharding::named(word), |phase| &mut phase.plan.sharding),
            Knob::PipelineSchedule => {
                return self.each_word(knob, PipelineSchedule::named(word), |phase| &mut phase.plan.schedule);
            }
            Knob::Server => {
                return self.each_word(knob, Server::named(word), |phase| &mut phase.plan.serving.server);
            }
            Knob::Arrivals => {
                return self.each_word(knob, Arrivals::named(word), |phase| &mut phase.plan.simulation.arrivals);
            }
            _ => return false,
        }
        true
    }

    /// Changes the base and every phase that does not pin the knob.
    fn each(&mut self, knob: Knob, mut change: impl FnMut(&mut Phase)) {
        self.all_phases().filter(|phase| !phase.pinned.pins(knob)).for_each(&mut change);
    }

    /// As [`Scenario::each`], for a word; false where the word is none of the knob's.
    fn each_word<T: Copy>(&mut self, knob: Knob, word: Option<T>, slot: fn(&mut Phase) -> &mut Option<T>) -> bool {
        if word.is_some() {
            self.each(knob, |phase| *slot(phase) = word);
        }
        word.is_some()
    }

    /// Sequences of an optimizer step; where nobody says, one micro-batch on each replica.
    #[must_use]
    pub fn global(&self, phase: &Phase) -> f64 {
        phase.plan.global.unwrap_or(phase.shape.dp * self.microbatch)
    }

    /// Format of matrix multiplications in force.
    #[must_use]
    pub fn format(&self, phase: &Phase) -> Format {
        match phase.shape.mode {
            Mode::Inference => phase.served.format,
            Mode::Training => phase.plan.format.unwrap_or(Format::Bf16),
        }
    }

    /// Requests in flight; where nobody says, [`CONCURRENCY`] on each replica.
    #[must_use]
    pub fn concurrency(&self, phase: &Phase) -> f64 {
        phase.plan.serving.concurrency.unwrap_or(CONCURRENCY * phase.shape.dp)
    }

    /// Whether steps are replayed as captured graphs.
    #[must_use]
    pub fn graphs(&self, phase: &Phase) -> bool {
        match (self.engine.reasons(), phase.shape.mode) {
            (true, Mode::Inference) => phase.plan.graphs.unwrap_or(phase.served.captured_graphs),
            _ => self.cuda_graphs,
        }
    }
}

/// Requests in flight on a replica where nobody says: enough to keep it busy, few enough to be answered soon.
pub const CONCURRENCY: f64 = 16.0;
/// Probability that a drafted token is accepted where nobody says: about what EAGLE and MTP heads reach on chat
/// (EAGLE-2, arXiv 2406.16858, table 1; DeepSeek-V3, arXiv 2412.19437, section 5.4.3: 0.85 to 0.90 for one token).
pub const DRAFT_ACCEPTANCE: f64 = 0.7;

/// Where a plan keeps a number.
fn number_slot(knob: Knob) -> Option<fn(&mut Phase) -> &mut Option<f64>> {
    Some(match knob {
        Knob::Global => |phase| &mut phase.plan.global,
        Knob::ExpertImbalance => |phase| &mut phase.plan.imbalance,
        Knob::Vpp => |phase| &mut phase.plan.vpp,
        Knob::Cp => |phase| &mut phase.plan.cp,
        Knob::Ep => |phase| &mut phase.plan.ep,
        Knob::Shard => |phase| &mut phase.plan.shard,
        Knob::TrainTokens => |phase| &mut phase.plan.train_tokens,
        Knob::Concurrency => |phase| &mut phase.plan.serving.concurrency,
        Knob::RequestRate => |phase| &mut phase.plan.serving.request_rate,
        Knob::MaxNumSeqs => |phase| &mut phase.plan.serving.max_num_seqs,
        Knob::MaxNumBatchedTokens => |phase| &mut phase.plan.serving.max_num_batched_tokens,
        Knob::GpuMemoryUtilization => |phase| &mut phase.plan.serving.gpu_memory_utilization,
        Knob::PrefixHit => |phase| &mut phase.plan.serving.prefix_hit,
        Knob::DraftTokens => |phase| &mut phase.plan.serving.draft_tokens,
        Knob::DraftAcceptance => |phase| &mut phase.plan.serving.draft_acceptance,
        Knob::PrefillAccelerators => |phase| &mut phase.plan.serving.prefill_accelerators,
        Knob::Replications => |phase| &mut phase.plan.simulation.replications,
        Knob::Requests => |phase| &mut phase.plan.simulation.requests,
        Knob::Steps => |phase| &mut phase.plan.simulation.steps,
        Knob::ArrivalCv => |phase| &mut phase.plan.simulation.arrival_cv,
        Knob::PromptCv => |phase| &mut phase.plan.simulation.prompt_cv,
        Knob::GenerateCv => |phase| &mut phase.plan.simulation.generate_cv,
        Knob::SloTtft => |phase| &mut phase.plan.simulation.slo_ttft_ms,
        Knob::SloTpot => |phase| &mut phase.plan.simulation.slo_tpot_ms,
        Knob::SloE2e => |phase| &mut phase.plan.simulation.slo_e2e_ms,
        Knob::Jitter => |phase| &mut phase.plan.simulation.jitter,
        Knob::SlowNodes => |phase| &mut phase.plan.simulation.slow_nodes,
        Knob::SlowFactor => |phase| &mut phase.plan.simulation.slow_factor,
        Knob::NodeMtbf => |phase| &mut phase.plan.simulation.node_mtbf_h,
        Knob::CheckpointInterval => |phase| &mut phase.plan.simulation.checkpoint_interval_s,
        Knob::Checkpoint => |phase| &mut phase.plan.simulation.checkpoint_s,
        Knob::Restart => |phase| &mut phase.plan.simulation.restart_s,
        _ => return None,
    })
}

/// The format of the KV cache in force.
fn kv_format(phase: &Phase) -> Format {
    let by_width = if phase.served.formats.kv_bytes < 2.0 { Format::Fp8 } else { Format::Bf16 };
    phase.plan.kv.unwrap_or(by_width)
}

/// Gigabits as people write them: without the dust of a division by eight.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
