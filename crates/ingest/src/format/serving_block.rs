//! Text block at the end of the serving benchmarks of vLLM and SGLang, of all versions, and the one-line results of
//! their offline benchmarks.

use serde_json::{Map, Value};

use crate::lines::Line;
use crate::quantity::{Measure, seconds_after};
use crate::reading::{Context, Facts, Importance, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::{CommonSettings, Reports};
use crate::text::{has, number, number_after, parse_leading_number, text_after};
use crate::training::MAX_LISTED;

/// Labels of rows with a single value, and our names.
const ROWS: [(&str, &str); 34] = [
    ("Successful requests", "successful_requests"),
    ("Failed requests", "failed_requests"),
    ("Maximum request concurrency", "max_concurrency"),
    ("Max request concurrency", "max_concurrency"),
    ("Max reqeuest concurrency", "max_concurrency"),
    ("Request rate configured (RPS)", "request_rate"),
    ("Traffic request rate", "request_rate"),
    ("Benchmark duration (s)", "duration_s"),
    ("Total input tokens", "input_tokens"),
    ("Total input text tokens", "input_text_tokens"),
    ("Total input vision tokens", "input_vision_tokens"),
    ("Total generated tokens", "output_tokens"),
    ("Total generated tokens (retokenized)", "output_tokens_retokenized"),
    ("Request throughput (req/s)", "request_throughput"),
    ("Request goodput (req/s)", "request_goodput"),
    ("Input token throughput (tok/s)", "input_throughput"),
    ("Output token throughput (tok/s)", "output_throughput"),
    ("Peak output token throughput (tok/s)", "peak_output_throughput"),
    ("Peak concurrent requests", "peak_concurrency"),
    ("Total token throughput (tok/s)", "total_token_throughput"),
    ("Last generation throughput (tok/s)", "last_generation_throughput"),
    ("Concurrency", "concurrency"),
    ("Accept length", "accept_length"),
    ("Acceptance length", "accept_length"),
    ("Acceptance rate (%)", "acceptance_rate_percent"),
    ("Total cached tokens", "cached_tokens"),
    ("Prefill throughput (tok/s)", "input_throughput"),
    ("Decode throughput (tok/s)", "output_throughput"),
    ("Max. concurrent requests", "peak_concurrency"),
    ("Total requests", "requests"),
    ("Number of requests", "requests"),
    ("RTFx (Inverse Real-Time Factor)", "rtfx"),
    ("Tokenizer throughput (tok/s)", "tokenizer_throughput"),
    ("Max concurrency", "max_concurrency"),
];

/// Labels of rows that only SGLang prints.
const SGLANG: [&str; 8] = [
    "Backend",
    "Traffic request rate",
    "Max request concurrency",
    "Max reqeuest concurrency",
    "Input token throughput (tok/s)",
    "Total generated tokens (retokenized)",
    "Last generation throughput (tok/s)",
    "Concurrency",
];

/// Benchmark that printed a block.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Writer {
    sglang: bool,
    offline: bool,
}

/// Recognizer of the blocks and lines.
#[derive(Debug, Default)]
pub struct ServingBlock {
    /// Results, and the benchmark that printed each.
    results: Vec<(Writer, Value)>,
    block: Option<Map<String, Value>>,
    writer: Writer,
    throughput: Reports,
    latency: Reports,
    batches: Vec<Value>,
    settings: CommonSettings,
}

