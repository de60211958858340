//! What words mean: figures, knobs, and terms of the documentation.

use atlas_document::decode::nearest;
use atlas_plan::estimate::{METRICS, Metric};
use atlas_plan::knob::{Knob, KnobValues as _, ValueType as Takes};
use atlas_plan::search::figure;

use super::case::{Case, Context};
use super::reply::ReplyKind;
use super::subject::ParsedQuestion;
use super::words::Words;
use super::{Refusal, Reply, figures};

/// Terms that are neither figures nor knobs.
const TERMS: [(&str, &str); 33] = [
    ("accelerator", "one device, as its datasheet describes it"),
    ("target", "hardware that can be rented or bought: accelerators, nodes, links, price, power"),
    ("model", "the architecture of a neural network"),
    ("software", "a training framework or serving engine at a release, described by traits"),
    ("workload", "training or serving of a model: lengths, batch, precision, parallelism, software, schedule"),
    ("knob", "a setting that users can change"),
    ("scenario", "target, workload and knobs, resolved to typed values; the only input of engines"),
    ("engine", "computes estimates: analytical or event; legacy: semi_empirical, benchboard"),
    ("estimate", "throughput, latency, cost, power and memory with breakdown, bottleneck, caveats and interval"),
    ("measurement", "figures of a real run together with its scenario"),
    ("record", "an estimate or measurement saved with all its inputs"),
    ("trait", "one documented property of software that an engine uses"),
    ("mfu", "model FLOPs utilization: useful FLOP/s over peak FLOP/s, without recomputation"),
    ("hfu", "hardware FLOPs utilization: like MFU, including recomputation"),
    ("ttft", "time to first token, including queueing"),
    ("tpot", "time per output token after the first, averaged over a response"),
    ("itl", "inter-token latency: the time between two consecutive output tokens"),
    ("isl", "input sequence length: number of prompt tokens"),
    ("osl", "output sequence length: number of generated tokens"),
    ("slo", "service level objective: a latency limit that requests should meet"),
    (
        "goodput",
        "useful work: in training, excluding lost work, restarts and checkpoints; in serving, requests within the SLOs",
    ),
    ("zero", "ZeRO: optimizer states (1), gradients (2) and weights (3) sharded over data-parallel ranks"),
    (
        "fsdp",
        "fully sharded data parallelism: weights, gradients and optimizer states sharded over data-parallel ranks",
    ),
    ("moe", "mixture of experts: each token passes through a few of many feed-forward networks"),
    ("roofline", "the speed limit set by compute and by memory bandwidth, whichever is lower"),
    ("interval", "the 90 % interval: nine measurements of ten are expected within it"),
    ("kv", "the KV cache: keys and values of earlier tokens, kept in memory for each request"),
    ("headroom", "the share of memory that stays free on the fullest device"),
    ("prefill", "the processing of a prompt, which ends with the first token"),
    ("decode", "the generation of tokens after the first"),
    ("pareto", "the best compromises: no other point is better in all figures"),
    ("bubble", "the time that pipeline stages wait for each other"),
    ("tco", "total cost of ownership: purchase written off over the hours of use, and energy"),
];

/// Whether a word has a meaning here.
pub(super) fn is_term(word: &str) -> bool {
    TERMS.iter().any(|(term, _)| *term == word) || figures::of_word(word).is_some() || Knob::named(word).is_ok()
}

/// What a word means.
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

/// The terms that a question names, where it names several.
pub(super) fn terms(words: &Words) -> Vec<String> {
    let line = words.line();
    let line = ["what is the ", "what is ", "what are ", "the "]
        .iter()
        .fold(line.as_str(), |line, lead| line.strip_prefix(lead).unwrap_or(line));
    let all: Vec<String> = [" and ", " or ", " versus ", " vs "]
        .iter()
        .find(|word| line.contains(*word))
        .map(|word| line.split(word).map(|term| term.trim().to_owned()).collect())
        .unwrap_or_default();
    if all.iter().all(|term| is_term(term)) { all } else { Vec::new() }
}

/// What one term means.
fn of_term(term: &str, words: &Words, reply: &mut Reply, context: &Context<'_>) -> Result<(), Refusal> {
    let before = reply.answer.len();
    let metrics = metrics(term, words);
    let listed = TERMS.iter().find(|(known, _)| *known == term || term.strip_suffix('s') == Some(*known));
    let knob = Knob::named(&term.replace(' ', "_")).ok();
    if let Some((known, means)) = listed {
        reply.say(format!("{}: {means}.", if known.len() <= 4 { known.to_uppercase() } else { (*known).to_owned() }));
    }
    for metric in &metrics {
        let unit = if metric.unit.is_empty() { String::new() } else { format!(" [{}]", metric.unit) };
        reply.say(format!("{} (`{}`){unit}: {}.", metric.label, metric.name, metric.help));
    }
    let knob = knob.filter(|knob| metrics.is_empty() || knob.name() == term);
    let case = here(context)?;
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
        reply.say(format!("knob `{}`: {}. It takes {takes}.", spec.name, spec.help));
        let now = case.scenario.get(knob);
        if case.scenario.heeds(knob) {
            reply.say(format!("It is {now} in {}.", case.about().line()));
        }
        let mut flags = case.command_flags();
        let set = format!("{}={now}", spec.name);
        if !flags.contains(&set) && knob.parse(&now.to_string(), case.parts.fabrics()).is_ok() {
            flags.extend(["--set".to_owned(), set]);
        }
        reply.command(&["run"], flags);
    }
    for metric in metrics.iter().filter(|metric| case.value(metric).is_some()) {
        case.figure(reply, metric);
        reply.say(format!("{} of {}: {}.", metric.label, case.about().line(), case.shown(metric)));
        reply.command(&["explain", metric.name], case.command_flags());
    }
    if reply.answer.len() == before {
        let names = TERMS.iter().map(|(term, _)| *term).chain(figure::names()).chain(Knob::all().map(Knob::name));
        let near = nearest(term, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(Refusal::Unknown { reason: format!("`{term}` has no meaning here{near}") });
    }
    if reply.commands.is_empty() {
        reply.command(&["run"], case.command_flags());
    }
    Ok(())
}

/// The context as is.
fn here<'a>(context: &'a Context<'_>) -> Result<Case<'a>, Refusal> {
    Case::of(context, &context.target, &context.workload, context.overrides.clone())
}

/// The figures that a term names, whether it trains or serves.
fn metrics(term: &str, words: &Words) -> Vec<&'static Metric> {
    let label = |metric: &&Metric| metric.label.eq_ignore_ascii_case(term);
    let mut found: Vec<&'static Metric> = METRICS.iter().filter(label).collect();
    found.extend(figure::named(&term.replace(' ', "_")).filter(|metric| !found.contains(metric)));
    if found.is_empty()
        && let Some(question) = figures::take(&mut words.clone()).filter(|_| words.all().len() > 1)
    {
        found.push(question.metric(atlas_config::Mode::Inference));
        let training = question.metric(atlas_config::Mode::Training);
        if !found.contains(&training) {
            found.push(training);
        }
    }
    found
}
