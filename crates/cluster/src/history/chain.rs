//! Links between entries: from a prediction to the job submitted with it, the run that was watched, and the calibration
//! that used it.

use std::collections::BTreeSet;
use std::path::Path;

use super::entry::{Entry, EntryKind};
use crate::secrets::mask;
use atlas_core::sort;

/// Name of the input that a calibration and the predictions corrected by it have in common.
pub const CORRECTIONS: &str = "contents of the corrections";
/// Name of the input with the numbers of the submitted jobs, separated by spaces.
pub const JOBS: &str = "jobs";
/// Name of the input with the list of watched files.
pub const LOGS: &str = "logs";

/// The entry, all its ancestors and all its descendants, oldest first.
#[must_use]
pub fn chain<'a>(entries: &'a [Entry], of: &'a Entry) -> Vec<&'a Entry> {
    let mut known: BTreeSet<&str> = sort::collect_unsorted([of.id.as_str()]);
    // Ancestors: the entries that an entry refers to, transitively.
    let mut open = vec![of];
    while let Some(entry) = open.pop() {
        for other in entries.iter().filter(|other| is_derived_from(entry, other)) {
            if known.insert(&other.id) {
                open.push(other);
            }
        }
    }
    // Descendants: the entries that refer to it, transitively.
    let mut open = vec![of];
    while let Some(entry) = open.pop() {
        for other in entries.iter().filter(|other| is_derived_from(other, entry)) {
            if known.insert(&other.id) {
                open.push(other);
            }
        }
    }
    let mut out: Vec<&Entry> = entries.iter().filter(|entry| known.contains(entry.id.as_str())).collect();
    if !out.iter().any(|entry| entry.id == of.id) {
        out.push(of);
    }
    sort::by(&mut out, |a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    out
}

/// Whether `later` was derived from `earlier`.
fn is_derived_from(later: &Entry, earlier: &Entry) -> bool {
    if later.sources.contains(&earlier.id) {
        return true;
    }
    // A prediction states the contents of the corrections, not the calibration that wrote them.
    let corrections = |entry: &Entry| entry.inputs.get(CORRECTIONS).cloned();
    (later.kind, earlier.kind) == (EntryKind::Prediction, EntryKind::Calibration)
        && later.at >= earlier.at
        && later.target == earlier.target
        && corrections(later).is_some_and(|contents| Some(contents) == corrections(earlier))
}

/// The newest submission of a job, which is given by the name that the scheduler assigned.
#[must_use]
pub fn submission_of_job<'a>(entries: &'a [Entry], job: &str) -> Option<&'a Entry> {
    // Tasks of a job array belong to the submission of the array.
    let job = job.split('_').next().unwrap_or(job);
    let is_same_job = |entry: &&Entry| {
        let jobs = entry.inputs.get(JOBS).and_then(|jobs| jobs.as_str()).unwrap_or_default();
        jobs.split(' ').any(|known| known == job)
    };
    submissions(entries).filter(is_same_job).max_by_key(|entry| entry.at)
}

/// The submission whose job writes the file `log`: the file is in the directory of the submitted files, and its name
/// contains the job number or begins with the name of the submitted file.
#[must_use]
pub fn submission_of_log<'a>(entries: &'a [Entry], log: &Path) -> Option<&'a Entry> {
    let name = log.file_name()?.to_str()?;
    let folder = log.parent()?.display().to_string();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).collect();
    let writes = |entry: &&Entry| {
        let text = |name: &str| entry.inputs.get(name).and_then(|value| value.as_str()).unwrap_or_default();
        let file = text("file");
        text("directory") == mask(&folder)
            && (text(JOBS).split(' ').any(|job| words.contains(&job))
                || !file.is_empty() && name.starts_with(&format!("{file}.")))
    };
    submissions(entries).filter(writes).max_by_key(|entry| entry.at)
}

fn submissions(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| entry.kind == EntryKind::Submission)
}

