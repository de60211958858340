//! Whether a scenario can run, which changes make it run, and how many accelerators are needed.

use atlas_core::sort;
use atlas_core::units::{self, BYTES_PER_GB};
use atlas_plan::advice::fit;
use atlas_plan::engine::analytical_scenario;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::search::condition::Relation;
use atlas_plan::search::optimize::MAX_CANDIDATES;
use atlas_plan::search::{Condition, Gauge};

use super::case::{Case, Context};
use super::floor::{Unreachable, fewest_nodes};
use super::rank::{BestCandidate, best, where_flags};
use super::reply::ReplyKind;
use super::subject::{ParsedQuestion, partial_node};
use super::why::suggest;
use super::{Refusal, Reply};

/// Maximum fixes listed.
const MAX_FIXES: usize = 6;
/// Maximum nodes tried.
const MAX_NODES: f64 = 4096.0;

/// Answers whether the scenario can run, and if not, which smallest changes make it run.
pub(super) fn fit(question: &ParsedQuestion, context: &Context<'_>, gauge: &Gauge) -> Result<Reply, Refusal> {
    if let Some((hardware, max_accelerators)) = partial_node(&question.subject, &question.known) {
        let mut question = question.clone();
        question.subject.hardware = vec![hardware];
        return fits_on_part_of_node(&question, max_accelerators, context, gauge);
    }
    let mut reply = Reply::new(ReplyKind::Fit);
    let case = question.case(context, &mut reply)?;
    reply.answer.retain(|block| !is_warning(block));
    let Some(detail) = case.estimate.detail else {
        return Err(Refusal::Nothing(format!(
            "the {} engine does not report what fits in memory",
            case.scenario.engine.name()
        )));
    };
    let memory = detail.memory;
    let (needs, has) = (memory.upper / BYTES_PER_GB, memory.capacity / BYTES_PER_GB);
    case.add_metric(&mut reply, MetricId::MemoryFill.metric());
    reply.command(&["advise"], case.command_flags());
    let Some(found) = fit::fit(&case.scenario, &case.parts, &case.estimate) else {
        reply.push_text(format!(
            "It fits: the fullest device needs at most {needs:.1} GB of {has:.1} GB ({:.0} % free). No change is needed.",
            100.0 * (1.0 - memory.upper / memory.capacity)
        ));
        state_kv_capacity(&mut reply, &case);
        return Ok(reply);
    };
    reply.push_text(format!("It does not run: {}.", found.verdict.describe()));
    if found.fixes.is_empty() {
        reply.push_text("No change of one or two knobs makes it run. Smallest number of nodes over all layouts:");
        let enough = smallest_node_count(question, context, gauge)?;
        reply.answer.extend(enough.answer);
        reply.figures.extend(enough.figures);
        reply.commands.extend(enough.commands);
        reply.suggestion = enough.suggestion;
        return Ok(reply);
    }
    let throughput = MetricId::TokensPerSec.metric();
    let mut rows = Vec::new();
    for fix in found.fixes.iter().take(MAX_FIXES) {
        let changed = case.with(&fix.changes)?;
        changed.add_metric(&mut reply, throughput);
        rows.push(vec![fix.text.clone(), changed.format_metric(throughput)]);
        if reply.suggestion.is_none() {
            suggest(&mut reply, &changed, &fix.text);
            reply.command(&["explain", throughput.name], changed.command_flags());
        }
    }
    reply.push_text("The smallest changes that make it run, highest throughput per accelerator first:");
    reply.table(["change", "tokens/s"], rows);
    Ok(reply)
}

/// States how many sequences fit in the memory of a replica, and whether requests have to wait for memory.
fn state_kv_capacity(reply: &mut Reply, case: &Case<'_>) {
    let metric = MetricId::MaxConcurrency.metric();
    let (Some(room), Setting::Number(requested), Setting::Number(replicas)) =
        (case.value(metric), case.scenario.get(Knob::Concurrency), case.scenario.get(Knob::Dp))
    else {
        return;
    };
    let each = requested / replicas.max(1.0);
    let waits = if each > room { "the others wait for memory" } else { "none of them waits for memory" };
    reply.push_text(format!(
        "The KV cache of a replica holds up to {}. Each replica receives {each:.0} concurrent requests; {waits}.",
        case.format_metric(metric)
    ));
    case.add_metric(reply, metric);
}

