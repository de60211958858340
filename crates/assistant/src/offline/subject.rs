//! Parsing of a question into topic, metric and scenario.

use atlas_catalog::software::Software;
use atlas_config::Mode;
use atlas_core::sort;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting};

use super::case::{Case, Context};
use super::change::{self, ScaledQuantity};
use super::left_over::subject;
use super::mtbf::{self, Failures};
use super::named_metric::{self, NamedMetric};
use super::phrasing;
use super::terms::{is_term, terms};
use super::topic::{self, Topic};
use super::words::Words;
use super::{Refusal, Reply, rephrased};
use crate::{Hardware, Intent, Known, KnownWorkload, ParseError, Question, parse};

/// A parsed question.
#[derive(Debug, Clone)]
pub(super) struct ParsedQuestion {
    pub(super) topic: Topic,
    /// Metric named in the question.
    pub(super) figure: Option<NamedMetric>,
    /// Quantity changed by a factor.
    pub(super) scaled: Option<ScaledQuantity>,
    /// Workload, hardware, settings and constraints.
    pub(super) subject: Question,
    /// Factor by which the metric is to change, if the question gives one.
    pub(super) times: Option<f64>,
    /// Failure rate.
    pub(super) failures: Option<Failures>,
    /// Setting with which another setting of the same knob, contained in `subject`, is compared.
    pub(super) against: Option<(Knob, Setting)>,
    /// Period of "how many tokens per day".
    pub(super) period: Option<&'static str>,
    /// Notes about corrected words.
    pub(super) readings: Vec<String>,
    /// Remaining words, for topics without a scenario.
    pub(super) words: Words,
    pub(super) known: Known,
}

impl ParsedQuestion {
    pub(super) fn of(line: &str, context: &Context<'_>) -> Result<ParsedQuestion, Refusal> {
        let known = context.known();
        let words = Words::of(line);
        if words.all().is_empty() {
            return Err(Refusal::Unknown { reason: "no question".to_owned() });
        }
        let mut corrected = words.clone();
        let readings = phrasing::correct_spelling(&mut corrected, &known);
        if readings.is_empty() {
            return ParsedQuestion::read(line, words, readings, known, context);
        }
        // If the corrected question is not recognized either, report the error for the original words.
        let found = ParsedQuestion::read(line, corrected, readings, known.clone(), context);
        found.or_else(|_| ParsedQuestion::read(line, words, Vec::new(), known, context))
    }

