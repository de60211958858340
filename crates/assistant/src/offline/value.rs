//! Values of metrics, their accuracy, and the origin of their inputs.

use atlas_config::Mode;
use atlas_core::time_unit::TimeUnit;
use atlas_core::units;
use atlas_evidence::support;
use atlas_plan::estimate::MetricId;
use atlas_plan::explain::{self, Term};
use atlas_plan::knob::Knob;
use atlas_plan::search::break_even::break_even_utilization;

use super::case::{Case, Context};
use super::fitting::headline;
use super::named_metric::NamedMetric;
use super::reply::ReplyKind;
use super::subject::ParsedQuestion;
use super::{Refusal, Reply};

/// Maximum inputs listed.
const INPUTS: usize = 16;

/// Answers with the metric named in the question, or with the key metrics.
pub(super) fn value(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Value);
    let case = question.case(context, &mut reply)?;
    let volume = question.tokens().filter(|_| case.mode() == Mode::Inference);
    if let Some(tokens) = volume {
        state_volume(&mut reply, &case, tokens);
    }
    // The duration of a number of tokens is not the latency of a request.
    let latency = |figure: NamedMetric| figure.metric(case.mode()).id == MetricId::P99Ms;
    let answered = volume.is_some() && question.figure.is_some_and(latency);
    if question.figure.is_some() && !answered {
        let metric = question.metric(&case, MetricId::TokensPerSec)?;
        let interval = case.interval(metric).map(|ends| format!(", 90 % interval {ends}")).unwrap_or_default();
        reply.push_text(format!("{}: {}{interval} ({}).", metric.label, case.format_metric(metric), metric.help));
        case.add_metric(&mut reply, metric);
        reply.command(&["explain", metric.name], case.command_flags());
        if metric.id == MetricId::RequestsPerSec
            && let Some(rate) = case.value(metric)
        {
            reply.push_text(format!(
                "That is {} per day, with the load of the workload (concurrency {}, request_rate {}).",
                units::si(86_400.0 * rate),
                case.scenario.get(Knob::Concurrency),
                case.scenario.get(Knob::RequestRate)
            ));
        }
        if let Some(period) = question.period.filter(|_| metric.id == MetricId::TokensPerSec)
            && let Some(rate) = case.value(metric)
        {
            let seconds = TimeUnit::named(period).map_or(1.0, TimeUnit::seconds);
            reply.push_text(format!("That is {}tokens per {period}.", units::si(seconds * rate)));
        }
        if metric.id == MetricId::BreakEvenMonths {
            let (rent, own) = (MetricId::UsdPerHour.metric(), MetricId::UsdPerHourOwned.metric());
            case.add_metric(&mut reply, rent);
            case.add_metric(&mut reply, own);
            reply.push_text(format!(
                "Per hour, renting costs {} and owning {}.",
                case.format_metric(rent),
                case.format_metric(own)
            ));
            if let Some(share) = break_even_utilization(&case.scenario) {
                reply.push_text(format!(
                    "Over the life of the hardware, owning is cheaper from a utilization of {:.1} %.",
                    100.0 * share
                ));
            }
            reply.command(&["break-even"], case.command_flags());
        }
    }
    headline(&mut reply, &case);
    reply.command(&["run"], case.command_flags());
    Ok(reply)
}

/// States how long a number of generated tokens takes, and what it costs.
fn state_volume(reply: &mut Reply, case: &Case<'_>, tokens: f64) {
    let (rate, price) = (MetricId::TokensPerSec.metric(), MetricId::DollarPer1mTokens.metric());
    if let Some(per_second) = case.value(rate).filter(|rate| *rate > 0.0) {
        reply.push_text(format!(
            "{}tokens take {} at {}.",
            units::si(tokens),
            units::duration(tokens / per_second),
            case.format_metric(rate)
        ));
        case.add_metric(reply, rate);
        reply.command(&["explain", rate.name], case.command_flags());
    }
    if let Some(usd) = case.value(price) {
        reply.push_text(format!("They cost ${:.2} at {} per million.", usd * tokens / 1e6, case.format_metric(price)));
        case.add_metric(reply, price);
    }
}

/// Answers with the intervals, and the measurements behind them.
pub(super) fn trust(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Trust);
    let case = question.case(context, &mut reply)?;
    let named = question.figure.map(|figure| figure.metric(case.mode()));
    let mut rows = Vec::new();
    let headlines: Vec<_> = case.headlines().collect();
    for metric in named.into_iter().chain(headlines.into_iter().filter(|metric| Some(*metric) != named)) {
        let Some(interval) = case.interval(metric) else { continue };
        case.add_metric(&mut reply, metric);
        rows.push(vec![metric.label.to_owned(), case.format_metric(metric), interval]);
    }
    if rows.is_empty() {
        reply.push_text("These metrics have no known interval.");
    } else {
        reply.push_text("90 % prediction intervals:");
    }
    reply.table(["", "value", "90 % interval"], rows);
    let assumed = atlas_plan::engine::notes::notes(&case.scenario, &case.estimate);
    if !assumed.is_empty() {
        let lines: Vec<String> = assumed.iter().map(|note| format!("- {note}")).collect();
        reply.push_text("Assumptions:");
        reply.answer.push(super::Block::Lines(lines.join("\n")));
    }
    let supports = support::of(&case.parts, &case.scenario);
    if supports.is_empty() {
        reply.push_text(atlas_report::evidence::NONE);
    }
    for found in &supports {
        reply.push_text(format!("Evidence for {}: {}.", found.figure.title(), found.line()));
    }
    let metric = named.unwrap_or(MetricId::TokensPerSec.metric());
    reply.command(&["explain", metric.name], case.command_flags());
    reply.command(&["validate"], case.flags.to_vec());
    Ok(reply)
}

/// Lists the inputs of a metric and where each is defined.
pub(super) fn origin(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Origin);
    let case = question.case(context, &mut reply)?;
    let metric = question.metric(&case, MetricId::UsdPerHour)?;
    case.add_metric(&mut reply, metric);
    reply.push_text(format!("{} is {}. Its inputs:", metric.label, case.format_metric(metric)));
    let tree = explain::explain(&case.scenario, &case.parts, &case.estimate, metric)
        .ok_or_else(|| Refusal::Nothing(metric.inapplicable(&case.scenario)))?;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let leaves = tree.walk().into_iter().filter(|term| term.terms.is_empty());
    for (term, origin) in leaves.filter_map(|term: &Term| Some((term, term.origin.as_ref()?))) {
        let row = vec![term.name.to_string(), term.shown(), origin.to_string()];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let more = rows.len().saturating_sub(INPUTS);
    rows.truncate(INPUTS);
    let lines: Vec<String> = rows.iter().map(|row| row.join("  ·  ")).collect();
    reply.answer.push(super::Block::Lines(lines.join("\n")));
    if more > 0 {
        reply.push_text(format!("{more} more inputs; use the command below to see all."));
    }
    reply.command(&["explain", metric.name, "--depth", "64"], case.command_flags());
    Ok(reply)
}
