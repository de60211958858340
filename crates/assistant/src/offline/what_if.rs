//! Metrics before and after a change.

use atlas_core::units;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::knob::{Knob, KnobValues as _, Setting};

use super::case::{Case, Context};
use super::reply::{ReplyKind, format_setting};
use super::subject::ParsedQuestion;
use super::why::suggest;
use super::{Refusal, Reply};

/// Estimates the scenario before and after a change.
pub(super) fn what_if(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::WhatIf);
    // Other hardware is the change itself, relative to the scenario of the context, unless the question names a change
    // of a model's training or serving on this hardware.
    let subject = &question.subject;
    let named = subject.mode.is_some() || !subject.model.is_empty();
    let changed = question.scaled.is_some() || named && !(subject.settings.is_empty() && subject.tokens.is_none());
    let changed_place = !subject.hardware.is_empty() && !changed;
    let before = if changed_place {
        let workload = question.workload(context, &mut reply)?;
        Case::of(context, &context.target, &workload, context.overrides.clone())?
    } else {
        question.case_without_settings(context, &mut reply)?
    };
    let before = match &question.against {
        Some(against) => before.with(std::slice::from_ref(against))?,
        None => before,
    };
    // A slow node requires a simulation, so the baseline is simulated as well.
    let simulated =
        question.subject.settings.iter().any(|(knob, _)| matches!(knob, Knob::SlowNodes | Knob::SlowFactor));
    let before = if simulated && before.scenario.engine.models_hardware() {
        let event = Knob::Engine.parse("event", &[]).map_err(|error| Refusal::Scenario(error.to_string()))?;
        before.with(&[(Knob::Engine, event)])?
    } else {
        before
    };
    let mut changes: Vec<(Knob, Setting)> = Vec::new();
    if let Some(scaled) = question.scaled {
        let plan = &before.scenario.base.plan.serving;
        let open = plan.request_rate.is_some_and(|rate| rate > 0.0);
        let knob = scaled.of.knob(before.mode(), open);
        changes.push((knob, scaled_setting(&before, knob, scaled.factor)?));
    }
    changes.extend(question.settings(None));
    let after = if changed_place { question.case(context, &mut reply)? } else { before.with(&changes)? };
    if let Some((knob, _)) = changes.iter().find(|(knob, _)| !after.scenario.uses(*knob)) {
        return Err(Refusal::Nothing(after.scenario.ineffective_message(*knob)));
    }
    if after.about() == before.about() {
        return Err(Refusal::Unknown { reason: "which change? Name a knob, a price, a load or hardware".to_owned() });
    }
    reply.about = Some(before.about());
    let words = change_in_words(&before, &after);
    reply.push_text(format!("With {words}:"));
    if let Some(trouble) = after.trouble() {
        reply.push_text(format!("This cannot run: {trouble}."));
    }
    push_changed_metrics(&mut reply, &before, &after);
    if after.trouble().is_none() {
        suggest(&mut reply, &after, &words);
    }
    if let Some(metric) = reply.figures.first().map(|figure| figure.metric.metric()) {
        for case in [&before, &after].into_iter().filter(|case| metric.applies_to(&case.scenario)) {
            reply.command(&["explain", metric.name], case.command_flags());
        }
    }
    reply.command(&["run"], after.command_flags());
    if let (Setting::Number(from), Setting::Number(to)) =
        (before.scenario.get(Knob::NumNodes), after.scenario.get(Knob::NumNodes))
        && from != to
        && !changed_place
    {
        reply.command(&["scale", "--nodes", &format!("{from},{to}")], before.command_flags());
    }
    Ok(reply)
}

fn scaled_setting(case: &Case<'_>, knob: Knob, factor: f64) -> Result<Setting, Refusal> {
    let Setting::Number(now) = case.scenario.get(knob) else {
        return Err(Refusal::Nothing(format!("{} is not a number", knob.name())));
    };
    if now <= 0.0 {
        return Err(Refusal::Nothing(format!(
            "{} is {now} in this scenario, so it cannot be scaled; set a value, as in `what if {}=…`",
            knob.name(),
            knob.name()
        )));
    }
    let then = now * factor;
    let whole = matches!(knob.spec().kind, atlas_plan::knob::ValueType::Number { bounds, .. } if bounds.whole);
    let then = if whole { then.round() } else { then };
    knob.parse(&then.to_string(), &[]).map_err(|error| Refusal::Scenario(error.to_string()))
}

