//! Samples in the Prometheus text format, and in responses of its HTTP API.

use serde_json::Value;

use crate::json::json_number;
use crate::text::parse_leading_number;

/// A sample: metric name, labels and value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample<'a> {
    pub(crate) name: &'a str,
    pub(crate) labels: Labels<'a>,
    pub(crate) value: f64,
    /// Unix time in seconds, if the sample has a time stamp.
    pub(crate) at: Option<f64>,
}

/// The labels of a sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Labels<'a> {
    /// Text of the form `gpu="0",modelName="NVIDIA H100"`.
    Text(&'a str),
    /// JSON object.
    Json(&'a serde_json::Map<String, Value>),
}

impl Labels<'_> {
    /// The value of a label.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        match self {
            Labels::Json(map) => map.get(name)?.as_str(),
            Labels::Text(text) => {
                let mut rest = *text;
                while let Some((key, behind)) = rest.split_once("=\"") {
                    let end = behind.find('"')?;
                    if key.trim_matches([',', ' ']) == name {
                        return behind.get(..end);
                    }
                    rest = behind.get(end + 1..)?;
                }
                None
            }
        }
    }

    /// All labels as one string, which identifies the series.
    pub(crate) fn key(&self) -> String {
        match self {
            Labels::Text(text) => (*text).to_owned(),
            Labels::Json(map) => map.iter().map(|(name, value)| format!("{name}={value},")).collect(),
        }
    }
}

/// Parses a line: `name{label="value"} 12.5 1700000000000`. Nothing but a time stamp may follow the value.
pub(crate) fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim_ascii();
    let (name, labels, rest) = match line.split_once('{') {
        Some((name, rest)) if !name.contains(' ') => {
            let (labels, rest) = rest.rsplit_once('}')?;
            (name, labels, rest)
        }
        _ => {
            let (name, rest) = line.split_once(' ')?;
            (name, "", rest)
        }
    };
    let (value, rest) = parse_leading_number(rest)?;
    let at = match rest.trim() {
        "" => None,
        time => Some(parse_leading_number(time).filter(|(_, rest)| rest.is_empty())?.0 / 1e3),
    };
    Some(Sample { name: name.trim(), labels: Labels::Text(labels), value, at })
}

/// Returns the samples in a response of `/api/v1/query` or `/api/v1/query_range`.
pub(crate) fn answer(document: &Value) -> Vec<Sample<'_>> {
    let result = document.get("data").and_then(|data| data.get("result")).and_then(Value::as_array);
    let mut out = Vec::new();
    for entry in result.into_iter().flatten() {
        let Some(metric) = entry.get("metric").and_then(Value::as_object) else { continue };
        let Some(name) = metric.get("__name__").and_then(Value::as_str) else { continue };
        let one = entry.get("value").into_iter();
        let many = entry.get("values").and_then(Value::as_array).into_iter().flatten();
        for pair in one.chain(many) {
            let at = pair.get(0).and_then(json_number);
            if let Some(value) = pair.get(1).and_then(json_number) {
                out.push(Sample { name, labels: Labels::Json(metric), value, at });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_labels_values_and_times() {
        let read = sample("DCGM_FI_DEV_POWER_USAGE{gpu=\"1\", Hostname=\"a{b\"} 312.5 1700000000500");
        let read = read.as_ref();
        assert_eq!(
            read.map(|sample| (sample.name, sample.value, sample.at)),
            Some(("DCGM_FI_DEV_POWER_USAGE", 312.5, Some(1_700_000_000.5)))
        );
        assert_eq!(read.and_then(|sample| sample.labels.get("Hostname")), Some("a{b"));
        assert_eq!(read.and_then(|sample| sample.labels.get("host")), None);
        assert_eq!(sample("up 1").map(|sample| sample.value), Some(1.0));
        assert_eq!(sample("vllm:x{a=\"b\"}"), None);
        assert_eq!(sample("loss: 2.5 of 3"), None);
    }

    #[test]
    fn prometheus_api_response_yields_samples() {
        let document = serde_json::json!({"status": "success", "data": {"resultType": "vector", "result": [
            {"metric": {"__name__": "vllm:num_requests_running", "model_name": "m"}, "value": [1.5, "12"]}]}});
        let read = answer(&document);
        assert_eq!(
            read.first().map(|sample| (sample.name, sample.value, sample.at)),
            Some(("vllm:num_requests_running", 12.0, Some(1.5)))
        );
    }
}
