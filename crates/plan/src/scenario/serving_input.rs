//! Input of the serving engine.

use super::{Phase, Scenario};
use atlas_core::count::Count;
use atlas_core::plan::{KvTransfer, LoadKind, MoeDispatcher, SharedExperts};
use atlas_perf::arch::Architecture;
use atlas_perf::serving::shape::Shape;
use atlas_perf::serving::{AllReduce, Dispatch, ExpertSpread, GraphCapture, Layout, Load, Pools, ServingInput, Stack};
use atlas_perf::traits::{ExpertProducts, MemoryRule};

/// Limits of a step of one attention group.
struct StepLimits {
    sequences: Count,
    tokens: f64,
}

impl Scenario {
    /// Input of the serving engine for a phase; `None` without machine or model.
    #[must_use]
    pub fn serving_input(&self, phase: &Phase) -> Option<ServingInput> {
        let (machine, arch) = (self.machine.as_ref()?, self.model.as_ref()?);
        let (shape, served, requested) = (&phase.shape, &phase.serving_defaults, &phase.plan.serving);
        let mut layout = layout(phase, arch);
        let load = self.load(phase);
        let images = self.images(phase);
        let isl = shape.prompt + images.map_or(0.0, |images| images.tokens);
        let mut accelerator = machine.device;
        accelerator.network.oversubscription = machine.oversubscription;
        if layout.pp > 1.0 && matches!(served.stack, Stack::Local | Stack::Eager) {
            // Layers are split over devices that compute in turn, which is equivalent to one device with the memory of all.
            accelerator.mem_bytes *= f64::from(layout.pp);
            layout.pp = Count::ONE;
        }
        // Graphs of fixed shapes attend to a whole bucket, regardless of windows, and process one prompt at a time.
        let arch = match served.fixed_shapes {
            true => Architecture { window: None, ..*arch },
            false => *arch,
        };
        let whole_prompts = served.fixed_shapes && served.stack == Stack::Graphed;
        let compiled_batch = match requested.compiled_batch {
            Some(batch) => Some(batch).filter(|batch| *batch > 0.0),
            None => requested.max_num_seqs.filter(|_| served.fixed_shapes),
        };
        let pools = phase
            .pools()
            .map(|pools| Pools { prefill: experts_of(pools.prefill, &arch), decode: experts_of(pools.decode, &arch) });
        let StepLimits { sequences, tokens } = step_limits(phase, layout, pools);
        Some(ServingInput {
            accelerator,
            arch,
            layout,
            formats: served.formats,
            isl,
            images,
            // A prefill ends with its first token.
            osl: if arch.causal && !matches!(load, Load::PrefillOnly { .. }) { shape.generate.max(1.0) } else { 1.0 },
            osl_spread: requested.generate_spread.unwrap_or(1.0),
            osl_max: requested.generate_max,
            load,
            max_in_flight: max_in_flight(self, phase),
            arrivals: match load {
                Load::Open { .. } => run_requests(phase),
                _ => f64::INFINITY,
            },
            stack: served.stack,
            python_executor: requested.python_executor.unwrap_or(served.python_executor),
            graphs: match (self.graphs(phase), served.graphs) {
                (false, _) => GraphCapture::None,
                (true, GraphCapture::None) => GraphCapture::Full,
                (true, captured) => captured,
            },
            eager_prompts: served.eager_prompts,
            expert_products: expert_products(self, phase),
            grouped_query_decode: served.grouped_query_decode,
            tuned_products: served.tuned_products,
            inputs: served.inputs,
            kernels: served.kernels,
            all_reduce: all_reduce(self, phase, &arch),
            in_switch_reduction: phase.serving_defaults.in_switch_reduction,
            expanded_drafts: served.expanded_drafts,
            host: self.host_overlap(phase),
            attention: served.attention,
            admission: served.admission,
            gathering: served.gathering,
            graph_batch: served.graph_batch,
            recv_interval: requested.recv_interval.unwrap_or(Count::ONE),
            context_ranks: requested.context_ranks.unwrap_or(Count::ONE),
            beams: requested.beams.unwrap_or(Count::ONE),
            full_window_cache: served.full_window_cache,
            expanded_prefix: served.expanded_prefix,
            kv_block: served.kv_block,
            reserve_output: requested.reserve_output.unwrap_or(served.reserve_output),
            // A batch whose decode steps are timed runs concurrently as a whole.
            max_num_seqs: (!matches!(load, Load::DecodeOnly { .. })).then_some(sequences),
            compiled_batch,
            batch_buckets: served.batch_buckets && requested.compiled_batch.is_none(),
            max_num_batched_tokens: match (whole_prompts, arch.causal) {
                (true, _) => isl.max(1.0),
                (false, true) => tokens,
                // Bidirectional attention requires the whole prompt in one step.
                (false, false) => tokens.max(isl),
            },
            memory_utilization: self.memory_share(phase),
            chunked_prefill: !whole_prompts
                && arch.causal
                && requested.chunked_prefill.unwrap_or(served.chunked_prefill),
            // Without a causal mask, the states of a prefix depend on what follows.
            prefix_hit: requested.prefix_hit.filter(|_| arch.causal).unwrap_or(0.0),
            speculation: self.drafts(phase),
            pools,
            conversations: phase.conversations(),
            kv_tiers: phase.kv_tiers(),
            prefix_aware_routing: phase.prefix_aware_routing(),
            loading: 0.0,
            scale_up_kv_transfer: requested.kv_transfer == Some(KvTransfer::ScaleUp),
            experts: ExpertSpread {
                dispatch: match self.moe_dispatcher(phase) {
                    MoeDispatcher::AllToAll => Dispatch::Collective,
                    MoeDispatcher::DeepEp | MoeDispatcher::HybridEp => Dispatch::Direct,
                },
                overlapped_half_batches: requested.two_batch_overlap.unwrap_or(false),
                fused_shared: requested.shared_experts == Some(SharedExperts::Fused),
            },
        })
    }