    fn read(
        line: &str,
        mut words: Words,
        readings: Vec<String>,
        known: Known,
        context: &Context<'_>,
    ) -> Result<ParsedQuestion, Refusal> {
        let written = words.clone();
        let period = rephrased::tokens_per_period(&mut words);
        phrasing::rewrite_settings(&mut words);
        let failures = mtbf::take(&mut words.clone());
        let Some(topic) = topic::take(&mut words) else {
            let line = if readings.is_empty() { line.to_owned() } else { written.line() };
            return ParsedQuestion::parse_query_line(&line, words, known)
                .map(|question| ParsedQuestion { readings, ..question });
        };
        let mut question = ParsedQuestion {
            topic,
            figure: None,
            scaled: None,
            subject: Question::default(),
            times: None,
            failures,
            against: None,
            period,
            readings,
            words: words.clone(),
            known,
        };
        if topic == Topic::Failures {
            mtbf::take(&mut words);
        }
        if matches!(topic, Topic::Meaning | Topic::List | Topic::Guide) {
            return Ok(question);
        }
        // "What is MFU" asks for the definition, "what is the MFU" for the value.
        if topic == Topic::Value
            && let [word] = words.all()
            && is_term(word)
            && written.begins("what is")
        {
            return Ok(ParsedQuestion { topic: Topic::Meaning, ..question });
        }
        if topic != Topic::Count && question.known.targets.iter().all(|target| !words.has(&target.name)) {
            let here = question.known.targets.iter().find(|target| target.name == *context.target);
            phrasing::nodes(&mut words, here.map_or(1, |target| target.per_node));
        }
        if topic == Topic::Improve {
            question.times = change::times(&mut words);
        }
        // "The difference between tp and pp" is a question about terms, not about hardware.
        if topic == Topic::Compare && terms(&words).len() > 1 {
            return Ok(ParsedQuestion { topic: Topic::Meaning, ..question });
        }
        if topic == Topic::Compare
            && let Some((knob, one, other)) = rephrased::compared(&mut words)
        {
            question.topic = Topic::WhatIf;
            question.subject = subject(words, &question.known, Topic::WhatIf)?;
            question.subject.settings.push((knob, other));
            question.against = Some((knob, one));
            return Ok(question);
        }
        let layout = words.take(super::idioms::CURRENT_HARDWARE);
        if topic == Topic::Longest {
            for word in ["length", "window", "be", "what is the", "that", "fits", "fit"] {
                words.take(word);
            }
        }
        if topic == Topic::WhatIf {
            question.scaled = change::take(&mut words);
            drop_current_setting(&mut words, context);
        } else if !matches!(topic, Topic::Rank | Topic::Fit | Topic::Count | Topic::Memory) {
            question.figure = named_metric::take(&mut words);
            // "How much does training cost": further names of metrics add nothing.
            while topic == Topic::Value && question.figure.is_some() && named_metric::take(&mut words).is_some() {}
        }
        if topic == Topic::Origin && question.figure.is_none() {
            return Err(Refusal::Unknown { reason: "the origin of which metric?".to_owned() });
        }
        // The number of sequences that fit is limited by memory, not by the bottleneck of the speed.
        let room = |figure: NamedMetric| figure.metric(Mode::Inference).id == MetricId::MaxConcurrency;
        if topic == Topic::Limits && question.figure.is_some_and(room) {
            question.topic = Topic::Memory;
        }
        question.subject = subject(words, &question.known, topic)?;
        // The best layout refers to the current hardware.
        if layout && question.subject.hardware.is_empty() {
            question.subject.hardware.push(Hardware { count: None, name: context.target.to_string() });
        }
        Ok(question)
    }

    /// Parses a line of the query grammar, or a metric and a subject.
    fn parse_query_line(line: &str, mut words: Words, known: Known) -> Result<ParsedQuestion, Refusal> {
        let question = |topic, figure, subject, words| {
            let (times, failures, against, period, readings, known) =
                (None, None, None, None, Vec::new(), known.clone());
            let scaled = None;
            ParsedQuestion { topic, figure, scaled, subject, times, failures, against, period, readings, words, known }
        };
        match parse(line, &known) {
            Ok(subject) if subject.intent() == Intent::Race => Ok(question(Topic::Rank, None, subject, words)),
            Ok(subject) if subject.intent() == Intent::Set => Ok(question(Topic::WhatIf, None, subject, words)),
            Ok(subject) if subject.intent() == Intent::Jump => Ok(question(Topic::Value, None, subject, words)),
            parsed => {
                let figure = named_metric::take(&mut words);
                match (figure, subject(words.clone(), &known, Topic::Value)) {
                    (Some(figure), Ok(subject)) => Ok(question(Topic::Value, Some(figure), subject, words)),
                    (_, Err(refusal)) => Err(refusal),
                    (None, Ok(subject)) if subject.intent() != Intent::Nothing => {
                        Ok(question(Topic::Value, None, subject, words))
                    }
                    (None, Ok(_)) => Err(parsed
                        .err()
                        .map_or(Refusal::Unknown { reason: "the question is not recognized".to_owned() }, |trouble| {
                            Refusal::Subject { trouble }
                        })),
                }
            }
        }
    }