impl Recognizer for ServingBlock {
    fn triggers(&self) -> &'static [&'static str] {
        &[
            "Benchmark Result =",
            "total tokens/s",
            " tokens/s",
            "Avg latency:",
            "Total num prompt tokens:",
            "Total num output tokens:",
            "% percentile latency:",
            "median throughput:",
            "Prefill. latency:",
            "Total. latency:",
        ]
    }

    fn in_block(&self) -> bool {
        self.block.is_some()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if has(text, "Benchmark Result =") {
            self.close();
            self.writer = Writer { sglang: false, offline: has(text, "Offline") };
            self.block = Some(Map::new());
            return Outcome::Recognized;
        }
        if self.block.is_some() {
            let outcome = self.row(text);
            if outcome != Outcome::NotRecognized {
                return outcome;
            }
        }
        self.one_line(text)
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.close();
        let mut out = Vec::new();
        let config = self.settings.config(context);
        let base = || Reading {
            tool: "vllm_bench",
            kind: "serving",
            importance: Importance::Result,
            config: config.clone(),
            ..Reading::default()
        };
        for sglang in [false, true] {
            let of: Vec<&(Writer, Value)> = self.results.iter().filter(|(writer, _)| writer.sglang == sglang).collect();
            if of.is_empty() {
                continue;
            }
            let offline = of.iter().all(|(writer, _)| writer.offline);
            let mut facts = Facts::default();
            facts.set("blocks", of.len());
            facts.set("results", of.iter().map(|(_, result)| result.clone()).collect::<Vec<Value>>());
            let (tool, format) =
                if sglang { ("sglang_bench", "sglang-bench-text") } else { ("vllm_bench", "vllm-bench-text") };
            let kind = if offline { "offline_throughput" } else { "serving" };
            out.push(Reading { tool, format, kind, facts, ..base() });
        }
        let throughput = std::mem::take(&mut self.throughput).finish(|report| report.get("requests_per_s").is_some());
        if !throughput.is_empty() {
            let (facts, notes) = throughput.facts();
            out.push(Reading { format: "vllm-throughput-text", kind: "offline_throughput", facts, notes, ..base() });
        }
        let mean = |report: &Facts| report.get("latency_s").is_some_and(|block| block.get("mean").is_some());
        let latency = std::mem::take(&mut self.latency).finish(mean);
        if !latency.is_empty() {
            let (facts, notes) = latency.facts();
            out.push(Reading { format: "vllm-latency-text", kind: "offline_latency", facts, notes, ..base() });
        }
        if !self.batches.is_empty() {
            let mut facts = Facts::default();
            facts.set("n_records", self.batches.len());
            facts.set("results", std::mem::take(&mut self.batches));
            out.push(Reading {
                tool: "sglang_bench",
                format: "sglang-one-batch",
                kind: "offline_throughput",
                facts,
                ..base()
            });
        }
        out
    }
}

impl ServingBlock {
    fn close(&mut self) {
        if let Some(block) = self.block.take().filter(|block| !block.is_empty())
            && self.results.len() < MAX_LISTED
        {
            self.results.push((self.writer, Value::Object(block)));
        }
    }

    /// Reads a row of an open block.
    fn row(&mut self, text: &str) -> Outcome {
        let trimmed = text.trim_ascii();
        if trimmed.len() > 20 && trimmed.bytes().all(|byte| byte == b'=') {
            self.close();
            return Outcome::Recognized;
        }
        if trimmed.starts_with("-----") && trimmed.ends_with("----") {
            return Outcome::Recognized;
        }
        let Some((label, value)) = text.rsplit_once(':') else { return Outcome::NotRecognized };
        let (label, value) = (label.trim(), value.trim());
        let Some(block) = &mut self.block else { return Outcome::NotRecognized };
        self.writer.sglang |= SGLANG.contains(&label) || label.ends_with("E2E Latency (ms)");
        if label == "Backend" {
            block.insert("backend".to_owned(), value.into());
            return Outcome::Recognized;
        }
        // A date or a rank may precede the label. Use the longest known label that the text ends with.
        let known = ROWS.iter().filter(|(name, _)| {
            let front = label.len().checked_sub(name.len()).and_then(|at| label.split_at_checked(at));
            front.is_some_and(|(front, end)| {
                end.eq_ignore_ascii_case(name) && (front.is_empty() || front.ends_with([' ', ']', ':']))
            })
        });
        if let Some((_, ours)) = known.max_by_key(|(name, _)| name.len()) {
            let value = parse_leading_number(value).map(|(value, _)| value);
            let value = match value {
                Some(value) if value.is_finite() => value.into(),
                Some(_) => Value::from("inf"),
                None => return Outcome::Unusable("a row of a result block without a number"),
            };
            block.insert((*ours).to_owned(), value);
            return Outcome::Recognized;
        }
        match (metric(label), number(value)) {
            (Some((name, scale)), Some(value)) => {
                block.insert(name, (value * scale).into());
                Outcome::Recognized
            }
            (Some(_), None) => Outcome::Unusable("a row of a result block without a number"),
            _ => Outcome::NotRecognized,
        }
    }

