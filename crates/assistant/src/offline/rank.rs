//! Comparison of targets: each with its best layout under the same constraints, or all with the same settings.

use atlas_core::sort;
use atlas_plan::engine::analytical_scenario;
use atlas_plan::estimate::standing::{Rank, ranks, value_with_interval};
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::Scenario;
use atlas_plan::search::methodology::{mixed_prices, price_type, prices_prevent_ranking};
use atlas_plan::search::optimize::{Proof, freed};
use atlas_plan::search::{Condition, Gauge, Problem, Space, optimize};

use super::case::{Case, Context};
use super::floor::fewest_nodes;
use super::reply::ReplyKind;
use super::subject::ParsedQuestion;
use super::why::suggest;
use super::{Refusal, Reply};
use crate::Objective;

/// Maximum rows of a ranking.
const MAX_ROWS: usize = 12;

/// Result of a search.
#[derive(Debug)]
pub(crate) struct BestCandidate<'a> {
    /// Best scenario with all its settings; `None` if no candidate meets the conditions.
    pub(crate) case: Option<Case<'a>>,
    /// Layout of the best scenario, in words.
    pub(super) layout: String,
    /// Default conditions that no candidate meets and that were therefore dropped.
    dropped: Vec<Condition>,
    proof: Proof,
}

impl BestCandidate<'_> {
    /// Whether a candidate was found that also meets the default conditions.
    pub(crate) fn meets_all(&self) -> bool {
        self.case.is_some() && self.dropped.is_empty()
    }

    /// States the limitations of the search result.
    pub(super) fn state_limitations(&self, reply: &mut Reply) {
        if !self.dropped.is_empty() {
            let dropped: Vec<String> = self.dropped.iter().map(ToString::to_string).collect();
            reply.push_text(format!("No layout meets the default bounds {}, so they are dropped.", dropped.join(", ")));
        }
        if self.proof != Proof::Exhaustive {
            reply.push_text(
                "The space is too large for an exhaustive search: this is the best result of local searches.",
            );
        }
    }
}

/// Maximum candidates for an answer that needs many searches; they take some seconds in total.
pub(super) const MAX_CANDIDATES_PER_SEARCH: u64 = 4_000_000;

/// Searches like `atlas optimize`, with at most `max_candidates` candidates.
pub(crate) fn best<'a>(
    case: &Case<'a>,
    objective: &'static Metric,
    conditions: &[Condition],
    max_candidates: u64,
    gauge: &Gauge,
) -> Result<BestCandidate<'a>, Refusal> {
    let requested = analytical_scenario(&case.scenario);
    let metrics = conditions.iter().filter_map(|condition| match condition {
        Condition::Metric(metric, ..) => Some(*metric),
        _ => None,
    });
    if let Some(metric) = metrics.chain([objective]).find(|metric| !metric.applies_to(&requested)) {
        return Err(Refusal::Nothing(metric.inapplicable(&requested)));
    }
    let held = |knob: Knob| case.overrides.contains_key(&knob);
    let start = freed(&requested, &held, &case.parts);
    let mut problem = Problem::of(&start, &case.parts, objective).from(&requested);
    let axes = problem.space.axes().iter().filter(|axis| !held(axis.knob)).cloned().collect();
    problem.space = Space::of(axes).map_err(|error| Refusal::Scenario(error.to_string()))?;
    problem.conditions = conditions.to_vec();
    problem.front.clear();
    problem.runners_up = 0;
    problem.max_candidates = max_candidates;
    let problem = problem.with_default_conditions(&[]);
    let found = optimize(&problem, gauge);
    let Some(best) = found.best else {
        return Ok(BestCandidate {
            case: None,
            layout: String::new(),
            dropped: found.dropped,
            proof: found.extent.proof,
        });
    };
    // The global batch follows from the layout and is fixed here, so that it is not derived again; see
    // `atlas optimize`.
    let global = requested.base.plan.global.is_none() && best.scenario.uses(Knob::Global);
    let pinned = global.then(|| (Knob::Global, best.scenario.get(Knob::Global)));
    let searched = problem.space.axes().iter().map(|axis| axis.knob).filter(|knob| best.scenario.uses(*knob));
    let searched: Vec<(Knob, Setting)> = searched.map(|knob| (knob, best.scenario.get(knob))).collect();
    let changes: Overrides =
        sort::collect_unsorted(searched.into_iter().chain(best.changes.iter().cloned()).chain(pinned));
    let changes: Vec<(Knob, Setting)> = changes.into_iter().collect();
    let chosen = case.with(&changes)?;
    Ok(BestCandidate {
        layout: layout(&best.scenario),
        case: Some(chosen),
        dropped: found.dropped,
        proof: found.extent.proof,
    })
}

