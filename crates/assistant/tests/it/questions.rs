//! Realistic questions: each gets the right kind of answer, all values are those of the engine, and what is not
//! understood is rejected.

use atlas_assistant::offline::{About, Context, Refusal, Reply, ReportedMetric, answer};
use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::engine;
use atlas_plan::knob::{self, KnobValues as _};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::Gauge;
use proptest::prelude::*;

/// A line of the list.
struct Row<'r> {
    question: &'r str,
    target: &'r str,
    workload: &'r str,
    kind: &'r str,
    words: Vec<&'r str>,
}

fn rows() -> Vec<Row<'static>> {
    let lines = include_str!("../data/questions.txt").lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [question, target, workload, kind, words] = cells.as_slice() else { panic!("{line}") };
        Row { question, target, workload, kind, words: words.split("; ").collect() }
    };
    lines.map(row).collect()
}

fn ask(library: &Library, question: &str, target: &str, workload: &str) -> Result<Reply, Refusal> {
    answer(question, &Context::new(library, target, workload), &Gauge::default())
}

/// Value of the metric as the engine computes it from target, workload and settings.
fn computed(library: &Library, figure: &ReportedMetric) -> Option<f64> {
    let About { target, workload, set } = &figure.about;
    let parts = Parts::find(library, target, workload).unwrap();
    let setting = |text: &String| {
        let (knob, value) = knob::assignment(text).unwrap();
        (knob, knob.parse(&value, parts.fabrics()).unwrap())
    };
    let scenario = Scenario::resolve(&parts, &set.iter().map(setting).collect()).unwrap();
    let estimate = engine::estimate(&scenario);
    let metric = figure.metric.metric();
    metric.value(&estimate, &scenario).filter(|value| value.is_finite())
}