    /// Reads a result on a single line.
    fn one_line(&mut self, text: &str) -> Outcome {
        // vLLM: `Throughput: 7.15 requests/s, 4656.00 total tokens/s, 1830.46 output tokens/s`
        if let (Some(requests), true) = (number_after(text, "Throughput:"), has(text, "requests/s")) {
            self.throughput.set("requests_per_s", requests);
            for part in text.split(", ").skip(1) {
                let Some((value, unit)) = parse_leading_number(part) else { continue };
                let name = match unit.trim().split('/').next() {
                    Some("total tokens" | "tokens") => "total_tokens_per_s",
                    Some("output tokens") => "output_tokens_per_s",
                    _ => continue,
                };
                self.throughput.set(name, value);
            }
            return Outcome::Recognized;
        }
        if !self.throughput.current().is_empty() {
            for (name, ours) in
                [("Total num prompt tokens:", "input_tokens"), ("Total num output tokens:", "output_tokens")]
            {
                if let Some(value) = number_after(text, name) {
                    self.throughput.set(ours, number_to_json(value));
                    return Outcome::Recognized;
                }
            }
        }
        // vLLM: `Avg latency: 3.25 seconds`, `90% percentile latency: 3.3 seconds`
        if let Some(mean) = seconds_after(text, "Avg latency:", 1.0) {
            self.latency.set_in("latency_s", "mean", mean);
            return Outcome::Recognized;
        }
        if let Some((p, rest)) =
            parse_leading_number(text).filter(|(_, rest)| rest.starts_with("% percentile latency:"))
        {
            let Some(value) = seconds_after(rest, "% percentile latency:", 1.0) else {
                return Outcome::Unusable("a percentile without a number");
            };
            self.latency.set_in("latency_s", &format!("p{}", number_to_json(p)), value);
            return Outcome::Recognized;
        }
        // SGLang: `Prefill. latency: 0.05 s, throughput: 12345.67 token/s`
        for (mark, name) in [("Prefill.", "prefill"), ("Decode.", "decode"), ("Total.", "total")] {
            let Some(rest) = text_after(text, mark) else { continue };
            let rest = rest.trim_start_matches("median ");
            let (seconds, rate) = (seconds_after(rest, "latency", 1.0), number_after(rest, "throughput"));
            let (Some(seconds), Some(rate)) = (seconds.filter(|_| rest.starts_with("latency")), rate) else { continue };
            let mut record = Map::new();
            record.insert("phase".to_owned(), name.into());
            record.insert("latency_s".to_owned(), seconds.into());
            record.insert("tokens_per_s".to_owned(), rate.into());
            if self.batches.len() < MAX_LISTED {
                self.batches.push(Value::Object(record));
            }
            return Outcome::Recognized;
        }
        if let Some(model) = text.trim().strip_prefix("Model:") {
            self.settings.add("model", model.trim());
            return Outcome::Settings;
        }
        Outcome::NotRecognized
    }
}

/// Parses the label of a latency row: `P99.9 TTFT (ms)` gives `ttft_ms.p99.9`, and the factor from its unit to
/// milliseconds.
fn metric(label: &str) -> Option<(String, f64)> {
    let (label, unit) = label.strip_suffix(')')?.rsplit_once('(')?;
    let (label, scale) = (label.trim_end(), Measure::Time.factor(unit)? * 1e3);
    let mut words = label.rsplitn(3, ' ');
    let last = words.next()?;
    let (metric, statistic) = if last == "Latency" {
        // `Mean E2E Latency`
        words.next().filter(|word| *word == "E2E")?;
        ("e2el_ms", words.next()?.rsplit(' ').next()?)
    } else {
        let metric = match last {
            "TTFT" => "ttft_ms",
            "TPOT" => "tpot_ms",
            "ITL" => "itl_ms",
            "E2EL" => "e2el_ms",
            "TTFC" => "ttfc_ms",
            _ => return None,
        };
        (metric, words.next()?)
    };
    let statistic = match statistic {
        "Mean" => "mean".to_owned(),
        "Median" => "median".to_owned(),
        "Std" => "std".to_owned(),
        "Max" => "max".to_owned(),
        "Min" => "min".to_owned(),
        p => format!("p{}", p.strip_prefix('P').filter(|digits| number(digits).is_some())?),
    };
    Some((format!("{metric}.{statistic}"), scale))
}

#[cfg(test)]
mod tests {
    use super::metric;

    #[test]
    fn serving_metric_labels_map_to_metric_names() {
        for (label, name) in [
            ("Mean TTFT (ms)", "ttft_ms.mean"),
            ("P99.9 ITL (ms)", "itl_ms.p99.9"),
            ("Median E2E Latency (ms)", "e2el_ms.median"),
            ("0: P95 TPOT (ms)", "tpot_ms.p95"),
        ] {
            assert_eq!(metric(label), Some((name.to_owned(), 1.0)));
        }
        assert_eq!(metric("Mean TTFT (s)"), Some(("ttft_ms.mean".to_owned(), 1e3)));
        assert_eq!(metric("Latency (ms)"), None);
    }
}