    /// Load of a phase: as stated, otherwise an open loop if a request rate is stated, otherwise a constant number of
    /// concurrent requests.
    #[must_use]
    pub fn load(&self, phase: &Phase) -> Load {
        let (served, requested) = (&phase.serving_defaults, &phase.plan.serving);
        let rate = requested.request_rate;
        let requests = run_requests(phase);
        let concurrency = self.concurrency(phase);
        match (requested.load, rate) {
            (Some(LoadKind::Static), _) => Load::Static { batch: concurrency },
            (Some(LoadKind::DecodeOnly), _) => Load::DecodeOnly { batch: concurrency },
            (Some(LoadKind::PrefillOnly), _) => Load::PrefillOnly { batch: concurrency },
            (Some(LoadKind::Burst), _) => Load::Burst { requests },
            // A run never has more requests at once than in total.
            (Some(LoadKind::Closed), None) | (None, None) if served.continuous => {
                Load::Closed { concurrency: concurrency.min(requests), requests }
            }
            // A closed load with a request rate is an open load with a limit on concurrent requests.
            (Some(LoadKind::Open | LoadKind::Closed) | None, Some(rate)) => Load::Open { rate },
            (Some(LoadKind::Open), None) => Load::Closed { concurrency: concurrency.min(requests), requests },
            // Without continuous batching, concurrent requests run as one batch.
            (Some(LoadKind::Closed) | None, None) => Load::Static { batch: concurrency },
        }
    }

    /// Share of device memory available for weights and KV cache.
    #[must_use]
    pub fn memory_share(&self, phase: &Phase) -> f64 {
        if let Some(stated) = phase.plan.serving.gpu_memory_utilization {
            return stated;
        }
        let rule = phase.serving_defaults.memory;
        if let MemoryRule::OfTotal(share) = rule {
            return share;
        }
        share_by(rule, self, phase).unwrap_or(0.9)
    }

    /// Share of device memory that the weights occupy; `None` without a machine or a model.
    #[must_use]
    pub fn weights_share(&self, phase: &Phase) -> Option<f64> {
        share_by(MemoryRule::OfFree(0.0), self, phase)
    }
}

