//! Typical questions, and properties of all questions.

use atlas_assistant::{Hardware, Intent, Known, KnownTarget, KnownWorkload, Objective, ParseError, Question, parse};
use atlas_config::Mode;
use atlas_plan::estimate::METRICS;
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::search::Condition;
use atlas_plan::search::condition::Relation;
use atlas_plan::search::metric;
use proptest::prelude::*;

fn known() -> Known {
    let target = |name: &str, per_node, nodes| KnownTarget { name: name.to_owned(), per_node, nodes };
    let workload = |name: &str, mode| KnownWorkload { name: name.to_owned(), mode };
    Known {
        targets: vec![
            target("h100-sxm-8", 8, 1),
            target("h100-sxm-128", 8, 16),
            target("h200-sxm-8", 8, 1),
            target("b200-8", 8, 1),
            target("mi300x-8", 8, 1),
            target("gb200-nvl72", 72, 1),
        ],
        workloads: vec![
            workload("llama3.1-8b-train", Mode::Training),
            workload("llama3.1-70b-train", Mode::Training),
            workload("llama3.1-70b-serve", Mode::Inference),
            workload("llama3.1-70b-day", Mode::Inference),
            workload("deepseek-v3-serve", Mode::Inference),
        ],
        models: vec!["qwen3-32b".to_owned(), "gemma-2-9b".to_owned(), "gemma-2-27b".to_owned()],
    }
}

fn read(line: &str) -> Question {
    parse(line, &known()).unwrap_or_else(|trouble| panic!("{line}: {trouble}"))
}

fn targets(line: &str) -> Vec<(String, Option<u32>)> {
    let known = known();
    let found = read(line).targets(&known).unwrap();
    found.into_iter().map(|(target, nodes)| (target.name.clone(), nodes)).collect()
}

#[test]
fn documented_questions_parse_to_their_documented_meaning() {
    let question = read("cheapest tpot<50ms ttft<2s fits 10% free");
    assert_eq!(question.to_string(), "cheapest tpot<50ms ttft<2s fits 10% free");
    assert_eq!((question.intent(), question.objective), (Intent::Race, Some(Objective::Cheapest)));
    assert_eq!(question.constraints.len(), 4);

    let known = known();
    let question = read("serve llama 70b cheapest under 50ms on h100,h200,b200");
    assert_eq!(question.workload(&known).unwrap().unwrap().name, "llama3.1-70b-serve");
    assert_eq!(question.to_string(), "serve llama 70b cheapest tpot<50ms on h100, h200, b200");
    let names = targets("serve llama 70b cheapest under 50ms on h100,h200,b200");
    assert_eq!(names, [("h100-sxm-8".into(), None), ("h200-sxm-8".into(), None), ("b200-8".into(), None)]);

    let question = read("train 70b 1T tokens 128 h100 under 60d");
    assert_eq!(question.workload(&known).unwrap().unwrap().name, "llama3.1-70b-train");
    assert_eq!((question.mode, question.tokens), (Some(Mode::Training), Some(1e12)));
    assert_eq!(question.to_string(), "train 70b 1T tokens time_to_train<60d on 128 h100");
    assert_eq!(targets("train 70b 128 h100 under 60d"), [("h100-sxm-128".into(), None)]);
    assert_eq!(targets("128 h200"), [("h200-sxm-8".into(), Some(16))], "nodes are added where no target is that large");
}

#[test]
fn a_line_without_a_goal_sets_knobs_or_selects() {
    for line in ["tp=8", "tp 8", "TP = 8"] {
        let question = read(line);
        assert_eq!(question.settings, [(Knob::Tp, Setting::Number(8.0))], "{line}");
        assert_eq!(question.intent(), Intent::Set, "{line}");
    }
    assert_eq!(read("precision fp8 pp 2").settings.len(), 2);
    assert_eq!((read("b200").intent(), targets("b200")), (Intent::Jump, vec![("b200-8".into(), None)]));
    let known = known();
    let jump = read("70b serve");
    assert_eq!((jump.intent(), &*jump.workload(&known).unwrap().unwrap().name), (Intent::Jump, "llama3.1-70b-serve"));
    assert_eq!(read("").intent(), Intent::Nothing);
}

#[test]
fn bounds_parse_from_operators_words_and_bare_values() {
    let tpot = |relation| vec![Condition::Metric(metric::named("tpot").unwrap(), relation, 50.0)];
    for line in ["tpot<50ms", "tpot < 50 ms", "tpot under 50ms", "under 50ms", "<50ms", "under 50 ms per token"] {
        assert_eq!(read(line).constraints, tpot(Relation::Below), "{line}");
    }
    for line in ["tpot<=50", "tpot 50ms", "tpot at most 50ms", "tpot=50ms", "tpot<20ms tpot<=50ms"] {
        assert_eq!(read(line).constraints, tpot(Relation::AtMost), "{line}");
    }
    assert_eq!(read("10% free").constraints, read("headroom >= 10%").constraints);
    assert_eq!(read("<$2").constraints, read("$/1M<2").constraints);
}

