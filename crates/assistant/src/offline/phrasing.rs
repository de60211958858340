//! Rewrites other spellings and word orders to the query grammar of the command line.

use atlas_catalog::software::Software;
use atlas_core::sort;
use atlas_plan::knob::{Knob, KnobValues as _};

use super::words::{Words, count};
use super::{change, idioms, left_over, mtbf, named_metric, power, rephrased, topic, words};
use crate::{Known, Objective};

/// Names of prompt and output lengths.
const LENGTHS: [(&str, Knob); 24] = [
    ("context length", Knob::Prompt),
    ("context window", Knob::Prompt),
    ("sequence length", Knob::Prompt),
    ("prompt length", Knob::Prompt),
    ("input length", Knob::Prompt),
    ("input tokens", Knob::Prompt),
    ("prompt tokens", Knob::Prompt),
    ("output length", Knob::Generate),
    ("output tokens", Knob::Generate),
    ("answer length", Knob::Generate),
    ("generated tokens", Knob::Generate),
    ("batch size", Knob::Concurrency),
    ("context", Knob::Prompt),
    ("contexts", Knob::Prompt),
    ("prompts", Knob::Prompt),
    ("prompt", Knob::Prompt),
    ("inputs", Knob::Prompt),
    ("input", Knob::Prompt),
    ("outputs", Knob::Generate),
    ("output", Knob::Generate),
    ("answers", Knob::Generate),
    ("users", Knob::Concurrency),
    ("concurrency", Knob::Concurrency),
    ("batch", Knob::Concurrency),
];
/// Words that may occur between the name of a length and its value.
const WORDS_BEFORE_VALUE: [&str; 18] = [
    "is",
    "are",
    "was",
    "were",
    "of",
    "to",
    "at",
    "be",
    "grow",
    "grows",
    "go",
    "goes",
    "increase",
    "increases",
    "rise",
    "rises",
    "have",
    "=",
];
/// Nouns for clients that send requests.
const USERS: [&str; 10] =
    ["users", "user", "clients", "client", "people", "sessions", "streams", "requests", "sequences", "chats"];
/// Words for concurrency.
const CONCURRENCY_WORDS: [&str; 6] =
    ["concurrent", "simultaneous", "parallel", "active", "concurrently", "simultaneously"];
const ACCELERATORS: [&str; 9] =
    ["gpus", "gpu", "accelerators", "accelerator", "cards", "chips", "devices", "tpus", "dies"];
/// Units of the answer, which are ignored: the answer has its own.
const UNITS: [&str; 18] = [
    "kw",
    "kilowatts",
    "watts",
    "w",
    "mw",
    "usd",
    "dollars",
    "$",
    "hours",
    "days",
    "weeks",
    "gb",
    "gib",
    "ms",
    "seconds",
    "percent",
    "joules",
    "joule",
];
/// Numbers of tokens below this are a sequence length, others the length of a training run.
const LONGEST_LENGTH: f64 = 1e8;
/// Phrases of questions for the cost or duration of a number of tokens, which is then at least this number.
const VOLUMES: [&str; 12] = [
    "cost",
    "costs",
    "price",
    "expensive",
    "how long",
    "how many days",
    "how many hours",
    "how many weeks",
    "how many months",
    "to serve",
    "to generate",
    "to process",
];
const SMALLEST_VOLUME: f64 = 1e6;

/// Parses a number with a scale suffix: `15t`, `128k`, `1_000`.
fn scaled(word: &str) -> Option<f64> {
    if let Some(number) = count(word) {
        return Some(number);
    }
    let scale = match word.chars().last()? {
        'm' => 1e6,
        'b' => 1e9,
        't' => 1e12,
        _ => return None,
    };
    count(word.strip_suffix(['m', 'b', 't'])?).map(|number| number * scale)
}

