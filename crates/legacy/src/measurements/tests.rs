//! Tests on whole tables: conversion does not panic, is idempotent, and accounts for every cell.

use std::collections::HashSet;

use proptest::prelude::*;

use super::schema;
use super::*;

const TRAINING: &str = "id,source,date,framework,accelerator,num_accelerators,accelerators_per_node,intra_node_link,\
inter_node_link,model,params_b,hidden_size,n_layers,seq_len,micro_batch,global_batch,tp,pp,sharding,recompute,precision,\
tokens_per_sec_per_accel,mfu,notes
a,s,2024-04-22,llm-foundry (PyTorch FSDP),nvidia-h100-sxm-80gb,512,8,NVLink4,,mpt-70b,64.9,8192,80,2048,8,4096,1,1,zero3,full,bf16,1007,,\"MP mode DEFAULT; FSDP FULL_SHARD\"
b,s,2026-03-01,Megatron-Bridge 26.02,NVIDIA GB200,64,4,NVLink5 NVL72,InfiniBand 8x50GB/s per node,deepseek-v3,,,,4096,1,\"2,048\",,,,,mxfp8,\"9,000 tok/s\",,\"TP1 PP4 EP16; HybridEP\"
c,s,,Trainer,abacus,8 GPUs,8,,,unknown,,,,,,,,,,,,,43 %,
";

const INFERENCE: &str = "id,source,date,engine,engine_version,accelerator,num_accelerators,model,tp,precision_weights,\
input_len,output_len,concurrency,request_rate,output_tokens_per_sec_total,speculative,notes
a,s,2026-01,SGLang,0.5.6,nvidia-b200,8,deepseek-ai/DeepSeek-R1,8,fp8,1024,1000,64,inf,5000,EAGLE,--enable-dp-attention
b,s,2026-01,vLLM,,nvidia-a100-80gb,1,meta-llama/Llama-3.1-8B-Instruct,1,W4A16,1k,1k,,5,300,none,ShareGPT
c,s,,?,,,,,,?,?,?,?,?,?,?,?
";

const LATENCY: &str = "source,id,silicon_data_source,backend,backend_version,model_path,system,precision,mode,isl,osl,\
tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,silicon_ttft_ms,silicon_tpot_ms
s,x,source_file=2025-10-12.csv; silicon_concurrency=16,trtllm,1.0.0rc3,Qwen/Qwen3-32B,h100_sxm,fp8,agg,1024,1024,2,1,1,2,1,97.2311,33.44211
s,y,,,,,,,disagg,,,,,,,,,
";

fn typed(text: &str) -> (String, Report) {
    convert(text, None, FreeText::Read).unwrap()
}

#[test]
fn ignored_prose_is_copied_without_parsing() {
    for text in [TRAINING, INFERENCE, LATENCY] {
        assert!(is_untyped(text));
        let (read, report) = convert(text, None, FreeText::Ignore).unwrap();
        assert!(!is_untyped(&read) && !report.typed_before);
        // Different free text does not change the other cells.
        let other = text
            .replace("FSDP FULL_SHARD", "tp 8")
            .replace("--enable-dp-attention", "eager")
            .replace("2026-01", "2020-01");
        let strip = |text: &str| {
            let mut rows = rows(&convert(text, None, FreeText::Ignore).unwrap().0);
            rows.iter_mut().for_each(|row| row.retain(|column, _| !FREE_TEXT_COLUMNS.contains(&column.as_str())));
            rows
        };
        assert_eq!(strip(text), strip(&other));
        for (row, old) in rows(&read).iter().zip(table::read(text).unwrap().1) {
            assert_eq!(row["notes"], old.text("notes"));
        }
    }
    assert!(!is_untyped("id,software,assumed,inferred,converted\n") && !is_untyped("") && !is_untyped("gpu,tp\n1,2\n"));
}

/// Returns the rows of a table, as cells by column name.
fn rows(text: &str) -> Vec<std::collections::HashMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().unwrap().clone();
    let cells =
        |record: csv::StringRecord| head.iter().map(str::to_owned).zip(record.iter().map(str::to_owned)).collect();
    reader.records().map(|record| cells(record.unwrap())).collect()
}

/// Asserts that every non-blank cell has its column's type, and that it is either in the old row or has a reason.
fn accounted(kind: TableKind, old: &str, new: &str) {
    let (_, before) = table::read(old).unwrap();
    let after = rows(new);
    assert_eq!(before.len(), after.len());
    for (old, new) in before.iter().zip(&after) {
        let stated: HashSet<&str> = old.cells().map(|(_, cell)| cell).collect();
        let listed = |column: &str, name: &str| {
            new[column].split("; ").any(|entry| entry == name || entry.starts_with(&format!("{name}: ")))
        };
        for column in schema::columns(kind) {
            let cell = new[column.name].as_str();
            if cell.is_empty() {
                continue;
            }
            assert!(column.kind.accepts(cell), "{} {}: {cell}", new["id"], column.name);
            if !matches!(column.name, "excluded" | "inferred" | "assumed" | "converted") {
                let reason = ["converted", "assumed", "inferred"].iter().any(|record| listed(record, column.name));
                assert!(stated.contains(cell) || reason, "{} {}: {cell} from nowhere", new["id"], column.name);
            }
        }
        for name in new["inferred"].split("; ").filter(|name| !name.is_empty()) {
            assert!(!new[name].is_empty(), "{}: {name} inferred but blank", new["id"]);
        }
    }
}

