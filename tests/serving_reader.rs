//! The reader of serving measurements: whatever a row says, it is predicted with a finite figure or refused with a
//! reason, never a panic; what sources leave out or spell their own way is read all the same.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use atlas_fabric::catalog::Catalog;
use atlas_fabric::engine::analytical::serving::{Layout, Load, speculative};
use atlas_fabric::engine::analytical::serving_constants::ServingConstants;
use atlas_fabric::validate::hardware::Hardware;
use atlas_fabric::validate::models::Models;
use atlas_fabric::validate::serving_rows::{Case, Metric};
use atlas_fabric::validate::{Kind, latency_rows, serving_fit, serving_rows, shipped, table};
use proptest::prelude::*;

static KNOWN: LazyLock<(Hardware, Models)> = LazyLock::new(|| {
    let catalog = Catalog::built_in();
    (Hardware::of(&catalog), Models::of(&catalog))
});

/// The shipped rows of a kind, as cells with their header.
fn cells(kind: Kind) -> (csv::StringRecord, Vec<csv::StringRecord>) {
    let text = shipped(kind).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    (header, reader.records().map(Result::unwrap).collect())
}

static INFERENCE: LazyLock<(csv::StringRecord, Vec<csv::StringRecord>)> = LazyLock::new(|| cells(Kind::Inference));
static LATENCY: LazyLock<(csv::StringRecord, Vec<csv::StringRecord>)> = LazyLock::new(|| cells(Kind::Latency));

fn row(header: &csv::StringRecord, cells: &[String]) -> table::Row {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).unwrap();
    writer.write_record(cells).unwrap();
    table::read(&String::from_utf8(writer.into_inner().unwrap()).unwrap()).unwrap().remove(0)
}

/// A throughput row of named cells, the others empty.
fn stated(cells: &[(&str, &str)]) -> Result<Case, &'static str> {
    let (header, _) = &*INFERENCE;
    let of = |name: &str| cells.iter().find(|(column, _)| *column == name).map_or("", |(_, cell)| cell).to_owned();
    let all: Vec<String> = header.iter().map(of).collect();
    serving_rows::case(&row(header, &all), &KNOWN.0, &KNOWN.1)
}

const PLAIN: [(&str, &str); 9] = [
    ("engine", "vLLM"),
    ("engine_version", "0.10.0"),
    ("accelerator", "nvidia-h100-sxm-80gb"),
    ("num_accelerators", "1"),
    ("model", "llama-3.1-8b"),
    ("input_len", "1000"),
    ("output_len", "200"),
    ("concurrency", "16"),
    ("output_tokens_per_sec_total", "1500"),
];

fn with(changes: &[(&'static str, &'static str)]) -> Case {
    let mut all: Vec<(&str, &str)> = changes.to_vec();
    all.extend(PLAIN.iter().filter(|(column, _)| changes.iter().all(|(changed, _)| changed != column)));
    stated(&all).unwrap()
}

fn rate(case: &Case) -> f64 {
    serving_fit::predicted(case, &ServingConstants::default())
}

fn nasty() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("0".into()),
        Just("-1".into()),
        Just("1e308".into()),
        Just("1e-308".into()),
        Just("NaN".into()),
        Just("inf".into()),
        Just("--".into()),
        Just("--tp".into()),
        Just("16 requests / 0 requests".into()),
        Just("exl2-0bpw".into()),
        Just("q4_k_m/fp8+bf16".into()),
        Just("vLLM neuron TensorRT-LLM".into()),
        Just("H100-SXM5 80GB".into()),
        Just("decode only; offline scenario; accept length NaN".into()),
        (0.0..1e7f64).prop_map(|x| x.to_string()),
        "\\PC{0,24}",
    ]
}

