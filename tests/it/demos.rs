//! The built-in tours meet their expectations; demo scripts, their player without a screen, and
//! `atlas demo --headless`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assert_cmd::Command;
use atlas_config::library::Library;
use atlas_document::{Diagnostics, Position, Sources};
use atlas_fabric::demo::headless::check_steps;
use atlas_fabric::demo::{
    Action, Demo, DemoError, Demos, Expect, Pane, Reset, Stage, Tours, View, check, run_headless,
};
use atlas_plan::engine;
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::hill_climb::hill_climb;
use atlas_plan::search::optimize::freed;
use atlas_plan::search::{Gauge, Problem, metric, optimize};
use jiff::Timestamp;
use proptest::prelude::*;

fn library() -> Library {
    Library::load(&Sources::built_in(), None)
}

fn shipped() -> Vec<Arc<Demo>> {
    let (demos, problems) = Demos::load(None, None);
    assert_eq!(problems.to_string(), "");
    demos
}

fn shipped_named(name: &str) -> Arc<Demo> {
    shipped().into_iter().find(|demo| &*demo.name == name).unwrap()
}

fn read(text: &str) -> (Option<Demo>, Diagnostics) {
    let mut problems = Diagnostics::new();
    let demo = Demo::read(&"d.yaml".into(), &text.to_owned().into(), &mut problems);
    (demo, problems)
}

fn outcome(stage: &Stage, condition: &str) -> (bool, String) {
    let expect = Expect::read(condition, Position::default()).unwrap();
    let outcome = check(&expect, stage, &library());
    (outcome.passed, outcome.text)
}

/// Number of lines that text takes at a width, with the same wrapping as a caption box.
fn lines(text: &str, width: usize) -> usize {
    let mut lines = 1;
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            lines += 1;
            column = length;
        } else {
            column += length + usize::from(column > 0);
        }
    }
    lines
}

#[test]
fn shipped_tours_have_captions_of_at_most_five_lines() {
    let demos = shipped();
    let names: Vec<&str> = demos.iter().map(|demo| &*demo.name).collect();
    let expected = [
        "llama70b_fits",
        "llama70b_cheapest",
        "h100_or_mi300x",
        "own_cluster",
        "llama405b_bill",
        "tensor_parallel_node",
        "slow_node_512",
        "gpt5_1t_training",
        "gpt5_1t_inference",
    ];
    assert_eq!(names, expected);
    for demo in &demos {
        let least = if demo.name.starts_with("gpt5") { 8 } else { 5 };
        assert!(demo.steps.len() >= least, "{}", demo.name);
        for step in &demo.steps {
            assert!(lines(&step.say, 76) <= 5, "{}: {} is too long", demo.name, step.title);
            assert!(!step.expects.is_empty(), "{}: {} claims nothing", demo.name, step.title);
        }
    }
}

#[test]
fn every_expectation_of_the_shipped_tours_holds() {
    let library = library();
    for demo in shipped() {
        for step in check_steps(&demo, &library) {
            let failures: Vec<&str> = step.failures().collect();
            assert!(step.passed(), "{}: {}: {failures:?}", demo.name, step.title);
        }
    }
}

/// A statement of the narration that no condition can express: the size of the model does not matter to this engine.
#[test]
fn legacy_throughput_is_independent_of_model_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.yaml");
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("workload/workloads.yaml")).unwrap();
    std::fs::write(&path, text.replace("hidden_size: 16384, n_layers: 160", "hidden_size: 512, n_layers: 8")).unwrap();
    let small = Library::load(&Sources { workloads: Some(path), ..Sources::built_in() }, None);
    let stage = Stage::of(&shipped_named("gpt5_1t_training"));
    let expect = Expect::read("tokens_per_sec within 0.1 % of 2642", Position::default()).unwrap();
    assert!(check(&expect, &stage, &small).passed);
    let expect = Expect::read("peak_mem_gb < 5", Position::default()).unwrap();
    assert!(check(&expect, &stage, &small).passed);
}

