//! Questions in other words, rewritten to those that the topic rules recognize.

use atlas_catalog::software::Software;
use atlas_plan::knob::{Knob, KnobValues as _, Setting};

use super::words::{Words, count};

/// Resources in "is … the bottleneck".
const LIMITS: [&str; 12] = [
    "network",
    "memory",
    "memory bandwidth",
    "bandwidth",
    "compute",
    "host",
    "cpu",
    "interconnect",
    "nvlink",
    "communication",
    "infiniband",
    "gpu",
];
/// Hardware in questions about the benefit of more of it.
const HARDWARE: [&str; 10] =
    ["memory bandwidth", "memory", "bandwidth", "network", "interconnect", "links", "compute", "gpus", "hbm", "nvlink"];
/// Adjectives that compare two settings.
const BETTER: [&str; 3] = ["faster", "cheaper", "better"];
/// Terms for model quality, which no engine predicts.
const QUALITY: [&str; 8] = [
    "quality",
    "perplexity",
    "convergence",
    "converge",
    "hurt accuracy",
    "lose accuracy",
    "loss curve",
    "model accuracy",
];

/// Whether a question is about model quality.
pub(super) fn is_of_quality(words: &Words) -> bool {
    QUALITY.iter().any(|phrase| words.has(phrase))
}

/// Words that this module recognizes.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    LIMITS.into_iter().chain(HARDWARE).chain(QUALITY).flat_map(|phrase| phrase.split(' ')).chain([
        "bottleneck",
        "decode",
        "prefill",
        "electricity",
        "handle",
        "each",
        "micro-batches",
        "others",
        "slower",
    ])
}

/// Rewrites a question.
pub(super) fn rewrite_question(words: &mut Words) {
    for limit in LIMITS {
        for end in ["the bottleneck", "a bottleneck", "the limit", "limiting"] {
            if words.begins("is") && words.has(&format!("{limit} {end}")) {
                *words = Words::of("what limits throughput");
                return;
            }
        }
    }
    for hardware in HARDWARE {
        let more = ["faster", "more", "better"].iter().any(|more| words.has(&format!("{more} {hardware}")));
        let factor = words.all().iter().any(|word| word.strip_suffix('x').is_some_and(|n| count(n).is_some()));
        if more && factor && (words.has("help") || words.has("bring")) {
            *words = Words::of("what matters most");
            return;
        }
    }
    // "Why is decode memory bound": the phase is dropped.
    if words.has("bound") {
        for phase in ["decode", "decoding", "prefill", "generation"] {
            words.take(phase);
        }
    }
    // "Why is MFU only 40 percent": the computed value is explained, whatever number is given.
    for only in ["only", "just"] {
        words.rewrite_triples(|first, number, percent| {
            (first == only && count(number).is_some() && percent == "percent").then(|| vec!["low".to_owned()])
        });
        words.rewrite_pairs(|first, number| {
            let share = number.strip_suffix('%').and_then(count).is_some();
            (first == only && share).then(|| vec!["low".to_owned()])
        });
    }
    // "What happens to TTFT if …", "what happens to the cost when …".
    for lead in ["what happens to", "what would happen to", "what will happen to"] {
        if words.begins(lead) {
            for link in ["if", "when", "with", "at"] {
                if let Some(at) = words.all().iter().position(|word| word == link) {
                    let rest: Vec<&str> = words.all().iter().skip(at + 1).map(String::as_str).collect();
                    *words = Words::of(&format!("what if {}", rest.join(" ")));
                    return;
                }
            }
        }
    }
    // "What does chunked prefill bring", "what would fp8 gain".
    for lead in ["what does", "what would", "what do"] {
        for end in ["bring", "gain", "buy me", "buy us", "change"] {
            let ends = words.all().join(" ").ends_with(&format!(" {end}"));
            if words.begins(lead) && ends && words.take(lead) {
                words.take(end);
                *words = Words::of(&format!("would {} help", words.line()));
            }
        }
    }
    for batches in ["more micro-batches", "more microbatches", "more micro batches"] {
        words.replace(batches, &["double", "the", "batch"]);
    }
    for disaggregated in ["disaggregated prefill", "disaggregated serving", "disaggregation", "separate prefill"] {
        words.replace(disaggregated, &["prefill_accelerators"]);
    }
    slower(words);
    // "1000 users at 30 tokens per second each".
    for phrase in ["tokens per second each", "tokens/s each", "tok/s each", "tokens per second per user"] {
        words.rewrite_value(phrase, &[], |value| Some(format!("tokens_per_sec_per_user>={}", count(value)?)));
    }
    // "How many requests per second can 8 H100 serve": the question is for the rate, and 8 is not the rate.
    for phrase in ["how many requests per second", "how many requests a second", "how many rps", "how many qps"] {
        if words.begins(phrase) {
            words.replace(phrase, &["what", "is", "the", "requests_per_sec"]);
            words.take("handle");
            words.take("serve");
        }
    }
    comparison(words);
    goal(words);
    setting(words);
    words.replace("how long would it take", &["how", "long", "does", "it", "take"]);
    // All parameters are trained; nothing is said about recomputation.
    for tuning in ["fine-tuning", "finetuning", "fine-tune", "finetune", "fine tuning", "sft"] {
        words.replace(&format!("full {tuning}"), &["training"]);
        words.replace(&format!("full-parameter {tuning}"), &["training"]);
    }
    for period in ["day", "hour", "minute", "month"] {
        if words.begins(&format!("how many requests per {period}"))
            || words.begins(&format!("how many requests a {period}"))
        {
            words.replace(&format!("how many requests per {period}"), &["what", "is", "the", "requests_per_sec"]);
            words.replace(&format!("how many requests a {period}"), &["what", "is", "the", "requests_per_sec"]);
            words.take("handle");
            words.take("serve");
        }
    }
}