/// Layout in words: `tp=4 pp=2 dp=8`; degrees of one are omitted.
fn layout(scenario: &Scenario) -> String {
    let ranks =
        [Knob::Tp, Knob::Pp, Knob::Cp, Knob::Ep, Knob::Dp].into_iter().filter_map(|knob| match scenario.get(knob) {
            Setting::Number(ranks) if ranks > 1.0 && scenario.uses(knob) => Some(format!("{}={ranks}", knob.name())),
            _ => None,
        });
    let ranks: Vec<String> = ranks.collect();
    if ranks.is_empty() { "one accelerator per replica".to_owned() } else { ranks.join(" ") }
}

/// Flags of the search: scenario, objective and conditions.
pub(crate) fn where_flags(
    case: &Case<'_>,
    objective: &Metric,
    conditions: &[Condition],
    held: &Overrides,
) -> Vec<String> {
    let about = case.about();
    let mut flags = vec!["--target".to_owned(), about.target, "--workload".to_owned(), about.workload];
    flags.extend(goal_flags(objective, conditions));
    for (knob, setting) in held {
        flags.extend(["--set".to_owned(), format!("{}={setting}", knob.name())]);
    }
    flags.extend(case.flags.iter().cloned());
    flags
}

fn goal_flags(objective: &Metric, conditions: &[Condition]) -> Vec<String> {
    let mut flags = vec!["--objective".to_owned(), objective.name.to_owned()];
    for condition in conditions {
        flags.extend(["--where".to_owned(), crate::grammar::question::constraint_as_condition(condition)]);
    }
    flags
}

/// The best layout of each target that meets the constraints, best target first.
struct Ranking<'a> {
    metric: &'static Metric,
    /// Targets, each with the words for its layout.
    entries: Vec<(Case<'a>, String)>,
    /// Targets that cannot run the workload, miss a bound or have no price.
    refused: Vec<String>,
    /// Targets that are ranked with the number of nodes of their entries.
    compared: Vec<String>,
    /// Whether a search did not try all layouts.
    local: bool,
    /// Whether the targets are grouped by the type of their prices, which have no common order.
    by_price: bool,
}

