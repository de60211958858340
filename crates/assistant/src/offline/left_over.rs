//! Parsing of the words that remain of a question after topic and metric are taken: workload, hardware, settings and
//! constraints in the query grammar.

use atlas_catalog::software::Software;
use atlas_plan::knob::{Knob, KnobValues as _};

use super::Refusal;
use super::topic::Topic;
use super::words::{Words, count};
use crate::{Known, Question, parse};

/// Words without significance in the remaining text.
const INSIGNIFICANT_WORDS: [&str; 52] = [
    "not",
    "higher",
    "high",
    "low",
    "big",
    "large",
    "long",
    "take",
    "takes",
    "fit",
    "fits",
    "enough",
    "gpu",
    "gpus",
    "accelerator",
    "accelerators",
    "card",
    "cards",
    "chip",
    "chips",
    "instead",
    "switch",
    "move",
    "change",
    "changes",
    "most",
    "only",
    "computed",
    "calculated",
    "than",
    "better",
    "best",
    "figure",
    "figures",
    "value",
    "still",
    "about",
    "hardware",
    "target",
    "targets",
    "one",
    "work",
    "make",
    "makes",
    "going",
    "go",
    "by",
    "total",
    "faster",
    "cheaper",
    "reach",
    "draw",
];

/// Words that this module recognizes.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    INSIGNIFICANT_WORDS.into_iter()
}

/// Parses the remaining words with the query grammar.
pub(super) fn subject(mut words: Words, known: &Known, topic: Topic) -> Result<Question, Refusal> {
    for phrase in ["requests per second", "queries per second", "requests/s", "req/s", "requests a second", "qps"] {
        while words.replace(phrase, &["rps"]) {}
    }
    let plural = |word: &str| {
        let one = word.strip_suffix('s')?;
        let named = |word: &str| known.names_target(word) || known.names_workload(word);
        (!named(word) && named(one) && one.len() > 2).then(|| vec![one.to_owned()])
    };
    words.rewrite(plural);
    words.rewrite_pairs(|first, second| {
        let number = count(first)?;
        let set = |name: &str| Some(vec![format!("{name}={number}")]);
        match second {
            "node" | "nodes" | "machine" | "machines" | "server" | "servers" => set("num_nodes"),
            "user" | "users" => set("concurrency"),
            "rps" => set("request_rate"),
            name if known.names_target(name) && !name.contains('=') => Some(vec![number.to_string(), name.to_owned()]),
            _ => None,
        }
    });
    words.rewrite(|word| {
        let format = Knob::Precision.parse(word, &[]).is_ok() && !known.names_workload(word);
        // `mistral-nemo-12b` is a model, although NeMo is software.
        let model = || known.model_named(&[word.to_owned()]).is_some();
        let software =
            || Software::parse(word).is_ok() && !known.names_workload(word) && !known.names_target(word) && !model();
        if format {
            Some(vec![format!("precision={word}")])
        } else if !word.contains(['=', '<', '>']) && software() {
            Some(vec![format!("software={word}")])
        } else {
            None
        }
    });
    let words = words.without_fillers();
    let mut kept = words;
    for word in INSIGNIFICANT_WORDS {
        let objective = topic == Topic::Rank && matches!(word, "fits" | "fit");
        if !objective {
            while kept.take(word) {}
        }
    }
    Ok(parse(&kept.line(), known)?)
}
