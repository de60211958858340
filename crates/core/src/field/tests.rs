use super::*;

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
fn no_two_fields_are_written_at_one_place() {
    let mut homes: Vec<Home> = KNOBS.iter().map(|field| field.home).filter(|home| *home != Home::Nowhere).collect();
    let count = homes.len();
    homes.sort_by_key(|home| format!("{home:?}"));
    homes.dedup();
    assert_eq!(homes.len(), count);
}
