//! Answers single lines.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::line::{self, KEYS, Line};
use super::memo::{Draws, Memo};
use super::parts::{Context, decode, explain, read_knobs};
use atlas_config::{Profile, Target, Workload};
use atlas_document::suggestion::{clause, nearest};
use atlas_document::{Diagnostics, Node};
use atlas_evidence::support::{self, Support};
use atlas_plan::engine::estimate_into;
use atlas_plan::engine::notes::notes;
use atlas_plan::estimate::{Estimate, MetricId};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::record::{Body, Knobs, MetricValues};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::hill_climb::hill_climb;

/// Answers lines and caches decoded documents.
pub(super) struct Worker {
    context: Arc<Context>,
    targets: Memo<Target>,
    workloads: Memo<Workload>,
    profiles: Memo<Profile>,
    /// Profiles by the JSON text of the target that they were found for.
    matched: Memo<Profile>,
    /// Scenarios without overrides, most recent first.
    scenarios: Vec<Arc<Prepared>>,
    draws: Draws,
    estimate: Estimate,
}

/// A scenario without overrides, and its parts.
struct Prepared {
    parts: Parts,
    scenario: Scenario,
}

/// The answer to a line that has an estimate.
#[derive(Serialize)]
struct Answer<'a> {
    id: &'a RawValue,
    /// The knobs that the search found.
    #[serde(skip_serializing_if = "Option::is_none")]
    knobs: Option<Knobs<'a>>,
    record: Body<'a>,
    /// `null` if no price is known.
    dollar_per_1k_tokens: Option<f64>,
    metrics: MetricValues<'a>,
    /// Measured rows near the scenario. Absent unless requested, `null` if no row is near.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Option<Support>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<Vec<String>>,
}

/// The answer to a line without an estimate.
#[derive(Serialize)]
struct Refusal<'a> {
    id: &'a RawValue,
    error: &'a str,
}

/// Writes the answer to a line that is too long.
pub(super) fn write_line_too_long(number: u64, max_bytes: usize, out: &mut Vec<u8>) {
    write_error(RawValue::NULL, &format!("line {number}: longer than {max_bytes} bytes"), out);
}

fn write_error(id: &RawValue, error: &str, out: &mut Vec<u8>) {
    // Writing to a `Vec` cannot fail.
    let _ = serde_json::to_writer(&mut *out, &Refusal { id, error });
    out.push(b'\n');
}

impl<'a> Answer<'a> {
    fn new(
        id: &'a RawValue,
        knobs: Option<Knobs<'a>>,
        estimate: &'a Estimate,
        scenario: &'a Scenario,
        parts: &'a Parts,
        evidence: bool,
    ) -> Answer<'a> {
        let priced = !MetricId::DollarPer1kTokens.metric().lacks_price(scenario);
        Answer {
            id,
            knobs,
            record: Body::of(estimate, &parts.workload),
            dollar_per_1k_tokens: priced.then_some(estimate.cost.usd_per_1k_tokens_parity),
            metrics: MetricValues { estimate, scenario },
            evidence: evidence.then(|| support::throughput(parts, scenario)),
            notes: evidence.then(|| notes(scenario, estimate)),
        }
    }
}

impl Worker {
    pub(super) fn new(context: Arc<Context>) -> Worker {
        Worker {
            context,
            targets: Memo::new(),
            workloads: Memo::new(),
            profiles: Memo::new(),
            matched: Memo::new(),
            scenarios: Vec::new(),
            draws: Draws::new(),
            estimate: Estimate::default(),
        }
    }