#[test]
fn questions_get_the_expected_answer_kind_and_recomputable_values() {
    let library = Library::load(&Sources::built_in(), None);
    let mut wrong = Vec::new();
    let rows = rows();
    assert!(rows.len() >= 30, "{}", rows.len());
    for row in rows {
        let reply = match ask(&library, row.question, row.target, row.workload) {
            Ok(reply) => reply,
            Err(refusal) => {
                wrong.push(format!("{}: {refusal}", row.question));
                continue;
            }
        };
        let kind = serde_json::to_value(reply.kind).unwrap();
        let text = reply.text(100);
        if kind != row.kind {
            wrong.push(format!("{}: {kind}\n{text}", row.question));
        }
        for word in row.words.iter().filter(|word| !text.contains(**word)) {
            wrong.push(format!("{}: no `{word}` in\n{text}", row.question));
        }
        if reply.commands.is_empty() {
            wrong.push(format!("{}: no command", row.question));
        }
        let of_scenario = !matches!(row.kind, "meaning" | "list" | "guide");
        if of_scenario && reply.figures.is_empty() {
            wrong.push(format!("{}: no figure", row.question));
        }
        for figure in &reply.figures {
            let again = computed(&library, figure);
            if again != figure.value {
                wrong.push(format!("{}: {figure:?} is {again:?}", row.question));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn unsupported_questions_are_refused_with_supported_forms() {
    let library = Library::load(&Sources::built_in(), None);
    for question in [
        "why is the sky blue?",
        "what if wibble?",
        "wibble",
        "",
        "what does wibble mean?",
        "how do I bake bread?",
        "list",
    ] {
        let refused = ask(&library, question, "h100-sxm-8", "llama3.1-70b-serve");
        let Err(refusal) = refused else { panic!("{question}: {}", refused.unwrap().text(100)) };
        assert!(refusal.to_string().contains("You can ask"), "{question}: {refusal}");
    }
}

#[test]
fn every_model_of_the_catalog_can_be_named() {
    let library = Library::load(&Sources::built_in(), None);
    let mut wrong = Vec::new();
    for model in library.catalog().models() {
        let question = format!("how fast is {} on h200?", model.id);
        let about = match ask(&library, &question, "h100-sxm-8", "llama3.1-70b-serve") {
            Ok(reply) => reply.about.map(|about| about.workload).unwrap_or_default(),
            // The architecture cannot be served this way.
            Err(Refusal::Files(_) | Refusal::Scenario(_)) => continue,
            Err(refusal) => {
                wrong.push(format!("{}: {refusal}", model.id));
                continue;
            }
        };
        let workload = library.workload(&about).unwrap();
        if workload.model.as_deref() != Some(&*model.id) {
            wrong.push(format!("{}: {about}", model.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (question, workload, answer) in [
        ("how fast is llama-3.1-70b on h200", "llama3.1-70b-serve", "TPOT"),
        ("how fast is qwen3 32b on h200", "llama3.1-70b-serve:model=qwen3-32b", "no serving workload of qwen3-32b"),
        (
            "how long does it take to train qwen3-32b on 64 h100",
            ":model=qwen3-32b",
            "no training workload of qwen3-32b",
        ),
    ] {
        let reply = ask(&library, question, "h100-sxm-8", "llama3.1-70b-serve").unwrap();
        let text = reply.text(200);
        assert!(text.contains(answer) && text.contains(workload), "{question}: {text}");
    }
    let refused = ask(&library, "how fast is gemma on h200", "h100-sxm-8", "llama3.1-70b-serve").unwrap_err();
    assert!(refused.to_string().contains("several models match `gemma`: "), "{refused}");
}

#[test]
fn price_drop_of_a_third_scales_the_suggested_hourly_price() {
    let library = Library::load(&Sources::built_in(), None);
    let reply = ask(&library, "what if prices fall by a third?", "h100-sxm-8", "llama3.1-70b-serve").unwrap();
    let price = library.target("h100-sxm-8").unwrap();
    let parts = Parts::find(&library, &price.name, "llama3.1-70b-serve").unwrap();
    let before = Scenario::from_files(&parts).hourly_usd.unwrap();
    let (_, setting) = &reply.suggestion.unwrap().overrides[0];
    let after: f64 = setting.to_string().parse().unwrap();
    assert!((after / before - 2.0 / 3.0).abs() < 1e-9, "{before} {after}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Any text is answered or rejected; words of questions in random order reach more code than arbitrary text.
    #[test]
    fn any_words_are_answered_or_refused(words in prop::collection::vec(prop_oneof![
        Just("why"), Just("what"), Just("if"), Just("is"), Just("high"), Just("ttft"), Just("prices"), Just("fall"),
        Just("by"), Just("a"), Just("third"), Just("200%"), Just("does"), Just("fit"), Just("mean"), Just("list"),
        Just("tp=8"), Just("70b"), Just("h100"), Just("limits"), Just("cost"), Just("0"), Just("<"), Just("under"),
        Just("50ms"), Just("memory"), Just("go"), Just("ｘ"), Just("\u{1b}[31m"), Just("'"), Just("users"),
    ], 0..9)) {
        static LIBRARY: std::sync::LazyLock<Library> = std::sync::LazyLock::new(|| Library::load(&Sources::built_in(), None));
        let line = words.join(" ");
        if let Ok(reply) = ask(&LIBRARY, &line, "h100-sxm-8", "llama3.1-8b-serve") {
            prop_assert!(!reply.text(80).is_empty());
        }
    }
}

#[test]
fn the_batch_is_rounded_to_the_accelerators_of_a_question() {
    let library = Library::load(&Sources::built_in(), None);
    let question = "how long does it take to train llama 8b on 15T tokens on 1024 h100?";
    let reply = ask(&library, question, "h100-sxm-8", "llama3.1-8b-train").unwrap();
    let text = reply.text(100);
    assert!(text.contains("batch of 1152 sequences is rounded to 1024") && !text.contains("cannot run"), "{text}");
    assert!(reply.commands.iter().any(|command| format!("{command:?}").contains("global=1024")));
    // Every number of nodes has a batch that it can divide.
    let count = "how many h100 to train llama 8b on 15T tokens in 60 days?";
    let text = ask(&library, count, "h100-sxm-8", "llama3.1-8b-train").unwrap().text(100);
    assert!(text.contains("42 nodes"), "{text}");
}

#[test]
fn a_format_of_other_accelerators_is_replaced_for_those_of_a_question() {
    let library = Library::load(&Sources::built_in(), None);
    let reply =
        ask(&library, "how fast does deepseek v3 train on 1024 h100?", "h100-sxm-8", "deepseek-v3-train").unwrap();
    let text = reply.text(100);
    assert!(text.contains("does not support mxfp8: using fp8") && text.contains("precision=fp8"), "{text}");
}