/// "Reduce TTFT to 50 ms": `how do i get ttft under 50 ms`.
fn goal(words: &mut Words) {
    for verb in ["reduce", "lower", "cut", "decrease", "bring", "get"] {
        let Some(rest) = words.line().strip_prefix(&format!("{verb} ")).map(str::to_owned) else { continue };
        let Some((figure, bound)) = rest.split_once(" to ") else { continue };
        if bound.starts_with(|c: char| c.is_ascii_digit() || c == '$') {
            *words = Words::of(&format!("how do i get {figure} under {bound}"));
        }
    }
}

/// "60% utilization", "fp4 weights", "vllm 0.11": settings, which are tried if the question has no other words.
fn setting(words: &mut Words) {
    words.rewrite_pairs(|first, second| match second {
        "utilization" => {
            let share = first.strip_suffix('%').and_then(count)? / 100.0;
            Some(vec![format!("{}={share}", Knob::Utilization.name())])
        }
        "weights" => {
            let format = Knob::Precision.parse(first, &[]).ok()?;
            Some(vec![format!("{}={format}", Knob::Precision.name())])
        }
        release => {
            let numbered = release.starts_with(|c: char| c.is_ascii_digit()) && release.contains('.');
            let software = Software::parse(first).ok().filter(|_| numbered)?;
            Some(vec![format!("{}={}@{release}", Knob::Software.name(), software.family.id)])
        }
    });
    if let [one] = words.all()
        && one.contains('=')
    {
        words.begin_with_what_if();
    }
}

/// "How much faster is B200 than H100": `is B200 faster than H100`.
fn comparison(words: &mut Words) {
    for adjective in BETTER {
        for lead in ["how much", "how many times"] {
            let phrase = format!("{lead} {adjective} is");
            if words.begins(&phrase) && words.has("than") {
                words.replace(&phrase, &["is"]);
                words.replace("than", &[adjective, "than"]);
            }
        }
    }
}

/// Takes the period of "how many tokens per day" and leaves `how many tokens per second`.
pub(super) fn tokens_per_period(words: &mut Words) -> Option<&'static str> {
    if !words.begins("how many tokens") {
        return None;
    }
    for period in ["minute", "hour", "day", "week", "month", "year"] {
        for link in ["per", "a", "in a", "in one", "each", "every"] {
            if words.take(&format!("{link} {period}")) {
                words.replace("how many tokens", &["how", "many", "tokens", "per", "second"]);
                return Some(period);
            }
        }
    }
    None
}

/// "If one GPU is 20% slower than the others": a slow node, which can be simulated.
fn slower(words: &mut Words) {
    let Some(at) = words.all().iter().position(|word| word == "slower") else { return };
    let share = at.checked_sub(1).and_then(|at| words.all().get(at)).and_then(|word| word.strip_suffix('%'));
    let Some(share) = share.and_then(count) else { return };
    let who = ["gpu", "node", "accelerator", "machine", "server", "host", "card"];
    let one = who.iter().any(|who| words.has(&format!("one {who}")) || words.has(&format!("a {who}")));
    if one {
        *words = Words::of(&format!("what if slow_nodes=1 slow_factor={}", 1.0 + share / 100.0));
    }
}

