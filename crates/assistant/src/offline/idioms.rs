//! Engineers' jargon for knobs and questions, rewritten to the words that the other rules recognize.

use atlas_core::time_unit::TimeUnit;
use atlas_plan::knob::{Knob, KnobValues as _};

use super::words::{Words, count};

/// Names of knobs; longer ones first.
const NAMES: [(&str, Knob); 37] = [
    ("tensor parallel size", Knob::Tp),
    ("tensor parallelism", Knob::Tp),
    ("tensor parallel", Knob::Tp),
    ("tensor-parallel", Knob::Tp),
    ("pipeline parallel size", Knob::Pp),
    ("pipeline parallelism", Knob::Pp),
    ("pipeline parallel", Knob::Pp),
    ("pipeline-parallel", Knob::Pp),
    ("data parallel size", Knob::Dp),
    ("data parallelism", Knob::Dp),
    ("data parallel", Knob::Dp),
    ("expert parallel size", Knob::Ep),
    ("expert parallelism", Knob::Ep),
    ("expert parallel", Knob::Ep),
    ("context parallelism", Knob::Cp),
    ("context parallel", Knob::Cp),
    ("sequence parallelism", Knob::Sp),
    ("activation recomputation", Knob::Recompute),
    ("activation checkpointing", Knob::Recompute),
    ("gradient checkpointing", Knob::Recompute),
    ("recomputation", Knob::Recompute),
    ("cuda graphs", Knob::CudaGraphs),
    ("cuda graph", Knob::CudaGraphs),
    ("graph capture", Knob::CudaGraphs),
    ("chunked prefill", Knob::ChunkedPrefill),
    ("prefix cache hit rate", Knob::PrefixHit),
    ("prefix hit rate", Knob::PrefixHit),
    ("prefix caching", Knob::PrefixHit),
    ("prefix cache", Knob::PrefixHit),
    ("speculative decoding", Knob::DraftTokens),
    ("micro batch size", Knob::Microbatch),
    ("micro-batch size", Knob::Microbatch),
    ("micro batch", Knob::Microbatch),
    ("global batch size", Knob::Global),
    ("global batch", Knob::Global),
    ("disaggregated prefill", Knob::PrefillAccelerators),
    ("overlap scheduling", Knob::OverlapScheduling),
];
/// Values that switch a feature off and on.
const FEATURE_SWITCHES: [(Knob, &str, &str); 8] = [
    (Knob::Recompute, "none", "full"),
    (Knob::CudaGraphs, "off", "on"),
    (Knob::ChunkedPrefill, "off", "on"),
    (Knob::Sp, "off", "on"),
    (Knob::OverlapScheduling, "off", "on"),
    (Knob::DraftTokens, "0", "2"),
    (Knob::PrefixHit, "0", "0.5"),
    (Knob::PrefillAccelerators, "0", "4"),
];
const OFF: [&str; 11] = [
    "without",
    "disable",
    "disabling",
    "turn off",
    "switch off",
    "drop",
    "dropping",
    "leave out",
    "no",
    "remove",
    "removing",
];
const ON: [&str; 7] = ["with", "enable", "enabling", "turn on", "switch on", "add", "adding"];
/// Units of deadlines.
const DEADLINES: [&str; 8] = ["day", "days", "week", "weeks", "month", "months", "hour", "hours"];
/// Terms for a parallel layout.
const LAYOUTS: [&str; 8] = [
    "parallelism",
    "layout",
    "parallel layout",
    "parallelism strategy",
    "parallel strategy",
    "configuration",
    "config",
    "settings",
];
/// Whole questions in other words.
const SAME: [(&[&str], &[&str], &str); 6] = [
    (&["buy", "buying", "own"], &["rent", "renting"], "rent or buy"),
    (&["bubble", "bubbles"], &["cost", "costs", "lose", "lost", "big", "large", "much"], "where does the time go"),
    (
        &["increasing", "raising", "adding", "more"],
        &["concurrency not", "users not", "batch not", "load not"],
        "what if the load doubles",
    ),
    (
        &["saturate", "saturates", "saturating"],
        &["gpu", "gpus", "batch", "throughput", "accelerator"],
        "how can i increase throughput",
    ),
    (&["slower", "below", "less", "under"], &["datasheet", "peak", "advertised", "theoretical"], "why is mfu low"),
    (&["kv cache", "kv-cache"], &["left", "free", "big", "large", "much"], "where does the memory go"),
];