#[test]
fn star_selects_all_matching_targets_without_duplicates() {
    assert_eq!(targets("h100*"), [("h100-sxm-8".into(), None), ("h100-sxm-128".into(), None)]);
    assert_eq!(targets("on h100, h100-sxm-8"), [("h100-sxm-8".into(), None)]);
}

#[test]
fn unknown_words_are_reported_with_known_alternatives() {
    let error = |line: &str| parse(line, &known()).unwrap_err().to_string();
    assert!(error("cheapest wibble").contains("unknown word `wibble`"), "{}", error("cheapest wibble"));
    assert!(error("cheapest wibble").contains("cheapest, fastest"), "{}", error("cheapest wibble"));
    assert!(error("cheepest").contains("did you mean `cheapest`"), "{}", error("cheepest"));
    assert!(matches!(parse("under 50", &known()), Err(ParseError::Unclear { .. })));
    assert!(matches!(parse("tpot<", &known()), Err(ParseError::NoBound { .. })));
    assert!(error("tp=elephant").starts_with("tp: found \"elephant\""), "{}", error("tp=elephant"));
    let known = known();
    let missing = read("llama v3").workload(&known).unwrap_err().to_string();
    assert!(missing.contains("deepseek-v3-serve"), "{missing}");
    let large = Question { hardware: vec![Hardware { count: Some(100), name: "h100".into() }], ..Question::default() };
    assert!(large.targets(&known).unwrap_err().to_string().contains("no target matches `100 h100`"));
}

/// Bounds from tiny to huge, of every precision.
fn bound() -> impl Strategy<Value = f64> {
    prop_oneof![
        (1_u32..1_000_000).prop_map(f64::from),
        (1_u32..1_000_000).prop_map(|value| f64::from(value) / 1000.0),
        1e-6_f64..1e9,
    ]
}

fn constraint() -> impl Strategy<Value = Condition> {
    let relation = prop_oneof![
        Just(Relation::AtMost),
        Just(Relation::AtLeast),
        Just(Relation::Below),
        Just(Relation::Above),
        Just(Relation::Different)
    ];
    let metric =
        prop_oneof![(0..METRICS.len()).prop_map(|at| METRICS[at].name), Just("headroom"), Just("accelerators")];
    prop_oneof![
        1 => Just(Condition::Fits),
        8 => (metric, relation, bound())
            .prop_map(|(name, relation, bound)| {
                let bound = if name == "headroom" { bound.min(1.0) } else { bound };
                Condition::Metric(metric::named(name).unwrap(), relation, bound)
            }),
        1 => (1_u32..64).prop_map(|tp| Condition::Knob(Knob::Tp, Relation::AtMost, Setting::Number(f64::from(tp)))),
    ]
}

/// At most one constraint for each side of each metric, since a later one replaces an earlier one.
fn constraints() -> impl Strategy<Value = Vec<Condition>> {
    prop::collection::vec(constraint(), 0..5).prop_map(|all| {
        let key = |condition: &Condition| match condition {
            Condition::Fits => ("fits", 0),
            Condition::Metric(metric, relation, _) => (metric.name, side(*relation)),
            Condition::Knob(knob, relation, _) => (knob.name(), side(*relation)),
        };
        let mut seen = std::collections::HashSet::new();
        all.into_iter().filter(|condition| seen.insert(key(condition))).collect()
    })
}

fn side(relation: Relation) -> u8 {
    match relation {
        Relation::AtMost | Relation::Below => 0,
        Relation::AtLeast | Relation::Above => 1,
        Relation::Equal => 2,
        Relation::Different => 3,
    }
}

