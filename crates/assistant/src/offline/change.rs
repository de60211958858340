//! Changes in natural language: `prices fall by a third`, `electricity doubles`, `tp=8`.

use atlas_config::Mode;
use atlas_plan::knob::Knob;

use super::words::{Words, count};

/// A quantity that is scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScaledQuantity {
    /// What is multiplied.
    pub(super) of: Quantity,
    /// Factor.
    pub(super) factor: f64,
}

/// A knob, or the load, which is a request rate or a number of concurrent requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    Knob(Knob),
    Load,
    Batch,
}

impl Quantity {
    /// Knob that the quantity corresponds to.
    pub(super) fn knob(self, mode: Mode, open_load: bool) -> Knob {
        match (self, mode) {
            (Quantity::Knob(knob), _) => knob,
            (Quantity::Load, _) if open_load => Knob::RequestRate,
            (Quantity::Load, _) | (Quantity::Batch, Mode::Inference) => Knob::Concurrency,
            (Quantity::Batch, Mode::Training) => Knob::Global,
        }
    }
}

const QUANTITIES: [(&str, Quantity); 47] = [
    ("cost of electricity", Quantity::Knob(Knob::UsdPerKwh)),
    ("cost of energy", Quantity::Knob(Knob::UsdPerKwh)),
    ("cost of power", Quantity::Knob(Knob::UsdPerKwh)),
    ("electricity costs", Quantity::Knob(Knob::UsdPerKwh)),
    ("energy costs", Quantity::Knob(Knob::UsdPerKwh)),
    ("power costs", Quantity::Knob(Knob::UsdPerKwh)),
    ("power price", Quantity::Knob(Knob::UsdPerKwh)),
    ("electricity prices", Quantity::Knob(Knob::UsdPerKwh)),
    ("electricity price", Quantity::Knob(Knob::UsdPerKwh)),
    ("energy prices", Quantity::Knob(Knob::UsdPerKwh)),
    ("energy price", Quantity::Knob(Knob::UsdPerKwh)),
    ("power prices", Quantity::Knob(Knob::UsdPerKwh)),
    ("price of electricity", Quantity::Knob(Knob::UsdPerKwh)),
    ("price of energy", Quantity::Knob(Knob::UsdPerKwh)),
    ("price of power", Quantity::Knob(Knob::UsdPerKwh)),
    ("electricity", Quantity::Knob(Knob::UsdPerKwh)),
    ("gpu prices", Quantity::Knob(Knob::HourlyUsd)),
    ("gpu price", Quantity::Knob(Knob::HourlyUsd)),
    ("rental prices", Quantity::Knob(Knob::HourlyUsd)),
    ("rental price", Quantity::Knob(Knob::HourlyUsd)),
    ("hourly price", Quantity::Knob(Knob::HourlyUsd)),
    ("prices", Quantity::Knob(Knob::HourlyUsd)),
    ("price", Quantity::Knob(Knob::HourlyUsd)),
    ("rental", Quantity::Knob(Knob::HourlyUsd)),
    ("rent", Quantity::Knob(Knob::HourlyUsd)),
    ("request rate", Quantity::Load),
    ("traffic", Quantity::Load),
    ("load", Quantity::Load),
    ("concurrency", Quantity::Knob(Knob::Concurrency)),
    ("users", Quantity::Knob(Knob::Concurrency)),
    ("global batch", Quantity::Knob(Knob::Global)),
    ("batch size", Quantity::Batch),
    ("batch", Quantity::Batch),
    ("prompt length", Quantity::Knob(Knob::Prompt)),
    ("input length", Quantity::Knob(Knob::Prompt)),
    ("context length", Quantity::Knob(Knob::Prompt)),
    ("sequence length", Quantity::Knob(Knob::Prompt)),
    ("prompts", Quantity::Knob(Knob::Prompt)),
    ("prompt", Quantity::Knob(Knob::Prompt)),
    ("context", Quantity::Knob(Knob::Prompt)),
    ("output length", Quantity::Knob(Knob::Generate)),
    ("outputs", Quantity::Knob(Knob::Generate)),
    ("output", Quantity::Knob(Knob::Generate)),
    ("answers", Quantity::Knob(Knob::Generate)),
    ("network bandwidth", Quantity::Knob(Knob::NetworkGbps)),
    ("network", Quantity::Knob(Knob::NetworkGbps)),
    ("nodes", Quantity::Knob(Knob::NumNodes)),
];

const DECREASE_WORDS: [&str; 20] = [
    "fall",
    "falls",
    "fell",
    "drop",
    "drops",
    "dropped",
    "decrease",
    "decreases",
    "decline",
    "declines",
    "shrink",
    "shrinks",
    "go down",
    "goes down",
    "went down",
    "lower",
    "cheaper",
    "less",
    "reduced",
    "shorter",
];
const INCREASE_WORDS: [&str; 22] = [
    "rise",
    "rises",
    "rose",
    "increase",
    "increases",
    "increased",
    "grow",
    "grows",
    "grew",
    "climb",
    "climbs",
    "go up",
    "goes up",
    "went up",
    "higher",
    "costlier",
    "more expensive",
    "more",
    "faster",
    "longer",
    "larger",
    "bigger",
];
const TIMES: [(&str, f64); 17] = [
    ("doubles", 2.0),
    ("doubled", 2.0),
    ("double", 2.0),
    ("twice", 2.0),
    ("triples", 3.0),
    ("tripled", 3.0),
    ("triple", 3.0),
    ("quadruples", 4.0),
    ("quadrupled", 4.0),
    ("quadruple", 4.0),
    ("halves", 0.5),
    ("halved", 0.5),
    ("halve", 0.5),
    ("half", 0.5),
    ("tenfold", 10.0),
    ("threefold", 3.0),
    ("twofold", 2.0),
];

