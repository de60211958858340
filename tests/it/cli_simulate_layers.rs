//! `atlas simulate` and `atlas scale`, through the real binary, for a model that is configured layer by layer.

use std::fmt::Write as _;
use std::path::Path;

use crate::common::program::{atlas, stderr, stdout};
use atlas_catalog::convolution::Convolutional;
use serde_json::Value;

/// Factors for quantities of every layer.
#[derive(Clone, Copy)]
struct Factors {
    flops: f64,
    parameters: f64,
    activations: f64,
}

const ONE: Factors = Factors { flops: 1.0, parameters: 1.0, activations: 1.0 };

/// All convolutions of ResNet-50 with their norm and activation, and the classifier; elements have `width` bytes.
fn resnet_50(width: f64, by: Factors) -> String {
    let network = Convolutional::resnet_50();
    let mut text = String::new();
    let mut layer = |name: &str, multiply_adds: f64, parameters: f64, kept: f64| {
        let flops = 2.0 * multiply_adds * by.flops;
        let (parameters, kept) = (parameters * by.parameters, kept * width * 1e-6 * by.activations);
        writeln!(
            text,
            "    - {{name: {name}, forward_flops: {flops}, num_parameters: {parameters}, activation_memory_mb: {kept}}}"
        )
        .unwrap();
    };
    for (number, at) in network.convolutions().iter().enumerate() {
        let outputs = at.channels_out * at.side * at.side;
        layer(&format!("conv{number}"), at.multiply_adds(), at.parameters(), 2.0 * outputs);
    }
    let products = network.features() * network.classes;
    layer("fc", products, products + network.classes, 2.0 * network.classes);
    text
}

fn config(layers: &str, mixed: bool) -> String {
    let model = if layers.is_empty() { "  model_type: resnet\n".to_owned() } else { format!("  layers:\n{layers}") };
    format!(
        "name: mine\nmodel:\n{model}training: {{num_iterations: 3, batch_size_per_gpu: 64, mixed_precision: {mixed}}}\n"
    )
}

fn json(dir: &Path, command: &str, text: &str) -> Value {
    std::fs::write(dir.join("mine.yaml"), text).unwrap();
    let found = atlas(dir, &[command, "--config", "mine.yaml", "--format", "json"]).assert().code(0);
    serde_json::from_str(&stdout(&found)).unwrap()
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

fn refused(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.yaml"), text).unwrap();
    stderr(&atlas(dir.path(), &["simulate", "--config", "mine.yaml"]).assert().failure())
}

const STEP: &str = "/summary/avg_iteration_time";
const COMPUTE: &str = "/summary/avg_compute_time";
const PARAMETERS: &str = "/model_info/total_parameters";
const FLOPS: &str = "/model_info/flops_per_iteration";
const ACTIVATIONS: &str = "/resources/memory_gb/activations";
const GRADIENTS: &str = "/resources/memory_gb/gradients";

#[test]
fn resnet_50_listed_by_layer_matches_the_catalog_resnet_50() {
    let dir = tempfile::tempdir().unwrap();
    for (mixed, width) in [(false, 4.0), (true, 2.0)] {
        let listed = json(dir.path(), "simulate", &config(&resnet_50(width, ONE), mixed));
        let known = json(dir.path(), "simulate", &config("", mixed));
        for path in [STEP, COMPUTE, PARAMETERS, FLOPS, ACTIVATIONS, GRADIENTS] {
            let ratio = number(&listed, path) / number(&known, path);
            assert!((ratio - 1.0).abs() < 0.01, "{path}, mixed precision {mixed}: {ratio}");
        }
        assert_eq!(listed["bottlenecks"].as_array().unwrap().len(), known["bottlenecks"].as_array().unwrap().len());
    }
}

#[test]
fn layer_sums_scale_time_traffic_and_memory() {
    let dir = tempfile::tempdir().unwrap();
    let run = |by| json(dir.path(), "simulate", &config(&resnet_50(4.0, by), false));
    let base = run(ONE);
    let over = |found: &Value, path| number(found, path) / number(&base, path);

    let flops = run(Factors { flops: 2.0, ..ONE });
    assert!((over(&flops, FLOPS) - 2.0).abs() < 1e-6);
    assert!(over(&flops, COMPUTE) > 1.1 && over(&flops, STEP) > 1.1, "{}", over(&flops, STEP));
    assert_eq!((over(&flops, GRADIENTS), over(&flops, ACTIVATIONS)), (1.0, 1.0));

    let parameters = run(Factors { parameters: 20.0, ..ONE });
    assert!((over(&parameters, GRADIENTS) - 20.0).abs() < 1e-6 && (over(&parameters, PARAMETERS) - 20.0).abs() < 1e-6);
    assert!(over(&parameters, STEP) > 1.0, "{}", over(&parameters, STEP));
    let traffic = "/summary/avg_communication_time";
    assert!(number(&parameters, traffic) > number(&base, traffic));
    assert!((over(&parameters, FLOPS) - 1.0).abs() < 1e-6);

    let activations = run(Factors { activations: 2.0, ..ONE });
    assert!((over(&activations, ACTIVATIONS) - 2.0).abs() < 1e-6);
    assert!(over(&activations, STEP) > 1.1, "{}", over(&activations, STEP));
    assert_eq!(over(&activations, GRADIENTS), 1.0);
}

#[test]
fn a_shorter_backward_pass_takes_less_time_and_fewer_flops() {
    let dir = tempfile::tempdir().unwrap();
    let layer = "    - {forward_flops: 4e9, num_parameters: 1e7, activation_memory_mb: 10";
    let usual = json(dir.path(), "simulate", &config(&format!("{layer}}}\n"), true));
    let twice = json(dir.path(), "simulate", &config(&format!("{layer}, backward_flops: 8e9}}\n"), true));
    let once = json(dir.path(), "simulate", &config(&format!("{layer}, backward_flops: 4e9}}\n"), true));
    assert_eq!(usual, twice);
    assert!((number(&once, FLOPS) / number(&usual, FLOPS) - 2.0 / 3.0).abs() < 1e-9);
    assert!(number(&once, STEP) < number(&usual, STEP));
}

#[test]
fn layer_list_scales_like_the_catalog_model_and_its_config_reproduces_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = config(&resnet_50(4.0, ONE), false);
    let first = json(dir.path(), "simulate", &text);
    let out = ["simulate", "--config", "mine.yaml", "--out", "res"];
    atlas(dir.path(), &out).assert().code(0);
    let written = std::fs::read_to_string(dir.path().join("res/mine_config.yaml")).unwrap();
    assert_eq!(first, json(dir.path(), "simulate", &written));
    std::fs::write(dir.path().join("mine.yaml"), text).unwrap();
    let nodes = ["scale", "--config", "mine.yaml", "--nodes", "1,2", "--format", "json"];
    let found: Value = serde_json::from_str(&stdout(&atlas(dir.path(), &nodes).assert().code(0))).unwrap();
    let known = config("", false);
    std::fs::write(dir.path().join("mine.yaml"), known).unwrap();
    let known: Value = serde_json::from_str(&stdout(&atlas(dir.path(), &nodes).assert().code(0))).unwrap();
    let close = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 0.02 * b.abs().max(1e-9),
        _ => a == b,
    };
    let points = |value: &Value| value["curves"][0]["points"].as_array().unwrap_or_else(|| panic!("{value}")).clone();
    assert_eq!(points(&found).len(), 2);
    for (ours, theirs) in points(&found).iter().zip(&points(&known)) {
        for (key, value) in theirs.as_object().unwrap().iter().filter(|(_, value)| value.is_number()) {
            assert!(close(&ours[key], value), "{key}: {} against {value}", ours[key]);
        }
        assert!(close(&ours["cost"]["usd_per_iteration"], &theirs["cost"]["usd_per_iteration"]), "{ours} {theirs}");
    }
}