    /// Writes the answer to a line. A blank line is an error like any other, so that each line has an answer.
    pub(super) fn answer(&mut self, bytes: &[u8], number: u64, out: &mut Vec<u8>) {
        // The file may begin with a byte order mark.
        let bytes = if number == 1 { bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes) } else { bytes };
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            return write_error(RawValue::NULL, &format!("line {number}: empty, expected a JSON object"), out);
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let lossy = String::from_utf8_lossy(bytes);
                let line: Line<'_> = serde_json::from_str(&lossy).unwrap_or_default();
                let problem =
                    format!("line {number}: not UTF-8: the byte at offset {} is invalid", error.valid_up_to());
                return write_error(line.id(), &problem, out);
            }
        };
        let line: Line<'_> = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) => {
                let (column, problem) = line::describe(text, &error);
                let problem = format!("line {number}, column {column}: {problem}");
                return write_error(RawValue::NULL, &problem, out);
            }
        };
        for key in &line.unknown {
            let near = clause(nearest(key, KEYS));
            self.context.warn(number, format!("unknown key `{key}` ignored{near}"));
        }
        let start = out.len();
        if let Err(problem) = self.estimate(&line, number, out) {
            out.truncate(start);
            write_error(line.id(), &problem, out);
        }
    }

    fn estimate(&mut self, line: &Line<'_>, number: u64, out: &mut Vec<u8>) -> Result<(), String> {
        let (prepared, overrides) = self.read(line, number)?;
        let mut scenario = prepared.resolve(&overrides, &mut self.draws)?;
        let parts = &prepared.parts;
        let evidence = self.context.evidence;
        let written = match self.context.sla_p99_ms {
            None => {
                estimate_into(&scenario, &mut self.estimate);
                self.estimate.finite()?;
                let answer = Answer::new(line.id(), None, &self.estimate, &scenario, parts, evidence);
                serde_json::to_writer(&mut *out, &answer)
            }
            Some(sla) => {
                // The search ignores the schedule, and is faster without it.
                scenario.phases.clear();
                let found = hill_climb(&scenario, parts, sla);
                found.estimate.finite()?;
                let knobs = Some(Knobs::of(&found.scenario));
                let answer = Answer::new(line.id(), knobs, &found.estimate, &found.scenario, parts, evidence);
                serde_json::to_writer(&mut *out, &answer)
            }
        };
        written.map_err(|error| error.to_string())?;
        out.push(b'\n');
        Ok(())
    }

    /// Resolves all parts of a line; the error lists all problems.
    fn read(&mut self, line: &Line<'_>, number: u64) -> Result<(Arc<Prepared>, Overrides), String> {
        let context = Arc::clone(&self.context);
        let library = &context.library;
        let missing = |key: &str| Arc::<str>::from(format!("`{key}` is missing"));
        let target = line.part("target").ok_or_else(|| missing("target")).and_then(|text| {
            self.targets.get(text, || {
                decode(&context, number, "target", text, |name| library.target(name).cloned(), Target::decode)
            })
        });
        let workload = line.part("workload").ok_or_else(|| missing("workload")).and_then(|text| {
            self.workloads.get(text, || {
                decode(&context, number, "workload", text, |name| library.workload(name).cloned(), Workload::decode)
            })
        });
        let profile = match (line.part("profile"), line.part("target"), &target) {
            (Some(text), ..) => Some(self.profiles.get(text, || {
                let inline = |file: &Arc<str>, node: &Node, problems: &mut Diagnostics| {
                    Profile::decode(file, "profile", node, problems)
                };
                decode(&context, number, "profile", text, |name| library.profile(name).cloned(), inline)
            })),
            (None, Some(text), Ok(target)) => {
                let found = self
                    .matched
                    .get(text, || library.profile_for(target).cloned().map_err(|problem| explain(&problem)));
                // A target that names an accelerator needs no profile.
                (found.is_ok() || target.accelerator.is_none()).then_some(found)
            }
            // The problem with the target has been reported already.
            _ => None,
        };
        let fabrics = match &profile {
            Some(Ok(profile)) => Some(Arc::clone(&profile.fabrics)),
            _ => None,
        };
        let overrides = read_knobs(&context, line, fabrics.as_deref());
        match (target, workload, profile.transpose(), overrides) {
            (Ok(target), Ok(workload), Ok(profile), Ok(overrides)) => {
                Ok((self.prepare(&target, &workload, profile)?, overrides))
            }
            (target, workload, profile, overrides) => {
                let problems = [target.err(), workload.err(), profile.err(), overrides.err().map(Arc::from)];
                Err(problems.into_iter().flatten().collect::<Vec<_>>().join("; "))
            }
        }
    }

    /// Scenario of these parts without overrides, from the cache if possible.
    fn prepare(
        &mut self,
        target: &Arc<Target>,
        workload: &Arc<Workload>,
        profile: Option<Arc<Profile>>,
    ) -> Result<Arc<Prepared>, String> {
        const MAX_PREPARED: usize = 256;
        let same = |other: &Option<Arc<Profile>>| other.as_ref().map(Arc::as_ptr) == profile.as_ref().map(Arc::as_ptr);
        let known = self.scenarios.iter().position(|prepared| {
            let parts = &prepared.parts;
            Arc::ptr_eq(&parts.target, target) && Arc::ptr_eq(&parts.workload, workload) && same(&parts.profile)
        });
        if let Some(recent) = known.and_then(|at| self.scenarios.get_mut(..=at)) {
            recent.rotate_right(1);
        } else {
            let library = &self.context.library;
            let profile = profile.map_or_else(|| library.profile_for(target).cloned(), Ok);
            let parts = Parts::with(library.catalog(), target, workload, profile);
            let mut parts = parts.map_err(|problems| problems.iter().map(explain).collect::<Vec<_>>().join("; "))?;
            parts.corrections = parts.corrections.or_else(|| library.corrections_for(target).cloned());
            let scenario = Scenario::from_files(&parts);
            self.scenarios.truncate(MAX_PREPARED - 1);
            self.scenarios.insert(0, Arc::new(Prepared { parts, scenario }));
        }
        #[expect(clippy::indexing_slicing, reason = "both branches leave the scenario at the front")]
        Ok(Arc::clone(&self.scenarios[0]))
    }
}

impl Prepared {
    /// Like [`Scenario::resolve`], but with cached noise draws.
    fn resolve(&self, overrides: &Overrides, draws: &mut Draws) -> Result<Scenario, String> {
        let mut scenario = self.scenario.clone();
        for (knob, setting) in overrides {
            match (knob, setting) {
                (Knob::Seed, Setting::Seed(seed)) => scenario.reseed(*seed, |seed| draws.first(seed)),
                _ => scenario.set(*knob, setting, &self.parts).map_err(|error| error.to_string())?,
            }
        }
        scenario.check(&self.parts).map_err(|error| error.to_string())?;
        Ok(scenario)
    }
}
