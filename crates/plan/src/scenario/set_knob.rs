//! Getting and setting knobs of a scenario.

use atlas_core::count::Count;
use std::sync::Arc;

use super::{Parts, Phase, Scenario, drafts, first_draw, reuse};
use crate::knob::{Knob, KnobError, KnobValues as _, Setting};
use atlas_config::Mode;
use atlas_core::field::{DefaultValue, Field, Slot};
use atlas_core::plan::{Engine, Format, LoadKind, Preset, PriceBasis, Trained};
use atlas_core::plan_spec::PlanSpec;
use atlas_perf::serving::formats::supported_16_bit_format;
use atlas_perf::serving::{GraphCapture as ServingGraphs, HostOverlap, Load};
use atlas_perf::traits::{Accumulation, StepLaunch};

impl Scenario {
    /// Value of a knob in effect: set by the user, stated in the files, or derived from other values.
    #[must_use]
    pub fn get(&self, knob: Knob) -> Setting {
        let Phase { shape, plan, serving_defaults: served, .. } = &self.base;
        let word = |name: &str| Setting::Choice(name.into());
        let [host, ssd, remote] = reuse::tiers(plan);
        match knob {
            Knob::Engine => word(self.engine.name()),
            Knob::Software => Setting::Choice(self.software_name()),
            Knob::Microbatch => number(self.micro(&self.base)),
            Knob::Global => number(self.global(&self.base)),
            Knob::Precision => word(self.packed(&self.base).unwrap_or_else(|| self.format(&self.base)).name()),
            Knob::Compute => word(plan.compute.unwrap_or_else(|| self.compute(&self.base)).name()),
            Knob::WeightBits => number(plan.weight_bits.unwrap_or_else(|| match shape.mode {
                Mode::Training => self.weight_bits(&self.base),
                // In mixtures whose published checkpoints quantize experts only, the bits are those of the experts.
                Mode::Inference if plan.experts.is_none_or(|experts| experts == self.format(&self.base)) => {
                    served.formats.expert_bytes * 8.0
                }
                Mode::Inference => served.formats.dense_bytes * 8.0,
            })),
            Knob::GradientFormat => word(self.gradient_format(&self.base).name()),
            Knob::OverlapTensor => Setting::Toggle(self.training_software(&self.base).overlap_tensor),
            Knob::OverlapPipeline => Setting::Toggle(self.training_software(&self.base).overlap_pipeline),
            Knob::OverlapExperts => Setting::Toggle(self.training_software(&self.base).overlap_experts),
            Knob::OverlapData => Setting::Toggle(self.training_software(&self.base).overlap_data),
            Knob::AttentionKernel => word(self.attention_kernel(&self.base).name()),
            Knob::Compiled => {
                let usual = self.active_software.training.launch != StepLaunch::Eager;
                Setting::Toggle(plan.switches.compiled.unwrap_or(usual))
            }
            Knob::MoeDispatcher => word(self.moe_dispatcher(&self.base).name()),
            Knob::AttentionDp => number(self.base.decode_layout().attention_dp),
            Knob::Load => {
                let usual = || load_kind(&self.load(&self.base));
                word(plan.serving.load.unwrap_or_else(usual).name())
            }
            Knob::OverlapScheduling => Setting::Toggle(self.host_overlap(&self.base) == HostOverlap::Scheduling),
            Knob::ReserveOutput => Setting::Toggle(plan.serving.reserve_output.unwrap_or(served.reserve_output)),
            Knob::PythonExecutor => Setting::Toggle(plan.serving.python_executor.unwrap_or(served.python_executor)),
            Knob::KvPrecision => word(kv_format(&self.base).name()),
            Knob::ExpertPrecision => word(plan.experts.unwrap_or_else(|| self.format(&self.base)).name()),
            Knob::Recompute => word(self.recompute(&self.base).name()),
            Knob::CudaGraphs => Setting::Toggle(self.graphs(&self.base)),
            Knob::GpudirectRdma => Setting::Toggle(self.gpudirect_rdma),
            Knob::Virt => word(if self.sriov { "sriov" } else { "bare" }),
            Knob::Fabric => Setting::Choice(Arc::clone(&self.fabric)),
            Knob::Tp => number(self.base.decode_layout().tp),
            Knob::Pp => number(self.base.decode_layout().pp),
            Knob::FirstLayers => number(plan.first_layers.map_or_else(|| self.stage_layers(0.0), f64::from)),
            Knob::LastLayers => number(plan.last_layers.map_or_else(|| self.stage_layers(shape.pp - 1.0), f64::from)),
            Knob::Dp => number(self.base.decode_layout().dp),
            Knob::Ep => number(self.base.decode_layout().ep),
            Knob::Etp => number(self.expert_tensor_ranks(&self.base)),
            Knob::Sp => Setting::Toggle(self.sequence_parallel(&self.base)),
            Knob::Sharding => word(self.sharding(&self.base).name()),
            Knob::Prompt => number(shape.prompt),
            Knob::Generate => number(shape.generate),
            Knob::Concurrency => number(self.concurrency(&self.base)),
            Knob::MaxNumSeqs => number(plan.serving.max_num_seqs.unwrap_or(served.max_num_seqs)),
            Knob::MaxNumBatchedTokens => {
                number(plan.serving.max_num_batched_tokens.map_or(served.max_num_batched_tokens, f64::from))
            }
            Knob::GpuMemoryUtilization => {
                // Round the default to a thousandth: a reserve in GiB yields a share with many digits.
                let usual = || (1e3 * self.memory_share(&self.base)).round() / 1e3;
                number(plan.serving.gpu_memory_utilization.unwrap_or_else(usual))
            }
            Knob::ChunkedPrefill => Setting::Toggle(plan.serving.chunked_prefill.unwrap_or(served.chunked_prefill)),
            Knob::DraftAcceptance => number(self.drafts(&self.base).acceptance),
            Knob::DraftDecline => number(self.drafts(&self.base).decline),
            Knob::DraftParams => number(plan.serving.draft_params_b.unwrap_or(drafts::DRAFT_PARAMS_B)),
            Knob::KvHostGb => number(host.0),
            Knob::KvHostGbps => number(host.1),
            Knob::KvSsdGb => number(ssd.0),
            Knob::KvSsdGbps => number(ssd.1),
            Knob::KvRemoteGb => number(remote.0),
            Knob::KvRemoteGbps => number(remote.1),
            Knob::PrefillTp => number(self.base.prefill_layout().tp),
            Knob::PrefillPp => number(self.base.prefill_layout().pp),
            Knob::PrefillEp => number(self.base.prefill_layout().ep),
            Knob::PrefillAttentionDp => number(self.base.prefill_layout().attention_dp),
            Knob::NumNodes => number(self.num_nodes),
            Knob::NetworkGbps => number(self.machine.map_or(0.0, |m| round(m.device.nic_bw * m.dies * 8e-9))),
            Knob::Oversubscription => number(self.machine.map_or(1.0, |machine| machine.oversubscription)),
            Knob::HostMemoryGb => number(self.host_memory_gb.unwrap_or(0.0)),
            Knob::Seed => Setting::Seed(self.seed),
            Knob::Noise => Setting::Toggle(self.noise),
            Knob::Replications => number(self.simulation(&self.base).replications),
            Knob::Steps => number(self.simulation(&self.base).steps),
            Knob::Arrivals => word(self.simulation(&self.base).arrivals.name()),
            Knob::SlowFactor => number(self.simulation(&self.base).slow_factor),
            Knob::Checkpoint => number(round(self.checkpoint_write(&self.base))),
            Knob::Restart => number(self.simulation(&self.base).restart),
            _ => self.cost_setting(knob).unwrap_or_else(|| plan_value(knob.spec(), plan)),
        }
    }

