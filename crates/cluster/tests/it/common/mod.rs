//! Helpers for the import tests.

use std::collections::BTreeMap;

use atlas_cluster::import::{Import, SourceFile, import};
use serde_json::Value;

/// Imports one file.
pub(crate) fn read(name: &str, text: &str) -> Import {
    read_all(&[(name, text)])
}

/// Imports several files as one job.
pub(crate) fn read_all(files: &[(&str, &str)]) -> Import {
    read_with(files, &[])
}

/// Imports files with environment variables.
pub(crate) fn read_with(files: &[(&str, &str)], env: &[(&str, &str)]) -> Import {
    let files: Vec<SourceFile> =
        files.iter().map(|(n, t)| SourceFile { name: (*n).to_owned(), text: (*t).to_owned() }).collect();
    let env: BTreeMap<String, String> = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    import(&files, &env)
}

/// The value at a dotted name.
pub(crate) fn at<'a>(import: &'a Import, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let mut v = import.fields.get(parts.next()?)?;
    for p in parts {
        v = match v {
            Value::Array(a) => a.get(p.parse::<usize>().ok()?)?,
            _ => v.get(p)?,
        };
    }
    Some(v)
}

/// Checks that each field has its value, and that fields with `null` are absent.
#[track_caller]
pub(crate) fn expect(import: &Import, wanted: &Value) {
    for (k, v) in wanted.as_object().expect("an object") {
        let got = at(import, k).cloned().unwrap_or(Value::Null);
        assert_eq!(&got, v, "field {k} of {:#}", import.to_json()["fields"]);
    }
}