    /// Scenario of the question, with all its settings. Assumptions are stated in the reply.
    pub(super) fn case<'a>(&self, context: &'a Context<'_>, reply: &mut Reply) -> Result<Case<'a>, Refusal> {
        if let Some((hardware, count)) = partial_node(&self.subject, &self.known) {
            let subject = Question { hardware: vec![hardware], ..self.subject.clone() };
            // What is noted about the whole node does not apply to a part of it.
            let node = ParsedQuestion { subject, ..self.clone() }.case(context, &mut Reply::new(reply.kind))?;
            return part_of_node(&node, count, reply);
        }
        let (workload, target, nodes) = self.place(context, reply)?;
        let mut overrides = context.overrides.clone();
        overrides.extend(self.settings(nodes));
        let mut case = Case::of(context, &target, &workload, overrides)?;
        // A number of tokens to serve is not a setting of the workload; the answer computes with it.
        if self.topic == Topic::Value && case.mode() == Mode::Inference && self.tokens().is_some() {
            let mut overrides = case.overrides;
            overrides.remove(&Knob::TrainTokens);
            case = Case::of(context, &target, &workload, overrides)?;
        }
        let adapted = if self.subject.hardware.is_empty() { Vec::new() } else { case.adapt_to_target() };
        reply.about = Some(case.about());
        for note in adapted {
            reply.push_text(format!("Note: {note}."));
        }
        if let Some(trouble) = case.trouble() {
            reply.push_text(format!(
                "This cannot run: {trouble}. Ask `what is the smallest change that fits?` for a fix."
            ));
        }
        Ok(case)
    }

