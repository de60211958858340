//! Notes on an estimate: assumptions and limitations that affect the scenario.

mod simulated;

use super::answer::power::ACCELERATOR_POWER_SHARE;
use super::answer::{corrected, throttle};
use super::benchboard;
use crate::estimate::Estimate;
use crate::scenario::Scenario;
use atlas_catalog::software::Software;
use atlas_config::Mode;
use atlas_config::corrections::Quantity;
use atlas_core::field::Knob;
use atlas_core::plan::{Engine, Format, LoadKind, PriceBasis};
use atlas_core::units::{duration_ms, si, with_unit};
use atlas_perf::serving::Stack;
use atlas_perf::training::measured::best_mfu;

/// Notes on an estimate of a scenario, most important first.
#[must_use]
pub fn notes(scenario: &Scenario, estimate: &Estimate) -> Vec<String> {
    match scenario.engine {
        Engine::SemiEmpirical => calibrated(scenario),
        Engine::Analytical => {
            let mut notes = Vec::from_iter(excess_utilization_note(estimate));
            notes.extend(corrections(scenario, estimate));
            notes.extend(without_effect_of_compilation(scenario, estimate));
            notes.extend(without_effect_of_graphs(scenario, estimate));
            notes.extend(analytical(scenario, estimate));
            notes
        }
        Engine::Event => {
            let mut notes = Vec::from_iter(excess_utilization_note(estimate));
            notes.extend(corrections(scenario, estimate));
            notes.extend(simulated::notes(scenario, estimate));
            notes.extend(analytical(scenario, estimate));
            notes
        }
        Engine::Benchboard => dashboard(scenario),
    }
}

/// Note that compilation of the model, if stated, changes nothing.
fn without_effect_of_compilation(scenario: &Scenario, estimate: &Estimate) -> Option<String> {
    let compiled = scenario.base.plan.switches.compiled.filter(|_| scenario.mode() == Mode::Training)?;
    let mut other = scenario.clone();
    other.base.plan.switches.compiled = Some(!compiled);
    (super::estimate(&other).total == estimate.total).then(|| {
        "compiled has no effect: the software fuses element-wise kernels itself, and kernels hide the launches"
            .to_owned()
    })
}

/// Note that CUDA graphs, if stated for serving, change nothing.
fn without_effect_of_graphs(scenario: &Scenario, estimate: &Estimate) -> Option<String> {
    if scenario.mode() != Mode::Inference || !scenario.stated.contains(Knob::CudaGraphs) {
        return None;
    }
    let other = scenario.with_graphs(!scenario.graphs(&scenario.base));
    (super::estimate(&other).total == estimate.total).then(|| {
        let why = match scenario.base.serving_defaults.stack {
            Stack::Compiled => "the compiled runtime launches its kernels in one call",
            _ => "the host launches kernels faster than the accelerator runs them",
        };
        format!("cuda_graphs has no effect: {why}")
    })
}

/// Explains a FLOP utilization above 100 %.
fn excess_utilization_note(estimate: &Estimate) -> Option<String> {
    let training = estimate.detail.and_then(|detail| detail.training)?;
    (estimate.total.flop_utilization > 1.0).then(|| {
        format!(
            "a FLOP utilization of {:.0} % is not a share of the peak: by convention it counts attention between all pairs of \
             tokens, most of which a mask skips in sequences so long; {:.1} % of the peak are executed (HFU), {:.1} % are \
             needed",
            100.0 * estimate.total.flop_utilization,
            100.0 * training.hfu,
            100.0 * training.mfu_causal
        )
    })
}

/// Compares values calibrated with measurements of the cluster with the uncalibrated ones.
fn corrections(scenario: &Scenario, estimate: &Estimate) -> Vec<String> {
    let Some(own) = &scenario.corrections else { return Vec::new() };
    if scenario.engine.simulates() {
        return vec![
            "the calibration of this target is not applied to simulations; advice starts from the calibrated \
                     closed form"
                .to_owned(),
        ];
    }
    let described = corrected::corrected_metrics(scenario, estimate).into_iter().map(|one| {
        let figure = |value: f64| match one.quantity {
            Quantity::Training | Quantity::Serving => with_unit(&si(value), "tok/s"),
            Quantity::Tpot | Quantity::Ttft => duration_ms(value),
        };
        let (low, high) = one.shipped_interval;
        let plural = if one.runs == 1 { "run" } else { "runs" };
        format!(
            "{}: {} after calibration with {} {plural} ({}); {} as shipped, 90 % from {} to {}",
            one.quantity.name(),
            figure(one.calibrated),
            one.runs,
            join_first(&own.corrections.runs),
            figure(one.shipped),
            figure(low),
            figure(high)
        )
    });
    described.collect()
}

