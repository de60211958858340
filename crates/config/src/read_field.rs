//! Reads fields of documents according to the table of fields, which defines their keys, bounds and words.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use atlas_core::count::Count;
use atlas_core::field::{Field, FileLocation, KNOBS, Knob, Slot};
use atlas_core::plan_spec::PlanSpec;
use atlas_document::decode::Fields;
use atlas_document::suggestion::did_you_mean;

/// Reading of fields according to the table of fields.
pub(crate) trait ReadField {
    /// Reads a number within the field's bounds.
    fn number_of(&mut self, knob: Knob) -> Option<f64>;
    /// As `number_of`; reports an error if the field is missing.
    fn required_number_of(&mut self, knob: Knob) -> Option<f64>;
    /// Reads a count within the field's bounds.
    fn count_of(&mut self, knob: Knob) -> Option<Count>;
    /// As `count_of`; reports an error if the field is missing.
    fn required_count_of(&mut self, knob: Knob) -> Option<Count>;
    /// Reads a flag.
    fn flag_of(&mut self, knob: Knob) -> Option<bool>;
    /// Reads one of the field's words or their synonyms.
    fn word_of<T>(&mut self, knob: Knob, named: impl FnOnce(&str) -> Option<T>) -> Option<T>;
}

impl ReadField for Fields<'_> {
    fn number_of(&mut self, knob: Knob) -> Option<f64> {
        let field = knob.spec();
        self.number(field.key(), field.bounds())
    }

    fn required_number_of(&mut self, knob: Knob) -> Option<f64> {
        let field = knob.spec();
        self.required_number(field.key(), field.bounds())
    }

    fn count_of(&mut self, knob: Knob) -> Option<Count> {
        let field = knob.spec();
        self.count(field.key(), field.bounds())
    }

    fn required_count_of(&mut self, knob: Knob) -> Option<Count> {
        let field = knob.spec();
        self.required_count(field.key(), field.bounds())
    }

    fn flag_of(&mut self, knob: Knob) -> Option<bool> {
        self.boolean(knob.spec().key())
    }

    fn word_of<T>(&mut self, knob: Knob, named: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        word(self, knob.spec().key(), named, knob.spec().words())
    }
}