/// Rewrites lengths, loads and sizes to settings, and bounds to the order `METRIC RELATION VALUE`.
pub(super) fn rewrite_settings(words: &mut Words) {
    power::rewrite_power(words);
    rephrased::rewrite_question(words);
    idioms::rewrite_jargon(words);
    for (written, scale) in [("million", "m"), ("billion", "b"), ("trillion", "t"), ("thousand", "k")] {
        words.rewrite_pairs(|first, second| {
            (second == written && count(first).is_some()).then(|| vec![format!("{first}{scale}")])
        });
    }
    for (amount, unit) in [("1m", "tokens"), ("a million", "tokens"), ("1m", "token"), ("million", "token")] {
        while words.replace(&format!("per {amount} {unit}"), &["per", "million", "tokens"]) {}
    }
    // The phrase belongs to cost metrics only.
    if !["cost", "price", "dollars"].iter().any(|figure| words.has(&format!("{figure} per million tokens"))) {
        while words.take("per million tokens") {}
    }
    // `tp 2 instead of 4`: the current value need not be named.
    words.rewrite_triples(|instead, of, value| {
        let plain = count(value).is_some() || Knob::Precision.parse(value, &[]).is_ok();
        (instead == "instead" && of == "of" && plain).then(Vec::new)
    });
    // `vllm or sglang?`, `fp8 or bf16?` without further words.
    let program = |word: &str| Software::parse(word).is_ok() || Knob::Precision.parse(word, &[]).is_ok();
    if let [one, or, other] = words.all()
        && or == "or"
        && program(one)
        && program(other)
    {
        words.begin_with_what_if();
    }
    for unit in UNITS {
        words.take(&format!("in {unit}"));
    }
    for word in CONCURRENCY_WORDS {
        for who in USERS {
            while words.replace(&format!("{word} {who}"), &["users"]) {}
            while words.replace(&format!("{who} {word}"), &["users"]) {}
        }
    }
    // The number may be before or after the name: `32k context`, `a context of 32k`, `4k output tokens`.
    words.rewrite_pairs(|number, of| {
        let value = scaled(number)?;
        let users = USERS.contains(&of) && of != "requests";
        users.then(|| vec![format!("concurrency={value}")])
    });
    for (phrase, knob) in LENGTHS {
        words.rewrite_value(phrase, &WORDS_BEFORE_VALUE, |value| Some(format!("{}={}", knob.name(), scaled(value)?)));
    }
    words.rewrite_pairs(|set, tokens| {
        let spoken = set.contains('=') && matches!(tokens, "tokens" | "token" | "tok");
        spoken.then(|| vec![set.to_owned()])
    });
    // A million tokens are a prompt in "does it fit with 1M tokens", but not in "how much do 1M tokens cost".
    let longest = if VOLUMES.iter().any(|phrase| words.has(phrase)) { SMALLEST_VOLUME } else { LONGEST_LENGTH };
    words.rewrite_pairs(|number, tokens| {
        let value = scaled(number).filter(|_| matches!(tokens, "tokens" | "token" | "tok"))?;
        let knob = if value < longest { Knob::Prompt } else { Knob::TrainTokens };
        Some(vec![format!("{}={value}", knob.name())])
    });
    named_metric::name_bounded(words);
    bounds(words);
}

/// Moves a metric in front of its bound: `under 50 ms tpot`, `at 30ms ttft`.
fn bounds(words: &mut Words) {
    const RELATIONS: [&str; 9] = ["under", "below", "within", "at", "over", "above", "<", "<=", ">"];
    words.rewrite_pairs(|number, unit| {
        let joined = count(number).is_some() && matches!(unit, "ms" | "s" | "us");
        joined.then(|| vec![format!("{number}{unit}")])
    });
    for relation in RELATIONS {
        words.rewrite_triples(|first, bound, figure| {
            let quantity = bound.starts_with(|c: char| c.is_ascii_digit() || c == '$');
            let named = first == relation && quantity && named_metric::of_word(figure).is_some();
            let sign = if relation == "at" { "<=" } else { relation };
            named.then(|| vec![figure.to_owned(), sign.to_owned(), bound.to_owned()])
        });
    }
}

/// Rewrites numbers of accelerators to numbers of nodes with `per_node` accelerators each.
pub(super) fn nodes(words: &mut Words, per_node: u32) {
    words.rewrite_pairs(|number, what| {
        let number = count(number).filter(|number| ACCELERATORS.contains(&what) && *number > 0.0)?;
        let nodes = number / f64::from(per_node.max(1));
        (nodes.fract() == 0.0).then(|| vec![format!("num_nodes={nodes}")])
    });
}

