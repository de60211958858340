//! Joins readings of several files: a benchmark that states when it ran, and power samples from that time.

use serde_json::{Map, Value, json};

use super::intake::Ingested;
use super::reading::{PowerSample, Reading};

/// Joins every benchmark that has a time window with every power trace that overlaps it. The result is added to the
/// power reading as the fact `joint_with_` followed by the name of the benchmark tool.
pub fn join(files: &mut [Ingested]) {
    let benchmarks: Vec<(&'static str, [f64; 2], Option<f64>, String)> = files
        .iter()
        .flat_map(|file| file.readings.iter().map(move |reading| (file, reading)))
        .filter_map(|(file, reading)| {
            let window = reading.window.filter(|[from, to]| to > from)?;
            Some((reading.tool, window, reading.facts.number("output_tokens"), file.file.clone()))
        })
        .collect();
    for reading in files.iter_mut().flat_map(|file| &mut file.readings) {
        for (tool, window, tokens, file) in &benchmarks {
            if let Some(facts) = energy_in_window(reading, *window, *tokens, file) {
                reading.facts.set(format!("joint_with_{tool}"), facts);
            }
        }
    }
}

/// Mean power of the samples inside the window, summed over devices, and the energy as this power times the length of
/// the window.
fn energy_in_window(reading: &Reading, window: [f64; 2], tokens: Option<f64>, file: &str) -> Option<Value> {
    let [from, to] = window;
    let inside = |sample: &&PowerSample| sample.at >= from && sample.at <= to;
    let mut counts = Map::new();
    let mut total = 0.0;
    for (index, name) in reading.devices.iter().enumerate() {
        let watts: Vec<f64> = reading
            .power
            .iter()
            .filter(inside)
            .filter(|sample| sample.device as usize == index)
            .map(|sample| sample.watts)
            .collect();
        if watts.is_empty() {
            continue;
        }
        counts.insert(name.clone(), watts.len().into());
        total += watts.iter().sum::<f64>() / watts.len() as f64;
    }
    if counts.is_empty() {
        return None;
    }
    let joules = total * (to - from);
    let mut out = json!({
        "window_unix": window,
        "samples_per_gpu_in_window": counts,
        "mean_total_power_w_in_window": total,
        "energy_wh_in_window": joules / 3600.0,
        "benchmark": file,
        "method": "mean power of the samples in the window x window length; UTC is assumed without a time zone",
    });
    if let (Some(tokens), Some(map)) = (tokens.filter(|tokens| *tokens > 0.0), out.as_object_mut()) {
        map.insert("joule_per_output_token".to_owned(), (joules / tokens).into());
        map.insert("output_tokens_per_joule".to_owned(), (tokens / joules).into());
    }
    Some(out)
}
