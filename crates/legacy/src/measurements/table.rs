//! Reader for tables with the columns of version 0.1.

use std::collections::HashMap;
use std::sync::Arc;

use atlas_core::sort;

/// A row, whose cells are looked up by column name.
#[derive(Debug, Clone)]
pub(super) struct Row {
    columns: Arc<HashMap<String, usize>>,
    cells: csv::StringRecord,
}

impl Row {
    /// Returns the trimmed text of a cell; empty if the column is missing.
    pub(super) fn text(&self, column: &str) -> &str {
        self.columns.get(column).and_then(|&at| self.cells.get(at)).unwrap_or("").trim()
    }

    /// Returns a cell as a positive finite number. A number with a unit is not accepted.
    pub(super) fn positive(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0)
    }

    /// Returns the row with `columns` blanked.
    pub(super) fn without(&self, columns: &[&str]) -> Row {
        let blank: Vec<usize> = columns.iter().filter_map(|column| self.columns.get(*column).copied()).collect();
        let cells = self.cells.iter().enumerate().map(|(at, cell)| if blank.contains(&at) { "" } else { cell });
        Row { columns: Arc::clone(&self.columns), cells: cells.collect() }
    }

    /// Returns all cells with their column names, in the order of the file.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut columns: Vec<(&str, usize)> = self.columns.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        sort::by(&mut columns, |a, b| a.1.cmp(&b.1).then(a.0.cmp(b.0)));
        columns.into_iter().map(|(name, at)| (name, self.cells.get(at).unwrap_or_default().trim()))
    }
}

/// Alternative column names, with their canonical names.
const ALIASES: &[(&str, &str)] = &[
    ("model_name", "model"),
    ("gpu", "accelerator"),
    ("gpu_type", "accelerator"),
    ("accelerator_type", "accelerator"),
    ("hardware", "accelerator"),
    ("gpus", "num_accelerators"),
    ("num_gpus", "num_accelerators"),
    ("n_gpus", "num_accelerators"),
    ("num_devices", "num_accelerators"),
    ("gpus_per_node", "accelerators_per_node"),
    ("seq_length", "seq_len"),
    ("sequence_length", "seq_len"),
    ("global_batch_size", "global_batch"),
    ("gbs", "global_batch"),
    ("micro_batch_size", "micro_batch"),
    ("mbs", "micro_batch"),
    ("tensor_parallel", "tp"),
    ("tensor_parallel_size", "tp"),
    ("pipeline_parallel", "pp"),
    ("pipeline_parallel_size", "pp"),
    ("context_parallel_size", "cp"),
    ("expert_parallel_size", "ep"),
    ("data_parallel_size", "dp"),
    ("num_layers", "n_layers"),
    ("num_attention_heads", "n_heads"),
    ("num_key_value_heads", "n_kv_heads"),
    ("intermediate_size", "ffn_hidden_size"),
    ("dtype", "precision"),
    ("activation_checkpointing", "recompute"),
    ("tokens_per_sec_per_gpu", "tokens_per_sec_per_accel"),
    ("tokens_per_sec_per_device", "tokens_per_sec_per_accel"),
    ("tflops_per_gpu", "model_tflops_per_accel"),
    ("model_tflops_per_gpu", "model_tflops_per_accel"),
    ("step_time", "step_time_s"),
    ("seconds_per_step", "step_time_s"),
    ("input_tokens", "input_len"),
    ("isl_tokens", "input_len"),
    ("output_tokens", "output_len"),
    ("osl_tokens", "output_len"),
    ("max_concurrency", "concurrency"),
    ("output_throughput", "output_tokens_per_sec_total"),
    ("total_throughput", "total_tokens_per_sec"),
    ("request_throughput", "requests_per_sec"),
];

/// Returns the canonical name of a column.
pub(super) fn canonical(name: &str) -> &str {
    let name = name.trim();
    ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map_or(name, |(_, usual)| usual)
}

/// Returns the header of CSV text and a reader for its rows. Accepts a byte-order mark and CRLF line endings.
pub(super) fn head(text: &str) -> Result<(Vec<String>, csv::Reader<&[u8]>), csv::Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let headers = reader.headers()?.iter().map(|name| name.trim().to_owned()).collect();
    Ok((headers, reader))
}

/// Reads all rows of CSV text with a header.
pub(super) fn read(text: &str) -> Result<(Vec<String>, Vec<Row>), csv::Error> {
    let (headers, mut reader) = head(text)?;
    let mut names: HashMap<String, usize> = HashMap::new();
    for (at, name) in headers.iter().enumerate() {
        names.entry(name.to_ascii_lowercase()).or_insert(at);
    }
    // A column with the canonical name takes precedence over one with an alias.
    for (at, name) in headers.iter().enumerate() {
        names.entry(canonical(name).to_owned()).or_insert(at);
    }
    let columns = Arc::new(names);
    let rows = reader
        .records()
        .map(|record| record.map(|cells| Row { columns: Arc::clone(&columns), cells }))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((headers, rows))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn canonical_column_name_takes_precedence_over_aliases() {
        let (_, rows) = read("\u{feff}GPU,num_gpus,seq_length,seq_len\r\nh100,8,1,4096\r\n").unwrap();
        assert_eq!(rows[0].text("accelerator"), "h100");
        assert_eq!(rows[0].positive("num_accelerators"), Some(8.0));
        assert_eq!(rows[0].positive("seq_len"), Some(4096.0));
    }

    #[test]
    fn quoted_cells_and_missing_columns_are_read() {
        let (_, rows) = read("id,notes\na,\"TP8; \"\"x\"\", y\"\nb\n").unwrap();
        assert_eq!(rows[0].text("notes"), "TP8; \"x\", y");
        assert_eq!(rows[1].text("notes"), "");
        assert_eq!(rows[1].text("tp"), "");
    }
}
