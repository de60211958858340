//! Merges several runs of one script into common values and variants.

use super::fields::{Fields, ReadFields};
use crate::import::{Field, Kind};

/// Parallel sizes. If one of them differs between runs, every variant states all of them.
const SHAPE: &[Field] =
    &[Field::Tp, Field::Pp, Field::Ep, Field::Cp, Field::Vpp, Field::Dp, Field::Etp, Field::SequenceParallel];

/// Merges several runs into the values that they have in common, and one variant per run for the rest.
pub(crate) fn merge_runs(runs: Vec<ReadFields>) -> Option<ReadFields> {
    let mut distinct: Vec<ReadFields> = Vec::new();
    let mut devices: Vec<Vec<String>> = Vec::new();
    for r in runs {
        let same = |a: &Fields, b: &Fields| {
            let flat = |f: &Fields| {
                f.iter()
                    .filter(|e| !matches!(e.key, Field::Launcher | Field::VisibleDevices))
                    .map(|e| (e.key, e.value.clone()))
                    .collect::<Vec<_>>()
            };
            flat(a) == flat(b)
        };
        let own = r.fields.str(Field::VisibleDevices).unwrap_or_default().to_owned();
        match distinct.iter().position(|d| same(&d.fields, &r.fields)).and_then(|i| devices.get_mut(i)) {
            Some(known) if known.contains(&own) => {}
            Some(known) => known.push(own),
            None => {
                distinct.push(r);
                devices.push(vec![own]);
            }
        }
    }
    for (d, own) in distinct.iter_mut().zip(&devices).filter(|(_, own)| own.len() > 1) {
        // Equal servers on different devices are replicas.
        let count = i64::try_from(own.len()).unwrap_or(1);
        let at = d.fields.at(Field::VisibleDevices);
        if let Some(n) = d.fields.int(Field::NumAccelerators).filter(|_| d.fields.kind() == Some(Kind::Serving)) {
            d.fields.set_implied(Field::Replicas, count, at);
            d.fields.set_implied(Field::AcceleratorsPerReplica, n, at);
            d.fields.set(Field::NumAccelerators, n.saturating_mul(count), at);
        }
    }
    let several = distinct.len() > 1;
    for d in &mut distinct {
        d.fields.remove(Field::VisibleDevices);
        // A different way to start the same program is not a different configuration.
        if several && d.fields.kind() == Some(Kind::Benchmark) {
            d.fields.remove(Field::Launcher);
        }
    }
    let mut all = distinct.into_iter();
    let mut first = all.next()?;
    let rest: Vec<ReadFields> = all.collect();
    if rest.is_empty() {
        return Some(first);
    }
    for r in &rest {
        first
            .unrecognized
            .extend(r.unrecognized.iter().filter(|s| !first.unrecognized.contains(s)).cloned().collect::<Vec<_>>());
        first.missing.extend(r.missing.iter().filter(|s| !first.missing.contains(s)).cloned().collect::<Vec<_>>());
    }
    let mut variants: Vec<Fields> = std::iter::once(&first).chain(&rest).map(|o| o.fields.clone()).collect();
    let keys: Vec<Field> = first.fields.iter().map(|e| e.key).collect();
    let whole = first.fields.clone();
    let common = |k: Field| {
        let v = whole.entry(k).map(|e| &e.value);
        rest.iter().all(|r| r.fields.entry(k).map(|e| &e.value) == v)
    };
    let shape_differs = SHAPE.iter().any(|k| !common(*k));
    for k in keys {
        if common(k) && !(shape_differs && SHAPE.contains(&k)) {
            variants.iter_mut().for_each(|v| {
                v.remove(k);
            });
        } else {
            first.fields.remove(k);
        }
    }
    first.variants = variants;
    Some(first)
}