/// Answers whether any layout fits on `most` of a node's accelerators.
fn fits_on_part_of_node(
    question: &ParsedQuestion,
    max_accelerators: u32,
    context: &Context<'_>,
    gauge: &Gauge,
) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Fit);
    let case = question.case(context, &mut reply)?;
    reply.answer.retain(|block| !is_warning(block));
    let bound = Condition::at_most(MetricId::Accelerators.metric(), f64::from(max_accelerators));
    let conditions = vec![bound];
    let found = best(&case, MetricId::Accelerators.metric(), &conditions, MAX_CANDIDATES, gauge)?;
    let name = &case.parts.target.name;
    match &found.case {
        Some(fits) => {
            let used = fits.format_metric(MetricId::Accelerators.metric());
            reply.push_text(format!("It fits on {used} of the accelerators of {name}: {}.", found.layout));
            fits.add_metric(&mut reply, MetricId::Accelerators.metric());
            found.state_limitations(&mut reply);
            headline(&mut reply, fits);
            suggest(&mut reply, fits, &found.layout);
        }
        None => reply.push_text(format!("No layout fits on {max_accelerators} of the accelerators of {name}.")),
    }
    let flags = where_flags(&case, MetricId::Accelerators.metric(), &conditions, &case.overrides);
    reply.command(&["optimize"], flags);
    Ok(reply)
}

/// Answers with the models of the catalog with the most parameters that fit with the current settings.
pub(super) fn largest_model(question: &ParsedQuestion, context: &Context<'_>, gauge: &Gauge) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Fit);
    let case = question.case(context, &mut reply)?;
    reply.answer.retain(|block| !is_warning(block));
    let known = context.library.catalog().models();
    let mut models: Vec<(f64, &str)> = known.iter().map(|model| (model.parameters(), &*model.id)).collect();
    sort::by(&mut models, |a, b| b.0.total_cmp(&a.0));
    let workload = case.parts.workload.name.split(":model=").next().unwrap_or_default().to_owned();
    let mut found: Vec<(f64, Case<'_>)> = Vec::new();
    for (parameters, model) in models {
        let name = format!("{workload}:model={model}");
        let Ok(mut other) = Case::of(context, &case.parts.target.name, &name, case.overrides.clone()) else { continue };
        other.adapt_to_target();
        if other.trouble().is_none() && other.estimate.detail.is_some() {
            found.push((parameters, other));
        }
        if found.len() == MAX_FIXES || gauge.canceled() {
            break;
        }
    }
    let Some((_, largest)) = found.first() else {
        return Err(Refusal::Nothing(format!("no model of the catalog fits on {}", case.parts.target.name)));
    };
    reply.about = Some(largest.about());
    reply.push_text(format!(
        "Models of the catalog with the most parameters that fit on {} with the settings of {workload}:",
        case.parts.target.name
    ));
    let fill = MetricId::MemoryFill.metric();
    let mut rows = Vec::new();
    for (parameters, other) in &found {
        other.add_metric(&mut reply, fill);
        let model = other.parts.workload.model.as_deref().unwrap_or_default().to_owned();
        rows.push(vec![model, units::si(*parameters), other.format_metric(fill)]);
    }
    reply.table(["model", "parameters", fill.label], rows);
    suggest(&mut reply, largest, "this model");
    reply.command(&["run"], largest.command_flags());
    Ok(reply)
}

/// Answers with the smallest number of nodes on which a layout meets all constraints.
pub(super) fn smallest_node_count(
    question: &ParsedQuestion,
    context: &Context<'_>,
    gauge: &Gauge,
) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Count);
    let mut question = question.clone();
    // A given number of accelerators is ignored, since the number is what is asked for.
    for hardware in &mut question.subject.hardware {
        hardware.count = None;
    }
    let case = question.case(context, &mut reply)?;
    reply.answer.retain(|block| !is_warning(block));
    if !analytical_scenario(&case.scenario).engine.models_hardware() {
        return Err(Refusal::Nothing(format!(
            "the {} engine does not report what fits in memory",
            case.scenario.engine.name()
        )));
    }
    let conditions = question.subject.constraints.clone();
    let on = |nodes: f64| -> Result<(Case<'_>, BestCandidate<'_>), Refusal> {
        let case = case.with(&[(Knob::NumNodes, Setting::Number(nodes))])?;
        let found = best(&case, MetricId::Accelerators.metric(), &conditions, MAX_CANDIDATES, gauge)?;
        Ok((case, found))
    };
    let mut nodes = match fewest_nodes(&case, &conditions, MAX_NODES) {
        Ok(nodes) => nodes,
        Err(Unreachable { condition, reason }) => {
            let name = &case.parts.target.name;
            reply.push_text(format!("No layout meets {condition} on up to {MAX_NODES:.0} nodes of {name}: {reason}."));
            case.add_metric(&mut reply, MetricId::Accelerators.metric());
            bounds(&mut reply, &case, &conditions);
            reply.command(&["run"], case.command_flags());
            return Ok(reply);
        }
    };
    let mut fails = nodes - 1.0;
    let mut found = on(nodes)?;
    while !found.1.meets_all() && nodes < MAX_NODES && !gauge.canceled() {
        (fails, nodes) = (nodes, (2.0 * nodes).min(MAX_NODES));
        found = on(nodes)?;
    }
    if !found.1.meets_all() {
        if gauge.canceled() {
            return Err(Refusal::Nothing(format!(
                "the search was stopped before a layout was found; none on up to {fails:.0} nodes meets the constraints"
            )));
        }
        let bounds: Vec<String> = conditions.iter().map(ToString::to_string).collect();
        let bounds = if bounds.is_empty() { "fits".to_owned() } else { format!("meets {}", bounds.join(", ")) };
        reply.push_text(format!("No layout {bounds} on up to {nodes:.0} nodes of {}.", case.parts.target.name));
        reply.command(
            &["optimize"],
            where_flags(&found.0, MetricId::Accelerators.metric(), &conditions, &found.0.overrides),
        );
        return Ok(reply);
    }
    // The layout may leave nodes idle, and then it needs no more than those that it uses.
    let mut next = used_nodes(&found.1);
    while nodes - fails > 1.0 {
        let middle = next.filter(|next| *next > fails && *next < nodes);
        let middle = middle.unwrap_or(f64::midpoint(fails, nodes).floor());
        let tried = on(middle)?;
        if tried.1.meets_all() {
            next = used_nodes(&tried.1).map(|used| if used < middle { used } else { middle - 1.0 });
            (nodes, found) = (middle, tried);
        } else if gauge.canceled() {
            reply.push_text(format!("The search was stopped: fewer than {nodes:.0} nodes may be enough."));
            fails = 0.0;
            break;
        } else {
            (fails, next) = (middle, None);
        }
    }
    let (basis, found) = found;
    let Some(fits) = &found.case else { return Err(Refusal::Nothing("the search was stopped".to_owned())) };
    let used = fits.format_metric(MetricId::Accelerators.metric());
    let plural = if nodes == 1.0 { "node" } else { "nodes" };
    let name = &fits.parts.target.name;
    reply.push_text(format!(
        "{used} accelerators: {nodes:.0} {plural} of {name} with {:.0} each, layout {}.",
        fits.scenario.accelerators_per_node, found.layout
    ));
    if fails > 0.0 {
        let plural = if fails == 1.0 { "node" } else { "nodes" };
        let why = if conditions.is_empty() { "fits" } else { "meets the constraints" };
        reply.push_text(format!("On {fails:.0} {plural} no layout {why}."));
    }
    fits.add_metric(&mut reply, MetricId::Accelerators.metric());
    found.state_limitations(&mut reply);
    bounds(&mut reply, fits, &conditions);
    headline(&mut reply, fits);
    reply.about = Some(fits.about());
    suggest(&mut reply, fits, &format!("{nodes:.0} {plural}, {}", found.layout));
    let held: Overrides = basis.overrides.clone();
    reply.command(&["optimize"], where_flags(&basis, MetricId::Accelerators.metric(), &conditions, &held));
    Ok(reply)
}