#[test]
fn table_kind_is_detected_from_the_header() {
    let kind = |text: &str| TableKind::of(&table::read(text).unwrap().0);
    assert_eq!(kind(TRAINING), Some(TableKind::Training));
    assert_eq!(kind(INFERENCE), Some(TableKind::Inference));
    assert_eq!(kind(LATENCY), Some(TableKind::Latency));
    assert_eq!(kind("a,b\n1,2\n"), None);
    assert!(matches!(convert("a,b\n1,2\n", None, FreeText::Read), Err(ConvertError::Columns(_))));
}

#[test]
fn every_cell_is_typed_and_accounted_for() {
    for (kind, text) in
        [(TableKind::Training, TRAINING), (TableKind::Inference, INFERENCE), (TableKind::Latency, LATENCY)]
    {
        accounted(kind, text, &typed(text).0);
    }
}

#[test]
fn conversion_is_idempotent() {
    for text in [TRAINING, INFERENCE, LATENCY] {
        let (once, report) = typed(text);
        assert!(!report.typed_before);
        let (twice, report) = typed(&once);
        assert!(report.typed_before);
        assert_eq!(once, twice);
    }
}

#[test]
fn byte_order_marks_line_ends_and_other_column_names_do_not_matter() {
    let (plain, _) = typed(TRAINING);
    let (dos, _) = typed(&format!("\u{feff}{}", TRAINING.replace('\n', "\r\n")));
    assert_eq!(plain, dos);
    let renamed = TRAINING.replacen("num_accelerators", "num_gpus", 1).replacen("seq_len", "sequence_length", 1);
    assert_eq!(rows(&typed(&renamed).0)[0]["num_accelerators"], "512");
    assert_eq!(rows(&typed(&renamed).0)[0]["seq_len"], "2048");
}

#[test]
fn units_are_converted_and_unknown_names_are_reported() {
    let (new, report) = typed(TRAINING);
    let new = rows(&new);
    assert_eq!((new[1]["global_batch"].as_str(), new[1]["tokens_per_sec_per_accel"].as_str()), ("2048", "9000"));
    assert_eq!((new[2]["num_accelerators"].as_str(), new[2]["mfu"].as_str()), ("8", "0.43"));
    let reported = |column: &str| report.problems.iter().any(|(id, problem)| id == "c" && problem.column == column);
    assert!(reported("accelerator") && reported("model"));
    let text = report.to_string();
    assert!(text.contains("c: accelerator: found \"abacus\", expected an accelerator of the catalog"), "{text}");
}

#[test]
fn a_typed_table_is_copied_unchanged() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workload/measurements");
    for name in ["training", "inference", "serving_latency"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.csv"))).unwrap();
        assert!(!is_untyped(&text));
        assert_eq!(convert(&text, None, FreeText::Read).unwrap().0, text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_cell_makes_conversion_panic(cells in prop::collection::vec(".{0,24}|[0-9]{1,20}|-?[0-9.]{1,6}(k|%| GB)?", 1..12)) {
        for table in [TRAINING, INFERENCE, LATENCY] {
            let head = table.lines().next().unwrap();
            let columns = head.split(',').count();
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record((0..columns).map(|at| cells[at % cells.len()].as_str())).unwrap();
            let row = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let (new, _) = convert(&format!("{head}\n{row}"), None, FreeText::Read).unwrap();
            prop_assert_eq!(rows(&new).len(), 1);
        }
    }

    #[test]
    fn no_notes_make_conversion_panic(notes in "[ -~]{0,80}|(--[a-z-]{1,12}[= ][0-9a-z]{0,6} ?){0,4}|(TP|PP|EP|vpp|mbs) ?=?[0-9]{1,4}") {
        for table in [TRAINING, INFERENCE] {
            let head = table.lines().next().unwrap();
            let body = table.lines().nth(1).unwrap();
            let kept = body.rsplit_once(',').map_or("", |(kept, _)| kept);
            let quoted = notes.replace('"', "\"\"");
            let (new, _) = convert(&format!("{head}\n{kept},\"{quoted}\"\n"), None, FreeText::Read).unwrap();
            prop_assert_eq!(rows(&new).len(), 1);
        }
    }
}
