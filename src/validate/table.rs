//! A CSV file as rows of named cells.

use crate::order::Order;
use std::collections::HashMap;
use std::sync::Arc;

/// One row; cells are looked up by column name.
#[derive(Debug, Clone)]
pub struct Row {
    columns: Arc<HashMap<String, usize>>,
    cells: csv::StringRecord,
}

impl Row {
    /// The cell's text, trimmed; empty where the column is missing.
    pub fn text(&self, column: &str) -> &str {
        self.columns.get(column).and_then(|&i| self.cells.get(i)).unwrap_or("").trim()
    }

    /// Every column with its cell, in the order of the file.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut columns: Vec<(&str, usize)> = self.columns.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        columns.order_by_key(|(_, at)| *at);
        columns.into_iter().map(|(name, at)| (name, self.cells.get(at).unwrap_or_default().trim()))
    }

    /// The cell as a finite number, if it is one.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|x: &f64| x.is_finite())
    }

    /// The cell as a positive number, if it is one.
    pub fn positive(&self, column: &str) -> Option<f64> {
        self.number(column).filter(|&x| x > 0.0)
    }

    /// The cell as yes or no, if it is one.
    pub fn flag(&self, column: &str) -> Option<bool> {
        match self.text(column).to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Some(true),
            "false" | "no" | "0" => Some(false),
            _ => None,
        }
    }
}

/// Other names under which sources keep a column.
const ALIASES: [(&str, &str); 34] = [
    ("model_name", "model"),
    ("gpu", "accelerator"),
    ("gpu_type", "accelerator"),
    ("accelerator_type", "accelerator"),
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
];

/// The name of a column as this program reads it.
#[must_use]
pub fn canonical(name: &str) -> &str {
    let name = name.trim();
    ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map_or(name, |(_, usual)| usual)
}

/// Reads all rows of CSV text with a header.
pub fn read(text: &str) -> Result<Vec<Row>, csv::Error> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let headers = reader.headers()?;
    let mut names: HashMap<String, usize> =
        headers.iter().enumerate().map(|(i, n)| (n.trim().to_string(), i)).collect();
    // A column under its own name goes before one under another.
    for (i, name) in headers.iter().enumerate() {
        names.entry(canonical(name).to_string()).or_insert(i);
    }
    let columns = Arc::new(names);
    reader.records().map(|r| r.map(|cells| Row { columns: Arc::clone(&columns), cells })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_under_other_names_but_their_own_go_first() {
        let rows = read("GPU,num_gpus,seq_length,seq_len\nh100,8,1,4096\n").unwrap_or_default();
        let row = rows.first();
        assert_eq!(row.map(|row| row.text("accelerator")), Some("h100"));
        assert_eq!(row.and_then(|row| row.positive("num_accelerators")), Some(8.0));
        assert_eq!(row.and_then(|row| row.positive("seq_len")), Some(4096.0));
    }
}