/// Statements of the inference tour about the files: the load of a spike, and the nominal power of a node.
#[test]
fn surge_load_and_node_power_match_the_tour_narration() {
    let library = library();
    let surge = &library.workload("gpt5_1t_inference").unwrap().phases[1];
    assert_eq!((&*surge.name, surge.traffic.load_factor), ("surge", 1.15));
    assert_eq!(library.target("NVIDIA_H100_8x_NVLink").unwrap().cost.energy_watts_node, 10_200.0);
}

/// Statements of the inference tour's last step about the optimizer.
#[test]
fn optimizer_changes_match_the_tour_narration() {
    let library = library();
    let demo = shipped_named("gpt5_1t_inference");
    let picks = demo.targets.iter().map(|name| {
        let parts = Parts::find(&library, name, &demo.workload).unwrap();
        let start = Scenario::resolve(&parts, &Overrides::new()).unwrap();
        let found = hill_climb(&start, &parts, demo.sla_p99_ms).scenario;
        let changed = Knob::all().filter(|knob| found.get(*knob) != start.get(*knob));
        changed.map(|knob| format!("{}={}", knob.name(), found.get(knob))).collect::<Vec<_>>().join(" ")
    });
    assert_eq!(picks.collect::<Vec<_>>(), ["fabric=IB", "", ""]);
}

/// Layouts of both machines in the tour that compares them: an exhaustive search finds nothing much better.
#[test]
fn tour_layouts_are_within_3_percent_of_the_search_optimum() {
    let library = library();
    let demo = shipped_named("h100_or_mi300x");
    for (step, target) in [(3, "h100-sxm-8"), (4, "mi300x-8")] {
        let setup = Stage::at_step(&demo, step, &library).0.setup;
        assert_eq!(&*setup.target, target);
        let parts = Parts::find(&library, target, &setup.workload).unwrap();
        let shown = engine::estimate(&Scenario::resolve(&parts, &setup.overrides).unwrap()).total.tokens_per_sec;
        let start = freed(&Scenario::resolve(&parts, &Overrides::new()).unwrap(), &|_| false, &parts);
        let problem = Problem::of(&start, &parts, metric::named("throughput").unwrap());
        let best = optimize(&problem, &Gauge::default()).best.unwrap().estimate.total.tokens_per_sec;
        assert!(shown <= best && best < 1.03 * shown, "{target}: {shown} is shown, {best} is possible");
    }
}

/// A script with every kind of action.
const SCRIPT: &str = "\
name: small
title: A small tour
targets: [NVIDIA_H100_8x_NVLink, GROQ_LPU_NODE]
workload: gpt5_1t_train
steps:
  - title: One
    say: >
      Two
      lines.
    do:
      - select_target: GROQ_LPU_NODE
      - select_workload: gpt5_1t_inference
      - set: { cuda_graphs: off, tp: 8, fabric: IB }
      - mark: [GROQ_LPU_NODE, NVIDIA_H100_8x_NVLink]
      - unmark: GROQ_LPU_NODE
      - view: compare
      - focus: knobs
      - baseline: here
    expect:
      - tokens_per_sec > 100
  - title: Two
    say: More.
    do:
      - reset: [tp]
      - baseline: clear
      - reset: all
";

#[test]
fn demo_script_parses_and_its_actions_are_applied() {
    let (demo, problems) = read(SCRIPT);
    assert_eq!(problems.to_string(), "");
    let demo = demo.unwrap();
    assert_eq!(demo.steps[0].say, "Two lines.");
    assert_eq!(demo.steps[1].actions[0], Action::Reset(Reset::Knobs(vec![Knob::Tp])));
    assert_eq!(demo.sla_p99_ms, 100.0);

    let library = library();
    let (stage, errors) = Stage::at_step(&demo, 0, &library);
    assert_eq!(errors, []);
    assert_eq!((&*stage.setup.target, &*stage.setup.workload), ("GROQ_LPU_NODE", "gpt5_1t_inference"));
    let overrides = Overrides::from([
        (Knob::CudaGraphs, Setting::Toggle(false)),
        (Knob::Tp, Setting::Number(8.0)),
        (Knob::Fabric, Setting::Choice("IB".into())),
    ]);
    assert_eq!(stage.setup.overrides, overrides);
    assert_eq!(stage.marks.iter().map(|mark| &**mark).collect::<Vec<_>>(), ["NVIDIA_H100_8x_NVLink"]);
    assert_eq!((stage.view, stage.focus), (View::Compare, Pane::Knobs));
    assert_eq!(stage.baseline.as_ref(), Some(&stage.setup));

    let (stage, _) = Stage::at_step(&demo, 1, &library);
    assert!(stage.setup.overrides.is_empty() && stage.baseline.is_none());
    assert_eq!(stage.view, View::Compare);
}

