//! Definitions of terms of the documentation other than metrics and knobs.

use atlas_plan::knob::Knob;

use super::named_metric;
use super::words::Words;

/// Terms that are neither metrics nor knobs, with their definitions.
pub(super) const TERMS: [(&str, &str); 33] = [
    ("accelerator", "one device, as its datasheet describes it"),
    ("target", "hardware that can be rented or bought: accelerators, nodes, links, price, power"),
    ("model", "the architecture of a neural network"),
    ("software", "a training framework or serving engine at a release, described by traits"),
    ("workload", "training or serving of a model: lengths, batch, precision, parallelism, software, schedule"),
    ("knob", "a setting that users can change"),
    ("scenario", "target, workload and knobs, resolved to typed values; the only input of engines"),
    ("engine", "computes estimates: analytical or event; legacy: semi_empirical, benchboard"),
    ("estimate", "throughput, latency, cost, power and memory with breakdown, bottleneck, caveats and interval"),
    ("measurement", "figures of a real run together with its scenario"),
    ("record", "an estimate or measurement saved with all its inputs"),
    ("trait", "one documented property of software that an engine uses"),
    ("mfu", "model FLOPs utilization: useful FLOP/s over peak FLOP/s, without recomputation"),
    ("hfu", "hardware FLOPs utilization: like MFU, including recomputation"),
    ("ttft", "time to first token, including queueing"),
    ("tpot", "time per output token after the first, averaged over a response"),
    ("itl", "inter-token latency: the time between two consecutive output tokens"),
    ("isl", "input sequence length: number of prompt tokens"),
    ("osl", "output sequence length: number of generated tokens"),
    ("slo", "service level objective: a latency limit that requests should meet"),
    (
        "goodput",
        "useful work: in training, excluding lost work, restarts and checkpoints; in serving, requests within the SLOs",
    ),
    ("zero", "ZeRO: optimizer states (1), gradients (2) and weights (3) sharded over data-parallel ranks"),
    (
        "fsdp",
        "fully sharded data parallelism: weights, gradients and optimizer states sharded over data-parallel ranks",
    ),
    ("moe", "mixture of experts: each token passes through a few of many feed-forward networks"),
    ("roofline", "the speed limit set by compute and by memory bandwidth, whichever is lower"),
    ("interval", "the 90 % interval: nine measurements of ten are expected within it"),
    ("kv", "the KV cache: keys and values of earlier tokens, kept in memory for each request"),
    ("headroom", "the share of memory that stays free on the fullest device"),
    ("prefill", "the processing of a prompt, which ends with the first token"),
    ("decode", "the generation of tokens after the first"),
    ("pareto", "the best compromises: no other point is better in all figures"),
    ("bubble", "the time that pipeline stages wait for each other"),
    ("tco", "total cost of ownership: purchase price amortized over the hours of use, plus energy"),
];

/// Whether a word is a term, a metric or a knob.
pub(super) fn is_term(word: &str) -> bool {
    TERMS.iter().any(|(term, _)| *term == word) || named_metric::of_word(word).is_some() || Knob::find(word).is_some()
}

/// The terms in a question that names several.
pub(super) fn terms(words: &Words) -> Vec<String> {
    let line = words.line();
    let line = ["what is the ", "what is ", "what are ", "the "]
        .iter()
        .fold(line.as_str(), |line, lead| line.strip_prefix(lead).unwrap_or(line));
    let all: Vec<String> = [" and ", " or ", " versus ", " vs "]
        .iter()
        .find(|word| line.contains(*word))
        .map(|word| line.split(word).map(|term| term.trim().to_owned()).collect())
        .unwrap_or_default();
    if all.iter().all(|term| is_term(term)) { all } else { Vec::new() }
}