    /// Scenario without the settings of the question.
    pub(super) fn case_without_settings<'a>(
        &self,
        context: &'a Context<'_>,
        reply: &mut Reply,
    ) -> Result<Case<'a>, Refusal> {
        let (workload, target, nodes) = self.place(context, reply)?;
        let mut overrides = context.overrides.clone();
        overrides.extend(nodes.map(number_of_nodes));
        let mut case = Case::of(context, &target, &workload, overrides)?;
        if !self.subject.hardware.is_empty() {
            case.adapt_to_target();
        }
        Ok(case)
    }

    /// Workload, target, and the number of nodes if it differs from the target's own.
    fn place(&self, context: &Context<'_>, reply: &mut Reply) -> Result<(String, String, Option<u32>), Refusal> {
        let workload = self.workload(context, reply)?;
        let targets = self.subject.targets(&self.known)?;
        let (target, nodes) = match targets.first() {
            Some((target, nodes)) => (target.name.clone(), *nodes),
            None => (context.target.to_string(), None),
        };
        Ok((workload, target, nodes))
    }

    /// Workload of the question.
    pub(super) fn workload(&self, context: &Context<'_>, reply: &mut Reply) -> Result<String, Refusal> {
        if !self.subject.model.is_empty() {
            return self.workload_of_named_model(context, reply);
        }
        let only = self.figure.and_then(NamedMetric::mode);
        let Some(mode) = self.subject.mode.or(only) else { return Ok(context.workload.to_string()) };
        let all = &self.known.workloads;
        let of_mode = |workload: &&KnownWorkload| workload.mode == mode;
        let here = all.iter().find(|workload| workload.name == *context.workload);
        if here.is_some_and(|workload| workload.mode == mode) {
            return Ok(context.workload.to_string());
        }
        // Workload of the same model in the mode that the question is about.
        let model = |name: &str| context.library.workload(name).ok().and_then(|workload| workload.model.clone());
        let own = model(&context.workload);
        let same = all.iter().filter(of_mode).find(|workload| own.is_some() && model(&workload.name) == own);
        let Some(found) = same.or_else(|| all.iter().find(of_mode)) else {
            return Err(Refusal::Nothing(format!("no {} workload found", mode.name())));
        };
        if self.subject.mode.is_none() {
            let figure = self.figure.map_or("", |figure| figure.metric(mode).label);
            reply.push_text(format!(
                "{figure} is a metric of {}; the answer is about {}, not {}.",
                mode.name(),
                found.name,
                context.workload
            ));
        }
        Ok(found.name.clone())
    }

    /// Workload of the model named in the question, in the question's mode, else in the context's mode.
    fn workload_of_named_model(&self, context: &Context<'_>, reply: &mut Reply) -> Result<String, Refusal> {
        let (words, known) = (&self.subject.model, &self.known);
        let named = self.subject.mode.or(self.figure.and_then(NamedMetric::mode));
        let here = context.library.workload(&context.workload).ok();
        let mode = named.or(here.map(|workload| workload.shape.mode));
        let whole = words.iter().any(|word| known.workloads.iter().any(|workload| workload.name == **word));
        if !whole && let Some(model) = known.model_named(words) {
            return self.workload_of_model(model, mode, context, reply);
        }
        if let Some(found) = known.workload_of(words, mode) {
            return Ok(found.name.clone());
        }
        if let Some(other) = known.workload_of(words, None) {
            let workload = context.library.workload(&other.name).map_err(|found| Refusal::Files(found.to_string()))?;
            // A word that only the workload has, such as `qlora`, names the workload and not just its model.
            let only_model = |model: &&str| words.iter().all(|word| model.to_lowercase().contains(word.as_str()));
            return match workload.model.as_deref().filter(|model| !whole && only_model(model)) {
                Some(model) => self.workload_of_model(model, mode, context, reply),
                None if named.is_none() => Ok(other.name.clone()),
                None => Err(ParseError::no_workload(words, named, known).into()),
            };
        }
        match known.models_of(words).as_slice() {
            [] => Err(ParseError::no_workload(words, named, known).into()),
            [model] => self.workload_of_model(model, mode, context, reply),
            all => Err(Refusal::Nothing(format!("several models match `{}`: {}", words.join(" "), all.join(", ")))),
        }
    }

    /// Workload of a model. If no workload of this mode has the model, it replaces that of the context's workload or of
    /// another one of this mode.
    fn workload_of_model(
        &self,
        model: &str,
        mode: Option<Mode>,
        context: &Context<'_>,
        reply: &mut Reply,
    ) -> Result<String, Refusal> {
        let workload = |name: &str| context.library.workload(name).ok();
        let suits =
            |name: &str| workload(name).is_some_and(|workload| mode.is_none_or(|mode| workload.shape.mode == mode));
        let has = |name: &str| workload(name).is_some_and(|workload| workload.model.as_deref() == Some(model));
        let here = std::iter::once(&*context.workload);
        let all = || self.known.workloads.iter().map(|workload| workload.name.as_str());
        let by_name = self.known.workload_of(&self.subject.model, mode).map(|workload| workload.name.as_str());
        if let Some(found) = here.clone().chain(by_name).chain(all()).find(|name| suits(name) && has(name)) {
            return Ok(found.to_owned());
        }
        let Some(base) = here.chain(all()).find(|name| suits(name)) else {
            return Err(ParseError::no_workload(&self.subject.model, mode, &self.known).into());
        };
        let base = base.split(":model=").next().unwrap_or_default();
        reply.push_text(format!(
            "The files have no {} workload of {model}; the answer is about {base} with that model.",
            mode.map_or("such", |mode| match mode {
                Mode::Training => "training",
                Mode::Inference => "serving",
            }),
        ));
        Ok(format!("{base}:model={model}"))
    }

    /// All settings of the question.
    pub(super) fn settings(&self, nodes: Option<u32>) -> Overrides {
        let tokens = self.subject.tokens.map(|tokens| (Knob::TrainTokens, Setting::Number(tokens)));
        let nodes = nodes.map(number_of_nodes);
        sort::collect_unsorted(nodes.into_iter().chain(self.subject.settings.iter().cloned()).chain(tokens))
    }

    /// Number of tokens to train on or to serve.
    pub(super) fn tokens(&self) -> Option<f64> {
        match self.settings(None).get(&Knob::TrainTokens) {
            Some(Setting::Number(tokens)) => Some(*tokens),
            _ => None,
        }
    }

    /// Metric named in the question, or else `otherwise`. It must apply to the scenario.
    pub(super) fn metric(&self, case: &Case<'_>, otherwise: MetricId) -> Result<&'static Metric, Refusal> {
        let named = self.figure.map(|figure| figure.metric(case.mode()));
        let metric = named.unwrap_or(otherwise.metric());
        if metric.applies_to(&case.scenario) {
            return Ok(metric);
        }
        Err(Refusal::Nothing(metric.inapplicable(&case.scenario)))
    }
}

