//! Definitions of metrics, knobs and terms of the documentation.

use atlas_document::suggestion::{clause, nearest};
use atlas_plan::estimate::{METRICS, Metric};
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, ValueType as Takes};
use atlas_plan::search::metric;

use super::case::{Case, Context};
use super::reply::ReplyKind;
use super::subject::ParsedQuestion;
use super::terms::{TERMS, terms};
use super::words::Words;
use super::{Refusal, Reply, named_metric};

/// Answers with the definition of a word.
pub(super) fn meaning(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Meaning);
    let mut words = question.words.clone();
    for lead in [
        "what is meant by",
        "what does",
        "what do",
        "what is",
        "what are",
        "the",
        "by",
        "a",
        "an",
        "does",
        "what",
        "is",
    ] {
        while words.begins(lead) && words.all().len() > 1 {
            words.take(lead);
        }
    }
    let all = terms(&words);
    if all.len() > 1 {
        for term in all {
            of_term(&term, &Words::of(&term), &mut reply, context)?;
        }
        return Ok(reply);
    }
    of_term(words.line().trim(), &words, &mut reply, context)?;
    Ok(reply)
}

/// Adds the definition of one term.
fn of_term(term: &str, words: &Words, reply: &mut Reply, context: &Context<'_>) -> Result<(), Refusal> {
    let before = reply.answer.len();
    let metrics = metrics(term, words);
    let listed = TERMS.iter().find(|(known, _)| *known == term || term.strip_suffix('s') == Some(*known));
    let knob = Knob::named(&term.replace(' ', "_")).ok();
    if let Some((known, means)) = listed {
        reply.push_text(format!(
            "{}: {means}.",
            if known.len() <= 4 { known.to_uppercase() } else { (*known).to_owned() }
        ));
    }
    for metric in &metrics {
        let unit = if metric.unit.is_empty() { String::new() } else { format!(" [{}]", metric.unit) };
        reply.push_text(format!("{} (`{}`){unit}: {}.", metric.label, metric.name, metric.help));
    }
    let knob = knob.filter(|knob| metrics.is_empty() || knob.name() == term);
    let case = current_case(context)?;
    if let Some(knob) = knob {
        let spec = knob.spec();
        let takes = match spec.kind {
            Takes::Toggle => "on or off".to_owned(),
            Takes::Choice(words) => words.join(", "),
            Takes::Number { bounds, .. } => bounds.describe(),
            Takes::Fabric => "a fabric of the profile".to_owned(),
            Takes::Software => "software, such as vllm@0.11".to_owned(),
            Takes::Seed => "a whole number".to_owned(),
        };
        reply.push_text(format!("knob `{}`: {}. It takes {takes}.", spec.name, spec.help));
        let now = case.scenario.get(knob);
        if case.scenario.uses(knob) {
            reply.push_text(format!("It is {now} in {}.", case.about().line()));
        }
        let mut flags = case.command_flags();
        let set = format!("{}={now}", spec.name);
        if !flags.contains(&set) && knob.parse(&now.to_string(), case.parts.fabrics()).is_ok() {
            flags.extend(["--set".to_owned(), set]);
        }
        reply.command(&["run"], flags);
    }
    // A metric of the other mode is shown with a workload that has it.
    let case = match metrics.first() {
        Some(metric) if metrics.iter().all(|metric| !metric.applies_to(&case.scenario)) => {
            let mode = case.mode();
            let others = context.library.workloads().iter().filter(|workload| workload.shape.mode != mode);
            let mut cases =
                others.filter_map(|other| Case::of(context, &context.target, &other.name, Overrides::new()).ok());
            cases.find(|other| other.value(metric).is_some()).unwrap_or(case)
        }
        _ => case,
    };
    for metric in metrics.iter().filter(|metric| case.value(metric).is_some()) {
        case.add_metric(reply, metric);
        reply.push_text(format!("{} of {}: {}.", metric.label, case.about().line(), case.format_metric(metric)));
        reply.command(&["explain", metric.name], case.command_flags());
    }
    if reply.answer.len() == before {
        let names = TERMS.iter().map(|(term, _)| *term).chain(metric::names()).chain(Knob::all().map(Knob::name));
        let near = clause(nearest(term, names));
        return Err(Refusal::Unknown { reason: format!("unknown term `{term}`{near}") });
    }
    if reply.commands.is_empty() {
        reply.command(&["run"], case.command_flags());
    }
    Ok(())
}

/// The scenario of the context.
fn current_case<'a>(context: &'a Context<'_>) -> Result<Case<'a>, Refusal> {
    Case::of(context, &context.target, &context.workload, context.overrides.clone())
}

/// Metrics that a term names, in training and in serving.
fn metrics(term: &str, words: &Words) -> Vec<&'static Metric> {
    let label = |metric: &&Metric| metric.label.eq_ignore_ascii_case(term);
    let mut found: Vec<&'static Metric> = METRICS.iter().filter(label).collect();
    found.extend(metric::named(&term.replace(' ', "_")).filter(|metric| !found.contains(metric)));
    if found.is_empty()
        && let Some(question) = named_metric::take(&mut words.clone()).filter(|_| words.all().len() > 1)
    {
        found.push(question.metric(atlas_config::Mode::Inference));
        let training = question.metric(atlas_config::Mode::Training);
        if !found.contains(&training) {
            found.push(training);
        }
    }
    found
}
