//! Rows of measurement tables: whatever the cells contain, a row is predicted with a finite value or rejected with a
//! reason.

use std::sync::LazyLock;

use atlas_evidence::validate::{MeasurementKind, judge, scenarios, shipped};
use proptest::prelude::*;

static TABLES: LazyLock<Vec<(MeasurementKind, csv::StringRecord, Vec<csv::StringRecord>)>> = LazyLock::new(|| {
    MeasurementKind::ALL
        .into_iter()
        .map(|kind| {
            let text = shipped(kind).unwrap();
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let header = reader.headers().unwrap().clone();
            (kind, header, reader.records().map(Result::unwrap).collect())
        })
        .collect()
});

fn table(header: &csv::StringRecord, cells: &[String]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).unwrap();
    writer.write_record(cells).unwrap();
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

fn cell() -> impl Strategy<Value = String> {
    let nasty =
        ["", "0", "-1", "inf", "NaN", "1e308", "1e-308", "0.5", "true", "fp8", "vllm@999", "\u{1F600}", "--", "x;y"];
    prop_oneof![prop::sample::select(nasty.to_vec()).prop_map(str::to_owned), "[0-9]{1,7}", "\\PC{0,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_cells_give_a_finite_prediction_or_a_reason(
        kind in 0_usize..3,
        row in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), cell()), 0..5),
    ) {
        let (kind, header, rows) = &TABLES[kind];
        let mut cells: Vec<String> = row.get(rows).iter().map(str::to_owned).collect();
        for (at, text) in changes {
            let at = at.index(cells.len());
            cells[at] = text;
        }
        let text = table(header, &cells);
        for verdict in judge(*kind, &text).unwrap() {
            match verdict.predicted {
                Some(figure) => {
                    prop_assert!(figure.is_finite() && figure > 0.0, "{verdict:?}");
                    prop_assert!(verdict.lower.unwrap() <= figure && figure <= verdict.upper.unwrap(), "{verdict:?}");
                }
                None => prop_assert!(!verdict.reason.unwrap_or_default().is_empty()),
            }
        }
    }
}

#[test]
fn columns_of_the_old_table_format_are_parsed() {
    let text = "id,source,date,engine,engine_version,accelerator,num_accelerators,model,tp,precision_weights,input_len,\
                output_len,concurrency,output_tokens_per_sec_total,notes\n\
                a,s,,vLLM,0.10.0,nvidia-h100-sxm-80gb,8,llama-3.1-70b,8,fp8,1024,1024,64,4000,whatever\n";
    let found = judge(MeasurementKind::Inference, text).unwrap();
    assert!(found[0].predicted.is_some(), "{:?}", found[0]);
    let (lines, _) = scenarios(MeasurementKind::Inference, text).unwrap();
    assert_eq!(lines[0]["workload"]["software"], "vLLM@0.10.0");
    assert_eq!(lines[0]["workload"]["precision"]["weights"], "fp8");
}

#[test]
fn incomplete_rows_state_the_missing_value() {
    let text = "id,accelerator,num_accelerators,model,seq_len,tokens_per_sec_per_accel\n\
                a,h100-sxm,8,llama-3.1-8b,,1000\nb,no-such-device,8,llama-3.1-8b,4096,1000\nc,h100-sxm,8,no-such-model,4096,1000\n";
    let reasons: Vec<String> =
        judge(MeasurementKind::Training, text).unwrap().into_iter().map(|verdict| verdict.reason.unwrap()).collect();
    assert!(reasons[0].contains("seq_len"), "{reasons:?}");
    assert!(reasons[1].contains("no-such-device"), "{reasons:?}");
    assert!(reasons[2].contains("no-such-model"), "{reasons:?}");
}

#[test]
fn every_complete_shipped_row_is_predicted() {
    // Reasons that a document cannot cause: a model or an accelerator without an entry, and rows without their size.
    let unstated = ["is not in the catalog", "num_accelerators is not stated"];
    for kind in MeasurementKind::ALL {
        let text = shipped(kind).unwrap();
        for verdict in judge(kind, &text).unwrap() {
            let reason = verdict.reason.unwrap_or_default();
            let known = reason.starts_with("excluded") || unstated.iter().any(|part| reason.contains(part));
            let figure = verdict.measured.is_some() && !known;
            assert!(!figure || verdict.predicted.is_some(), "{}: {reason}", verdict.id);
        }
    }
}

#[test]
fn fractional_concurrency_is_rounded_to_an_integer() {
    let row = |concurrency: &str| {
        let text = format!(
            "id,accelerator,num_accelerators,model,software,tp,load,concurrency,input_len,output_len,output_tokens_per_sec\n\
             a,h100-sxm,1,llama-3.1-8b,vllm@0.15.0,1,closed,{concurrency},512,512,1000\n"
        );
        judge(MeasurementKind::Inference, &text).unwrap().remove(0).predicted.unwrap()
    };
    assert_eq!(row("7.9973"), row("8"));
    assert!(row("0.2") > 0.0);
}

#[test]
fn rows_without_node_size_use_the_node_size_of_the_accelerator() {
    let nodes = |row: &str| {
        let text = format!(
            "id,accelerator,num_accelerators,model,software,tp,load,concurrency,input_len,output_len,prefill_workers,\
             prefill_tp,decode_workers,decode_tp,output_tokens_per_sec\n{row}\n"
        );
        let (lines, _) = scenarios(MeasurementKind::Inference, &text).unwrap();
        let target = &lines[0]["target"];
        (target["num_nodes"].as_u64().unwrap(), target["accelerators_per_node"].as_u64().unwrap())
    };
    // Pools that fill one node and half of another: with six accelerators per node, neither pool straddles nodes.
    assert_eq!(nodes("a,nvidia-b200,12,llama-3.1-70b,vllm,,closed,64,1024,1024,1,4,1,8,1000"), (2, 8));
    // The links of this accelerator connect twelve.
    assert_eq!(nodes("a,aws-inf2,12,llama-3.1-8b,vllm,24,closed,8,1024,1024,,,,,1000"), (1, 12));
    // Replicas use all accelerators, so the nodes are divided among them.
    assert_eq!(nodes("a,nvidia-b200,12,llama-3.1-8b,vllm,1,closed,8,1024,1024,,,,,1000"), (2, 6));
}
