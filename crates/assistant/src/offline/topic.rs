//! Topic of a question, determined by its phrases.

use super::words::Words;

/// Topic of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    Failures,
    WhatIf,
    Fit,
    Count,
    Users,
    Longest,
    LargestModel,
    Rank,
    Compare,
    Meaning,
    Value,
    Limits,
    Time,
    Memory,
    Why,
    Improve,
    Sensitivity,
    Trust,
    Origin,
    List,
    Guide,
}

/// Required position of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PhrasePosition {
    /// At the beginning.
    First,
    /// Anywhere.
    Any,
}

use PhrasePosition::{Any, First};

/// Phrases and their topics; the first match decides.
const RULES: [(Topic, PhrasePosition, &[&str]); 33] = [
    (
        Topic::Failures,
        Any,
        &[
            "mtbf",
            "failures",
            "node fails",
            "nodes fail",
            "gpu fails",
            "gpus fail",
            "accelerator fails",
            "accelerators fail",
            "machine fails",
            "node crashes",
            "node dies",
            "gpu dies",
            "should i checkpoint",
            "should we checkpoint",
            "often checkpoint",
            "checkpoint interval",
            "checkpoints",
        ],
    ),
    (
        Topic::WhatIf,
        First,
        &[
            "what if",
            "what happens if",
            "what happens when",
            "what happens with",
            "what would happen if",
            "suppose",
            "assume",
            "should i use",
            "should we use",
            "is it better to use",
            "would it help to use",
            "how does it scale to",
            "how does this scale to",
            "how would it scale to",
            "scale to",
            "scale it to",
        ],
    ),
    (Topic::WhatIf, Any, &["change if", "changes if", "change when", "changes when", "change with"]),
    (
        Topic::Fit,
        Any,
        &[
            "smallest change",
            "smallest changes",
            "least change",
            "minimal change",
            "make it fit",
            "make this fit",
            "make it run",
            "get it to fit",
            "not fit",
            "not run",
        ],
    ),
    (Topic::Value, First, &["how many tokens", "how many days", "how many hours", "how many weeks", "how many months"]),
    (
        Topic::Users,
        First,
        &[
            "how many users",
            "how many concurrent",
            "how many simultaneous",
            "how many requests can",
            "how many requests at once",
            "how many sequences",
            "how many people",
            "how many clients",
            "what is the max batch size",
            "what is the maximum batch size",
            "what is the largest batch size",
            "what is the max concurrency",
            "what is the maximum concurrency",
        ],
    ),
    (
        Topic::Longest,
        Any,
        &[
            "maximum context",
            "max context",
            "longest context",
            "largest context",
            "maximum prompt",
            "max prompt",
            "longest prompt",
            "largest prompt",
            "maximum sequence",
            "max sequence",
            "longest sequence",
            "how long a prompt",
            "how long can the prompt",
            "how long can the context",
            "how long can prompts",
        ],
    ),
    (Topic::LargestModel, Any, &["biggest model", "largest model"]),
    (Topic::Count, First, &["how many"]),
    (Topic::Count, Any, &["what hardware do i need", "how much hardware"]),
    (Topic::Origin, Any, &["come from", "comes from", "source of", "written in", "where is the price set"]),
    (
        Topic::Memory,
        Any,
        &[
            "memory go",
            "uses memory",
            "uses the memory",
            "uses most memory",
            "uses the most memory",
            "takes memory",
            "takes the memory",
            "fills the memory",
            "memory used for",
            "memory breakdown",
            "use of memory",
        ],
    ),
    (
        Topic::Time,
        Any,
        &[
            "time go",
            "time spent",
            "time goes",
            "takes the time",
            "takes most time",
            "takes the most time",
            "breakdown",
        ],
    ),
    (
        Topic::Limits,
        Any,
        &[
            "limits",
            "limit",
            "bottleneck",
            "bounds",
            "bound by",
            "limited by",
            "holds back",
            "limiting",
            "slows down",
            "stops it",
            "compute bound",
            "memory bound",
        ],
    ),
    (
        Topic::Sensitivity,
        Any,
        &[
            "matters most",
            "matter most",
            "most sensitive",
            "sensitivity",
            "which knob",
            "which knobs",
            "biggest lever",
            "what drives",
            "depend on",
            "depends on",
            "depend most on",
            "depends most on",
        ],
    ),
    (
        Topic::Trust,
        Any,
        &[
            "how accurate",
            "how sure",
            "how certain",
            "how reliable",
            "how far off",
            "trust",
            "confidence",
            "uncertain",
            "uncertainty",
            "evidence",
            "accuracy",
            "error bar",
            "assumptions",
            "assumption",
            "measured",
        ],
    ),
    (Topic::List, First, &["list"]),
    (Topic::List, Any, &["are there", "do you know", "do you have", "are available", "is available", "are known"]),
    (Topic::Compare, First, &["compare"]),
    (
        Topic::Compare,
        Any,
        &[
            "versus",
            "vs",
            "compared to",
            "compared with",
            "difference between",
            "faster than",
            "cheaper than",
            "better than",
        ],
    ),
    (Topic::Meaning, Any, &["mean", "meaning of", "stand for", "stands for", "definition of", "is meant by"]),
    (Topic::Meaning, First, &["define"]),
    (Topic::Why, First, &["why", "explain", "what makes", "how is", "how are", "derive", "how does the"]),
    (Topic::Why, First, &["how do you compute", "how do you calculate", "how does it compute"]),
    (Topic::Why, Any, &["and why"]),
    (
        Topic::Improve,
        Any,
        &[
            "should i change",
            "should i do",
            "can i do",
            "could i do",
            "advice",
            "advise",
            "tune",
            "improve",
            "reduce",
            "lower the",
            "cut the",
            "cut",
            "speed up",
            "make it faster",
            "make it cheaper",
            "make this faster",
            "make this cheaper",
            "increase",
            "raise",
            "get more",
            "reach",
            "bring",
            "brings",
            "get under",
            "halve",
            "double the",
            "triple the",
            "in half",
            "it would take",
            "would it take",
            "how do i get",
            "how can i get",
        ],
    ),
    (Topic::Fit, First, &["does", "do", "will", "would", "can", "could", "is"]),
    (Topic::Fit, Any, &["fit on", "fits on", "fit in", "fits in"]),
    (Topic::Guide, First, &["how do i", "how to", "how can i", "where can i", "where do i", "how does", "how do you"]),
    (Topic::Rank, Any, &["which", "best", "cheapest", "fastest", "greenest", "smallest", "soonest", "lowest-latency"]),
    (
        Topic::Value,
        First,
        &[
            "how much",
            "how long",
            "how fast",
            "how big",
            "how expensive",
            "what is",
            "what are",
            "what would",
            "what does",
            "what will",
        ],
    ),
    (Topic::Value, Any, &["how much", "how long", "how fast"]),
    (Topic::Value, Any, &["rent or buy", "rent or own", "buy or rent", "own or rent"]),
];