/// Joins the first names of a list.
fn join_first(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Note that an MFU exceeds all measurements on this family of accelerators, or that there are none.
fn beyond_measured(scenario: &Scenario, estimate: &Estimate) -> Option<String> {
    let device = &scenario.machine.as_ref()?.device;
    let mfu = estimate.detail.filter(|_| estimate.runs())?.training?.mfu_causal;
    match best_mfu(device) {
        Some(best) if mfu > best => Some(format!(
            "causal MFU of {:.1} % is above the best measured on this family of accelerators, {:.0} %",
            100.0 * mfu,
            100.0 * best
        )),
        Some(_) => None,
        None => {
            Some("no published training run on this family of accelerators: its MFU is a rough estimate".to_owned())
        }
    }
}

/// Note on the host memory that offloaded states take.
fn offloaded(scenario: &Scenario) -> Option<String> {
    let input = scenario.training_input(&scenario.base).filter(|input| input.offload.any())?;
    let needs = super::answer::training::host_bytes(scenario, &input) * 1e-9;
    let has = scenario.host_memory_gb.map_or_else(
        || "that of this target is unknown (host_memory_gb), so it is assumed to be enough".to_owned(),
        |gb| format!("it has {gb:.0} GB (host_memory_gb)"),
    );
    Some(format!("offloaded states take {needs:.0} GB of the host memory of a node; {has}"))
}

/// Note that sequences are longer than those that the model was trained on.
fn extended_context(scenario: &Scenario) -> Option<String> {
    let (phase, limit) = (&scenario.base, scenario.max_context?);
    let tokens = phase.shape.prompt + phase.shape.generate;
    (tokens > limit && scenario.extends_context(phase)).then(|| {
        format!(
            "sequences of {tokens} tokens are longer than the {limit} of the model: the run extends its context, which \
             requires scaled position encodings (RoPE scaling)"
        )
    })
}

/// Note on the price basis, if it is not that of the target.
fn price_basis_note(scenario: &Scenario) -> Option<String> {
    let basis = scenario.terms.basis;
    if let Some(listed) = &scenario.terms.listed {
        let (offers, (old, new)) = (listed.offers, &listed.dates);
        let plural = if offers == 1 { "offer" } else { "offers" };
        return Some(format!("{} price: median of {offers} {plural} in the catalog, {old} to {new}", basis.name()));
    }
    scenario.missing_price().filter(|_| basis != PriceBasis::Stated)
}

/// Note that a time-of-use energy price is stated incompletely.
fn tariff(scenario: &Scenario) -> Option<&'static str> {
    match (scenario.terms.peak_usd_per_kwh, scenario.terms.peak_hours > 0.0) {
        (Some(_), false) => Some("peak_usd_per_kwh has no effect: set peak_hours"),
        (None, true) => Some("peak_hours has no effect: set peak_usd_per_kwh"),
        _ => None,
    }
}

/// Note that another 16-bit format replaces the requested one.
fn replaced_format_note(scenario: &Scenario) -> Option<String> {
    let served = &scenario.base.serving_defaults;
    match (scenario.mode(), served.substitute_for) {
        (Mode::Inference, Some(requested)) => {
            Some(format!("the accelerator does not support {}: using {}", requested.name(), served.format.name()))
        }
        (Mode::Training, _)
            if scenario.base.plan.format.is_none() && scenario.format(&scenario.base) == Format::Fp16 =>
        {
            Some("the accelerator does not support bf16: using fp16".to_owned())
        }
        _ => None,
    }
}

/// Note that the software unpacks stated 8-bit integer weights, although the accelerator multiplies the format.
fn unpacked_weights_note(scenario: &Scenario) -> Option<String> {
    let plan = &scenario.base.plan;
    let format = plan.format.filter(|format| *format == Format::Int8 && plan.compute.is_none())?;
    let device = scenario.machine.filter(|_| scenario.mode() == Mode::Inference)?.device;
    let unpacked = scenario.base.serving_defaults.formats.dense_unpack && device.multiplies(format);
    unpacked.then(|| {
        format!(
            "{} has no {} GEMMs for this accelerator: weights are unpacked and multiplied in bf16",
            scenario.active_software.name,
            format.name()
        )
    })
}

/// Note on the catalog model, and weight format, that a checkpoint name was resolved to.
fn resolved_model_note(scenario: &Scenario) -> Option<String> {
    let (name, id) = scenario.checkpoint.as_ref()?;
    let plan = &scenario.base.plan;
    let published = scenario.mode() == Mode::Inference && plan.format.is_none();
    let format = if published {
        format!(" with {} weights", scenario.base.serving_defaults.format.name())
    } else {
        String::new()
    };
    Some(format!("model {name} is read as {id}{format}"))
}

/// Note that the architecture of the model is not known.
fn unknown_architecture_note(scenario: &Scenario) -> Option<String> {
    let name = scenario.unknown_model_type.as_ref()?;
    Some(format!("no architecture `{name}` is known: the model is treated as a Llama-like decoder of the same sizes"))
}

