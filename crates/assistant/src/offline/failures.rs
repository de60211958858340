//! Cost of failures in a training run: goodput and the best checkpoint interval.

use atlas_config::Mode;
use atlas_core::units;
use atlas_plan::knob::{Knob, KnobValues as _};
use atlas_plan::simulation::RunsProgress;
use atlas_plan::simulation::goodput::{SHARES, study};
use atlas_plan::simulation::options::Options;
use atlas_plan::simulation::plan::{Plan, Work};
use atlas_plan::simulation::words::Span;

use super::case::Context;
use super::mtbf::FailureScope;
use super::reply::ReplyKind;
use super::subject::ParsedQuestion;
use super::{Block, Refusal, Reply};

/// Simulated runs per answer. Few, so that the answer is immediate; the command that reproduces it uses more.
const REPLICATIONS: u32 = 8;

/// Answers with the goodput under failures, and the checkpoint interval that maximizes it.
pub(super) fn failures(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Failures);
    let mut question = question.clone();
    let stated = question.subject.mode.replace(Mode::Training);
    if stated == Some(Mode::Inference) {
        return Err(Refusal::Nothing(
            "failures and checkpoints are simulated for training only; in serving, a failed replica lowers the \
             throughput by its share: ask `what if num_nodes=…`"
                .to_owned(),
        ));
    }
    let trained = training_context(&question, context)?;
    if stated.is_none() && question.subject.model.is_empty() && trained.workload != context.workload {
        reply.push_text(format!(
            "Failures and checkpoints are simulated for training; the answer is about {}, not {}.",
            trained.workload, context.workload
        ));
    }
    let case = question.case(&trained, &mut reply)?;
    let engine = Knob::Engine.parse("event", &[]).map_err(|error| Refusal::Scenario(error.to_string()))?;
    let event = case.with(&[(Knob::Engine, engine)])?;
    let per_node = f64::from(case.scenario.accelerators_per_node).max(1.0);
    let nodes = f64::from(case.scenario.num_nodes).max(1.0);
    let mtbf = question.failures.map(|failures| match failures.of {
        FailureScope::Any => failures.every * nodes * per_node,
        FailureScope::EachNode => failures.every * per_node,
        FailureScope::EachAccelerator => failures.every,
    });
    let options = Options { accelerator_mtbf: mtbf.map(Span), replications: Some(REPLICATIONS), ..Options::default() };
    let plan = Plan::of(case.about().line(), &event.scenario, &options, None).map_err(refused)?;
    let Work::Training(work) = &plan.work else {
        return Err(Refusal::Nothing("there is no training run to simulate".to_owned()));
    };
    let rate = case.estimate.total.tokens_per_sec;
    let found = study(work, rate, &options, &RunsProgress::default()).map_err(refused)?;
    let input = &found.input;
    let time = units::duration;
    reply.push_text(format!(
        "If one of the {} nodes fails every {}, {} of the time is useful work: throughput drops from {} to {}.",
        input.nodes,
        time(input.mtbf()),
        units::percent(found.shares[0].mean),
        units::with_unit(&units::si(rate), "tok/s"),
        units::with_unit(&units::si(rate * found.shares[0].mean), "tok/s"),
    ));
    let shares = SHARES.iter().zip(&found.shares);
    reply.table(
        ["share of the time", ""],
        shares.map(|(name, share)| vec![(*name).to_owned(), units::percent(share.mean)]).collect(),
    );
    reply.push_text(format!(
        "A checkpoint takes {}. The optimal checkpoint interval is {} (Young) or {} (Daly).",
        time(input.checkpoint),
        time(input.young_interval()),
        time(input.daly_interval())
    ));
    case.add_metric(&mut reply, atlas_plan::estimate::MetricId::TokensPerSec.metric());
    let lines: Vec<String> = found.notes.iter().map(|note| format!("- {note}")).collect();
    if !lines.is_empty() {
        reply.answer.push(Block::Lines(lines.join("\n")));
    }
    let mtbf = format!("{:.0}h", found.mtbf / 3600.0);
    reply.command(&["simulate", "--mtbf", &mtbf, "--study", "goodput"], case.command_flags());
    Ok(reply)
}

/// The context with a training workload: that of the question, or else the first one that the target runs.
fn training_context<'a>(question: &ParsedQuestion, context: &Context<'a>) -> Result<Context<'a>, Refusal> {
    let with = |workload: &str| Context { workload: workload.into(), ..context.clone() };
    let usual = with(&question.workload(context, &mut Reply::new(ReplyKind::Failures))?);
    let runs = |context: &Context<'_>| {
        let case = question.case(context, &mut Reply::new(ReplyKind::Failures));
        case.is_ok_and(|case| case.trouble().is_none())
    };
    if usual.workload == context.workload || !question.subject.model.is_empty() || runs(&usual) {
        return Ok(usual);
    }
    let others = question.known.workloads.iter().filter(|workload| workload.mode == Mode::Training);
    Ok(others.map(|workload| with(&workload.name)).find(runs).unwrap_or(usual))
}

fn refused(problems: atlas_plan::simulation::Problems) -> Refusal {
    Refusal::Nothing(problems.0.join("; "))
}