/// Phrases that are kept after the topic is determined, since they also name a metric or an objective.
const KEPT_PHRASES: [&str; 26] = [
    "faster than",
    "cheaper than",
    "better than",
    "how long",
    "how fast",
    "how expensive",
    "best",
    "cheapest",
    "fastest",
    "greenest",
    "smallest",
    "soonest",
    "lowest-latency",
    "how many tokens",
    "make it faster",
    "how many days",
    "how many hours",
    "how many weeks",
    "how many months",
    "rent or buy",
    "rent or own",
    "buy or rent",
    "own or rent",
    "halve",
    "double the",
    "triple the",
];

/// Words that this module recognizes.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    RULES.iter().flat_map(|(_, _, phrases)| phrases.iter().flat_map(|phrase| phrase.split(' ')))
}

/// Determines the topic of a question and takes its phrases from it.
pub(super) fn take(words: &mut Words) -> Option<Topic> {
    let found = |at: PhrasePosition, phrase: &str, words: &Words| match at {
        PhrasePosition::First => words.begins(phrase),
        PhrasePosition::Any => words.has(phrase),
    };
    // "What does sharding do" asks for the definition.
    if words.begins("what does") && words.all().len() > 3 && words.all().last().is_some_and(|last| last == "do") {
        words.take("what does");
        words.take("do");
        return Some(Topic::Meaning);
    }
    // "Would fp8 help" asks for the metrics before and after.
    if words.all().last().is_some_and(|last| last == "help" || last == "helps")
        && ["would", "does", "do", "will", "could"].iter().any(|first| words.begins(first))
    {
        let _ = words.take("help") || words.take("helps");
        return Some(Topic::WhatIf);
    }
    // Distinguishes "does it fit" from "does it get faster than".
    let rule = RULES.iter().find(|(topic, at, phrases)| {
        let closed = *topic == Topic::Fit && *at == First;
        let runs =
            || ["fit", "fits", "run", "enough", "serve", "train", "host", "hold"].iter().any(|word| words.has(word));
        phrases.iter().any(|phrase| found(*at, phrase, words)) && (!closed || runs())
    });
    let (topic, at, phrases) = rule?;
    for phrase in phrases.iter().filter(|phrase| !KEPT_PHRASES.contains(phrase)) {
        if found(*at, phrase, words) {
            words.take(phrase);
        }
    }
    Some(*topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_classified_by_topic() {
        let expected = [
            ("why is TTFT high?", Topic::Why),
            ("what if prices fall by a third?", Topic::WhatIf),
            ("what is the smallest change that fits?", Topic::Fit),
            ("does 70b fit on 8 h100?", Topic::Fit),
            ("why does it not fit?", Topic::Fit),
            ("how many H100 do I need to serve 70b?", Topic::Count),
            ("how many tokens per second does it reach?", Topic::Value),
            ("which is cheapest for serving 70b?", Topic::Rank),
            ("is h200 cheaper than h100?", Topic::Compare),
            ("what does MFU mean?", Topic::Meaning),
            ("what limits throughput?", Topic::Limits),
            ("where does the time go?", Topic::Time),
            ("where does the memory go?", Topic::Memory),
            ("what matters most for cost?", Topic::Sensitivity),
            ("how accurate is this?", Topic::Trust),
            ("where does the price come from?", Topic::Origin),
            ("which models are there?", Topic::List),
            ("how can I make it faster?", Topic::Improve),
            ("how do I get ttft under 500ms?", Topic::Improve),
            ("how do I calibrate?", Topic::Guide),
            ("what if a node fails every day?", Topic::Failures),
            ("how often should I checkpoint?", Topic::Failures),
            ("how many users can I serve?", Topic::Users),
            ("biggest model that fits", Topic::LargestModel),
            ("should I use fp8?", Topic::WhatIf),
            ("what does sharding do?", Topic::Meaning),
            ("can I halve the cost?", Topic::Improve),
            ("rent or buy?", Topic::Value),
            ("how long does training take?", Topic::Value),
            ("what is the power draw?", Topic::Value),
        ];
        for (line, topic) in expected {
            assert_eq!(take(&mut Words::of(line)), Some(topic), "{line}");
        }
        assert_eq!(take(&mut Words::of("tp=8")), None);
    }
}