#[test]
fn setting_a_knob_to_its_file_value_removes_the_override() {
    let library = library();
    let mut stage = Stage::of(&shipped_named("gpt5_1t_training"));
    stage.apply(&Action::Set(Knob::Tp, "4".into()), &library).unwrap();
    stage.apply(&Action::Set(Knob::Tp, "8".into()), &library).unwrap();
    assert!(stage.setup.overrides.is_empty());
}

#[test]
fn every_problem_of_a_demo_script_is_reported_with_line_and_column() {
    let (demo, problems) = read(
        "\
name: bad
titel: Oops
targets: []
sla_p99_ms: fast
steps:
  - say: No title.
    do:
      - select_taget: X
      - set: { cuda_graf: on }
      - set: { cuda_graphs: maybe }
      - set: [tp]
      - view: compere
      - focus: 3
      - { mark: [a], unmark: [b] }
      - reset: [tpp]
      - baseline: there
    expect:
      - tokens_per_secs > 3
      - p99_ms >
      - 7
  - just text
",
    );
    assert!(demo.is_none());
    let expected = [
        "d.yaml:4:13: error: bad.sla_p99_ms: found text \"fast\", expected a number from 0",
        "d.yaml:2:1: warning: bad.titel: unknown key; kept but ignored; did you mean `title`?",
        "d.yaml:1:1: error: bad: 3 missing fields: title, targets, workload; add them; nothing is filled in from hidden defaults",
        "d.yaml:6:5: error: bad.steps[1]: 1 missing field: title; add it; nothing is filled in from hidden defaults",
        "d.yaml:8:9: error: bad.steps[1].do[1].select_taget: found the action `select_taget`, expected one of select_target, \
         select_workload, set, reset, view, mark, unmark, baseline, focus; did you mean `select_target`?",
        "d.yaml:9:16: error: bad.steps[1].do[2].set: no knob `cuda_graf`; did you mean `cuda_graphs`?",
        "d.yaml:10:29: error: bad.steps[1].do[3].set: cuda_graphs: found \"maybe\", expected on or off",
        "d.yaml:11:14: error: bad.steps[1].do[4].set: found a list of 1, expected knobs and their values, as in { tp: 4 }",
        "d.yaml:12:15: error: bad.steps[1].do[5].view: found text \"compere\", expected one of main, race, compare, breakdown, \
         sweep, frontier, sensitivity, optimize, timeline, advice, explain, schedule, problems, diff, measurements, help; did you mean `compare`?",
        "d.yaml:13:16: error: bad.steps[1].do[6].focus: found 3, expected one of targets, workloads, knobs, results",
        "d.yaml:14:9: error: bad.steps[1].do[7]: found a mapping of 2, expected one action, such as `view: compare`",
        "d.yaml:15:16: error: bad.steps[1].do[8].reset: no knob `tpp`; did you mean `tp`?",
        "d.yaml:16:19: error: bad.steps[1].do[9].baseline: found text \"there\", expected one of here, clear; did you mean `here`?",
        "d.yaml:18:9: error: bad.steps[1].expect[1]: found `tokens_per_secs`, expected a metric or a knob at character 1 of \
         \"tokens_per_secs > 3\"; did you mean `tokens_per_sec`?",
        "d.yaml:19:9: error: bad.steps[1].expect[2]: found the end of the condition, expected a number, a metric, \
         a knob or `baseline` at character 9 of \"p99_ms >\"",
        "d.yaml:20:9: error: bad.steps[1].expect[3]: found 7, expected a condition such as tokens_per_sec > 2000",
        "d.yaml:21:5: error: bad.steps[2]: found text \"just text\", expected a mapping",
    ];
    let described: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(described, expected);
}