/// Limits of a step of one attention group. Software that divides the limits of a server has a default for the
/// sequences of a group.
fn step_limits(phase: &Phase, layout: Layout, pools: Option<Pools>) -> StepLimits {
    let (served, requested) = (&phase.serving_defaults, &phase.plan.serving);
    let groups = |layout: Layout| match served.server_limits {
        true => layout.attention_dp.max(Count::ONE),
        false => Count::ONE,
    };
    let decoding = groups(pools.map_or(layout, |pools| pools.decode));
    let prefilling = groups(pools.map_or(layout, |pools| pools.prefill));
    let stated = requested.max_num_seqs.map(|all| Count::floor(all / decoding));
    let sequences = stated.unwrap_or(served.max_num_seqs);
    // A graph of a fixed shape has no places for further sequences.
    let compiled = requested.compiled_batch.filter(|batch| *batch > 0.0);
    let attention_dp = pools.map_or(layout, |pools| pools.decode).attention_dp.max(Count::ONE);
    let sequences = compiled.map_or(sequences, |batch| sequences.min(Count::floor(batch / attention_dp)));
    let beams = requested.beams.unwrap_or(Count::ONE);
    let per_request = if served.beams_are_sequences { beams.max(Count::ONE) } else { Count::ONE };
    StepLimits {
        sequences: Count::floor(sequences / per_request).max(Count::ONE),
        tokens: requested.max_num_batched_tokens.map_or(served.max_num_batched_tokens, f64::from) / prefilling,
    }
}

/// Layout of a phase.
fn layout(phase: &Phase, arch: &Architecture) -> Layout {
    experts_of(phase.decode_layout(), arch)
}

/// Removes expert parallelism from the layout of a dense model.
fn experts_of(layout: Layout, arch: &Architecture) -> Layout {
    if arch.is_moe() { layout } else { Layout { ep: Count::ONE, redundant: Count::ZERO, ..layout } }
}

/// Requests of the whole run; infinite if the load is endless.
fn run_requests(phase: &Phase) -> f64 {
    phase.plan.serving.run_requests.map_or(f64::INFINITY, f64::from)
}

/// How the GEMMs of the experts run. Tokens that ranks send directly (DeepEP) are grouped by expert for compiled kernels
/// (DeepGEMM), also in software whose usual kernels are written in Triton.
fn expert_products(scenario: &Scenario, phase: &Phase) -> ExpertProducts {
    let usual = phase.serving_defaults.expert_products;
    let direct = scenario.moe_dispatcher(phase) != MoeDispatcher::AllToAll;
    if direct && usual == ExpertProducts::Triton { ExpertProducts::Grouped } else { usual }
}

/// All-reduce algorithm for activations. Software with fused all-reduce and normalization uses it only for mixtures of
/// experts whose replicas are within a node and have no attention groups, without which experts are not dispatched.
fn all_reduce(scenario: &Scenario, phase: &Phase, arch: &Architecture) -> AllReduce {
    let dies = scenario.machine.map_or(1.0, |machine| machine.dies);
    let inside =
        |layout: &Layout| layout.attention_dp <= 1.0 && f64::from(layout.tp) <= scenario.accelerators_per_node * dies;
    let layouts = phase.pools().map_or([phase.decode_layout(); 2], |pools| [pools.prefill, pools.decode]);
    match phase.serving_defaults.all_reduce {
        AllReduce::Fused if !arch.is_moe() || !layouts.iter().all(inside) => AllReduce::Direct,
        stated => stated,
    }
}

/// Limit on the concurrent requests of an open load: the stated concurrency if the kind of load is stated as well. A
/// request rate alone replaces the concurrency.
fn max_in_flight(scenario: &Scenario, phase: &Phase) -> f64 {
    let requested = &phase.plan.serving;
    match (requested.load, requested.concurrency) {
        (Some(LoadKind::Open), Some(_)) | (Some(LoadKind::Closed), _) if requested.request_rate.is_some() => {
            scenario.concurrency(phase)
        }
        _ => f64::INFINITY,
    }
}

/// Share of device memory that a rule allows.
fn share_by(rule: MemoryRule, scenario: &Scenario, phase: &Phase) -> Option<f64> {
    let (machine, arch) = (scenario.machine.as_ref()?, scenario.model.as_ref()?);
    let layout = layout(phase, arch);
    let images = scenario.images(phase).map_or(0.0, |images| 2.0 * images.params / layout.tp.max(Count::ONE));
    let weights = Shape::new(arch, &phase.serving_defaults.formats, &layout).resident_bytes + images;
    Some(rule.share(machine.device.capacity(), weights, layout.replica()))
}