/// Describes the differences between two scenarios.
fn change_in_words(before: &Case<'_>, after: &Case<'_>) -> String {
    let mut words = Vec::new();
    if before.parts.target.name != after.parts.target.name {
        words.push(format!("{} instead of {}", after.parts.target.name, before.parts.target.name));
    }
    if before.parts.workload.name != after.parts.workload.name {
        words.push(format!("{} instead of {}", after.parts.workload.name, before.parts.workload.name));
    }
    let turned = after.overrides.iter().filter(|(knob, setting)| before.overrides.get(*knob) != Some(*setting));
    for (knob, setting) in turned {
        words.push(format!(
            "{} {} → {}",
            knob.name(),
            format_setting(*knob, &before.scenario.get(*knob)),
            format_setting(*knob, setting)
        ));
    }
    words.join(", ")
}

/// Adds a table of the metrics that change.
fn push_changed_metrics(reply: &mut Reply, before: &Case<'_>, after: &Case<'_>) {
    let others =
        [MetricId::UsdPerHour, MetricId::UsdPerHourOwned, MetricId::PowerW, MetricId::P99Ms, MetricId::JoulesPerToken];
    let others = others.into_iter().map(MetricId::metric);
    let mut rows = Vec::new();
    let mut same = Vec::new();
    let applies = |metric: &&Metric| metric.applies_to(&before.scenario) || metric.applies_to(&after.scenario);
    for metric in before.headlines().chain(others).filter(applies) {
        let (old, new) = (before.value(metric), after.value(metric));
        if old == new {
            same.push(metric.label);
            continue;
        }
        before.add_metric(reply, metric);
        after.add_metric(reply, metric);
        let change = match (old, new) {
            (Some(old), Some(new)) => units::relative(old, new),
            _ => String::new(),
        };
        rows.push(vec![metric.label.to_owned(), before.format_metric(metric), after.format_metric(metric), change]);
    }
    if let Some(price) = after.scenario.missing_price().filter(|_| before.scenario.missing_price().is_none()) {
        reply.push_text(format!("Note: {price}."));
    }
    if rows.is_empty() {
        reply.push_text("No metric changes: the scenario already has this value, or no metric shown depends on it.");
        before.headlines().for_each(|metric| before.add_metric(reply, metric));
    }
    reply.table(["", "now", "then", "change"], rows);
    if !same.is_empty() {
        reply.push_text(format!("Unchanged: {}.", same.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atlas_config::library::Library;
    use atlas_document::Sources;

    use super::*;

    #[test]
    fn hardware_beside_a_change_of_a_named_model_is_no_change() {
        let library = Library::load(&Sources::built_in(), None);
        let context = Context::new(&library, "h100-sxm-8", "llama3.1-70b-serve");
        for (line, scenario, change) in [
            (
                "what if the network is only 100 Gb/s when training mixtral on 64 h100",
                "mixtral-8x7b-train on h100-sxm-64",
                "With network_gbps 400 Gb/s → 100 Gb/s:",
            ),
            (
                "double the batch size in training llama 70b on 128 h100",
                "llama3.1-70b-train on h100-sxm-128",
                "With global ",
            ),
            (
                "what if I use h200 with tp=8",
                "llama3.1-70b-serve on h100-sxm-8",
                "With h200-sxm-8 instead of h100-sxm-8",
            ),
        ] {
            let reply = what_if(&ParsedQuestion::of(line, &context).unwrap(), &context).unwrap();
            let text = reply.text(200);
            assert_eq!(reply.about.as_ref().unwrap().line(), scenario, "{line}");
            assert!(text.contains(change), "{line}: {text}");
        }
    }
}