/// In a choice between two settings, `fp8 or bf16`, drops the one that is already in effect.
fn drop_current_setting(words: &mut Words, context: &Context<'_>) {
    let Ok(case) = Case::of(context, &context.target, &context.workload, context.overrides.clone()) else { return };
    words.rewrite_pairs(|name, values| {
        let (knob, (one, other)) = (Knob::find(name)?, values.split_once('|')?);
        let now = knob.parse(one, &[]).is_ok_and(|one| one == case.scenario.get(knob));
        Some(vec![format!("{name}={}", if now { other } else { one })])
    });
    let now = case.scenario.get(Knob::Precision);
    let format = |word: &str| Knob::Precision.parse(word, &[]).ok();
    words.rewrite_triples(|first, or, second| {
        let (one, other) = (format(first)?, format(second)?);
        (or == "or").then(|| vec![if other == now && one != now { first } else { second }.to_owned()])
    });
    let family = |name: &str| Software::parse(name).ok().map(|software| software.family.id.clone());
    let now = family(&case.scenario.software_name());
    words.rewrite_triples(|first, or, second| {
        let (one, other) = (family(first)?, family(second)?);
        let first = Some(&other) == now.as_ref() && one != other;
        (or == "or").then(|| vec![format!("software={}", if first { one } else { other })])
    });
}

/// Scenario on a part of a node, at its share of the node's price. The degree of tensor parallelism is the fastest one.
fn part_of_node<'a>(node: &Case<'a>, count: u32, reply: &mut Reply) -> Result<Case<'a>, Refusal> {
    let whole = f64::from(node.scenario.accelerators_per_node);
    let price = node.scenario.hourly_usd.map(|usd| usd * f64::from(count) / whole);
    let node = node.with(&[number_of_nodes(1)])?;
    let with = |tp: u32| {
        let layout = [(Knob::Tp, tp), (Knob::Dp, count / tp), (Knob::Pp, 1)].map(|(knob, ranks)| (knob, ranks.into()));
        let moe = [Knob::Ep, Knob::AttentionDp].map(|knob| (knob, 1.0));
        let moe = moe.into_iter().filter(|(knob, _)| node.scenario.uses(*knob));
        let all = layout.into_iter().chain(moe).chain(price.map(|price| (Knob::HourlyUsd, price)));
        let changes: Vec<(Knob, Setting)> = all.map(|(knob, value)| (knob, Setting::Number(value))).collect();
        node.with(&changes)
    };
    let degrees = || (1..=count).filter(|tp| count.is_multiple_of(*tp));
    let runs = degrees().filter_map(|tp| with(tp).ok()).filter(|case| case.trouble().is_none());
    let rated = runs.filter_map(|case| Some((case.value(MetricId::TokensPerSec.metric())?, case)));
    let case = match rated.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, case)) => case,
        None => with(count)?,
    };
    let (name, plural) = (&case.parts.target.name, if count == 1 { "" } else { "s" });
    reply.about = Some(case.about());
    let price =
        price.map_or_else(String::new, |price| format!(" at their share of the node's price (hourly_usd={price})"));
    reply.push_text(format!("On {count} accelerator{plural} of the {whole:.0} of {name}{price}."));
    if let Some(trouble) = case.trouble() {
        reply.push_text(format!("This cannot run: {trouble}."));
    }
    Ok(case)
}

pub(super) fn number_of_nodes(nodes: u32) -> (Knob, Setting) {
    (Knob::NumNodes, Setting::Number(f64::from(nodes)))
}

/// If the question names fewer accelerators than a node of any target of that name has: the hardware and the number.
pub(super) fn partial_node(subject: &Question, known: &Known) -> Option<(Hardware, u32)> {
    let [hardware] = subject.hardware.as_slice() else { return None };
    let count = hardware.count?;
    let whole = subject.targets(known).is_ok();
    let larger = known.targets_of(&hardware.name).any(|target| target.per_node > count);
    (!whole && larger && count > 0).then(|| (Hardware { count: None, name: hardware.name.clone() }, count))
}
