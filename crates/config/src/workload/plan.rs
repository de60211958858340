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
use atlas_document::suggestion::did_you_mean;

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
        redundant_experts: fields.count_of(Knob::RedundantExperts),
    }
}

/// Reads the formats in `precision`.
pub(super) fn precision(plan: &mut PlanSpec, p: &mut Fields<'_>) {
    plan.weight_bits = p.number_of(Knob::WeightBits);
    plan.bf16_layers = p.count_of(Knob::Bf16Layers);
    let (mut bits, mut products, mut nvfp4) = (plan.weight_bits, None, None);
    let mut format = |key| {
        let weights = key == Knob::Precision.spec().key();
        let names = if weights { [Format::NAMES, Preset::NAMES].concat() } else { Format::NAMES.to_vec() };
        let named = |text: &str| match weights {
            true => Preset::named(text),
            false => Some(Preset { weights: Format::named(text)?, compute: None, bits: None, nvfp4: None }),
        };
        let found = word(p, key, named, &names)?;
        if weights {
            (bits, products, nvfp4) = (bits.or(found.bits), found.compute, found.nvfp4);
        }
        Some(found.weights)
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
        let message = format!("found \"{written}\", expected one of {}", Optimizer::NAMES.join(", "));
        fields.error("optimizer", message, did_you_mean(written, Optimizer::NAMES.iter().copied()));
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::testing::decoded;
    use crate::workload::Workload;

    /// Decodes a workload with these fields; returns its problems.
    fn problems(fields: &str) -> Vec<String> {
        let text = format!(
            "{{ name: w, mode: training, model: llama-3.1-8b, sequence: {{ prompt: 8 }}, \
             batch: {{ micro: 1, global: 8 }}, {fields} }}"
        );
        let (found, problems) = decoded(&text, Workload::decode);
        assert_eq!(found.is_none(), problems.errors() > 0);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unknown_formats_and_optimizers_are_errors_with_a_suggestion() {
        let one = |fields: &str| {
            let found = problems(fields);
            assert_eq!(found.len(), 1, "{found:?}");
            found.into_iter().next().unwrap()
        };
        for (fields, parts) in [
            ("precision: { weights: fp9 }", ["\"fp9\", expected one of", "did you mean `fp"]),
            ("precision: { weights: bf16, compute: fp9 }", ["\"fp9\", expected one of", "precision.compute"]),
            ("optimizer: adamx", ["found \"adamx\", expected one of", "did you mean `adam"]),
            ("optimizer: { name: adamx }", ["found \"adamx\", expected one of", "did you mean `adam"]),
        ] {
            let said = one(fields);
            assert!(said.contains("error") && parts.iter().all(|part| said.contains(part)), "{said}");
        }
        assert!(problems("precision: { weights: w8a16, activations: bf16 }, optimizer: { name: AdamW }").is_empty());
    }

    #[test]
    fn unknown_software_is_an_error_except_where_predecessors_state_it_freely() {
        let said = problems("software: megatron-coree@0.14").join("\n");
        assert!(said.contains("error") && said.contains("did you mean `megatron-core`?"), "{said}");
        let said = problems("serving: { engine: vlm }").join("\n");
        assert!(said.contains("w.serving.engine") && said.contains("did you mean `vllm`?"), "{said}");
        let said = problems("framework: inhouse").join("\n");
        assert!(said.contains("warning") && said.contains("generic software is assumed"), "{said}");
        assert!(problems("software: megatron-core@0.14, framework: nemo").is_empty());
    }

    #[test]
    fn algorithms_of_reinforcement_learning_are_names_of_the_method() {
        for method in ["rl", "ppo", "grpo", "dpo"] {
            assert!(problems(&format!("post_training: {{ method: {method} }}")).is_empty(), "{method}");
        }
        assert_eq!(problems("post_training: { method: gpro }").len(), 1);
    }
}