    /// Value of a knob of prices, energy or the facility; `None` for other knobs.
    fn cost_setting(&self, knob: Knob) -> Option<Setting> {
        Some(match knob {
            Knob::PriceBasis => Setting::Choice(self.terms.basis.name().into()),
            Knob::HourlyUsd => number(self.hourly_usd.unwrap_or(0.0)),
            Knob::EnergyIncluded => Setting::Toggle(self.energy_is_included()),
            Knob::UsdPerKwh => number(self.usd_per_kwh),
            Knob::PeakUsdPerKwh => number(self.terms.peak_usd_per_kwh.unwrap_or(self.usd_per_kwh)),
            Knob::PeakHours => number(self.terms.peak_hours),
            Knob::PowerCap => number(self.terms.power_cap.unwrap_or(0.0)),
            Knob::ClockShare => number(self.terms.clock_share),
            Knob::RackKw => number(self.terms.rack_kw.unwrap_or(0.0)),
            Knob::NodesPerRack => number(self.terms.nodes_per_rack.unwrap_or(Count::ZERO)),
            Knob::NetworkShare => number(self.terms.network_share),
            Knob::SparesShare => number(self.terms.spares_share),
            Knob::StaffUsdNodeYear => number(self.terms.staff_usd_node_year),
            Knob::UsdPerKwMonth => number(self.terms.usd_per_kw_month),
            Knob::CapitalCost => number(self.terms.capital_cost),
            Knob::Pue => number(self.pue),
            Knob::KgCo2ePerKwh => number(self.kg_co2e_per_kwh),
            Knob::CapexUsdNode => number(self.capex_usd_node.unwrap_or(0.0)),
            Knob::AmortizationYears => number(self.amortization_years),
            Knob::Utilization => number(self.utilization),
            _ => return None,
        })
    }

