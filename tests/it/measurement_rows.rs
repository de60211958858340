//! Rows of measurement tables: whatever a cell says, a row is predicted with a finite figure or refused with a reason.

use std::sync::LazyLock;

use atlas_evidence::validate::{Kind, judge, scenarios, shipped};
use proptest::prelude::*;

static TABLES: LazyLock<Vec<(Kind, csv::StringRecord, Vec<csv::StringRecord>)>> = LazyLock::new(|| {
    Kind::ALL
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
    fn any_cell_gives_a_finite_figure_or_a_reason(
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
fn columns_of_the_old_format_are_understood_without_their_notes() {
    let text = "id,source,date,engine,engine_version,accelerator,num_accelerators,model,tp,precision_weights,input_len,\
                output_len,concurrency,output_tokens_per_sec_total,notes\n\
                a,s,,vLLM,0.10.0,nvidia-h100-sxm-80gb,8,llama-3.1-70b,8,fp8,1024,1024,64,4000,whatever\n";
    let found = judge(Kind::Inference, text).unwrap();
    assert!(found[0].predicted.is_some(), "{:?}", found[0]);
    let (lines, _) = scenarios(Kind::Inference, text).unwrap();
    assert_eq!(lines[0]["workload"]["software"], "vLLM@0.10.0");
    assert_eq!(lines[0]["workload"]["precision"]["weights"], "fp8");
}

#[test]
fn a_row_that_states_too_little_says_what_is_missing() {
    let text = "id,accelerator,num_accelerators,model,seq_len,tokens_per_sec_per_accel\n\
                a,h100-sxm,8,llama-3.1-8b,,1000\nb,no-such-device,8,llama-3.1-8b,4096,1000\nc,h100-sxm,8,no-such-model,4096,1000\n";
    let reasons: Vec<String> =
        judge(Kind::Training, text).unwrap().into_iter().map(|verdict| verdict.reason.unwrap()).collect();
    assert!(reasons[0].contains("seq_len"), "{reasons:?}");
    assert!(reasons[1].contains("no-such-device"), "{reasons:?}");
    assert!(reasons[2].contains("no-such-model"), "{reasons:?}");
}