/// Words that this module recognizes.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    let names = NAMES.iter().map(|(name, _)| *name).chain(OFF).chain(ON).chain(LAYOUTS);
    let same = SAME.iter().flat_map(|(one, other, _)| one.iter().chain(other.iter()).copied());
    names.chain(same).chain(DEADLINES).flat_map(|phrase| phrase.split(' ')).chain([
        "worth",
        "replicas",
        "network",
        "infiniband",
        "ethernet",
        "advertised",
        "says",
        "optimal",
    ])
}

/// Rewrites jargon to the words of the other rules.
pub(super) fn rewrite_jargon(words: &mut Words) {
    let some = |words: &Words, list: &[&str]| list.iter().any(|phrase| words.has(phrase));
    let asks_meaning = |words: &Words| words.begins("what is a") || words.begins("what does") && words.has("mean");
    words.rewrite_triples(|format, kv, cache| {
        let named = kv == "kv" && cache == "cache" && Knob::KvPrecision.parse(format, &[]).is_ok();
        named.then(|| vec![format!("{}={format}", Knob::KvPrecision.name())])
    });
    for save in ["how much do i save with", "how much would i save with", "how much does it save to use"] {
        words.replace(save, &["what", "if"]);
    }
    for (one, other, question) in SAME {
        if some(words, one) && some(words, other) && !asks_meaning(words) {
            // Settings such as `for 32k context` are kept.
            let settings = words.all().iter().position(|word| matches!(word.as_str(), "for" | "with" | "at"));
            let settings = settings.and_then(|at| words.all().get(at..)).unwrap_or_default().join(" ");
            let settings = if settings.contains(|c: char| c.is_ascii_digit()) { settings } else { String::new() };
            *words = Words::of(&format!("{question} {settings}"));
            return;
        }
    }
    for (name, knob) in NAMES {
        // "How does speculative decoding work" is a question for the guide.
        while !words.begins("how do") && !words.begins("what is") && words.replace(name, &[knob.name()]) {}
    }
    for (knob, off, on) in FEATURE_SWITCHES {
        for (verbs, value) in [(&OFF[..], off), (&ON[..], on)] {
            for verb in verbs {
                words.replace(&format!("{verb} {}", knob.name()), &[&format!("{}={value}", knob.name())]);
            }
        }
        // "Would speculative decoding help": a feature without a value means switching it on.
        let about = ["why", "what does", "what is", "how", "where", "which", "explain", "define", "list"];
        let at = words.all().iter().position(|word| word == knob.name());
        let next = at.and_then(|at| words.all().get(at + 1));
        let valued = next.is_some_and(|next| next.starts_with('=') || knob.parse(next, &[]).is_ok());
        if at.is_some() && !valued && !about.iter().any(|lead| words.begins(lead)) && !words.has("mean") {
            words.replace(knob.name(), &[&format!("{}={on}", knob.name())]);
        }
    }
    rewrite_worth_it(words);
    alternatives(words);
    if words.begins("set") && (words.has("to") || words.has("=")) {
        words.take("set");
        words.take("to");
        words.begin_with_what_if();
    }
    // "Double the context" is a change of a length or a load; "halve the cost" asks how to achieve it.
    for factor in ["double", "triple", "halve", "quadruple"] {
        let grows =
            ["length", "context", "prompt", "output", "load", "traffic", "concurrency", "users", "batch", "nodes"];
        if words.begins(factor) && some(words, &grows) {
            words.begin_with_what_if();
        }
    }
    for figure in ["show", "tell"] {
        words.take(&format!("and {figure} me"));
    }
    // "How long does the first token take" means TTFT, not the latency of a request.
    if !words.has("to first token") && words.replace("first token", &["ttft"]) && words.begins("how long") {
        let _ = words.replace("how long does", &["what", "is"]) || words.replace("how long", &["what", "is"]);
        words.take("take");
    }
    for phrase in ["time of a step", "time of one step", "time of each step", "time of the step", "step time"] {
        words.replace(&format!("{phrase} go"), &["time", "go"]);
    }
    words.replace("how many replicas", &["how", "many", "gpus"]);
    words.replace("how many nodes", &["how", "many", "gpus"]);
    for adjective in ["best", "fastest", "optimal"] {
        for layout in LAYOUTS {
            words.replace(&format!("{adjective} {layout}"), &["fastest", CURRENT_HARDWARE]);
        }
    }
    deadline(words);
    network(words);
}

