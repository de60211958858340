//! Plain-text and structured rendering of advice: the change, its gain, the reason and the source.

use std::fmt::Write as _;

use serde::Serialize;

use super::table::wrap;
use atlas_core::units;
use atlas_plan::advice::Advice;
use atlas_plan::advice::fit::Fit;

/// One line per piece of advice: the gain and the knobs to change.
#[must_use]
pub fn line(advice: &Advice) -> String {
    let (before, after) = (advice.metric.show(advice.before), advice.metric.show(advice.after));
    if advice.fixes {
        let rule = if advice.is_plain_fix() { String::new() } else { format!("{}: ", advice.rule.name) };
        return format!("makes it run: {rule}{}; {} {after}", advice.text, advice.metric.label);
    }
    let change = units::relative(advice.before, advice.after);
    let line = format!("{change} {}: {}: {}; {before} → {after}", advice.metric.label, advice.rule.name, advice.text);
    line + &advice.objection().map_or_else(String::new, |but| format!("; {but}"))
}

/// Renders the verdict with its fixes, then all advice, with reasons and sources.
#[must_use]
pub fn render(fit: Option<&Fit>, all: &[Advice], width: usize) -> String {
    let mut out = String::new();
    if let Some(fit) = fit {
        let _ = writeln!(out, "{}", wrap(&fit.verdict.describe(), width, "  "));
        if fit.fixes.is_empty() {
            out.push_str("no change of one or two knobs makes it run\n");
        } else {
            out.push_str("\nthe smallest changes that make it run, highest throughput per accelerator first:\n");
            for fix in &fit.fixes {
                let rate = units::with_unit(&units::si(fix.rate), "tok/s");
                let _ = writeln!(out, "  {}", wrap(&format!("{}; {rate}", fix.text), width.saturating_sub(2), "    "));
            }
        }
        out.push('\n');
    }
    // Advice already listed among the fixes is not repeated.
    let listed = |advice: &&Advice| fit.is_none_or(|fit| fit.fixes.iter().all(|fix| fix.changes != advice.changes));
    let all: Vec<&Advice> = all.iter().filter(listed).collect();
    if all.is_empty() && fit.is_none() {
        out.push_str("no rule of the playbook improves this scenario\n");
    }
    for (i, advice) in all.iter().enumerate() {
        let head = format!("{}. {}", i + 1, line(advice));
        let _ = writeln!(out, "{}", wrap(&head, width, "   "));
        let why = format!("{} [{}]", advice.rule.reason, advice.rule.source);
        let _ = writeln!(out, "   {}", wrap(&why, width.saturating_sub(3), "   "));
    }
    out
}

/// One piece of advice in serializable form.
#[derive(Debug, Serialize)]
pub struct Row<'a> {
    rule: &'a str,
    reason: &'a str,
    source: &'a str,
    /// Arguments for `--set`.
    set: Vec<String>,
    metric: &'a str,
    before: Option<f64>,
    after: f64,
    gain: f64,
    /// Latencies that become worse.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    worse: Vec<Loss<'a>>,
    makes_it_run: bool,
    tokens_per_sec: f64,
}

/// A latency that a piece of advice makes worse.
#[derive(Debug, Serialize)]
struct Loss<'a> {
    metric: &'a str,
    before: f64,
    after: f64,
}

/// Converts advice to serializable rows.
#[must_use]
pub fn rows(all: &[Advice]) -> Vec<Row<'_>> {
    let row = |advice: &'_ Advice| Row {
        rule: advice.rule.name,
        reason: advice.rule.reason,
        source: advice.rule.source,
        set: advice.changes.iter().map(|(knob, setting)| format!("{}={setting}", knob.name())).collect(),
        metric: advice.metric.name,
        before: advice.before.is_finite().then_some(advice.before),
        after: advice.after,
        gain: advice.gain,
        worse: advice
            .latency_losses
            .iter()
            .map(|loss| Loss { metric: loss.metric.name, before: loss.before, after: loss.after })
            .collect(),
        makes_it_run: advice.fixes,
        tokens_per_sec: advice.rate,
    };
    all.iter().map(row).collect()
}
