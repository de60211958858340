//! Settings and numbers in colloquial form, without the name of a knob: `fp8`, `sglang`, `zero3`, `tp8`, `1000 users`.

use atlas_catalog::software::Software;
use atlas_plan::knob::{KNOBS, Knob, KnobValues as _, Setting, ValueType};

/// Parallelism knobs, whose values are often written without a sign: `tp8`.
const LAYOUT: [Knob; 6] = [Knob::Tp, Knob::Pp, Knob::Dp, Knob::Cp, Knob::Ep, Knob::Vpp];

/// Parses a parallelism knob joined with its value: `tp8`, `pp2`.
pub(super) fn knob_with_value(word: &str) -> Option<(Knob, Setting)> {
    let (name, value) = word.split_at_checked(word.find(|c: char| c.is_ascii_digit())?)?;
    let knob = LAYOUT.into_iter().find(|knob| knob.name() == name)?;
    Some((knob, knob.parse(value, &[]).ok()?))
}

/// Setting implied by a word alone: a number format, serving software, or a choice that only one knob offers.
pub(super) fn implied_setting(word: &str) -> Option<(Knob, Setting)> {
    let set = |knob: Knob| Some((knob, knob.parse(word, &[]).ok()?));
    let offers = |choices: &[&str]| choices.iter().any(|choice| choice.eq_ignore_ascii_case(word));
    let only = || {
        let mut offering = KNOBS.iter().filter(|spec| matches!(spec.kind, ValueType::Choice(all) if offers(all)));
        let first = offering.next()?;
        offering.next().is_none().then_some(first.knob)
    };
    let software = || Software::find(word).and_then(|_| set(Knob::Software));
    set(Knob::Precision).or_else(software).or_else(|| set(only()?))
}

/// Knob implied by a noun after a number: `1000 users`, `8k context`, `4 nodes`.
pub(super) fn knob_of_noun(noun: &str) -> Option<Knob> {
    let name = match noun {
        "context" | "input" => Knob::Prompt.name(),
        "output" => Knob::Generate.name(),
        "user" | "concurrent" => Knob::Concurrency.name(),
        "node" => Knob::NumNodes.name(),
        noun => noun,
    };
    let knob = Knob::find(name)?;
    matches!(knob.spec().kind, ValueType::Number { .. }).then_some(knob)
}

/// Whether a word stands for accelerators of any kind.
pub(super) fn is_any_accelerator(word: &str) -> bool {
    matches!(word, "gpu" | "gpus" | "accelerator" | "accelerators" | "device" | "devices" | "chips")
}

/// Converts a small number word to digits.
pub(super) fn digits(word: &str) -> Option<&'static str> {
    Some(match word {
        "one" | "single" => "1",
        "two" => "2",
        "three" => "3",
        "four" => "4",
        "six" => "6",
        "eight" => "8",
        "sixteen" => "16",
        _ => return None,
    })
}

/// Whether a word is the size of a model: `70b`, `1.5b`.
pub(super) fn is_size(word: &str) -> bool {
    let digits = |text: &str| text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok();
    word.strip_suffix('b').is_some_and(|size| size.rsplit('x').all(digits))
}
