//! Reads the options of a run. Fields that plans store are read section by section, as described in the table of
//! fields. This module reads those with a special form: recomputation and optimizer as a word or a mapping, pools,
//! formats.

use crate::read_field::{ReadField as _, read_section, word};
use atlas_core::count::Count;
use atlas_core::field::Knob;
use atlas_core::plan::{Format, Optimizer, Preset, Recompute};
use atlas_core::plan_spec::{PlanSpec, PoolSpec};
use atlas_document::Node;
use atlas_document::decode::Fields;

/// Reads the top level of a workload's entry, and the sections that only plans have.
pub(super) fn read(fields: &mut Fields<'_>) -> PlanSpec {
    let mut plan = PlanSpec::default();
    read_section(&mut plan, fields, &[]);
    fields.map("batch", |batch| {
        plan.micro = batch.count("micro", Knob::Microbatch.spec().bounds());
        read_section(&mut plan, batch, &["batch"]);
    });
    match fields.peek("recompute") {
        Some(node) if node.entries().is_some() => {
            fields.map("recompute", |recompute| {
                plan.recompute = word(recompute, "mode", Recompute::named, Recompute::NAMES);
                read_section(&mut plan, recompute, &["recompute"]);
            });
        }
        _ => plan.recompute = fields.word_of(Knob::Recompute, Recompute::named),
    }
    plan.optimizer = optimizer(fields);
    fields.map("serving", |serving| {
        read_section(&mut plan, serving, &["serving"]);
        for section in ["slo", "speculative", "conversations", "kv_tiers"] {
            serving.map(section, |fields| read_section(&mut plan, fields, &["serving", section]));
        }
        // Read as the workload's software.
        serving.text("engine");
        serving.map("pools", |pools| {
            let prefill = pools.map("prefill", pool);
            if prefill.is_none() {
                pools.missing("prefill");
            }
            plan.serving.pools.prefill = prefill.unwrap_or_default();
            plan.serving.pools.decode = pools.map("decode", pool).unwrap_or_default();
        });
    });
    fields.map("simulation", |section| read_section(&mut plan, section, &["simulation"]));
    plan
}

/// Reads a pool. The table contains the fields of the prefill pool; those of the decode pool are the same.
fn pool(fields: &mut Fields<'_>) -> PoolSpec {
    PoolSpec {
        workers: fields.count_of(Knob::PrefillWorkers).or(Some(Count::ONE)),
        tp: fields.count_of(Knob::PrefillTp),
        pp: fields.count_of(Knob::PrefillPp),
        ep: fields.count_of(Knob::PrefillEp),
        attention_dp: fields.count_of(Knob::PrefillAttentionDp),
    }
}

/// Reads the formats in `precision`. An unknown format is a warning, since it is valid in records, and the calibrated
/// model does not use formats.
pub(super) fn precision(plan: &mut PlanSpec, p: &mut Fields<'_>) {
    plan.weight_bits = p.number_of(Knob::WeightBits);
    let (mut bits, mut products, mut nvfp4) = (plan.weight_bits, None, false);
    let mut format = |key| {
        let written = p.text(key)?;
        if key == "weights"
            && let Some(preset) = Preset::named(&written)
        {
            (bits, products, nvfp4) = (bits.or(preset.bits), preset.compute, preset.nvfp4);
            return Some(preset.weights);
        }
        let known = Format::named(&written);
        if known.is_none() {
            let message =
                format!("found \"{written}\", which is only valid in records; known: {}", Format::NAMES.join(", "));
            p.warn(key, message, None);
        }
        known
    };
    (plan.format, plan.kv) = (format(Knob::Precision.spec().key()), format(Knob::KvPrecision.spec().key()));
    (plan.compute, plan.gradient_format) =
        (format(Knob::Compute.spec().key()), format(Knob::GradientFormat.spec().key()));
    plan.experts = format(Knob::ExpertPrecision.spec().key());
    let states = format("optimizer");
    // Activations narrower than 16 bits are the operands of GEMMs (W4A8). Wider ones carry no information, since
    // activations between layers are 16 bit in W8A8 and W4A4 deployments too.
    let narrow = |format: &Format| matches!(format, Format::Fp8 | Format::Mxfp8 | Format::Int8 | Format::Fp4);
    plan.compute = plan.compute.or(format("activations").filter(narrow));
    plan.compute = plan.compute.or(products);
    (plan.weight_bits, plan.nvfp4) = (bits, nvfp4);
    if let Some(states) = states {
        let optimizer = plan.optimizer.unwrap_or(Optimizer::Adam);
        match optimizer.with_states(states) {
            Some(found) if found == optimizer => {}
            Some(found) => plan.optimizer = Some(found),
            None => {
                let message = format!(
                    "found \"{}\" with optimizer {}, which supports only one state format",
                    states.name(),
                    optimizer.name()
                );
                p.warn("optimizer", message, Some("omit it".to_owned()));
            }
        }
    }
}

/// Reads the optimizer: a name or, in files of the original format, a mapping that contains the name.
fn optimizer(fields: &mut Fields<'_>) -> Option<Optimizer> {
    let node = fields.node("optimizer")?;
    let written = match node.text() {
        Some(text) => text,
        None => ["name", "type", "algorithm"].iter().find_map(|key| node.get(key).and_then(Node::text))?,
    };
    let found = Optimizer::named(written);
    if found.is_none() {
        let message =
            format!("found \"{written}\", which is only valid in records; known: {}", Optimizer::NAMES.join(", "));
        fields.warn("optimizer", message, None);
    }
    found
}
