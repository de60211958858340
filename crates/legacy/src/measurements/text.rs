//! Extraction of numbers and phrases from the text of a row.

/// Parses a number with or without a unit. Also returns whether it was plain: `8` is plain; `8 GPUs`, `1,024` and `16k`
/// are not.
pub(super) fn quantity(text: &str) -> Option<(f64, bool)> {
    let text = text.trim();
    let finite = |x: f64| x.is_finite().then_some(x);
    if let Ok(value) = text.parse::<f64>() {
        return finite(value).map(|value| (value, true));
    }
    let text = text.trim_start_matches('~').trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+'))).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    let grouped = digits.contains(',');
    if grouped && !digits.split(',').skip(1).all(|group| group.split('.').next().is_some_and(|g| g.len() == 3)) {
        return None;
    }
    let value: f64 = digits.replace(',', "").parse().ok()?;
    let unit = unit.trim().to_ascii_lowercase();
    let scale = match unit.as_str() {
        "k" => 1024.0,
        "m" => 1024.0 * 1024.0,
        "%" => 0.01,
        _ if unit.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '/' | ' ' | '.')) => 1.0,
        _ => return None,
    };
    finite(value * scale).map(|value| (value, false))
}

/// Finds a number under a short name, as in `TP8`, `EP=32`, `VPP 6` or `mbs 1`. Skips clauses that call their numbers
/// contradictory.
pub(super) fn number_in_notes(text: &str, name: &str) -> Option<f64> {
    text.split(';').filter(|clause| !is_disclaimed(clause)).find_map(|clause| number_in_clause(clause, name))
}

/// Whether a clause says that its numbers are contradictory or do not apply.
fn is_disclaimed(clause: &str) -> bool {
    ["does not multiply", "does not match", "inconsistent", "cannot use", "expert TP"]
        .iter()
        .any(|w| clause.contains(w))
}

fn number_in_clause(clause: &str, name: &str) -> Option<f64> {
    let mut words = clause.split(|ch: char| !(ch.is_ascii_alphanumeric() || ch == '=')).peekable();
    while let Some(word) = words.next() {
        let Some(head) = word.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name)) else { continue };
        let rest = word.get(head.len()..).unwrap_or_default().trim_start_matches('=');
        let number = if rest.is_empty() { words.peek().copied().unwrap_or_default() } else { rest };
        if let Some(found) = number.parse::<f64>().ok().filter(|found| *found >= 1.0) {
            return Some(found);
        }
    }
    None
}

/// Returns the number before a phrase, as in `1000 prompts sent at once`. Uses the first occurrence of the phrase that
/// follows a number.
pub(super) fn number_before(text: &str, phrase: &str) -> Option<f64> {
    text.match_indices(phrase).find_map(|(at, _)| {
        let word = text.get(..at)?.trim_end().rsplit([' ', '/', ',', '(', '~']).next()?;
        word.parse().ok().filter(|x: &f64| x.is_finite())
    })
}

/// Returns the number after a phrase, as in `context depth 16384`. Uses the first occurrence of the phrase that a
/// number follows.
pub(super) fn number_after(text: &str, phrase: &str) -> Option<f64> {
    text.match_indices(phrase).find_map(|(at, _)| {
        let rest = text.get(at + phrase.len()..)?.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest.get(..end)?.trim_end_matches('.').parse().ok()
    })
}

/// Returns the first clause of semicolon-separated notes that contains a phrase, truncated to 90 characters, for
/// quoting as a reason.
pub(super) fn clause<'a>(text: &'a str, phrase: &'a str) -> &'a str {
    let found = text.split(';').find(|clause| clause.contains(phrase)).unwrap_or(phrase).trim();
    let end = found.char_indices().nth(90).map_or(found.len(), |(at, _)| at);
    found.get(..end).unwrap_or(found)
}

/// Lowercases a word and removes separators, so that `ZeRO-3`, `zero_3` and `zero3` are equal.
pub(super) fn normalize_word(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|ch| ch.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantity_parses_number_and_strips_unit() {
        assert_eq!(quantity("8"), Some((8.0, true)));
        assert_eq!(quantity("1,024"), Some((1024.0, false)));
        assert_eq!(quantity("80 GB"), Some((80.0, false)));
        assert_eq!(quantity("8 GPUs"), Some((8.0, false)));
        assert_eq!(quantity("16k"), Some((16384.0, false)));
        assert_eq!(quantity("43.5 %"), Some((0.435, false)));
        for text in ["", "eight", "4x8", "1,2,3", "inf", "nan", "8 (2x4)"] {
            assert_eq!(quantity(text), None, "{text}");
        }
    }

    #[test]
    fn noted_finds_numbers_in_free_text_notes() {
        let notes = "conf 175b.yaml at that commit: TP8 PP16 VPP6 mbs 1 gbs 2048 SP; EP=32, attempt 3";
        assert_eq!(number_in_notes(notes, "tp"), Some(8.0));
        assert_eq!(number_in_notes(notes, "vpp"), Some(6.0));
        assert_eq!(number_in_notes(notes, "gbs"), Some(2048.0));
        assert_eq!(number_in_notes(notes, "ep"), Some(32.0));
        assert_eq!(number_in_notes(notes, "cp"), None);
        assert_eq!(number_in_notes("EPYC, MPI, CPU 96", "cp"), None);
    }

    #[test]
    fn noted_ignores_retracted_and_expert_parallel_sizes() {
        assert_eq!(number_in_notes("source topology \"TP=8 PP=4\" does not multiply to 32 cores", "tp"), None);
        assert_eq!(number_in_notes("expert TP=2; TP4", "tp"), Some(4.0));
    }

    #[test]
    fn numbers_are_found_before_and_after_phrases() {
        assert_eq!(number_before("vllm bench serve, 1000 prompts sent at once", " prompts sent at once"), Some(1000.0));
        assert_eq!(number_after("tg32 at context depth 16384 (decode only)", "context depth "), Some(16384.0));
        assert_eq!(number_after("context depth", "context depth "), None);
        assert_eq!(clause("a; b c; d", "c"), "b c");
    }
}
