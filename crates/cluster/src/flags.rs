//! The flags of the tools, as read from their sources. `workload/flag_sources.csv` lists the source locations.

use std::collections::HashMap;
use std::sync::OnceLock;

use atlas_catalog::software::Version;
use atlas_document::suggestion::misspelled;

/// One flag or key.
#[derive(Debug)]
pub(crate) struct Flag {
    /// First release that has the flag, if known.
    since: Option<&'static str>,
    /// Values that the flag accepts; empty if there is no list of them.
    choices: Vec<&'static str>,
}

type Table = HashMap<(&'static str, &'static str), Flag>;

const TEXT: &str = include_str!("../flags.csv");

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table::new();
        // Only the field `read_at` may be quoted, so that all fields can be borrowed from the text.
        for line in TEXT.lines().skip(1) {
            let Some((tool, rest)) = line.split_once(',') else { continue };
            let rest = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once("\",").map(|(_, rest)| rest),
                None => rest.split_once(',').map(|(_, rest)| rest),
            };
            let mut fields = rest.unwrap_or_default().split(',');
            let (since, flag) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
            let aliases = fields.next().unwrap_or_default();
            let choices = line.rsplit(',').next().unwrap_or_default();
            for name in std::iter::once(flag).chain(aliases.split(' ')).filter(|name| !name.is_empty()) {
                let since = (!since.is_empty()).then_some(since);
                let choices = choices.split('|').filter(|choice| !choice.is_empty()).collect();
                table.entry((tool, name)).or_insert(Flag { since, choices });
            }
        }
        table
    })
}

/// The flag of some tool that is spelled almost like `flag`; `None` if a tool has that flag.
pub(crate) fn misspelled_flag(flag: &str) -> Option<&'static str> {
    let names = || table().keys().map(|(_, name)| *name).filter(|name| name.starts_with("--"));
    if names().any(|name| name == flag) { None } else { misspelled(flag, names()) }
}

/// Reason why a tool would reject a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FlagError {
    /// The tool has no such flag.
    Unknown,
    /// The flag does not accept this value. Contains the accepted values.
    Value(String),
    /// The release is older than this one, which introduced the flag.
    Since(&'static str),
}

/// Checks whether a release of a tool accepts a flag with a value.
pub(crate) fn check(tool: &str, flag: &str, value: Option<&str>, release: Option<&str>) -> Result<(), FlagError> {
    // Hugging Face trainers accept the keys of their configuration files as flags.
    let name = if tool == "hf-trainer" { flag.trim_start_matches('-') } else { flag };
    let Some(found) = table().get(&(tool, name)) else { return Err(FlagError::Unknown) };
    // `null` removes a value that a recipe sets.
    if let Some(value) = value.filter(|value| *value != "null")
        && !found.choices.is_empty()
        && !found.choices.contains(&value)
    {
        return Err(FlagError::Value(found.choices.join(", ")));
    }
    // Some values are newer than their flag.
    let valued = value.and_then(|value| table().get(&(tool, format!("{name} {value}").as_str()))?.since);
    match [valued, found.since].into_iter().flatten().find(|since| is_older(release, since)) {
        Some(since) => Err(FlagError::Since(since)),
        None => Ok(()),
    }
}

/// Whether a stated release is older than `since`.
pub(crate) fn is_older(release: Option<&str>, since: &str) -> bool {
    let order = || Version::parse(release?)?.partial_compare(Version::parse(since)?);
    order() == Some(std::cmp::Ordering::Less)
}

const NAMES: &str = include_str!("../model_names.csv");

/// The catalog model to which a tool refers by this name. If a tool uses one name for several models, the first of
/// them.
pub(crate) fn model_of_tool(name: &str) -> Option<&'static str> {
    let bare = name.rsplit('/').next().unwrap_or(name);
    NAMES.lines().skip(1).find_map(|line| {
        let mut fields = line.split(',');
        let (model, _, known) = (fields.next()?, fields.next()?, fields.next()?);
        let known = known.rsplit('/').next().unwrap_or(known);
        (known.eq_ignore_ascii_case(bare)).then_some(model)
    })
}

/// The name by which a tool refers to a model of the catalog.
pub(crate) fn model_name(tool: &str, model: &str) -> Option<&'static str> {
    NAMES.lines().skip(1).find_map(|line| {
        let mut fields = line.split(',');
        let (m, t, name) = (fields.next()?, fields.next()?, fields.next()?);
        (m == model && t == tool).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_table_equals_the_rows_of_the_csv_reader() {
        let mut reader = csv::Reader::from_reader(TEXT.as_bytes());
        let mut rows = 0;
        for row in reader.records() {
            let row = row.unwrap();
            let (tool, since, flag) = (&row[0], &row[2], &row[3]);
            let (_, found) = table().iter().find(|((t, f), _)| *t == tool && *f == flag).expect(flag);
            if !since.is_empty() {
                assert_eq!(found.since, Some(since));
            }
            rows += 1;
        }
        assert!(rows > 700);
    }

    #[test]
    fn flags_are_checked_by_name_value_and_release() {
        assert_eq!(check("vllm", "--tensor-parallel-size", Some("4"), None), Ok(()));
        assert_eq!(check("vllm", "--tensor-parallel", Some("4"), None), Err(FlagError::Unknown));
        assert!(matches!(check("vllm", "--kv-cache-dtype", Some("fp7"), None), Err(FlagError::Value(_))));
        assert_eq!(check("vllm", "--enable-expert-parallel", None, Some("0.7.3")), Err(FlagError::Since("0.8.0")));
        assert_eq!(check("vllm", "--enable-expert-parallel", None, Some("0.11.0")), Ok(()));
        assert_eq!(check("vllm", "--quantization", Some("fp8"), Some("0.3.0")), Err(FlagError::Since("0.4.1")));
        assert_eq!(check("vllm", "--quantization", Some("awq"), Some("0.3.0")), Ok(()));
    }

    #[test]
    fn model_name_is_translated_to_the_name_of_the_tool() {
        assert_eq!(model_name("torchtitan", "llama-3.1-70b"), Some("llama3 70B"));
        assert_eq!(model_name("torchtitan", "gpt2"), None);
    }
}