/// Number of nodes that a layout uses.
fn used_nodes(found: &BestCandidate<'_>) -> Option<f64> {
    let case = found.case.as_ref()?;
    let used = case.value(MetricId::Accelerators.metric())?;
    Some((used / f64::from(case.scenario.accelerators_per_node)).ceil())
}

/// Whether a block warns that the current layout cannot run. The warning is irrelevant where other layouts are
/// searched.
fn is_warning(block: &super::Block) -> bool {
    matches!(block, super::Block::Text(text) if text.starts_with("This cannot run"))
}

/// Adds the metrics with bounds.
fn bounds(reply: &mut Reply, case: &Case<'_>, conditions: &[Condition]) {
    for condition in conditions {
        if let Condition::Metric(metric, relation, _) = condition
            && *relation != Relation::Different
        {
            case.add_metric(reply, metric);
        }
    }
}

/// Adds the key metrics.
pub(super) fn headline(reply: &mut Reply, case: &Case<'_>) {
    let mut rows = Vec::new();
    let metrics: Vec<&'static Metric> = case.headlines().collect();
    for metric in metrics {
        if case.value(metric).is_some() {
            case.add_metric(reply, metric);
            rows.push(vec![
                metric.label.to_owned(),
                case.format_metric(metric),
                case.interval(metric).unwrap_or_default(),
            ]);
        }
    }
    reply.table(["", "value", "90 % interval"], rows);
}