/// Note that the accelerator does not exist with the memory size stated by the target.
fn contradicted_memory(scenario: &Scenario) -> Option<String> {
    Some(scenario.contradicted_memory?.to_string())
}

/// Notes on values of the target that are probably in another unit, except those that knobs replace.
fn implausible(scenario: &Scenario) -> impl Iterator<Item = String> {
    let found = scenario.implausible.as_deref().unwrap_or_default().iter();
    let in_effect = found.filter(|one| one.knob.is_none_or(|knob| !scenario.stated.contains(knob)));
    in_effect.map(|one| format!("the target is implausible: {one}"))
}

/// Note that more expert-parallel ranks are requested than share the experts of a replica.
fn excess_expert_ranks_note(scenario: &Scenario) -> Option<String> {
    let phase = &scenario.base;
    if scenario.mode() != Mode::Inference || !scenario.model?.is_moe() {
        return None;
    }
    let layouts = phase.pools().map_or([phase.decode_layout(); 2], |pools| [pools.prefill, pools.decode]);
    layouts.iter().find_map(|layout| {
        let (ep, ranks) = (f64::from(layout.ep), layout.tp * layout.attention_dp);
        (ep > ranks).then(|| {
            format!("ep {ep} is more than the {ranks} ranks of a replica that share its experts (tp × attention_dp): using {ranks}")
        })
    })
}

/// Note that requests are held back because the offered load exceeds the limit on concurrent requests.
fn queued_requests_note(scenario: &Scenario, estimate: &Estimate) -> Option<String> {
    let requested = &scenario.base.plan.serving;
    let stated = matches!(requested.load, Some(LoadKind::Open | LoadKind::Closed)) && requested.concurrency.is_some();
    let rate = requested.request_rate.filter(|_| stated)?;
    let served = estimate.detail?.serving?.requests_per_sec;
    (served < 0.999 * rate).then(|| {
        format!(
            "{rate} requests/s are offered but only {served:.3} are sent: at most {} are in flight, and the rest are held back",
            scenario.concurrency(&scenario.base)
        )
    })
}

fn analytical(scenario: &Scenario, estimate: &Estimate) -> Vec<String> {
    let mut notes = Vec::new();
    let phase = &scenario.base;
    let devices = scenario.accelerators();
    let used = scenario.working_accelerators();
    if scenario.mode() == Mode::Training {
        notes.extend(beyond_measured(scenario, estimate));
        notes.extend(extended_context(scenario));
        notes.extend(offloaded(scenario));
    }
    notes.extend(throttle::notes(scenario));
    notes.extend(price_basis_note(scenario));
    notes.extend(tariff(scenario).map(str::to_owned));
    notes.extend(resolved_model_note(scenario));
    notes.extend(unknown_architecture_note(scenario));
    notes.extend(replaced_format_note(scenario));
    notes.extend(unpacked_weights_note(scenario));
    notes.extend(contradicted_memory(scenario));
    notes.extend(implausible(scenario));
    notes.extend(queued_requests_note(scenario, estimate));
    notes.extend(excess_expert_ranks_note(scenario));
    notes.extend(super::idle::notes(scenario));
    if used < devices {
        notes.push(format!("{used} of {devices} accelerators are used; the rest are idle but paid for"));
    }
    if scenario.machine.is_some_and(|machine| machine.device.tdp_w.is_none()) {
        let share = 100.0 * ACCELERATOR_POWER_SHARE;
        notes.push(format!("no published TDP for this accelerator: assuming {share:.0} % of the node power"));
    }
    let mut assume = |silent: bool, what: String| {
        if silent {
            notes.push(format!("assumed, since the files do not state it: {what}"));
        }
    };
    let gbits = scenario.machine.map_or(0.0, |machine| machine.device.nic_bw * machine.dies * 8e-9);
    let silent = !scenario.network_stated && !scenario.stated.contains(Knob::NetworkGbps);
    assume(silent && scenario.uses(Knob::NetworkGbps), format!("a network of {} Gb/s per accelerator", gbits.round()));
    match phase.shape.mode {
        Mode::Training => {
            let plan = &phase.plan;
            let global = scenario.global(phase);
            let default = scenario.default_global(phase);
            assume(plan.global.is_none(), format!("global batch {global}, {default}"));
            let sharding = format!("sharding {}", scenario.sharding(phase).name());
            assume(plan.sharding.is_none() && phase.shape.dp > 1.0, sharding);
            assume(plan.format.is_none(), "precision bf16".to_owned());
            let ranks = [("tp", phase.shape.tp, plan.tp), ("pp", phase.shape.pp, plan.pp), ("ep", phase.ep(), plan.ep)];
            let assumed = ranks.iter().filter(|(_, ranks, stated)| stated.is_none() && *ranks > 1.0);
            let ranks: Vec<String> = assumed.map(|(name, ranks, _)| format!("{name} {ranks}")).collect();
            let layout = format!("{}, the fewest ranks that hold the model states", ranks.join(", "));
            assume(scenario.has_default_layout(phase) && !ranks.is_empty(), layout);
        }
        Mode::Inference => {
            let requested = &phase.plan.serving;
            let concurrency = scenario.concurrency(phase);
            let closed = requested.request_rate.is_none();
            let (tp, pp, groups) = (phase.shape.tp, phase.shape.pp, phase.default_groups);
            let ranks: Vec<String> = [("tp", tp, phase.plan.tp), ("pp", pp, phase.plan.pp)]
                .into_iter()
                .filter(|(name, ranks, stated)| stated.is_none() && (*ranks > 1.0 || (*name == "tp" && pp > 1.0)))
                .map(|(name, ranks, _)| format!("{name} {ranks}"))
                .collect();
            let layout = format!("{}, the fewest ranks with room for the KV cache", ranks.join(", "));
            assume(scenario.has_default_layout(phase) && !ranks.is_empty(), layout);
            assume(groups > 1.0, format!("attention_dp {groups}, since ep is larger than tp and dp is stated"));
            assume(requested.concurrency.is_none() && closed, format!("{concurrency} requests in flight"));
        }
    }
    let software = &scenario.active_software;
    if let Some(vendor) = &software.unsupported_on {
        let instead = software.usual.map_or_else(String::new, |name| format!("; set software to {name}, which does"));
        notes.push(format!(
            "{} does not support {vendor} accelerators: the estimate assumes equivalent software{instead}",
            software.name
        ));
    }
    if software.family_assumed {
        notes.push(format!("no software stated: using the defaults of {}", software.name));
    } else if let Some(caveat) = software.found.as_ref().and_then(Software::caveat_text) {
        notes.push(format!("{caveat}; the intervals account for other releases"));
    }
    notes
}