#[test]
fn a_rate_that_no_number_holds_is_none() {
    for (rate, devices) in [("1e-308", "1e-308"), ("1e308", "1e308")] {
        let changes = [
            ("output_tokens_per_sec_total", ""),
            ("total_tokens_per_sec", ""),
            ("tokens_per_sec_per_accel", rate),
            ("num_accelerators", devices),
        ];
        let all: Vec<_> =
            changes.into_iter().chain(PLAIN.iter().copied().filter(|p| changes.iter().all(|c| c.0 != p.0))).collect();
        assert!(stated(&all).is_err(), "{rate} on {devices}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cell_may_be_nonsense(at in 0usize..4000, changes in prop::collection::vec((0usize..60, nasty()), 1..6)) {
        for (table, latency) in [(&*INFERENCE, false), (&*LATENCY, true)] {
            let (header, rows) = table;
            let mut cells: Vec<String> = rows[at % rows.len()].iter().map(str::to_owned).collect();
            for (column, text) in &changes {
                let column = column % cells.len();
                cells[column] = text.clone();
            }
            let row = row(header, &cells);
            let read: Vec<Case> = if latency {
                latency_rows::cases(&row, &KNOWN.0, &KNOWN.1).map_or(Vec::new(), Vec::from)
            } else {
                serving_rows::case(&row, &KNOWN.0, &KNOWN.1).map_or(Vec::new(), |case| vec![case])
            };
            for case in read {
                prop_assert!(case.measured.is_finite() && case.measured > 0.0);
                let predicted = rate(&case);
                prop_assert!(predicted > 0.0 && !predicted.is_nan(), "{predicted} {:?}", case.input);
            }
        }
    }
}

#[test]
fn every_shipped_row_is_predicted_or_has_a_reason() {
    let (header, rows) = &*INFERENCE;
    let mut reasons = 0;
    for cells in rows {
        let cells: Vec<String> = cells.iter().map(str::to_owned).collect();
        match serving_rows::case(&row(header, &cells), &KNOWN.0, &KNOWN.1) {
            Ok(case) => assert!(rate(&case).is_finite() && rate(&case) > 0.0, "{}", case.id),
            Err(reason) => {
                assert!(!reason.is_empty());
                reasons += 1;
            }
        }
    }
    assert!(reasons < rows.len() / 6, "{reasons}");
}

#[test]
fn an_unknown_engine_or_model_size_is_still_predicted() {
    let known = rate(&with(&[]));
    for engine in ["", "SomeNewServer", "vLLM-Turbo (fork)", "lmdeploy", "TGI"] {
        let case = with(&[("engine", engine), ("engine_version", "")]);
        assert!(rate(&case) > 0.3 * known && rate(&case) < 3.0 * known, "{engine}");
    }
    let named = with(&[("model", "brand-new-9b-instruct")]);
    assert!(rate(&named) > 0.4 * known && rate(&named) < 2.0 * known);
    let mixture = with(&[("model", "brand-new-30b-a3b"), ("num_accelerators", "2"), ("tp", "2")]);
    assert!(mixture.input.arch.is_moe());
}

#[test]
fn spellings_of_devices_and_formats_mean_the_same() {
    let plain = rate(&with(&[]));
    for accelerator in ["NVIDIA-H100-SXM-80GB", "nvidia-h100-sxm5-80gb", "nvidia_h100_sxm", "h100-sxm"] {
        assert_eq!(rate(&with(&[("accelerator", accelerator)])), plain, "{accelerator}");
    }
    let eight = rate(&with(&[("precision_weights", "fp8")]));
    assert!(eight > plain);
    for format in ["FP8", "fp8_e4m3", "fp8/bf16"] {
        assert_eq!(rate(&with(&[("precision_weights", format)])), eight, "{format}");
    }
    let four = rate(&with(&[("precision_weights", "int4")]));
    for format in ["AWQ", "int4-awq", "gptq", "W4A16", "nf4"] {
        assert_eq!(rate(&with(&[("precision_weights", format)])), four, "{format}");
    }
}

#[test]
fn a_native_runtime_s_single_stream_under_total_is_its_generation() {
    let of = |engine: &'static str, concurrency: &'static str| {
        let lengths = [("input_len", "1024"), ("output_len", "1024"), ("concurrency", concurrency)];
        let stated = [("engine", engine), ("output_tokens_per_sec_total", ""), ("total_tokens_per_sec", "102")];
        with(&[lengths.as_slice(), stated.as_slice()].concat()).metric
    };
    assert_eq!(of("llama.cpp", "1"), Metric::OutputRate);
    assert_eq!((of("llama.cpp", "8"), of("vLLM", "1")), (Metric::TotalRate, Metric::TotalRate));
}

#[test]
fn the_age_of_a_stack_is_read_from_version_date_and_length() {
    let graphs = |changes: &[(&'static str, &'static str)]| with(changes).input.captured_graphs;
    assert!(!graphs(&[("engine_version", "0.6.3"), ("input_len", "14336")]));
    assert!(graphs(&[("engine_version", "0.6.3")]) && graphs(&[("input_len", "14336")]));
    let mixture = [("model", "qwen3-235b-a22b"), ("num_accelerators", "8"), ("tp", "8"), ("precision_weights", "fp8")];
    let of = |version| graphs(&[mixture.as_slice(), &[("engine_version", version)]].concat());
    assert!(!of("0.12.0") && of("0.19.0"));
    let tuned = |version| with(&[("accelerator", "amd-mi300x"), ("engine_version", version)]).input.tuned_products;
    assert!(!tuned("0.6.1") && tuned("0.8.0"));
    assert!(with(&[("engine_version", "0.7.3")]).input.expanded_drafts);
    assert!(!with(&[("engine_version", "0.9.0")]).input.expanded_drafts);
}

#[test]
fn command_lines_in_notes_are_heeded() {
    let with_flags = |notes| with(&[("notes", notes), ("concurrency", ""), ("request_rate", "inf")]);
    let plain = with_flags("all at once");
    let flagged = with_flags("all at once; engine flags: vllm serve m --max-num-seqs 8 --enforce-eager");
    assert_eq!(flagged.input.max_num_seqs, 8.0);
    assert!(!flagged.input.captured_graphs && plain.input.captured_graphs);
    assert!(rate(&flagged) < rate(&plain));
    let small = with_flags("vllm serve m --max_num_batched_tokens=512 --gpu-memory-utilization 0.5");
    assert_eq!((small.input.max_num_batched_tokens, small.input.memory_utilization), (512.0, 0.5));
}

#[test]
fn a_finite_run_is_slower_than_an_endless_one_and_its_length_is_found() {
    let case = with(&[("notes", "in/out are printed totals / requests), 80 requests; warm"), ("request_rate", "inf")]);
    assert!(matches!(case.input.load, Load::Closed { requests, .. } if requests == 80.0), "{:?}", case.input.load);
    let endless = with(&[("notes", "closed loop"), ("request_rate", "inf")]);
    assert!(rate(&case) < rate(&endless));
}

#[test]
fn a_stated_accept_length_is_what_a_step_yields() {
    let case = with(&[("speculative", "eagle(steps=3,draft=4)"), ("notes", "closed loop; accept length 2.46")]);
    let yielded = speculative::tokens_per_step(&case.input.speculation);
    assert!((yielded - 2.46).abs() < 1e-3 && case.input.speculation.tokens == 3.0, "{yielded}");
}

#[test]
fn a_format_left_out_is_the_widest_that_fits() {
    let bytes = |devices| {
        let measured = ("output_tokens_per_sec_total", "100");
        with(&[("model", "llama-3.1-70b"), ("num_accelerators", devices), measured]).input.formats.dense_bytes
    };
    assert_eq!(bytes("4"), 2.0);
    assert_eq!(bytes("1"), 1.0);
}

#[test]
fn groups_of_data_parallel_attention_repeat_over_the_devices() {
    let case = with(&[
        ("model", "deepseek-r1"),
        ("accelerator", "nvidia-gb200"),
        ("num_accelerators", "72"),
        ("tp", "8"),
        ("ep", "8"),
        ("precision_weights", "fp8"),
        ("notes", "attention DP; all at once"),
        ("concurrency", ""),
        ("request_rate", "inf"),
    ]);
    let layout = case.input.layout;
    assert_eq!((layout.tp, layout.attention_dp, layout.dp), (1.0, 8.0, 9.0));
}

/// The latency file has runs several times, under several of a planner's readings of how they were cut.
#[test]
fn the_same_measurement_is_read_as_the_same_deployment() {
    let text = shipped(Kind::Latency).unwrap();
    let mut seen: BTreeMap<(String, String, String), Vec<Layout>> = BTreeMap::new();
    for row in table::read(&text).unwrap() {
        if row.text("mode") == "disagg" {
            continue;
        }
        let measured = ["system", "silicon_ttft_ms", "silicon_tpot_ms"].map(|column| row.text(column).to_owned());
        let Ok([first, _]) = latency_rows::cases(&row, &KNOWN.0, &KNOWN.1) else { continue };
        seen.entry(measured.into()).or_default().push(first.input.layout);
    }
    let repeated: Vec<_> = seen.iter().filter(|(_, layouts)| layouts.len() > 1).collect();
    assert!(repeated.len() > 300, "{}", repeated.len());
    for (measured, layouts) in repeated {
        assert!(layouts.iter().all(|layout| *layout == layouts[0]), "{measured:?} {layouts:?}");
    }
}

#[test]
fn ranks_that_do_not_divide_the_heads_attend_data_parallel() {
    let rows = table::read(&shipped(Kind::Latency).unwrap()).unwrap();
    let layouts = rows.iter().filter(|row| row.text("tp_size") == "72").map(|row| {
        latency_rows::cases(row, &KNOWN.0, &KNOWN.1).map(|[first, _]| (first.input.layout, first.input.arch.heads))
    });
    let layouts: Vec<_> = layouts.collect::<Result<_, _>>().unwrap();
    assert_eq!(layouts.len(), 20);
    for (layout, heads) in layouts {
        assert!(heads % 72.0 != 0.0 && (layout.tp, layout.attention_dp, layout.ep) == (1.0, 72.0, 72.0), "{layout:?}");
    }
}