#[test]
fn invalid_layers_are_rejected_with_line_and_column() {
    let layer = "{forward_flops: 1e9, num_parameters: 1000, activation_memory_mb: 1}";
    let of = |rest: &str| format!("name: mine\nmodel:\n{rest}");
    for (text, place, says) in [
        (
            "  layers: []\n".to_owned(),
            "mine.yaml:3:11: error: model.layers:",
            "found an empty list, expected a list of 1 to",
        ),
        ("  layers: 5\n".to_owned(), "mine.yaml:3:11: error: model.layers:", "expected a list of 1 to"),
        (
            format!("  layers:\n    - {layer}\n    - conv\n"),
            "mine.yaml:5:7: error: model.layers[1]:",
            "expected a mapping",
        ),
        (
            format!("  layers:\n    - {}\n", layer.replace("1e9", "-1e9")),
            "mine.yaml:4:23: error: model.layers[0].forward_flops:",
            "found -1",
        ),
        (
            format!("  layers:\n    - {}\n", layer.replace("1e9", ".inf")),
            "mine.yaml:4:23: error: model.layers[0].forward_flops:",
            "expected",
        ),
        (
            format!("  layers:\n    - {}\n", layer.replace("1000", ".nan")),
            "mine.yaml:4:44: error: model.layers[0].num_parameters:",
            "expected",
        ),
        (
            "  layers:\n    - {name: a, forward_flops: 1e9}\n".to_owned(),
            "mine.yaml:4:7: error: model.layers[0]:",
            "2 missing fields: num_parameters, activation_memory_mb",
        ),
        (
            format!("  layers:\n    - {}\n", layer.replace("1e9", "0")),
            "mine.yaml:4:5: error: model.layers:",
            "forward_flops that sum to 0, expected at least 1",
        ),
        (
            format!("  num_layers: 7\n  layers:\n    - {layer}\n"),
            "mine.yaml:3:15: error: model.num_layers:",
            "found 7, but layers lists 1",
        ),
        (
            format!("  model_type: transformer\n  layers:\n    - {layer}\n"),
            "mine.yaml:3:15: error: model.model_type:",
            "found \"transformer\", but layers describe the model",
        ),
        ("  model_type: custom\n".to_owned(), "mine.yaml:3:15: error: model.model_type:", "no layers are listed"),
    ] {
        let found = refused(&of(&text));
        assert!(found.contains(place) && found.contains(says), "{text}{found}");
    }
}