/// Warnings of the dashboard's estimator, and what its results do not include.
fn dashboard(scenario: &Scenario) -> Vec<String> {
    let input = benchboard::input(scenario, &scenario.base);
    let answer = benchboard::estimator::estimate(&input);
    let mut notes = vec![format!(
        "estimate of the predecessor dashboard, kept for comparison; it calls this bottleneck {}",
        answer.bottleneck.name()
    )];
    notes.extend(answer.warnings(&input).into_iter().map(|described| format!("dashboard warning: {described}")));
    let inflated = input.batch / input.computed_sequences();
    if inflated != 1.0 {
        notes.push(format!(
            "the dashboard counts the tokens of {} sequences but the work of {}: the work is not divided among devices, so \
             tokens/s are {inflated} times too high",
            input.batch,
            input.computed_sequences()
        ));
    }
    if scenario.mode() == Mode::Inference {
        notes.push(
            "the dashboard uses the training formula for inference: no KV cache, no decoding, no latency".to_owned(),
        );
    }
    if !scenario.phases.is_empty() {
        notes.push("the dashboard ignores schedules: this is the workload without its phases".to_owned());
    }
    let (paid, have) = (input.devices(), scenario.accelerators());
    let pays = if paid == have {
        String::new()
    } else {
        format!("pays for {paid} devices instead of the target's {have}, and ")
    };
    notes.push(format!(
        "the dashboard {pays}does not model power: this is the node's nominal power, not included in the cost; memory is in GiB but compared with GB"
    ));
    notes.push("run `atlas scenario compare` to see where the analytical engine differs, and why".to_owned());
    notes
}

fn calibrated(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let c = &scenario.coefficients;
    let shape = &scenario.base.shape;
    notes.push(
        "semi-empirical model: throughput scales with accelerators and utilization, not with model size".to_owned(),
    );
    let wanted = shape.tp * shape.pp * shape.dp;
    let have = scenario.accelerators();
    if wanted > have {
        notes.push(format!(
            "tp × pp × dp = {wanted} exceeds the target's {have} accelerators; this engine does not check"
        ));
    }
    let peak = c.peak_tokens_factor * shape.hidden * shape.layers;
    if peak > scenario.memory_gb_per_accel {
        notes.push(format!(
            "memory is clipped to the {} GB of an accelerator; the formula gives {peak:.0} GB, so it may not fit",
            scenario.memory_gb_per_accel
        ));
    }
    if shape.mode == Mode::Inference {
        notes.push(format!(
            "p50 is the profile's minimum of {} ms for any fast accelerator; it does not grow with the output length",
            c.lat_min
        ));
    }
    if scenario.num_nodes > 1.0 {
        notes.push(
            "cost and power count all nodes; records keep the predecessor's cost of a single node as `parity`"
                .to_owned(),
        );
    }
    notes
}