/// Placeholder for the current hardware in a question for the best layout.
pub(super) const CURRENT_HARDWARE: &str = "layout-here";

/// "Is fp8 worth it": compares the metrics with and without it.
fn rewrite_worth_it(words: &mut Words) {
    if words.has("worth it") && ["is", "are", "would"].iter().any(|first| words.begins(first)) {
        words.take("worth it");
        let _ = words.take("is") || words.take("are") || words.take("would");
        words.take("be");
        words.begin_with_what_if();
    }
}

/// "Is tp 4 or 8 better": joins both values to one word. The one that is not in effect is tried.
fn alternatives(words: &mut Words) {
    let before = words.clone();
    words.rewrite_triples(|one, or, other| {
        (or == "or" && count(one).is_some() && count(other).is_some()).then(|| vec![format!("{one}|{other}")])
    });
    if *words != before && !words.begins("should") && !words.begins("what if") {
        let _ = words.take("is") || words.take("are");
        words.begin_with_what_if();
    }
}

/// "Train in 60 days", "finish within two weeks": a bound on the training time.
fn deadline(words: &mut Words) {
    for relation in ["in", "within", "under"] {
        for unit in DEADLINES {
            let days = TimeUnit::named(unit).map_or(0.0, TimeUnit::seconds) / TimeUnit::Day.seconds();
            words.rewrite_triples(|first, number, second| {
                let number = count(number).filter(|_| first == relation && second == unit)?;
                Some(vec![format!("time_to_train_h<{}d", number * days)])
            });
        }
    }
}

/// "The network is 400 Gb/s": a data rate, not the kind of fabric.
fn network(words: &mut Words) {
    let named = ["network", "infiniband", "ethernet", "nic", "nics", "interconnect", "fabric"];
    if !named.iter().any(|name| words.has(name)) {
        return;
    }
    let rate = |unit: &str| match unit {
        "gb/s" | "gbps" | "gbit/s" | "gbit" | "gbits" => Some(1.0),
        "tb/s" | "tbit/s" | "tbps" => Some(1000.0),
        _ => None,
    };
    let before = words.clone();
    words.rewrite_pairs(|number, unit| {
        Some(vec![format!("{}={}", Knob::NetworkGbps.name(), count(number)? * rate(unit)?)])
    });
    words.rewrite(|word| {
        let at = word.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, unit) = word.split_at(at);
        Some(vec![format!("{}={}", Knob::NetworkGbps.name(), count(number)? * rate(unit)?)])
    });
    if *words != before {
        for name in named {
            for phrase in [format!("{name} is"), format!("{name} was"), format!("{name} had"), name.to_owned()] {
                words.take(&phrase);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idioms_are_rewritten_to_the_vocabulary_of_other_rules() {
        let expected = [
            ("should i use tensor parallel 4 or 8", "should i use tp 4|8"),
            ("is tp 4 or 8 better", "what if tp 4|8 better"),
            ("does it fit without activation recomputation", "does it fit recompute=none"),
            ("what happens if i disable cuda graphs", "what happens if i cuda_graphs=off"),
            ("is fp8 worth it", "what if fp8"),
            ("is it cheaper to buy or to rent", "rent or buy"),
            ("double the sequence length", "what if double the sequence length"),
            ("halve the cost", "halve the cost"),
            (
                "how many gpus to train on 15t tokens in 60 days",
                "how many gpus to train on 15t tokens time_to_train_h<60d",
            ),
            ("what if the network is 400 gb/s", "what if the network_gbps=400"),
            ("what if the network was 800gbps", "what if the network_gbps=800"),
            ("how long does the first token take", "what is the ttft"),
            ("how much memory does the kv cache need for 32k context", "where does the memory go for 32k context"),
            ("how much do i save with fp8 kv cache", "what if kv_precision=fp8"),
            ("what is chunked prefill", "what is chunked prefill"),
        ];
        for (line, words) in expected {
            let mut got = Words::of(line);
            rewrite_jargon(&mut got);
            assert_eq!(got.line(), words, "{line}");
        }
    }
}