/// Corrects misspelled words, and returns notes about the corrections.
pub(super) fn correct_spelling(words: &mut Words, known: &Known) -> Vec<String> {
    let vocabulary: Vec<&str> = topic::vocabulary()
        .chain(named_metric::vocabulary())
        .chain(change::vocabulary())
        .chain(left_over::vocabulary())
        .chain(words::vocabulary())
        .chain(idioms::vocabulary())
        .chain(rephrased::vocabulary())
        .chain(mtbf::vocabulary())
        .chain(power::vocabulary())
        .chain(LENGTHS.iter().flat_map(|(phrase, _)| phrase.split(' ')))
        .chain(USERS.into_iter().chain(CONCURRENCY_WORDS).chain(ACCELERATORS))
        .chain(["serve", "serving", "train", "training", "inference", "tokens", "second", "million", "nodes"])
        .chain(Objective::ALL.into_iter().map(Objective::word))
        .collect();
    let means = |word: &str| {
        vocabulary.contains(&word)
            || word.contains(|c: char| !c.is_alphabetic())
            || known.names_target(word)
            || known.names_workload(word)
            || known.names_model(&[], word, None)
            || Knob::find(word).is_some()
            || named_metric::of_word(word).is_some()
            || Software::parse(word).is_ok()
            || Knob::Precision.parse(word, &[]).is_ok()
    };
    let mut notes = Vec::new();
    words.rewrite(|word| {
        // Few corrections are allowed, so that an unknown name is not changed to another word.
        let max_distance = match word.chars().count() {
            0..=2 => return None,
            3..=6 => 1,
            _ => 2,
        };
        if means(word) {
            return None;
        }
        let distance = |known: &&str| strsim::osa_distance(word, known);
        let near = vocabulary.iter().copied().filter(|known| known.len() > 2).min_by_key(distance)?;
        // The first letter is rarely wrong, except when two letters are swapped.
        let swapped = word.chars().nth(1) == near.chars().next();
        let begins = word.chars().next() == near.chars().next() || swapped;
        // In words of three letters, only swapped letters are corrected: many words of three letters are similar.
        let letters = |word: &str| {
            let mut all: Vec<char> = word.chars().collect();
            sort::ascending(&mut all);
            all
        };
        let same = word.chars().count() > 3 || letters(word) == letters(near);
        (begins && same && distance(&near) <= max_distance).then(|| {
            notes.push(format!("`{word}` is read as `{near}`."));
            vec![near.to_owned()]
        })
    });
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reordered_phrases_are_rewritten_to_settings_and_bounds() {
        let expected = [
            ("does it fit with 32k context and 64 users", "does it fit with prompt=32000 and concurrency=64"),
            ("what if context is 128k", "what if prompt=128000"),
            ("prompts of 4096 and 512 output tokens", "prompt=4096 and generate=512"),
            ("1000 concurrent users", "concurrency=1000"),
            ("train on 15T tokens", "train on train_tokens=15000000000000"),
            ("15 trillion tokens", "train_tokens=15000000000000"),
            ("how much does it cost to serve 1 million tokens", "how much does it cost to serve train_tokens=1000000"),
            ("does it fit with 1M tokens", "does it fit with prompt=1000000"),
            ("what would it cost per 1M tokens", "what would it cost per million tokens"),
            ("the carbon footprint per 1M tokens", "the carbon footprint"),
            ("which gpu is cheapest under 50 ms tpot", "which gpu is cheapest tpot under 50ms"),
            ("how many users at 30ms tpot", "how many users tpot <= 30ms"),
            ("how much power in kW", "how much power"),
        ];
        for (line, rewritten_to) in expected {
            let mut words = Words::of(line);
            rewrite_settings(&mut words);
            assert_eq!(words.line(), rewritten_to, "{line}");
        }
    }

    #[test]
    fn misspelled_words_are_corrected_and_names_are_kept() {
        let known = Known::default();
        let mut words = Words::of("hwo many usres under wibble with the bottelneck of mixtral");
        let notes = correct_spelling(&mut words, &known);
        assert_eq!(words.line(), "how many users under wibble with the bottleneck of mixtral");
        assert_eq!(notes.len(), 3, "{notes:?}");
    }
}