    /// Whether the knob has a derived default and neither files nor the user state its value.
    #[must_use]
    pub fn follows(&self, knob: Knob) -> bool {
        // The price basis determines whether a price includes energy.
        (knob == Knob::EnergyIncluded && self.terms.energy_included.is_none())
            || matches!(knob.spec().slot, Slot::Number { get, .. } if get(&self.base.plan).is_none())
    }

    /// Sets a knob. A phase that overrides the value keeps its own.
    ///
    /// # Errors
    ///
    /// If the knob does not accept a setting of this type.
    pub fn set(&mut self, knob: Knob, setting: &Setting, parts: &Parts) -> Result<(), KnobError> {
        let accepted = match setting {
            Setting::Number(value) => self.set_number(knob, *value),
            Setting::Toggle(on) => self.set_toggle(knob, *on),
            Setting::Choice(word) => self.set_word(knob, word, parts),
            Setting::Seed(seed) => {
                self.reseed(*seed, first_draw);
                knob == Knob::Seed
            }
        };
        if !accepted {
            // A setting of the wrong type can only come from code, not from user input: parse its text form instead.
            let parsed = knob.parse(&setting.to_string(), parts.fabrics())?;
            if &parsed != setting {
                return self.set(knob, &parsed, parts);
            }
        }
        if knob == Knob::Software {
            self.resolve_software(parts);
        }
        if matches!(
            knob,
            Knob::Precision
                | Knob::Compute
                | Knob::WeightBits
                | Knob::KvPrecision
                | Knob::ExpertPrecision
                | Knob::Software
                | Knob::Prompt
                | Knob::Generate
                | Knob::DraftTokens
        ) {
            self.set_serving_defaults(parts);
        }
        self.complete_layout();
        Ok(())
    }