fn ranking<'a>(
    question: &ParsedQuestion,
    context: &'a Context<'_>,
    workload: &str,
    gauge: &Gauge,
) -> Result<Ranking<'a>, Refusal> {
    let named = question.subject.targets(&question.known)?;
    let lanes: Vec<(String, Option<u32>)> = if named.is_empty() {
        context.library.targets().iter().map(|target| (target.name.to_string(), None)).collect()
    } else {
        named.into_iter().map(|(target, nodes)| (target.name.clone(), nodes)).collect()
    };
    let max_candidates = MAX_CANDIDATES_PER_SEARCH / (lanes.len() as u64).max(1);
    let mut local = false;
    let mut entries: Vec<(Case<'a>, String)> = Vec::new();
    let mut refused: Vec<String> = Vec::new();
    let mut compared: Vec<String> = Vec::new();
    let mut metric = MetricId::Accelerators.metric();
    let conditions = &question.subject.constraints;
    for (target, nodes) in lanes {
        let mut overrides = context.overrides.clone();
        overrides.extend(question.settings(nodes));
        let Ok(case) = Case::of(context, &target, workload, overrides) else {
            refused.push(target);
            continue;
        };
        metric = question.subject.objective.unwrap_or(Objective::Cheapest).metric(case.mode());
        // Estimates of different engines are not comparable; only engines that model hardware are ranked.
        if !analytical_scenario(&case.scenario).engine.models_hardware() {
            refused.push(target);
            continue;
        }
        if fewest_nodes(&case, conditions, case.scenario.num_nodes.into()).is_err() {
            refused.push(target);
            continue;
        }
        match best(&case, metric, conditions, max_candidates, gauge) {
            Ok(BestCandidate { case: Some(found), layout, dropped, proof }) if dropped.is_empty() => {
                local |= proof != Proof::Exhaustive;
                // A target without a price would be ranked as free.
                match found.value(metric) {
                    Some(_) => entries.push((found, layout)),
                    None => refused.push(target.clone()),
                }
            }
            Ok(_) | Err(_) => refused.push(target.clone()),
        }
        if nodes.is_none() {
            compared.push(target);
        }
        if gauge.canceled() {
            return Err(Refusal::Nothing("the search was stopped".to_owned()));
        }
    }
    let score = |case: &Case<'_>| case.value(metric).map_or(f64::INFINITY, |value| metric.better.sort_key(value));
    sort::by(&mut entries, |a, b| score(&a.0).total_cmp(&score(&b.0)));
    // Costs at prices of different types have no common order.
    let by_price = prices_prevent_ranking(metric, entries.iter().map(|(case, _)| &case.scenario));
    if by_price {
        let basis = |(case, _): &(Case<'_>, String)| case.scenario.price_basis();
        sort::by(&mut entries, |a, b| (basis(a).is_none(), basis(a)).cmp(&(basis(b).is_none(), basis(b))));
    }
    Ok(Ranking { metric, entries, refused, compared, local, by_price })
}

/// Ranks targets by their best layout.
pub(super) fn rank(question: &ParsedQuestion, context: &Context<'_>, gauge: &Gauge) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Rank);
    let workload = question.workload(context, &mut reply)?;
    let Ranking { metric, entries, refused, compared, local, by_price } = ranking(question, context, &workload, gauge)?;
    let Some((first, layout)) = entries.first() else {
        return Err(Refusal::Nothing(format!(
            "{workload}: no target meets all constraints; relax some, or name other hardware"
        )));
    };
    let all: Vec<_> =
        entries.iter().map(|(case, _)| value_with_interval(metric, &case.scenario, &case.estimate)).collect();
    let tied = ranks(&all, metric.better).iter().filter(|standing| **standing == Rank::Tied).count();
    let ties = if by_price { 0 } else { tied };
    let objective = question.subject.objective.unwrap_or(Objective::Cheapest).word();
    let price = |case: &Case<'_>| if by_price { price_type(&case.scenario) } else { "" };
    for group in entries.chunk_by(|(a, _), (b, _)| price(a) == price(b)) {
        let Some((best, layout)) = group.first() else { continue };
        let among = if by_price { format!(" of the prices of type `{}`", price(best)) } else { String::new() };
        reply.push_text(format!(
            "{objective} by {}{among}: {} with {} ({layout}).",
            metric.label,
            best.parts.target.name,
            best.format_metric(metric),
        ));
    }
    if let Some(mixed) = mixed_prices(entries.iter().map(|(case, _)| &case.scenario)).filter(|_| by_price) {
        reply.push_text(format!("Not ranked across types of prices: {mixed}, as in `price_basis=on-demand`."));
    }
    if local {
        reply.push_text(
            "Not every layout of every target was tried; use `atlas optimize` to search all layouts of one target.",
        );
    }
    if ties > 1 {
        reply.push_text(format!("The 90 % intervals of the first {ties} overlap, so they are tied."));
    }
    let mut rows = Vec::new();
    for (case, layout) in entries.iter().take(MAX_ROWS) {
        case.add_metric(&mut reply, metric);
        let interval = case.interval(metric).unwrap_or_default();
        let mut row = vec![case.parts.target.name.to_string(), case.format_metric(metric), interval, layout.clone()];
        row.extend(by_price.then(|| price(case).to_owned()));
        rows.push(row);
    }
    let head = ["target", metric.label, "90 % interval", "layout"].into_iter().chain(by_price.then_some("price"));
    reply.answer.push(super::Block::Table { head: head.map(str::to_owned).collect(), rows });
    if entries.len() > MAX_ROWS {
        reply.push_text(format!("{} more targets meet the constraints.", entries.len() - MAX_ROWS));
    }
    if !refused.is_empty() {
        reply.push_text(format!(
            "Not ranked because they cannot run it, miss a bound or have no price: {}.",
            refused.join(", ")
        ));
    }
    suggest(&mut reply, first, &format!("{} with {layout}", first.parts.target.name));
    reply.about = Some(first.about());
    let mut flags =
        vec!["--workload".to_owned(), workload, "--methodology".to_owned(), "maximum-performance".to_owned()];
    flags.extend(goal_flags(metric, &question.subject.constraints));
    let held: Overrides = sort::collect_unsorted(context.overrides.clone().into_iter().chain(question.settings(None)));
    for (knob, setting) in &held {
        flags.extend(["--set".to_owned(), format!("{}={setting}", knob.name())]);
    }
    flags.extend(compared.iter().flat_map(|target| ["--target".to_owned(), target.clone()]));
    flags.extend(context.flags.iter().cloned());
    if !compared.is_empty() {
        reply.command(&["compare"], flags);
    }
    reply.command(&["explain", metric.name], first.command_flags());
    Ok(reply)
}

/// Compares targets with the same settings.
pub(super) fn compare(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Compare);
    let workload = question.workload(context, &mut reply)?;
    let mut targets: Vec<(String, Option<u32>)> = (question.subject.targets(&question.known)?)
        .into_iter()
        .map(|(target, nodes)| (target.name.clone(), nodes))
        .collect();
    if targets.len() == 1 && targets.iter().all(|(name, _)| *name != *context.target) {
        targets.insert(0, (context.target.to_string(), None));
    }
    if targets.len() < 2 {
        return Err(Refusal::Unknown {
            reason: "which targets? Name at least two, as in `compare h100 and h200`".into(),
        });
    }
    let mut cases = Vec::new();
    for (target, nodes) in &targets {
        let mut overrides = context.overrides.clone();
        overrides.extend(question.settings(*nodes));
        cases.push(Case::of(context, target, &workload, overrides)?);
    }
    let mut head = vec![String::new()];
    head.extend(cases.iter().map(|case| case.parts.target.name.to_string()));
    let Some(first) = cases.first() else { return Err(Refusal::Nothing("no target found".to_owned())) };
    let headlines: Vec<&'static Metric> = first.headlines().collect();
    let named = question.figure.map(|figure| figure.metric(first.mode()));
    let metrics = named.into_iter().chain(headlines.into_iter().filter(|metric| Some(*metric) != named));
    let mut rows = Vec::new();
    for metric in metrics {
        for case in &cases {
            case.add_metric(&mut reply, metric);
        }
        rows.push(
            std::iter::once(metric.label.to_owned())
                .chain(cases.iter().map(|case| case.format_metric(metric)))
                .collect(),
        );
    }
    for case in &cases {
        if let Some(trouble) = case.trouble() {
            reply.push_text(format!("{} cannot run it with these settings: {trouble}.", case.parts.target.name));
        }
    }
    if let Some(metric) = named {
        verdict(&mut reply, metric, &cases);
    }
    reply.push_text(format!("{workload}, same settings on all targets:"));
    reply.answer.push(super::Block::Table { head, rows });
    if targets.iter().all(|(_, nodes)| nodes.is_none()) {
        let names = targets.iter().flat_map(|(target, _)| ["--target".to_owned(), target.clone()]);
        let flags = ["--workload".to_owned(), workload].into_iter().chain(names).chain(first.set_flags());
        reply.command(&["compare"], flags.collect());
    } else {
        for case in &cases {
            reply.command(&["run"], case.command_flags());
        }
    }
    Ok(reply)
}