/// Words that this module recognizes.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    let quantities = QUANTITIES.iter().flat_map(|(phrase, _)| phrase.split(' '));
    quantities
        .chain(DECREASE_WORDS.into_iter().chain(INCREASE_WORDS).flat_map(|phrase| phrase.split(' ')))
        .chain(TIMES.map(|(word, _)| word))
}

/// Takes a factor such as `halve` or `double`, by which a metric is to change.
pub(super) fn times(words: &mut Words) -> Option<f64> {
    if words.take("in half") {
        return Some(0.5);
    }
    TIMES.iter().find(|(word, _)| words.take(word)).map(|(_, times)| *times)
}

/// Takes `QUANTITY VERB [by] SHARE` from a question.
pub(super) fn take(words: &mut Words) -> Option<ScaledQuantity> {
    let mut rest = words.clone();
    let of = QUANTITIES.iter().find(|(phrase, _)| rest.take(phrase)).map(|(_, quantity)| *quantity)?;
    let down = DECREASE_WORDS.iter().any(|verb| rest.take(verb));
    let up = !down && INCREASE_WORDS.iter().any(|verb| rest.take(verb));
    let factor = if down || up {
        let by = share(&mut rest)?;
        match (by, down) {
            (ChangeAmount::Share(share), true) => 1.0 - share,
            (ChangeAmount::Share(share), false) => 1.0 + share,
            (ChangeAmount::Times(times), true) => 1.0 / times,
            (ChangeAmount::Times(times), false) => times,
        }
    } else {
        match TIMES.iter().find(|(word, _)| rest.take(word)) {
            Some((_, times)) => *times,
            None => return None,
        }
    };
    for word in ["by", "as", "times", "as much", "as many", "size", "expensive"] {
        rest.take(word);
    }
    *words = rest;
    (factor > 0.0 && factor.is_finite()).then_some(ScaledQuantity { of, factor })
}

/// Amount of the change.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ChangeAmount {
    Share(f64),
    Times(f64),
}

/// Takes an amount: `a third`, `20%`, `30 percent`, `a factor of 3`, `3x`.
fn share(words: &mut Words) -> Option<ChangeAmount> {
    const SHARES: [(&str, f64); 12] = [
        ("two thirds", 2.0 / 3.0),
        ("three quarters", 0.75),
        ("a third", 1.0 / 3.0),
        ("one third", 1.0 / 3.0),
        ("a quarter", 0.25),
        ("one quarter", 0.25),
        ("a fifth", 0.2),
        ("a tenth", 0.1),
        ("a half", 0.5),
        ("half", 0.5),
        ("third", 1.0 / 3.0),
        ("quarter", 0.25),
    ];
    if let Some((_, share)) = SHARES.iter().find(|(phrase, _)| words.take(phrase)) {
        return Some(ChangeAmount::Share(*share));
    }
    let factor = words.take("a factor of") || words.take("factor of");
    let (word, by) = words.all().iter().find_map(|word| {
        if let Some(percent) = word.strip_suffix('%').and_then(count) {
            return Some((word.clone(), ChangeAmount::Share(percent / 100.0)));
        }
        if let Some(times) = word.strip_suffix('x').and_then(count) {
            return Some((word.clone(), ChangeAmount::Times(times)));
        }
        let number = count(word)?;
        Some((word.clone(), if factor { ChangeAmount::Times(number) } else { ChangeAmount::Share(number / 100.0) }))
    })?;
    let percent = ["percent", "per"].iter().any(|unit| words.has(&format!("{word} {unit}")));
    let plain = matches!(by, ChangeAmount::Share(_)) && !word.ends_with('%');
    // A number without a unit would be ambiguous, such as dollars.
    if plain && !percent {
        return None;
    }
    words.take(&word);
    let _ = words.take("percent") || words.take("per cent");
    Some(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_changes_in_words_are_parsed_as_factors() {
        let expected = [
            ("prices fall by a third", Some((Quantity::Knob(Knob::HourlyUsd), 2.0 / 3.0))),
            ("electricity prices double", Some((Quantity::Knob(Knob::UsdPerKwh), 2.0))),
            ("the price drops 20%", Some((Quantity::Knob(Knob::HourlyUsd), 0.8))),
            ("prices rise by 50 percent", Some((Quantity::Knob(Knob::HourlyUsd), 1.5))),
            ("power costs double", Some((Quantity::Knob(Knob::UsdPerKwh), 2.0))),
            ("electricity is twice as expensive", Some((Quantity::Knob(Knob::UsdPerKwh), 2.0))),
            ("the power price triples", Some((Quantity::Knob(Knob::UsdPerKwh), 3.0))),
            ("traffic doubles", Some((Quantity::Load, 2.0))),
            ("prices fall by a factor of 4", Some((Quantity::Knob(Knob::HourlyUsd), 0.25))),
            ("prices are halved", Some((Quantity::Knob(Knob::HourlyUsd), 0.5))),
            ("prices fall by 3", None),
            ("prices fall", None),
            ("tp=8", None),
        ];
        for (line, change) in expected {
            let found = take(&mut Words::of(line)).map(|scaled| (scaled.of, scaled.factor));
            let same = match (found, change) {
                (Some((a, x)), Some((b, y))) => a == b && f64::abs(x - y) < 1e-12,
                (found, change) => found.is_none() && change.is_none(),
            };
            assert!(same, "{line}: {found:?}");
        }
    }
}