    fn set_number(&mut self, knob: Knob, value: f64) -> bool {
        let count = Count::floor(value);
        match knob {
            Knob::Microbatch => (self.microbatch, self.micro_stated) = (count, true),
            Knob::NumNodes => {
                self.num_nodes = count;
                let accelerators = self.accelerators();
                if let Some(machine) = &mut self.machine {
                    machine.set_accelerators(accelerators);
                }
            }
            Knob::HostMemoryGb => self.host_memory_gb = positive(value),
            Knob::HourlyUsd => self.hourly_usd = positive(value),
            Knob::UsdPerKwh => self.usd_per_kwh = value,
            Knob::PeakUsdPerKwh => self.terms.peak_usd_per_kwh = Some(value),
            Knob::PeakHours => self.terms.peak_hours = value,
            Knob::PowerCap => self.terms.power_cap = positive(value),
            Knob::ClockShare => self.terms.clock_share = value,
            Knob::RackKw => self.terms.rack_kw = positive(value),
            Knob::NodesPerRack => self.terms.nodes_per_rack = Count::floor(value).nonzero(),
            Knob::NetworkShare => self.terms.network_share = value,
            Knob::SparesShare => self.terms.spares_share = value,
            Knob::StaffUsdNodeYear => self.terms.staff_usd_node_year = value,
            Knob::UsdPerKwMonth => self.terms.usd_per_kw_month = value,
            Knob::CapitalCost => self.terms.capital_cost = value,
            Knob::Pue => self.pue = value,
            Knob::KgCo2ePerKwh => self.kg_co2e_per_kwh = value,
            Knob::CapexUsdNode => self.capex_usd_node = positive(value),
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
            Knob::Tp => self.each(knob, |phase| {
                (phase.shape.tp, phase.plan.tp) = (count, Some(count));
                phase.plan.serving.pools.decode.tp = None;
            }),
            Knob::Pp => self.each(knob, |phase| {
                (phase.shape.pp, phase.plan.pp) = (count, Some(count));
                phase.plan.serving.pools.decode.pp = None;
            }),
            Knob::Ep => self.each(knob, |phase| {
                phase.plan.ep = Some(count);
                phase.plan.serving.pools.decode.ep = None;
            }),
            Knob::AttentionDp => self.each(knob, |phase| {
                phase.plan.attention_dp = Some(count);
                phase.plan.serving.pools.decode.attention_dp = None;
            }),
            Knob::Dp => self.each(knob, |phase| {
                (phase.shape.dp, phase.plan.dp) = (count, Some(count));
                phase.plan.serving.pools.decode.workers = None;
            }),
            Knob::Prompt => self.each(knob, |phase| phase.shape.prompt = value),
            Knob::Generate => self.each(knob, |phase| phase.shape.generate = value),
            _ => {
                let Slot::Number { put, .. } = knob.spec().slot else { return false };
                self.each(knob, |phase| put(&mut phase.plan, Some(value)));
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
            Knob::EnergyIncluded => self.terms.energy_included = Some(on),
            Knob::Noise => self.noise = on,
            _ => {
                let Slot::Flag { put, .. } = knob.spec().slot else { return false };
                self.each(knob, |phase| put(&mut phase.plan, Some(on)));
            }
        }
        true
    }

    fn set_word(&mut self, knob: Knob, word: &Arc<str>, parts: &Parts) -> bool {
        match knob {
            Knob::Virt => self.sriov = &**word == "sriov",
            Knob::PriceBasis => match PriceBasis::named(word) {
                Some(basis) => self.set_price_basis(basis, parts),
                None => return false,
            },
            Knob::Fabric => {
                self.fabric = Arc::clone(word);
                self.fabric_factor = parts.profile.as_ref().and_then(|profile| profile.fabric_factor(word));
            }
            Knob::Engine => match Engine::named(word) {
                Some(engine) => self.engine = engine,
                None => return false,
            },
            Knob::Software => self.software = Some(Arc::clone(word)),
            Knob::Precision => {
                let Some(preset) = Preset::named(word) else { return false };
                self.each(knob, |Phase { plan, .. }| {
                    (plan.format, plan.nvfp4) = (Some(preset.weights), preset.nvfp4);
                    // A named precision replaces stated weight bits, compute format and expert format.
                    (plan.weight_bits, plan.compute, plan.experts) = (preset.bits, preset.compute, None);
                });
            }
            _ => {
                let Slot::Word { put, .. } = knob.spec().slot else { return false };
                // `base` has no pinned knobs, so it accepts the word if any phase does.
                let mut known = false;
                self.each(knob, |phase| known |= put(&mut phase.plan, word));
                return known;
            }
        }
        true
    }

    /// Changes the base and every phase that does not pin the knob.
    fn each(&mut self, knob: Knob, mut change: impl FnMut(&mut Phase)) {
        self.all_phases().filter(|phase| !phase.pinned.contains(knob)).for_each(&mut change);
    }

    /// Sequences per optimizer step. By default, one micro-batch per replica; with pipeline stages, which would then be
    /// mostly idle, about four million tokens in a multiple of one micro-batch per stage.
    #[must_use]
    pub fn global(&self, phase: &Phase) -> f64 {
        if let Some(global) = phase.plan.global {
            return global.into();
        }
        let once = phase.shape.dp * self.microbatch;
        if !self.accumulates_by_default(phase) {
            return once;
        }
        let each_stage = (STEP_TOKENS / (once * phase.shape.prompt * phase.shape.pp)).round().max(1.0);
        once * phase.shape.pp * each_stage
    }

    /// Whether the default global batch has several micro-batches per replica.
    fn accumulates_by_default(&self, phase: &Phase) -> bool {
        let accumulates = self.active_software.training.accumulation == Accumulation::MicroBatches;
        self.engine.models_hardware() && accumulates && phase.shape.pp > 1.0 && phase.shape.prompt >= 1.0
    }

    /// Describes how the default global batch is determined.
    #[must_use]
    pub fn default_global(&self, phase: &Phase) -> &'static str {
        if self.accumulates_by_default(phase) {
            "about four million tokens, a multiple of the pipeline stages"
        } else {
            "one micro-batch per replica"
        }
    }