/// States which target is best by a metric, as far as the intervals allow.
fn verdict(reply: &mut Reply, metric: &'static Metric, cases: &[Case<'_>]) {
    let scenarios = || cases.iter().map(|case| &case.scenario);
    if let Some(mixed) = mixed_prices(scenarios()).filter(|_| prices_prevent_ranking(metric, scenarios())) {
        reply.push_text(format!("Not ranked by {}: {mixed}.", metric.label));
        return;
    }
    let all: Vec<_> = cases.iter().map(|case| value_with_interval(metric, &case.scenario, &case.estimate)).collect();
    let standings = ranks(&all, metric.better);
    let named = |wanted: Rank| {
        let all = cases.iter().zip(&standings).filter(|(_, standing)| **standing == wanted);
        let names: Vec<String> = all.map(|(case, _)| case.parts.target.name.to_string()).collect();
        names.join(", ")
    };
    let (best, tied) = (named(Rank::Best), named(Rank::Tied));
    if !best.is_empty() {
        reply.push_text(format!("{best} is best by {}: its 90 % interval overlaps no other.", metric.label));
    } else if !tied.is_empty() {
        let values = cases.iter().filter_map(|case| Some((case, case.value(metric)?)));
        let favored = metric.better.best(values).map_or("", |(case, _)| &*case.parts.target.name);
        reply.push_text(format!(
            "By {} the estimate favors {favored}, but the 90 % intervals of {tied} overlap: which of them is better is \
             not certain.",
            metric.label
        ));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use atlas_config::library::Library;
    use atlas_document::Sources;
    use atlas_plan::engine::estimate;
    use atlas_plan::search::rule::Rule;

    #[test]
    fn search_of_a_target_stops_near_its_candidate_limit() {
        let library = Library::load(&Sources::built_in(), None);
        let context = Context::new(&library, "gb200-nvl72-4", "deepseek-v3-train");
        let case = Case::of(&context, &context.target, &context.workload, Overrides::new()).unwrap();
        let metric = MetricId::TokensPerSec.metric();
        let max_candidates = 20_000;
        let gauge = Gauge::default();
        let found = best(&case, metric, &[], max_candidates, &gauge).unwrap();
        assert!(matches!(found.proof, Proof::Local { .. }), "{:?}", found.proof);
        assert!(found.case.is_some());
        // Each worker finishes the pair of knobs that it is searching.
        let (looked, expected) = gauge.progress();
        let pairs = 8192 * atlas_core::cores::available() as u64;
        assert!(
            expected <= max_candidates && looked > max_candidates / 2 && looked < max_candidates + pairs,
            "{looked} of {expected}"
        );
    }

    #[test]
    fn ranked_target_is_within_half_a_percent_of_the_exhaustive_optimum() {
        let library = Library::load(&Sources::built_in(), None);
        let metric = MetricId::TokensPerSec.metric();
        for (target, workload) in [("l4-8", "llama3.1-8b-serve"), ("h200-sxm-8", "llama3.1-405b-serve")] {
            let context = Context::new(&library, target, workload);
            let case = Case::of(&context, target, workload, Overrides::new()).unwrap();
            let found = best(&case, metric, &[], MAX_CANDIDATES_PER_SEARCH / 4, &Gauge::default()).unwrap();
            assert_eq!(found.proof, Proof::Exhaustive, "{target}");
            // Exhaustive search of the same space.
            let requested = analytical_scenario(&case.scenario);
            let start = freed(&requested, &|_| false, &case.parts);
            let problem = Problem::of(&start, &case.parts, metric).from(&requested).with_default_conditions(&[]);
            let all = (0..problem.space.size()).filter_map(|point| {
                let mut scenario = start.clone();
                for (knob, value) in problem.space.settings(point) {
                    scenario.set(knob, value, &case.parts).ok()?;
                }
                let estimate = estimate(&scenario);
                let possible = Rule::ALL.iter().all(|rule| rule.holds(&scenario, problem.idle, &|_| false));
                let possible = possible && scenario.check(&case.parts).is_ok();
                let meets = problem.conditions.iter().all(|condition| condition.holds(&estimate, &scenario));
                (possible && meets && estimate.runs()).then_some(estimate.total.tokens_per_sec)
            });
            let maximum = all.fold(0.0, f64::max);
            let got = found.case.unwrap().estimate.total.tokens_per_sec;
            // Changes that together gain less than half a percent are omitted.
            assert!(got <= maximum * (1.0 + 1e-9) && got >= maximum * 0.995, "{target}: {got} of {maximum}");
        }
    }
}