/// Ids of the runs and measurements that were read from these files, oldest first.
#[must_use]
pub fn readings_of<'a>(entries: &'a [Entry], files: &[String]) -> Vec<&'a str> {
    let files: Vec<String> = files.iter().map(|file| mask(file)).collect();
    let read = |entry: &&Entry| {
        let named = |name: &str| match entry.inputs.get(name) {
            Some(serde_json::Value::String(text)) => files.contains(text),
            Some(serde_json::Value::Array(list)) => {
                list.iter().filter_map(|item| item.as_str()).any(|text| files.iter().any(|file| file == text))
            }
            _ => false,
        };
        matches!(entry.kind, EntryKind::Run | EntryKind::Measurement) && (named(LOGS) || named("log"))
    };
    let mut found: Vec<&Entry> = entries.iter().filter(read).collect();
    sort::by_key(&mut found, |entry| entry.at);
    found.into_iter().map(|entry| entry.id.as_str()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::history::Draft;
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn entry(kind: EntryKind, second: i64, inputs: &[(&str, Value)], sources: &[&Entry]) -> Entry {
        let inputs = inputs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<BTreeMap<_, _>>();
        let at = Timestamp::from_second(second).ok();
        let sources = sources.iter().map(|source| source.id.clone()).collect();
        Entry::new(kind, Draft { target: Some("t".to_owned()), at, inputs, sources, ..Draft::default() })
    }

    fn handles<'a>(entries: &[&'a Entry]) -> Vec<&'a str> {
        entries.iter().map(|entry| entry.kind.name()).collect()
    }

    #[test]
    fn chain_contains_only_entries_linked_to_one_run() {
        let plan = entry(EntryKind::Prediction, 1, &[(CORRECTIONS, "aa".into())], &[]);
        let job = entry(EntryKind::Submission, 2, &[(JOBS, "11 12".into())], &[&plan]);
        let run = entry(EntryKind::Run, 3, &[(LOGS, json!(["/a/slurm-11.out"]))], &[&job]);
        let other_run = entry(EntryKind::Run, 3, &[], &[&job]);
        let fitted = entry(EntryKind::Calibration, 4, &[(CORRECTIONS, "bb".into())], &[&run]);
        let next = entry(EntryKind::Prediction, 5, &[(CORRECTIONS, "bb".into())], &[]);
        let before = entry(EntryKind::Prediction, 0, &[(CORRECTIONS, "bb".into())], &[]);
        let all = [next, fitted, other_run, run, job, plan, before];
        let [next, _, other_run, run, ..] = &all;
        let expected = ["prediction", "submission", "run", "calibration", "prediction"];
        assert_eq!(handles(&chain(&all, run)), expected);
        assert_eq!(handles(&chain(&all, next)), expected);
        assert_eq!(handles(&chain(&all, other_run)), ["prediction", "submission", "run"]);
    }

    #[test]
    fn submissions_are_found_by_job_and_by_log_and_readings_by_file() {
        let inputs =
            |jobs: &str, folder: &str| [(JOBS, jobs.into()), ("directory", folder.into()), ("file", "train.sh".into())];
        let all = [
            entry(EntryKind::Submission, 1, &inputs("11 12", "/data"), &[]),
            entry(EntryKind::Submission, 2, &inputs("pid:77", "/other"), &[]),
            entry(EntryKind::Run, 3, &[(LOGS, json!(["/data/slurm-12.out"]))], &[]),
            entry(EntryKind::Measurement, 4, &[("log", "/data/b.log".into())], &[]),
        ];
        let id = |found: Option<&Entry>| found.map(|entry| entry.id.clone());
        assert_eq!(id(submission_of_job(&all, "12_3")), Some(all[0].id.clone()));
        assert_eq!(id(submission_of_job(&all, "1")), None, "no part of a number");
        assert_eq!(id(submission_of_log(&all, Path::new("/data/slurm-11.out"))), Some(all[0].id.clone()));
        assert_eq!(id(submission_of_log(&all, Path::new("/other/train.sh.1.log"))), Some(all[1].id.clone()));
        for log in ["/data/slurm-1.out", "/elsewhere/slurm-11.out", "/other/train2.sh.log"] {
            assert_eq!(id(submission_of_log(&all, Path::new(log))), None, "{log}");
        }
        let files = ["/data/slurm-12.out".to_owned(), "/data/b.log".to_owned()];
        assert_eq!(readings_of(&all, &files), [all[2].id.as_str(), all[3].id.as_str()]);
    }
}