#[test]
fn missing_empty_and_non_list_steps_are_reported() {
    let head = "name: x\ntitle: X\ntargets: [a]\nworkload: w\n";
    for (steps, complaint) in [
        ("", "d.yaml:1:1: error: x: 1 missing field: steps"),
        ("steps: []\n", "d.yaml:5:8: error: x.steps: found no steps, expected at least one"),
        ("steps: 3\n", "d.yaml:5:8: error: x.steps: found 3, expected a list of steps"),
    ] {
        let (demo, problems) = read(&format!("{head}{steps}"));
        assert!(demo.is_none());
        assert!(problems.to_string().starts_with(complaint), "{problems}");
    }
    assert!(read("- a\n").0.is_none());
    assert!(read("a: [\n").1.has_errors());
}

#[test]
fn tour_conditions_refer_to_knobs_other_targets_baseline_and_phases() {
    let library = library();
    let mut stage = Stage::of(&shipped_named("gpt5_1t_training"));
    let set = |stage: &mut Stage, knob, text: &str| stage.apply(&Action::Set(knob, text.into()), &library).unwrap();
    assert_eq!(outcome(&stage, "tokens_per_sec > 2000"), (true, "tokens_per_sec 2642 tok/s > 2000".into()));
    assert_eq!(outcome(&stage, "tokens_per_sec < 2000"), (false, "tokens_per_sec 2642 tok/s < 2000".into()));
    assert!(outcome(&stage, "tokens_per_sec == baseline").0);
    set(&mut stage, Knob::NumNodes, "2");
    assert_eq!(
        outcome(&stage, "tokens_per_sec / baseline == 2"),
        (true, "tokens_per_sec / baseline 2.000 == 2".into())
    );
    assert_eq!(outcome(&stage, "num_nodes == 2"), (true, "num_nodes 2 == 2".into()));
    assert!(outcome(&stage, "GROQ_LPU_NODE.tokens_per_sec within 0.1 % of 1523.76 * 2").0);
    stage.apply(&Action::SetBaseline, &library).unwrap();
    set(&mut stage, Knob::NumNodes, "8");
    assert!(outcome(&stage, "tokens_per_sec / baseline == 4").0);
    assert!(outcome(&stage, "tokens_per_sec[warmup] / tokens_per_sec[main_run] within 1 % of 0.4").0);
    assert!(outcome(&stage, "prompt[finetune] == 16384").0);

    for (condition, why) in [
        ("NO_SUCH.tokens_per_sec > 1", "no target `NO_SUCH`"),
        (
            "tokens_per_sec[night] > 1",
            "workload `gpt5_1t_train` has no phase `night`; its phases are warmup, main_run, finetune",
        ),
        ("p99_ms < 1", "p99_ms does not apply to `gpt5_1t_train`"),
        ("tokens_per_sec / 0 > 1", "tokens_per_sec / 0 –"),
    ] {
        let (passed, text) = outcome(&stage, condition);
        assert!(!passed && text.contains(why), "{text}");
    }
}

#[test]
fn an_action_that_fails_leaves_the_stage_as_it_was() {
    let library = library();
    let mut stage = Stage::of(&shipped_named("gpt5_1t_training"));
    let before = stage.clone();
    for action in [
        Action::SelectTarget("NO_SUCH".into()),
        Action::SelectWorkload("no_such".into()),
        Action::Set(Knob::Fabric, "string".into()),
        Action::Mark(vec!["GROQ_LPU_NODE".into(), "NO_SUCH".into()]),
    ] {
        assert!(matches!(stage.apply(&action, &library), Err(DemoError::Missing(_) | DemoError::Knob(_))));
        assert_eq!(stage, before);
    }
}

