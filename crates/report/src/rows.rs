//! One record as JSON or YAML, or as a CSV line of its metrics.

use serde::Serialize;

use super::{Format, ReportError, csv, serialized};
use atlas_evidence::support::Support;
use atlas_plan::engine::notes::notes;
use atlas_plan::estimate::standing::is_available;
use atlas_plan::estimate::{Estimate, METRICS};
use atlas_plan::record::Record;
use atlas_plan::scenario::Scenario;

/// Writes the record, with its notes and the measured rows that support it, in a machine-readable format.
pub fn record(
    record: &Record<'_>,
    scenario: &Scenario,
    answer: &Estimate,
    evidence: &[Support],
    format: Format,
) -> Result<String, ReportError> {
    #[derive(Serialize)]
    struct Answered<'a> {
        #[serde(flatten)]
        record: &'a Record<'a>,
        notes: Vec<String>,
        evidence: &'a [Support],
    }
    match format {
        Format::Csv => Ok(csv_of(record, scenario, answer)),
        format => {
            let notes = notes(scenario, answer);
            serialized(&Answered { record, notes, evidence }, format == Format::Yaml)
        }
    }
}

fn csv_of(record: &Record<'_>, scenario: &Scenario, answer: &Estimate) -> String {
    let knobs = &record.knobs;
    let mut fields: Vec<(&str, String)> = vec![
        ("ts", record.ts.clone()),
        ("target", record.target.to_owned()),
        ("workload", record.workload.to_owned()),
        ("track", record.track.to_owned()),
        ("label", record.label.to_owned()),
        ("engine", record.engine.to_owned()),
        ("seed", record.seed.to_string()),
        ("microbatch", knobs.microbatch.0.to_string()),
        ("cuda_graphs", knobs.cuda_graphs.to_string()),
        ("gpudirect_rdma", knobs.gpudirect_rdma.to_string()),
        ("virt", knobs.virt.to_owned()),
        ("fabric", knobs.fabric.to_owned()),
        ("set", record.set.join(" ")),
    ];
    // A column exists for every metric, in training and inference alike; it is empty if the metric does not apply or
    // the scenario cannot run.
    for metric in METRICS {
        let says = metric.applies_to(scenario) && is_available(metric, answer);
        fields.push((metric.name, csv::optional(metric.value(answer, scenario).filter(|_| says))));
    }
    let verdict = answer.detail.map_or_else(String::new, |detail| detail.verdict.describe());
    let parity = csv::optional(record.dollar_per_1k_tokens.filter(|_| answer.runs()));
    fields.extend([("dollar_per_1k_tokens_parity", parity), ("verdict", verdict)]);
    csv::line(fields.iter().map(|(name, _)| *name)) + &csv::line(fields.iter().map(|(_, value)| value.as_str()))
}
