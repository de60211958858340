use super::*;
use crate::plan_spec::PlanSpec;

#[test]
fn the_table_is_in_the_order_of_the_enum_and_names_are_unique() {
    let mut names = Vec::new();
    for (i, field) in KNOBS.iter().enumerate() {
        assert_eq!(field.knob as usize, i);
        assert!(std::ptr::eq(field.knob.spec(), field));
        assert!(!field.help.is_empty());
        names.push(field.name);
        names.extend(field.aliases);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn every_field_has_a_unique_home() {
    let mut homes: Vec<FileLocation> =
        KNOBS.iter().map(|field| field.location).filter(|home| *home != FileLocation::Nowhere).collect();
    let count = homes.len();
    homes.sort_by_key(|home| format!("{home:?}"));
    homes.dedup();
    assert_eq!(homes.len(), count);
}

#[test]
fn plan_stores_minimum_and_maximum_of_every_numeric_field() {
    for field in &KNOBS {
        let Slot::Number { get, put } = field.slot else { continue };
        for value in [field.bounds().min, field.bounds().max] {
            let mut plan = PlanSpec::default();
            put(&mut plan, Some(value));
            // If a plan does not state the number, it has the default; for limits, 0 means no limit.
            let absent = (field.default == DefaultValue::Number(0.0)).then_some(0.0);
            assert_eq!(get(&plan).or(absent), Some(value), "{}", field.name);
        }
    }
}

#[test]
fn fields_that_round_fractions_are_declared_whole() {
    for field in &KNOBS {
        let Slot::Number { get, put } = field.slot else { continue };
        let mut plan = PlanSpec::default();
        put(&mut plan, Some(2.5));
        assert!(get(&plan) == Some(2.5) || field.bounds().whole, "{}", field.name);
    }
}

#[test]
fn help_says_what_zero_means_and_plans_store_it_as_nothing_where_it_is_unset() {
    for field in &KNOBS {
        if field.zero_is_unset {
            assert!(field.help.contains("0: "), "{}: {}", field.name, field.help);
        }
        if let Slot::Number { get, put } = field.slot {
            let mut plan = PlanSpec::default();
            put(&mut plan, Some(0.0));
            assert!(get(&plan).is_some() || field.zero_is_unset, "{}", field.name);
        }
    }
}