fn actions() -> impl Strategy<Value = Action> {
    let target = prop::sample::select(vec!["NVIDIA_H100_8x_NVLink", "GROQ_LPU_NODE", "SAMBANOVA_SNX_NODE", "NO_SUCH"]);
    let marks = prop::collection::vec(target.clone().prop_map(Arc::from), 1..3);
    let settings = [
        (Knob::Tp, "4"),
        (Knob::Fabric, "RoCE"),
        (Knob::Fabric, "NVLink"),
        (Knob::CudaGraphs, "off"),
        (Knob::CudaGraphs, "on"),
        (Knob::Virt, "sriov"),
        (Knob::Tp, "0"),
    ];
    prop_oneof![
        target.prop_map(|name| Action::SelectTarget(name.into())),
        prop::sample::select(vec!["gpt5_1t_train", "gpt5_1t_inference"]).prop_map(|n| Action::SelectWorkload(n.into())),
        prop::sample::select(settings.to_vec()).prop_map(|(knob, text)| Action::Set(knob, text.into())),
        Just(Action::Reset(Reset::All)),
        Just(Action::Reset(Reset::Knobs(vec![Knob::Tp, Knob::Fabric]))),
        marks.clone().prop_map(Action::Mark),
        marks.prop_map(Action::Unmark),
        Just(Action::SetBaseline),
        Just(Action::ClearBaseline),
        prop::sample::select(Action::screens()).prop_map(|(_, action)| action),
        prop::sample::select(Pane::NAMES.to_vec()).prop_map(|(_, pane)| Action::Focus(pane)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any tour, stepping forward and returning to a step by replaying from the start lead to the same state.
    #[test]
    fn replay_to_a_step_equals_the_state_reached_going_forward(steps in prop::collection::vec(prop::collection::vec(actions(), 0..5), 1..6)) {
        let library = library();
        let (demo, _) = read(SCRIPT);
        let mut demo = demo.unwrap();
        let template = demo.steps[1].clone();
        demo.steps = steps.into_iter().map(|actions| atlas_fabric::demo::Step { actions, ..template.clone() }).collect();
        let mut stage = Stage::of(&demo);
        let mut seen = Vec::new();
        for step in &demo.steps {
            for action in &step.actions {
                let _ = stage.apply(action, &library);
            }
            seen.push(stage.clone());
        }
        for (step, stage) in seen.iter().enumerate().rev() {
            prop_assert_eq!(&Stage::at_step(&demo, step, &library).0, stage);
        }
    }
}

#[test]
fn demo_layers_override_by_name_and_a_broken_file_falls_back() {
    let (config, working) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let put = |dir: &Path, file: &str, text: &str| {
        std::fs::create_dir_all(dir.join("demo")).unwrap();
        std::fs::write(dir.join("demo").join(file), text).unwrap();
    };
    put(config.path(), "a.yaml", SCRIPT);
    put(config.path(), "b.yml", &SCRIPT.replace("name: small", "name: gpt5_1t_training"));
    put(config.path(), ".hidden.yaml", "nonsense: [");
    put(working.path(), "a.yaml", &SCRIPT.replace("A small tour", "Mine"));
    put(working.path(), "c.yaml", "name: gpt5_1t_inference\ntitle: Broken\n");
    let (demos, problems) = Demos::load(Some(config.path()), Some(working.path()));
    let named = |demo: &&Arc<Demo>| demo.name.starts_with("gpt5") || &*demo.name == "small";
    let described: Vec<(&str, &str)> = demos.iter().filter(named).map(|demo| (&*demo.name, &*demo.title)).collect();
    assert_eq!(demos.len(), shipped().len() + 1);
    assert_eq!(
        described,
        [
            ("gpt5_1t_training", "A small tour"),
            ("gpt5_1t_inference", "Serving a trillion parameters through a day"),
            ("small", "Mine"),
        ]
    );
    assert_eq!(problems.len(), 1);
    assert!(
        problems
            .to_string()
            .contains("c.yaml:1:1: error: gpt5_1t_inference: 3 missing fields: targets, workload, steps")
    );
    // The TUI has the same tours, and the built-in ones if there are no others.
    let names = |demos: &[Arc<Demo>]| demos.iter().map(|demo| Arc::clone(&demo.name)).collect::<Vec<_>>();
    let (tours, again) = Tours::load(Some(config.path()), Some(working.path()));
    assert_eq!((names(&tours), again), (names(&demos), problems));
    let nowhere = config.path().join("nowhere");
    let (tours, problems) = Tours::load(Some(&nowhere), None);
    assert_eq!((names(&tours), problems.len()), (names(&shipped()), 0));
}

fn files(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_headless_run_writes_records_and_a_report_into_a_directory_of_its_own() {
    let out = tempfile::tempdir().unwrap();
    let root = out.path().join("deep/out");
    let now: Timestamp = "2026-03-04T05:06:07Z".parse().unwrap();
    let demo = shipped_named("gpt5_1t_inference");
    let mut done = 0;
    let report = run_headless(&demo, &library(), &root, now, &mut || done += 1).unwrap();
    assert!(report.passed());
    assert_eq!(done, 3);
    assert_eq!(report.dir, root.join("demo_20260304_050607_gpt5_1t_inference"));
    assert_eq!(
        files(&report.dir),
        [
            "GROQ_LPU_NODE_gpt5_1t_inference_parity_1337.json",
            "NVIDIA_H100_8x_NVLink_gpt5_1t_inference_parity_1337.json",
            "SAMBANOVA_SNX_NODE_gpt5_1t_inference_parity_1337.json",
            "last_run.json",
            "optimized_GROQ_LPU_NODE_gpt5_1t_inference_1337.json",
            "optimized_NVIDIA_H100_8x_NVLink_gpt5_1t_inference_1337.json",
            "optimized_SAMBANOVA_SNX_NODE_gpt5_1t_inference_1337.json",
            "report.md",
        ]
    );
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(report.dir.join(name)).unwrap()).unwrap()
    };
    let before = json("NVIDIA_H100_8x_NVLink_gpt5_1t_inference_parity_1337.json");
    assert_eq!((&before["label"], &before["knobs"]["fabric"]), (&"pre-opt".into(), &"RoCE".into()));
    assert!(before["record"]["schedule_breakdown"].is_array());
    let after = json("optimized_NVIDIA_H100_8x_NVLink_gpt5_1t_inference_1337.json");
    assert_eq!((&after["label"], &after["knobs"]["fabric"]), (&"post-opt".into(), &"IB".into()));

    let markdown = std::fs::read_to_string(report.dir.join("report.md")).unwrap();
    for part in [
        "# Serving a trillion parameters through a day\n",
        "| E2E p99 | 9.026 ms | **6.423 ms** | 12.58 ms |\n",
        "- throughput: `GROQ_LPU_NODE`, 2597 tok/s\n- cost: `GROQ_LPU_NODE`, $4.32\n- latency at p99: `GROQ_LPU_NODE`, 6.423 ms\n",
        "off_peak",
        "| NVIDIA_H100_8x_NVLink | fabric: RoCE → IB |",
        "| GROQ_LPU_NODE | none |",
        "`SAMBANOVA_SNX_NODE` does not meet the SLA",
        "### 11. The optimizer's pick\n\n- holds: `tokens_per_sec / baseline 1.030 within 0.01 % of 1.0303`\n",
        "overload cannot appear",
    ] {
        assert!(markdown.contains(part), "{part} is not in\n{markdown}");
    }
    // With the same second and name, another directory is created, and the first one is unchanged.
    let again = run_headless(&demo, &library(), &root, now, &mut || ()).unwrap();
    assert_eq!(again.dir, root.join("demo_20260304_050607_gpt5_1t_inference_2"));
    assert_eq!(std::fs::read_to_string(report.dir.join("report.md")).unwrap(), markdown);
}

#[test]
fn failed_expectations_and_missing_targets_fail_the_run() {
    let out = tempfile::tempdir().unwrap();
    let text = SCRIPT
        .replace("tokens_per_sec > 100", "tokens_per_sec > 1e9")
        .replace("GROQ_LPU_NODE]\nworkload", "NO_SUCH]\nworkload")
        .replace("name: small", "name: ../escape")
        .replace("- view: compare", "- set: { fabric: string }");
    let (demo, problems) = read(&text);
    let demo = demo.unwrap_or_else(|| panic!("{problems}"));
    let report = run_headless(&demo, &library(), out.path(), Timestamp::UNIX_EPOCH, &mut || ()).unwrap();
    assert!(!report.passed());
    assert_eq!(report.held(), (0, 1));
    assert_eq!(report.dir, out.path().join("demo_19700101_000000_.._escape"));
    let markdown = std::fs::read_to_string(report.dir.join("report.md")).unwrap();
    for part in [
        "0 of 1 hold; the tour FAILED",
        "- FAILED: `tokens_per_sec 2",
        "- FAILED fabric: found \"string\", expected one of IB, RoCE, Vendor, Fabric",
        "`NO_SUCH` could not run: no target `NO_SUCH`",
        "1 of 2 targets ran",
    ] {
        assert!(markdown.contains(part), "{part} is not in\n{markdown}");
    }
}

/// The real binary in a directory without our files.
fn atlas(dir: &Path) -> Command {
    let mut command = Command::cargo_bin("atlas").unwrap();
    command.current_dir(dir).env("ATLAS_CONFIG_DIR", dir.join("config")).env("LC_ALL", "C.UTF-8");
    command
}

#[test]
fn headless_demo_checks_all_tours_and_prints_every_step() {
    let dir = tempfile::tempdir().unwrap();
    let run = atlas(dir.path()).args(["demo", "--headless"]).assert().success();
    let described = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    let steps: usize = shipped().iter().map(|demo| demo.steps.len()).sum();
    assert_eq!(described.matches('✓').count(), steps);
    assert!(described.contains("✓  1  One node, one number  (5 of 5)\n"), "{described}");
    let made: Vec<PathBuf> = files(&dir.path().join("out")).into_iter().map(PathBuf::from).collect();
    assert_eq!(made.len(), shipped().len());

    let run = atlas(dir.path()).args(["demo", "--list", "--ascii"]).assert().success();
    let described = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(described.contains("gpt5_1t_training") && described.is_ascii());
}

#[test]
fn demo_command_fails_on_failed_steps_and_rejects_unknown_tour_names() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("demo")).unwrap();
    let text = SCRIPT.replace("tokens_per_sec > 100", "tokens_per_sec > 1e9");
    std::fs::write(dir.path().join("demo/small.yaml"), text).unwrap();
    let run = atlas(dir.path()).args(["demo", "small", "--headless", "--ascii", "--out", "o"]).assert().code(1);
    let described = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(described.contains("FAILED  1  One  (0 of 1)\n        tokens_per_sec 2428 tok/s > 1e9\n"), "{described}");
    assert!(described.contains("ok      2  Two  (0 of 0)\n"), "{described}");
    assert!(dir.path().join("o").is_dir());

    let run = atlas(dir.path()).args(["demo", "smal", "nothing", "--headless"]).assert().code(2);
    let described = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(described.contains("unknown tour `smal`") && described.contains("did you mean `small`?"), "{described}");
    assert!(described.contains("unknown tour `nothing`"), "{described}");
}

/// Tours take values from the screen: a name in braces that is no metric would be shown literally.
#[test]
fn tours_use_only_known_metrics_and_legacy_tours_come_last() {
    let (demos, problems) = Demos::load(None, None);
    assert!(problems.is_empty(), "{problems:?}");
    let live = demos.iter().flat_map(|demo| &demo.steps).filter(|step| step.say.contains('{')).count();
    assert!(live >= 8, "{live} steps show live figures");
    for step in demos.iter().flat_map(|demo| &demo.steps) {
        assert!(atlas_fabric::demo::narration::unknown(&step.say).is_empty(), "{}", step.say);
    }
    let sections: Vec<bool> = demos.iter().map(|demo| demo.section.is_some()).collect();
    assert!(sections.is_sorted() && sections.contains(&true), "{sections:?}");
    assert_eq!(&*demos[0].name, "llama70b_fits");
}