fn question() -> impl Strategy<Value = Question> {
    let mode = prop::option::of(prop_oneof![Just(Mode::Training), Just(Mode::Inference)]);
    let model = prop::collection::vec(prop_oneof![Just("llama"), Just("70b"), Just("deepseek-v3-serve")], 0..3);
    let model = model.prop_map(|words| words.into_iter().map(str::to_owned).collect());
    let objective = prop::option::of((0..Objective::ALL.len()).prop_map(|at| Objective::ALL[at]));
    let name = prop_oneof![Just("h100"), Just("h200-sxm-8"), Just("b200*"), Just("mi300x")];
    let hardware =
        (prop::option::of(1_u32..4096), name).prop_map(|(count, name)| Hardware { count, name: name.to_owned() });
    let settings = (prop::option::of(1_u32..64), prop::option::of(any::<bool>())).prop_map(|(tp, graphs)| {
        let tp = tp.map(|tp| (Knob::Tp, Setting::Number(f64::from(tp))));
        let graphs = graphs.map(|on| (Knob::CudaGraphs, Setting::Toggle(on)));
        tp.into_iter().chain(graphs).collect()
    });
    let tokens = prop::option::of(1e3_f64..1e14);
    (mode, model, objective, constraints(), settings, tokens, prop::collection::vec(hardware, 0..4)).prop_map(
        |(mode, model, objective, constraints, settings, tokens, hardware)| Question {
            mode,
            model,
            objective,
            constraints,
            settings,
            tokens,
            hardware,
        },
    )
}

proptest! {
    #[test]
    fn displayed_question_parses_to_itself(question in question()) {
        let text = question.to_string();
        prop_assert_eq!(parse(&text, &known()).map_err(|trouble| format!("{text}: {trouble}")), Ok(question));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let known = known();
        if let Ok(question) = parse(&text, &known) {
            let _ = (question.workload(&known), question.targets(&known), question.intent());
            prop_assert!(parse(&question.to_string(), &known).is_ok(), "{} -> {}", text, question);
        }
    }

    /// Words of the grammar in random order reach more of the parser than arbitrary text.
    #[test]
    fn any_words_of_the_grammar_are_read_or_refused(words in prop::collection::vec(prop_oneof![
        Just("cheapest"), Just("on"), Just("under"), Just("tpot"), Just("<"), Just(">="), Just("="), Just("50ms"),
        Just("2s"), Just("10%"), Just("free"), Just("h100"), Just("128"), Just("70b"), Just("serve"), Just("train"),
        Just("1T"), Just("tokens"), Just(","), Just("tp"), Just("8"), Just("$2"), Just("fits"), Just("at"), Just("most"),
    ], 0..12)) {
        let known = known();
        let text = words.join(" ");
        if let Ok(question) = parse(&text, &known) {
            prop_assert_eq!(parse(&question.to_string(), &known), Ok(question));
        }
    }
}

#[test]
fn settings_parse_from_colloquial_phrases() {
    let set = |line: &str| read(line).settings;
    let number = |knob, value| vec![(knob, Setting::Number(value))];
    assert_eq!(set("tp8"), number(Knob::Tp, 8.0));
    assert_eq!(set("1000 users"), number(Knob::Concurrency, 1000.0));
    assert_eq!(set("100 concurrent users"), number(Knob::Concurrency, 100.0));
    assert_eq!(set("8k context"), number(Knob::Prompt, 8000.0));
    assert_eq!(set("context 8k"), number(Knob::Prompt, 8000.0));
    assert_eq!(set("two nodes"), number(Knob::NumNodes, 2.0));
    for (line, knob, choice) in
        [("fp8", Knob::Precision, "fp8"), ("sglang", Knob::Software, "sglang"), ("zero3", Knob::Sharding, "zero3")]
    {
        assert_eq!(set(line), [(knob, Setting::Choice(choice.into()))], "{line}");
    }
    let question = read("cheapest way to serve 70b with sglang at fp8 on 4 nodes of h200");
    assert_eq!(question.to_string(), "serve 70b cheapest software=sglang precision=fp8 num_nodes=4 on h200");
    assert_eq!(read("highest throughput under 20ms").to_string(), "fastest tpot<20ms");
    assert_eq!(read("max throughput").to_string(), "fastest");
}

#[test]
fn accelerator_counts_parse_from_colloquial_phrases() {
    for line in ["8xh100", "8x h100", "eight h100", "8 h100 gpus"] {
        assert_eq!(targets(line), [("h100-sxm-8".into(), None)], "{line}");
    }
    // Accelerators of any kind: all targets with this number of them.
    assert_eq!(targets("fastest 70b training on 128 gpus"), [("h100-sxm-128".into(), None)]);
    assert_eq!(targets("cheapest gpu for 70b on 8 gpus").len(), 4);
    assert_eq!(read("on 128 gpus").to_string(), "on 128 gpus");
}

#[test]
fn ambiguous_or_unmatched_phrases_are_reported() {
    let error = |line: &str| parse(line, &known()).unwrap_err().to_string();
    assert!(error("batch size 64").contains("microbatch") && error("batch size 64").contains("concurrency"));
    assert!(error("llama 32b on h100").contains("no workload matches `llama 32b`"), "{}", error("llama 32b on h100"));
    assert!(!error("cheepest").contains("?."), "{}", error("cheepest"));
}
