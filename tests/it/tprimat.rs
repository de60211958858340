//! Metrics of the predecessor comparison tool: ours agree where it was correct.

use std::io::Read as _;

use atlas_ingest as ingest;
use atlas_ingest::{Config, Context, Origin, Warmup, economics, predecessor};
use serde_json::Value;

fn cases(kind: &str) -> Vec<Value> {
    let packed = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tprimat.json.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let of: Vec<Value> = all["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == kind).cloned().collect();
    assert!(!of.is_empty(), "{kind}");
    of
}

/// Compares values with those of a case.
fn agree(case: &Value, figures: &[(&str, f64)]) {
    for (name, got) in figures {
        let expected = case["expected"][*name].as_f64().unwrap();
        let error = (got - expected).abs() / expected.abs().max(1e-300);
        // Some percentages are differences of nearly equal numbers.
        assert!(error <= 1e-12 || (got - expected).abs() < 1e-11, "{} {name}: {got} for {expected}", case["id"]);
    }
}

fn number(case: &Value, name: &str) -> f64 {
    case["inputs"][name].as_f64().unwrap()
}

#[test]
fn utilization_cost_energy_memory_and_time_match_the_predecessor() {
    for case in cases("mfu") {
        let rate = (number(&case, "tokens_per_second"), number(&case, "num_gpus"));
        let got = economics::utilization(rate.0, rate.1, number(&case, "num_parameters"), number(&case, "peak_tflops"));
        agree(&case, &[("mfu_percent", got.mfu_percent), ("achieved_tflops", got.achieved_tflops)]);
    }
    for case in cases("peak_throughput") {
        if number(&case, "peak_tflops") == 0.0 {
            // For an unknown device, it states 0 %; ours states nothing.
            continue;
        }
        let rate = (number(&case, "tokens_per_second"), number(&case, "num_gpus"));
        let got = economics::utilization_from_flops(
            rate.0,
            rate.1,
            number(&case, "flops_per_token"),
            number(&case, "peak_tflops"),
        );
        let per_gpu = got.achieved_tflops / rate.1;
        agree(
            &case,
            &[
                ("hw_utilization_pct", got.mfu_percent),
                ("total_tflops", got.achieved_tflops),
                ("tflops_per_gpu", per_gpu),
            ],
        );
    }
    for case in cases("cost_metrics") {
        let got = economics::cost(number(&case, "tokens_per_second"), number(&case, "cost_per_hour"));
        agree(
            &case,
            &[("tokens_per_dollar", got.tokens_per_dollar), ("cost_per_trillion_tokens", got.cost_per_trillion_tokens)],
        );
    }
    for case in cases("power_metrics") {
        let watts = number(&case, "num_gpus") * number(&case, "tdp_watts");
        let price = number(&case, "electricity_cost_per_kwh");
        let got = economics::energy(number(&case, "tokens_per_second"), watts, price);
        agree(
            &case,
            &[
                ("tokens_per_watt_hour", got.tokens_per_watt_hour),
                ("kwh_per_trillion_tokens", got.kwh_per_trillion_tokens),
                ("energy_cost_per_trillion", got.energy_cost_per_trillion),
            ],
        );
    }
    for case in cases("memory_metrics") {
        let sizes = (number(&case, "batch_size"), number(&case, "seq_length"));
        let got =
            economics::memory(number(&case, "memory_used_gb"), number(&case, "total_memory_gb"), sizes.0, sizes.1);
        agree(
            &case,
            &[
                ("memory_utilization_percent", got.utilization_percent),
                ("memory_per_million_tokens_gb", got.gb_per_million_tokens),
                ("available_headroom_gb", got.headroom_gb),
                ("potential_batch_size", got.potential_batch),
            ],
        );
    }
    for case in cases("training_estimates") {
        let rate = number(&case, "tokens_per_second");
        // The predecessor's full budget for both its Llama models is 15e12 tokens.
        let (trillion, full) = (economics::hours(rate, 1e12), economics::hours(rate, 15e12));
        agree(
            &case,
            &[
                ("1T_hours", trillion),
                ("1T_days", trillion / 24.0),
                ("llama_8b_full_hours", full),
                ("llama_70b_full_days", full / 24.0),
            ],
        );
    }
}

#[test]
fn metrics_of_a_benchmark_file_match_the_predecessor() {
    for case in cases("enhanced_metrics_all") {
        let inputs = &case["inputs"];
        let data = &inputs["benchmark_data"];
        let device = &inputs["gpu_specs"][inputs["gpu_type"].as_str().unwrap()];
        // For a device without specifications, it uses those of another one; ours states nothing.
        let known = device.is_object();
        let rate = data["performance_metrics"]["tokens_per_second"].as_f64().unwrap();
        // It prefers the device count to the configuration.
        let gpus = data["gpu_info"]["device_count"].as_f64().or(data["training_config"]["num_gpus"].as_f64());
        let Some(gpus) = gpus else { continue };
        let parameters = &inputs["model_params"][inputs["model_name"].as_str().unwrap()];
        let parameters = parameters[inputs["model_size"].as_str().unwrap()].as_f64();
        let expected = &case["expected"];
        if let (Some(parameters), Some(peak)) = (parameters, expected["peak_tflops"].as_f64()) {
            let got = economics::utilization(rate, gpus, parameters, peak / gpus);
            agree(&case, &[("mfu_percent", got.mfu_percent), ("achieved_tflops", got.achieved_tflops)]);
        }
        if known && expected.get("tokens_per_dollar").is_some() {
            let got = economics::cost(rate, device["cost_per_hour_8gpu"].as_f64().unwrap());
            agree(&case, &[("tokens_per_dollar", got.tokens_per_dollar)]);
        }
        if known && expected.get("tokens_per_watt_hour").is_some() {
            let got = economics::energy(rate, gpus * device["tdp_watts"].as_f64().unwrap(), 0.1);
            agree(
                &case,
                &[
                    ("tokens_per_watt_hour", got.tokens_per_watt_hour),
                    ("energy_cost_per_trillion", got.energy_cost_per_trillion),
                ],
            );
        }
        if let (Some(used), Some(total), true) = (
            data["memory_metrics"]["avg_memory_allocated_gb"].as_f64(),
            data["gpu_info"]["total_memory_gb"].as_f64(),
            expected.get("memory_utilization_percent").is_some(),
        ) {
            let sizes = &data["training_config"];
            let batch = (sizes["global_batch_size"].as_f64().unwrap() / gpus).floor();
            let got = economics::memory(used, total, batch, sizes["sequence_length"].as_f64().unwrap());
            agree(
                &case,
                &[
                    ("memory_utilization_percent", got.utilization_percent),
                    ("memory_per_million_tokens_gb", got.gb_per_million_tokens),
                    ("potential_batch_size", got.potential_batch),
                ],
            );
        }
    }
}

/// The predecessor tool reads pairs only, drops times beyond a thousand seconds, and supports one format. Where it
/// reads a value, our benchmark JSON contains the same.
#[test]
fn benchmark_json_agrees_with_the_predecessor_tool() {
    let mut held = 0;
    for case in cases("extract_metrics") {
        let inputs = &case["inputs"];
        if case["expected"].is_null() || inputs["name"] == "out_of_range" {
            continue;
        }
        let mut settings = Config::default();
        for (theirs, ours) in [
            ("num_gpus", "num_gpus"),
            ("global_batch_size", "global_batch_size"),
            ("seq_length", "seq_len"),
            ("micro_batch_size", "micro_batch_size"),
            ("tensor_parallel_size", "tensor_parallel"),
            ("pipeline_parallel_size", "pipeline_parallel"),
        ] {
            settings.number(ours, inputs[theirs].as_f64(), Origin::User);
        }
        let context = Context { name: "run.log".to_owned(), warmup: Warmup::First, seed: 1, settings };
        let text = inputs["text"].as_str().unwrap();
        let ingested = ingest::ingest(text.as_bytes(), &context).unwrap();
        let got = &predecessor::benchmarks("run.log", &ingested.readings[0], &context)[0];
        for group in ["performance_metrics", "parallelism_config", "training_config"] {
            for (name, expected) in case["expected"][group].as_object().unwrap() {
                let Some(expected) = expected.as_f64() else { continue };
                // The number of cores is not in the log; the steps are those planned rather than those read.
                if matches!(name.as_str(), "throughput_per_gpu_core" | "max_steps") {
                    continue;
                }
                let found = got[group][name].as_f64().unwrap_or(f64::NAN);
                assert!(
                    (found - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                    "{} {group}.{name}: {found} for {expected}",
                    case["id"]
                );
                held += 1;
            }
        }
        assert_eq!(got["loss_values"], case["expected"]["loss_values"], "{}", case["id"]);
        assert_eq!(got["learning_rates"], case["expected"]["learning_rates"], "{}", case["id"]);
    }
    assert!(held >= 26, "{held}");
}
