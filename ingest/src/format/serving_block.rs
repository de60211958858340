//! The text block that vLLM's and SGLang's benchmarks end with, of all versions, and the one-line results of their
//! offline benchmarks.

use serde_json::{Map, Value};

use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Origin, Reading, Weight, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::text::{after, has, leading, number, number_after};
use crate::training::LISTED;

/// Rows that are one figure, under our names.
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

/// Rows that only SGLang writes.
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

/// Reads the blocks.
#[derive(Debug, Default)]
pub struct ServingBlock {
    results: Vec<Value>,
    block: Option<Map<String, Value>>,
    sglang: bool,
    offline: bool,
    throughput: Option<Map<String, Value>>,
    latency: Map<String, Value>,
    batches: Vec<Value>,
    config: Config,
}

impl Recogniser for ServingBlock {
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

    fn open(&self) -> bool {
        self.block.is_some()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if has(text, "Benchmark Result =") {
            self.close();
            self.offline |= has(text, "Offline");
            self.block = Some(Map::new());
            return Outcome::Took;
        }
        if self.block.is_some() {
            let outcome = self.row(text);
            if outcome != Outcome::No {
                return outcome;
            }
        }
        self.one_line(text)
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.close();
        let mut out = Vec::new();
        let mut config = self.config.clone();
        config.merge(&context.settings);
        let base = || Reading {
            tool: "vllm_bench",
            kind: "serving",
            weight: Weight::Result,
            config: config.clone(),
            ..Reading::default()
        };
        if !self.results.is_empty() {
            let mut facts = Facts::default();
            facts.set("blocks", self.results.len());
            facts.set("results", std::mem::take(&mut self.results));
            let (tool, format) =
                if self.sglang { ("sglang_bench", "sglang-bench-text") } else { ("vllm_bench", "vllm-bench-text") };
            let kind = if self.offline { "offline_throughput" } else { "serving" };
            out.push(Reading { tool, format, kind, facts, ..base() });
        }
        if let Some(throughput) = self.throughput.take() {
            let mut facts = Facts::default();
            throughput.into_iter().for_each(|(name, value)| facts.set(name, value));
            out.push(Reading { format: "vllm-throughput-text", kind: "offline_throughput", facts, ..base() });
        }
        if self.latency.contains_key("mean") {
            let mut facts = Facts::default();
            facts.set("latency_s", Value::Object(std::mem::take(&mut self.latency)));
            out.push(Reading { format: "vllm-latency-text", kind: "offline_latency", facts, ..base() });
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
            && self.results.len() < LISTED
        {
            self.results.push(Value::Object(block));
        }
    }

    /// One row of an open block.
    fn row(&mut self, text: &str) -> Outcome {
        let trimmed = text.trim_ascii();
        if trimmed.len() > 20 && trimmed.bytes().all(|byte| byte == b'=') {
            self.close();
            return Outcome::Took;
        }
        if trimmed.starts_with("-----") && trimmed.ends_with("----") {
            return Outcome::Took;
        }
        let Some((label, value)) = text.rsplit_once(':') else { return Outcome::No };
        let (label, value) = (label.trim(), value.trim());
        let Some(block) = &mut self.block else { return Outcome::No };
        self.sglang |= SGLANG.contains(&label) || label.ends_with("E2E Latency (ms)");
        if label == "Backend" {
            block.insert("backend".to_owned(), value.into());
            return Outcome::Took;
        }
        // A date or a rank may stand in front of the row: the longest name that it ends with is meant.
        let known = ROWS.iter().filter(|(name, _)| {
            let front = label.len().checked_sub(name.len()).and_then(|at| label.split_at_checked(at));
            front.is_some_and(|(front, end)| {
                end.eq_ignore_ascii_case(name) && (front.is_empty() || front.ends_with([' ', ']', ':']))
            })
        });
        if let Some((_, ours)) = known.max_by_key(|(name, _)| name.len()) {
            let value = leading(value).map(|(value, _)| value);
            let value = match value {
                Some(value) if value.is_finite() => value.into(),
                Some(_) => Value::from("inf"),
                None => return Outcome::Skipped("a row of a result block without a number"),
            };
            block.insert((*ours).to_owned(), value);
            return Outcome::Took;
        }
        match (metric(label), number(value)) {
            (Some(name), Some(value)) => {
                block.insert(name, value.into());
                Outcome::Took
            }
            (Some(_), None) => Outcome::Skipped("a row of a result block without a number"),
            _ => Outcome::No,
        }
    }

    /// Results that stand on one line of their own.
    fn one_line(&mut self, text: &str) -> Outcome {
        // vLLM: `Throughput: 7.15 requests/s, 4656.00 total tokens/s, 1830.46 output tokens/s`
        if let (Some(requests), true) = (number_after(text, "Throughput:"), has(text, "requests/s")) {
            let mut map = Map::new();
            map.insert("requests_per_s".to_owned(), requests.into());
            for part in text.split(", ").skip(1) {
                let Some((value, unit)) = leading(part) else { continue };
                let name = match unit.trim().split('/').next() {
                    Some("total tokens" | "tokens") => "total_tokens_per_s",
                    Some("output tokens") => "output_tokens_per_s",
                    _ => continue,
                };
                map.insert(name.to_owned(), value.into());
            }
            self.throughput = Some(map);
            return Outcome::Took;
        }
        if let Some(throughput) = &mut self.throughput {
            for (name, ours) in
                [("Total num prompt tokens:", "input_tokens"), ("Total num output tokens:", "output_tokens")]
            {
                if let Some(value) = number_after(text, name) {
                    throughput.insert(ours.to_owned(), tidy(value));
                    return Outcome::Took;
                }
            }
        }
        // vLLM: `Avg latency: 3.25 seconds`, `90% percentile latency: 3.3 seconds`
        if let Some(mean) = number_after(text, "Avg latency:") {
            self.latency.insert("mean".to_owned(), mean.into());
            return Outcome::Took;
        }
        if let Some((p, rest)) = leading(text).filter(|(_, rest)| rest.starts_with("% percentile latency:")) {
            let value = number_after(rest, "% percentile latency:");
            self.latency.insert(format!("p{}", tidy(p)), value.map_or(Value::Null, Value::from));
            return Outcome::Took;
        }
        // SGLang: `Prefill. latency: 0.05 s, throughput: 12345.67 token/s`
        for (mark, name) in [("Prefill.", "prefill"), ("Decode.", "decode"), ("Total.", "total")] {
            let Some(rest) = after(text, mark) else { continue };
            let rest = rest.trim_start_matches("median ");
            let (seconds, rate) = (number_after(rest, "latency"), number_after(rest, "throughput"));
            let (Some(seconds), Some(rate)) = (seconds.filter(|_| rest.starts_with("latency")), rate) else { continue };
            let mut record = Map::new();
            record.insert("phase".to_owned(), name.into());
            record.insert("latency_s".to_owned(), seconds.into());
            record.insert("tokens_per_s".to_owned(), rate.into());
            if self.batches.len() < LISTED {
                self.batches.push(Value::Object(record));
            }
            return Outcome::Took;
        }
        if let Some(model) = text.trim().strip_prefix("Model:") {
            self.config.note("model", model.trim(), Origin::File);
            return Outcome::Noted;
        }
        Outcome::No
    }
}

/// `P99.9 TTFT (ms)` as `ttft_ms.p99.9`.
fn metric(label: &str) -> Option<String> {
    let label = label.strip_suffix("(ms)")?.trim_end();
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
    Some(format!("{metric}.{statistic}"))
}

#[cfg(test)]
mod tests {
    use super::metric;

    #[test]
    fn names_of_metrics() {
        for (label, name) in [
            ("Mean TTFT (ms)", "ttft_ms.mean"),
            ("P99.9 ITL (ms)", "itl_ms.p99.9"),
            ("Median E2E Latency (ms)", "e2el_ms.median"),
            ("0: P95 TPOT (ms)", "tpot_ms.p95"),
        ] {
            assert_eq!(metric(label).as_deref(), Some(name));
        }
        assert_eq!(metric("Latency (ms)"), None);
    }
}