/// Reads one of `names` or their synonyms, from a key that can differ from the field's own.
pub(crate) fn word<T>(
    fields: &mut Fields<'_>,
    key: &'static str,
    named: impl FnOnce(&str) -> Option<T>,
    names: &[&'static str],
) -> Option<T> {
    let node = fields.node(key)?;
    let found = node.text().and_then(named);
    if found.is_none() {
        let help = node.text().and_then(|text| did_you_mean(text, names.iter().copied()));
        fields.error(key, format!("found {}, expected one of {}", node.describe(), names.join(", ")), help);
    }
    found
}

/// Fields with a special form, which are read separately.
const SPECIAL_FIELDS: [Knob; 2] = [Knob::Recompute, Knob::Optimizer];

/// Fields of plans by section.
static SECTIONS: LazyLock<BTreeMap<&[&str], Vec<&Field>>> = LazyLock::new(|| {
    let mut sections = BTreeMap::<&[&str], Vec<&Field>>::new();
    for field in KNOBS.iter().filter(|field| !SPECIAL_FIELDS.contains(&field.knob)) {
        if let (FileLocation::Workload([section @ .., _]), false) =
            (field.location, matches!(field.slot, Slot::Outside))
        {
            sections.entry(section).or_default().push(field);
        }
    }
    sections
});

/// Reads all fields of a section that plans store.
pub(crate) fn read_section(plan: &mut PlanSpec, fields: &mut Fields<'_>, section: &[&str]) {
    for field in SECTIONS.get(section).into_iter().flatten() {
        match field.slot {
            Slot::Number { put, .. } => put(plan, fields.number_of(field.knob)),
            Slot::Flag { put, .. } => put(plan, fields.flag_of(field.knob)),
            Slot::Word { put, .. } => {
                fields.word_of(field.knob, |word| put(plan, word).then_some(()));
            }
            Slot::Outside => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use crate::{Target, Workload};
    use atlas_core::field::{Field, FileLocation, KNOBS, ValueType};
    use atlas_document::{Diagnostics, parse};

    /// Formats a mapping of text by path as YAML.
    fn yaml(fields: &BTreeMap<Vec<&str>, String>) -> String {
        let mut below: BTreeMap<&str, BTreeMap<Vec<&str>, String>> = BTreeMap::new();
        let mut all = Vec::new();
        for (path, value) in fields {
            match path.split_first() {
                Some((key, [])) => all.push(format!("{key}: {value}")),
                Some((key, rest)) => {
                    below.entry(key).or_default().insert(rest.to_vec(), value.clone());
                }
                None => {}
            }
        }
        all.extend(below.iter().map(|(key, fields)| format!("{key}: {}", yaml(fields))));
        format!("{{{}}}", all.join(", "))
    }

    /// Diagnostics of a target or workload in which `field` has the value `value`.
    fn said(field: &Field, value: &str) -> String {
        let (base, path): (&[(&[&str], &str)], _) = match field.location {
            FileLocation::Workload(path) => (
                &[
                    (&["name"], "here"),
                    (&["mode"], "training"),
                    (&["model"], "some"),
                    (&["sequence", "prompt"], "1024"),
                    (&["sequence", "generate"], "128"),
                ],
                path,
            ),
            FileLocation::Target(path) => (
                &[
                    (&["name"], "here"),
                    (&["vendor"], "some"),
                    (&["accelerators_per_node"], "8"),
                    (&["num_nodes"], "1"),
                    (&["memory_gb_per_accel"], "80"),
                    (&["cost", "hourly_usd"], "1"),
                    (&["cost", "energy_watts_node"], "1000"),
                    (&["cost", "pue"], "1.2"),
                ],
                path,
            ),
            FileLocation::Nowhere => return String::new(),
        };
        let mut fields: BTreeMap<Vec<&str>, String> =
            base.iter().map(|(path, value)| (path.to_vec(), (*value).to_owned())).collect();
        fields.insert(path.to_vec(), value.to_owned());
        let mut diagnostics = Diagnostics::new();
        let file = "here.yaml".into();
        let node = parse::parse(&file, &yaml(&fields), &mut diagnostics).unwrap();
        match field.location {
            FileLocation::Workload(_) => drop(Workload::decode(&file, &node, &mut diagnostics)),
            _ => drop(Target::decode(&file, &node, &mut diagnostics)),
        }
        diagnostics.to_string()
    }

    #[test]
    fn numeric_fields_of_files_accept_the_range_of_the_table() {
        for field in KNOBS.iter().filter(|field| matches!(field.kind, ValueType::Number { .. })) {
            let bounds = field.bounds();
            let inside = [bounds.min, bounds.max].into_iter().filter(|value| *value < 1e15);
            for value in inside {
                assert_eq!(said(field, &value.to_string()), "", "{} {value}", field.name);
            }
            if field.location == FileLocation::Nowhere {
                continue;
            }
            assert!(said(field, &(bounds.min - 1.0).to_string()).contains("expected"), "{} below", field.name);
            if bounds.max < 1e15 {
                let beyond = said(field, &(2.0 * bounds.max + 1.0).to_string());
                assert!(beyond.contains(&bounds.describe()), "{} beyond: {beyond}", field.name);
            }
        }
    }

    #[test]
    fn choices_and_toggles_of_files_accept_the_values_of_the_table() {
        for field in KNOBS.iter().filter(|field| field.location != FileLocation::Nowhere) {
            match field.kind {
                ValueType::Choice(words) => {
                    for word in words {
                        assert_eq!(said(field, word), "", "{} {word}", field.name);
                    }
                    assert_ne!(said(field, "nonsense"), "", "{}", field.name);
                }
                ValueType::Toggle => {
                    assert_eq!(said(field, "true"), "", "{}", field.name);
                    assert_ne!(said(field, "nonsense"), "", "{}", field.name);
                }
                ValueType::Number { .. } | ValueType::Fabric | ValueType::Software | ValueType::Seed => {}
            }
        }
    }
}