/// Setting implied by a word: a number format, serving software or a sharding.
fn named(word: &str) -> Option<(Knob, Setting)> {
    let sharding = word.replace("zero-", "zero").replace("stage", "");
    if sharding.starts_with("zero") || sharding == "fsdp" {
        return Some((Knob::Sharding, Knob::Sharding.parse(&sharding, &[]).ok()?));
    }
    if let Ok(format) = Knob::Precision.parse(word, &[]) {
        return Some((Knob::Precision, format));
    }
    let software = Software::parse(word).ok()?;
    Some((Knob::Software, Knob::Software.parse(&software.family.id, &[]).ok()?))
}

/// Takes two settings of one knob that a question compares: `vllm and sglang`, `ZeRO-2 vs ZeRO-3`.
pub(super) fn compared(words: &mut Words) -> Option<(Knob, Setting, Setting)> {
    let between = ["and", "or", "vs", "versus", "to", "with", "against"];
    let all = words.all();
    let pair = |at: usize, one: &str, other: &str, length: usize| {
        let ((knob, one), (same, other)) = (named(one)?, named(other)?);
        (knob == same && one != other).then_some((at..at + length, knob, one, other))
    };
    let joined = all.windows(3).enumerate().find_map(|(at, three)| match three {
        [one, link, other] if between.contains(&link.as_str()) => pair(at, one, other, 3),
        _ => None,
    });
    // "Is vLLM faster than SGLang".
    let than = || {
        all.windows(4).enumerate().find_map(|(at, four)| match four {
            [one, better, than, other] if than == "than" && BETTER.contains(&better.as_str()) => {
                pair(at, one, other, 4)
            }
            _ => None,
        })
    };
    let (place, knob, one, other) = joined.or_else(than)?;
    let rest: Vec<String> =
        all.iter().enumerate().filter(|(i, _)| !place.contains(i)).map(|(_, word)| word.clone()).collect();
    *words = Words::of(&rest.join(" "));
    Some((knob, one, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_rewritten_to_supported_forms() {
        let expected = [
            ("is my network the bottleneck", "what limits throughput"),
            ("how much would 2x faster memory help", "what matters most"),
            ("why is decode memory bound", "why is memory bound"),
            ("why is mfu only 40 percent", "why is mfu low"),
            ("why is mfu only 40%", "why is mfu low"),
            ("what happens to ttft if prompts grow to 16k", "what if prompts grow to 16k"),
            ("what does fp8 bring", "would fp8 help"),
            ("what if one gpu is 20% slower than the others", "what if slow_nodes=1 slow_factor=1.2"),
            ("1000 users at 30 tokens per second each", "1000 users at tokens_per_sec_per_user>=30"),
            ("how many requests per second can 8 h100 serve", "what is the requests_per_sec can 8 h100"),
            ("how much faster is b200 than h100", "is b200 faster than h100"),
            ("how much memory for full fine-tuning of llama 8b", "how much memory for training of llama 8b"),
            ("how long would it take to serve", "how long does it take to serve"),
            ("reduce ttft to 50 ms", "how do i get ttft under 50 ms"),
            ("60% utilization", "what if utilization=0.6"),
            ("fp4 weights", "what if precision=fp4"),
            ("vllm 0.11", "what if software=vllm@0.11"),
            ("how many requests per day can one node handle", "what is the requests_per_sec can one node"),
        ];
        for (line, wanted) in expected {
            let mut words = Words::of(line);
            rewrite_question(&mut words);
            assert_eq!(words.line(), wanted, "{line}");
        }
    }

    #[test]
    fn two_settings_of_one_knob_are_compared_and_two_targets_are_not() {
        let knob = |line: &str| compared(&mut Words::of(line)).map(|(knob, ..)| knob);
        assert_eq!(knob("compare vllm and sglang"), Some(Knob::Software));
        assert_eq!(knob("difference between zero-2 and zero-3 here"), Some(Knob::Sharding));
        assert_eq!(knob("fp8 vs bf16"), Some(Knob::Precision));
        assert_eq!(knob("is vllm faster than sglang"), Some(Knob::Software));
        assert_eq!(knob("is h200 faster than h100"), None);
        assert_eq!(knob("compare h100 and h200"), None);
        assert_eq!(knob("fp8 or vllm"), None);
    }
}
