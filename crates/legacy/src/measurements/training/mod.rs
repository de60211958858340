//! Conversion of training rows.

mod choices;
mod figures;
mod network;
mod parallel;

use atlas_catalog::Catalog;

use super::architecture::{self, ModelUse};
use super::record::Record;
use super::software::{self, SoftwareUse};
use super::table::Row;
use super::{TableKind, devices, iso_date};

/// Converts one row.
pub(super) fn convert(row: &Row, catalog: &Catalog) -> Record {
    let mut record = Record::new(TableKind::Training);
    for column in ["id", "source", "source_path", "date", "notes"] {
        record.copy_text(column, row.text(column));
    }
    let notes = row.text("notes");
    let device = devices::fill(&mut record, catalog, row.text("accelerator"));
    let date = iso_date(row.text("date"));
    let family =
        software::fill(&mut record, SoftwareUse::Training, row.text("framework"), row.text("engine_version"), &date);
    let family = family.as_str();
    if notes.contains("MLPerf") {
        record.convert("harness", "mlperf", "notes \"MLPerf\"");
    }
    let shape = architecture::fill(&mut record, row, catalog, row.text("model"), ModelUse::Training);
    choices::precision(&mut record, row, device.as_deref());
    choices::fill(&mut record, row, family);
    parallel::fill(&mut record, row, device.as_deref(), shape.as_ref(), family);
    network::fill(&mut record, row, device.as_deref());
    figures::fill(&mut record, row, family, &date);
    if notes.contains("INCONSISTENT") {
        record.exclude("the metrics of the source contradict each other");
    }
    if notes.contains("power-limited") {
        record.exclude("the power of the accelerators is limited to a value that the source does not state");
    }
    record
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::super::table;
    use super::*;

    /// Converts a single row, given as CSV with its header.
    fn converted(head: &str, line: &str) -> Record {
        let (_, rows) = table::read(&format!("{head}\n{line}\n")).unwrap();
        convert(&rows[0], &Catalog::built_in())
    }

    const HEAD: &str = "id,date,framework,accelerator,accelerators_per_node,num_accelerators,intra_node_link,\
        inter_node_link,model,seq_len,micro_batch,global_batch,tp,pp,sharding,recompute,precision,\
        tokens_per_sec_per_accel,notes";

    #[test]
    fn flags_in_notes_become_cells() {
        let r = converted(
            HEAD,
            "a,2026-03-01,Megatron-Bridge 26.02,nvidia-gb200,4,64,NVLink5 NVL72,,deepseek-v3,4096,1,2048,,,,,mxfp8,9000,\
             \"TP1 PP4 EP16, full-iteration CUDA graph; HybridEP; token-dropless\"",
        );
        assert_eq!(r.text("tp"), "1");
        assert_eq!(r.text("pp"), "4");
        assert_eq!(r.text("ep"), "16");
        assert_eq!(r.text("cuda_graphs"), "full-iteration");
        assert_eq!(r.text("moe_dispatcher"), "hybridep");
        assert_eq!(r.text("moe_capacity"), "dropless");
        assert_eq!(r.text("scale_up_domain"), "72");
        assert!(r.problems.is_empty(), "{:?}", r.problems);
    }

    #[test]
    fn prediction_layers_are_stated_or_those_of_the_recipe() {
        let layers = |software: &str, model: &str, notes: &str| {
            let row =
                format!("a,2026-03-01,{software},nvidia-gb200,4,64,,,{model},4096,1,2048,4,1,,,mxfp8,9000,\"{notes}\"");
            converted(HEAD, &row).text("mtp_layers").to_owned()
        };
        assert_eq!(layers("Megatron-Bridge 26.02", "deepseek-v3", ""), "1");
        assert_eq!(layers("Megatron-Bridge 25.11", "deepseek-v3", "w/o MTP"), "");
        assert_eq!(layers("Megatron-Core", "deepseek-v3", "30 steps, MTP layer on"), "1");
        assert_eq!(layers("Megatron-Core", "deepseek-v3", ""), "");
        assert_eq!(layers("Megatron-Bridge 26.02", "nemotron-3-super-120b-a12b", ""), "2");
    }

    #[test]
    fn layers_in_16_bit_are_those_of_the_recipe_of_this_precision() {
        let layers = |software: &str, model: &str, precision: &str| {
            let row =
                format!("a,2026-03-01,{software},nvidia-gb200,4,64,,,{model},4096,1,2048,4,1,,,{precision},9000,");
            converted(HEAD, &row).text("bf16_layers").to_owned()
        };
        assert_eq!(layers("Megatron-Bridge 26.04", "nemotron-3-super-120b-a12b", "nvfp4"), "14");
        assert_eq!(layers("Megatron-Bridge 26.04", "nemotron-3-super-120b-a12b", "mxfp8"), "");
        assert_eq!(layers("Megatron-Bridge 26.04", "llama3-70b", "nvfp4"), "");
        assert_eq!(layers("Megatron-Core", "nemotron-3-super-120b-a12b", "nvfp4"), "");
    }

    #[test]
    fn row_without_batch_and_sequence_length_is_excluded() {
        let r = converted(HEAD, "a,2024-03-01,NeMo,nvidia-h100-sxm-80gb,8,64,,,llama2-7b,,,,1,1,,,bf16,9000,");
        assert!(r.is_excluded());
        let r = converted(HEAD, "a,2024-03-01,NeMo,nvidia-h100-sxm-80gb,8,64,,,llama2-7b,,1,64,1,1,,,bf16,9000,");
        assert!(!r.is_excluded());
        assert_eq!(r.text("seq_len"), "4096");
    }

    #[test]
    fn ranks_that_do_not_divide_the_accelerators_exclude_the_row() {
        let r = converted(HEAD, "a,2024-03-01,NeMo,nvidia-h100-sxm-80gb,8,12,,,llama2-7b,4096,1,64,8,1,,,bf16,9000,");
        assert!(r.is_excluded());
    }
}
