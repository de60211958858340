//! Splitting of a line into words and signs.

/// A token of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A word, as typed.
    Word(String),
    /// A relation: `<`, `<=`, `>`, `>=`, `=`, `==`, `!=`.
    Sign(&'static str),
    /// Separator of list members.
    Comma,
}

/// Parses words that stand for a relation; returns its sign and the number of words.
fn relation_in_words(first: &str, second: Option<&str>) -> Option<(&'static str, usize)> {
    Some(match (first, second) {
        ("at", Some("most")) | ("up", Some("to")) => ("<=", 2),
        ("at", Some("least")) => (">=", 2),
        ("less" | "lower", Some("than")) => ("<", 2),
        ("more" | "higher", Some("than")) => (">", 2),
        ("under" | "below" | "within", _) => ("<", 1),
        ("over" | "above", _) => (">", 1),
        ("max" | "maximum", _) => ("<=", 1),
        ("min" | "minimum", _) => (">=", 1),
        _ => return None,
    })
}

/// Splits a line into tokens.
pub(super) fn split(line: &str) -> Vec<Piece> {
    let mut raw: Vec<Piece> = Vec::new();
    let mut word = String::new();
    let mut sign = String::new();
    let end_word = |word: &mut String, raw: &mut Vec<Piece>| {
        if !word.is_empty() {
            raw.push(Piece::Word(std::mem::take(word)));
        }
    };
    let end_sign = |sign: &mut String, raw: &mut Vec<Piece>| {
        let known = ["<=", ">=", "!=", "==", "<", ">", "="].into_iter().find(|known| sign.starts_with(known));
        raw.extend(known.map(Piece::Sign));
        sign.clear();
    };
    for c in line.chars() {
        let relation = match c {
            '<' | '>' | '=' | '!' => Some(c),
            '≤' => Some('<'),
            '≥' => Some('>'),
            _ => None,
        };
        if let Some(relation) = relation {
            end_word(&mut word, &mut raw);
            sign.push(relation);
            if relation != c {
                sign.push('=');
            }
            continue;
        }
        if !sign.is_empty() {
            end_sign(&mut sign, &mut raw);
        }
        match c {
            ',' | ';' => {
                end_word(&mut word, &mut raw);
                raw.push(Piece::Comma);
            }
            c if c.is_whitespace() || c == '?' => end_word(&mut word, &mut raw),
            c if c.is_control() => {}
            c => word.push(c),
        }
    }
    end_word(&mut word, &mut raw);
    if !sign.is_empty() {
        end_sign(&mut sign, &mut raw);
    }
    join_pieces(&raw)
}

/// Converts relations written as words to signs, and joins numbers with their units.
fn join_pieces(raw: &[Piece]) -> Vec<Piece> {
    const UNITS: [&str; 17] =
        ["us", "ms", "s", "min", "h", "d", "days", "hours", "kwh", "mwh", "gwh", "kg", "t", "kw", "w", "gb", "%"];
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(piece) = raw.get(at) {
        at += 1;
        let next = match raw.get(at) {
            Some(Piece::Word(next)) => Some(next.to_lowercase()),
            _ => None,
        };
        let Piece::Word(word) = piece else {
            pieces.push(piece.clone());
            continue;
        };
        if let Some((sign, used)) = relation_in_words(&word.to_lowercase(), next.as_deref()) {
            pieces.push(Piece::Sign(sign));
            at += used - 1;
            continue;
        }
        match (number(word.trim_start_matches('$')), next.as_deref()) {
            (Some(_), Some(unit)) if UNITS.contains(&unit) => {
                let unit = match unit {
                    "days" => "d",
                    "hours" => "h",
                    _ => match raw.get(at) {
                        Some(Piece::Word(unit)) => unit,
                        _ => unit,
                    },
                };
                pieces.push(Piece::Word(format!("{word}{unit}")));
                at += 1;
            }
            _ => pieces.push(piece.clone()),
        }
    }
    pieces
}

/// Parses a plain number.
pub(super) fn number(text: &str) -> Option<f64> {
    let clean = text.replace('_', "");
    let digits = clean.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    clean.parse::<f64>().ok().filter(|value| digits && value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Vec<String> {
        let text = |piece: Piece| match piece {
            Piece::Word(word) => word,
            Piece::Sign(sign) => format!("[{sign}]"),
            Piece::Comma => ",".to_owned(),
        };
        split(line).into_iter().map(text).collect()
    }

    #[test]
    fn spaces_around_signs_and_units_do_not_matter() {
        for line in ["tpot<50ms", "tpot < 50 ms", "tpot under 50 ms", " tpot  below 50ms "] {
            assert_eq!(shown(line), ["tpot", "[<]", "50ms"], "{line}");
        }
        assert_eq!(shown("ttft≤2s,h100"), ["ttft", "[<=]", "2s", ",", "h100"]);
        assert_eq!(shown("at most 60 days?"), ["[<=]", "60d"]);
    }
}