    /// Sequences per micro-batch. If not stated, software without gradient accumulation processes the whole share of a
    /// rank at once.
    #[must_use]
    pub fn micro(&self, phase: &Phase) -> f64 {
        let whole_batch = self.active_software.training.accumulation == Accumulation::WholeBatch;
        match (self.micro_stated, phase.plan.global) {
            (false, Some(global)) if whole_batch => (global / phase.shape.dp.max(Count::ONE)).max(1.0),
            _ => self.microbatch.into(),
        }
    }

    /// Format of matrix multiplications in effect.
    #[must_use]
    pub fn format(&self, phase: &Phase) -> Format {
        match phase.shape.mode {
            Mode::Inference => phase.serving_defaults.format,
            Mode::Training => {
                let adapters = phase.plan.trained == Some(Trained::Lora);
                let multiplied = phase.plan.format.filter(|format| !(adapters && *format == Format::Int4));
                phase.plan.compute.or(multiplied).unwrap_or_else(|| {
                    self.machine
                        .as_ref()
                        .map_or(Format::Bf16, |machine| supported_16_bit_format(&machine.device, Format::Bf16))
                })
            }
        }
    }

    /// Concurrent requests; by default, [`CONCURRENCY`] per replica. A conversation has one request in flight at a time.
    #[must_use]
    pub fn concurrency(&self, phase: &Phase) -> f64 {
        let requested = phase.plan.serving.concurrency.map_or(CONCURRENCY * phase.shape.dp, f64::from);
        phase.plan.serving.conversations.map_or(requested, |conversations| requested.min(conversations.into()))
    }

    /// The same scenario with CUDA graphs switched on or off.
    pub(crate) fn with_graphs(&self, on: bool) -> Scenario {
        let mut other = self.clone();
        other.set_toggle(Knob::CudaGraphs, on);
        other
    }

    /// Whether steps are replayed as captured CUDA graphs.
    #[must_use]
    pub fn graphs(&self, phase: &Phase) -> bool {
        match (self.engine.models_hardware(), phase.shape.mode) {
            (true, Mode::Inference) => {
                phase.plan.graphs.unwrap_or(phase.serving_defaults.graphs != ServingGraphs::None)
            }
            _ => self.cuda_graphs,
        }
    }
}

fn number(value: impl Into<f64>) -> Setting {
    Setting::Number(value.into())
}

/// Default number of concurrent requests per replica: enough for a good utilization at a moderate latency.
pub const CONCURRENCY: f64 = 16.0;

/// Default tokens per optimizer step with pipeline stages: the initial batch of Llama 3 405B (arXiv:2407.21783, section
/// 3.4.1).
const STEP_TOKENS: f64 = 4.0 * 1024.0 * 1024.0;

fn load_kind(load: &Load) -> LoadKind {
    match load {
        Load::Static { .. } => LoadKind::Static,
        Load::DecodeOnly { .. } => LoadKind::DecodeOnly,
        Load::PrefillOnly { .. } => LoadKind::PrefillOnly,
        Load::Closed { .. } => LoadKind::Closed,
        Load::Burst { .. } => LoadKind::Burst,
        Load::Open { .. } => LoadKind::Open,
    }
}

/// Format of the KV cache in effect.
fn kv_format(phase: &Phase) -> Format {
    let by_width = if phase.serving_defaults.formats.kv_bytes < 2.0 { Format::Fp8 } else { Format::Bf16 };
    phase.plan.kv.unwrap_or(by_width)
}

/// Value of a field stated by a plan, or its default.
fn plan_value(field: &Field, plan: &PlanSpec) -> Setting {
    let usual = match field.default {
        DefaultValue::Number(value) => Setting::Number(value),
        DefaultValue::Flag(on) => Setting::Toggle(on),
        DefaultValue::Word(word) => Setting::Choice(word.into()),
        // Fields with derived defaults have their own cases in `get`.
        DefaultValue::Follows => Setting::Number(0.0),
    };
    let stated = match field.slot {
        Slot::Number { get, .. } => get(plan).map(Setting::Number),
        Slot::Flag { get, .. } => get(plan).map(Setting::Toggle),
        Slot::Word { get, .. } => get(plan).map(|word| Setting::Choice(word.into())),
        Slot::Outside => None,
    };
    stated.unwrap_or(usual)
}

/// Value of a knob for which 0 means none.
fn positive(value: f64) -> Option<f64> {
    Some(value).filter(|value| *value > 0.0)
}

/// Removes the floating-point error of a division by eight from a value in Gb/s.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
