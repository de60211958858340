//! Interprets a line that is neither a command nor a question: as a question without filler words and unknown words,
//! and as the commands that share words with it.

use super::state::{Command, CommandAction};
use atlas_assistant::{Intent, Known, ParseError, Question, parse};
use atlas_core::sort;

/// Filler words, which carry no meaning.
const FILLERS: [&str; 52] = [
    "a", "about", "an", "and", "are", "at", "be", "by", "can", "could", "do", "does", "for", "from", "give", "go",
    "have", "how", "i", "in", "into", "is", "it", "let", "me", "my", "of", "on", "or", "our", "out", "please",
    "should", "some", "that", "the", "them", "there", "this", "to", "up", "want", "was", "we", "what", "whats",
    "which", "why", "will", "with", "would", "you",
];
/// Verbs that identify a command only together with other words.
const GENERIC_VERBS: [&str; 24] = [
    "change", "choose", "compute", "decrease", "disable", "display", "enable", "get", "increase", "list", "make",
    "open", "pick", "put", "see", "select", "set", "show", "switch", "tell", "turn", "use", "using", "view",
];
/// Suffixes that do not change the topic of a word, longest first.
const SUFFIXES: [&str; 18] = [
    "ations", "ation", "ating", "ated", "ates", "ings", "ions", "ing", "ion", "ate", "ers", "ors", "er", "or", "ed",
    "es", "e", "s",
];
/// Minimum number of letters that remain of a word without its suffix.
const MIN_STEM_LETTERS: usize = 4;
/// Maximum number of commands that are listed.
const MAX_SUGGESTIONS: usize = 12;
/// Maximum number of unknown words that are ignored.
const MAX_IGNORED_WORDS: usize = 4;

/// A word without its suffix: `quantized` and `quantization` have the same topic.
fn stem(word: &str) -> &str {
    // `gpus` is the plural of a short word.
    let least = |ending: &str| if ending == "s" { MIN_STEM_LETTERS - 1 } else { MIN_STEM_LETTERS };
    let without = |ending: &&str| word.strip_suffix(ending).filter(|stem| stem.chars().count() >= least(ending));
    SUFFIXES.iter().find_map(without).unwrap_or(word)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '$' | '/' | '.' | '=' | '<' | '>'))
        .filter(|word| !word.is_empty())
}

/// The words of a line without fillers, and without verbs unless there are no other words.
fn significant_words(line: &str) -> Vec<String> {
    let lower = line.to_lowercase();
    let all =
        || words(&lower).filter(|word| !FILLERS.contains(word)).map(|word| word.trim_matches(['.', '/']).to_owned());
    let without: Vec<String> = all().filter(|word| !GENERIC_VERBS.contains(&word.as_str())).collect();
    if without.is_empty() { all().collect() } else { without }
}

/// A line without surrounding quotation marks and punctuation.
pub(super) fn bare(line: &str) -> &str {
    line.trim().trim_matches(['"', '\'', '“', '”', '?', '!', '.']).trim()
}

/// How a line is read without fillers and unknown words.
enum Interpretation {
    /// A question, and the number of unknown words that were removed.
    Question(Question, usize),
    /// A question with an error that the user has to correct.
    Invalid,
    /// Not a question.
    Nothing,
}

fn interpret(line: &str, known: &Known) -> Interpretation {
    let leads = ["on", "for", "at", "in"];
    let spare = |word: &str| (FILLERS.contains(&word) && !leads.contains(&word)) || GENERIC_VERBS.contains(&word);
    let words = bare(line).split_whitespace().filter(|word| !spare(&word.to_lowercase()));
    let mut left: Vec<&str> = words.collect();
    for passed in 0..=MAX_IGNORED_WORDS {
        match parse(&left.join(" "), known) {
            Ok(question) if question.intent() == Intent::Race && passed > 0 => return Interpretation::Invalid,
            Ok(question) if question.intent() == Intent::Nothing => return Interpretation::Nothing,
            Ok(question) => return Interpretation::Question(question, passed),
            Err(ParseError::Unknown { word, .. } | ParseError::Alone { word }) => {
                let at = left.iter().position(|known| known.trim_matches(',').eq_ignore_ascii_case(&word));
                let Some(at) = at else { return Interpretation::Nothing };
                left.remove(at);
            }
            Err(ParseError::Unclear { .. } | ParseError::NoBound { .. } | ParseError::Condition(_)) => {
                return Interpretation::Invalid;
            }
            Err(_) => return Interpretation::Nothing,
        }
    }
    Interpretation::Nothing
}

/// The likeliest commands and the question as read, followed by the line as a question for the assistant. Empty if
/// the line is a question with an error that the user has to correct, or if nothing matches its only meaningful word.
pub(super) fn suggest(line: &str, known: &Known, all: Vec<(Command, String)>) -> Vec<Command> {
    let asked = match interpret(line, known) {
        Interpretation::Question(question, passed) => Some((question, passed)),
        Interpretation::Nothing => None,
        Interpretation::Invalid => return Vec::new(),
    };
    let telling = significant_words(line);
    let stems: Vec<&str> = telling.iter().map(|word| stem(word)).collect();
    let score = |(command, also): &(Command, String)| {
        let text = command.text.to_lowercase();
        let (name, help) = text.split_once(": ").unwrap_or((&text, ""));
        let also = also.to_lowercase();
        let spaced = also.replace('_', " ");
        let names: Vec<&str> = [name, &also, &spaced].into_iter().flat_map(words).map(stem).collect();
        let helps: Vec<&str> = words(help).map(stem).collect();
        let named = |word: &&&str| names.contains(*word);
        let known = stems.iter().filter(|word| named(word) || helps.contains(*word)).count();
        // Among commands with equally many matching words, those with more matches in their names come first.
        (known, stems.iter().filter(named).count())
    };
    let mut scored: Vec<((usize, usize), Command)> =
        all.into_iter().map(|one| (score(&one), one.0)).filter(|(score, _)| score.0 > 0).collect();
    sort::by_key(&mut scored, |(score, _)| std::cmp::Reverse(*score));
    let best = scored.first().map_or((0, 0), |(score, _)| *score);
    let alike = scored.into_iter().filter(|(score, _)| *score == best).map(|(_, command)| command);
    let mut rows: Vec<Command> = alike.take(MAX_SUGGESTIONS).collect();
    let exact = asked.as_ref().is_some_and(|(_, passed)| *passed == 0);
    if let Some(row) = asked.and_then(|(question, _)| super::row_of(question)) {
        rows.insert(if exact { 0 } else { rows.len() }, row);
    }
    if !rows.is_empty() || telling.len() > 1 {
        let text = bare(line).to_owned();
        rows.push(Command { text: format!("ask: {text}"), keys: &["Enter"], deed: CommandAction::Question(text) });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stem_strips_word_endings_and_keeps_short_words() {
        for (one, other) in
            [("quantized", "quantization"), ("pricing", "price"), ("caching", "cache"), ("optimizer", "optimize")]
        {
            assert_eq!(stem(one), stem(other));
        }
        assert_eq!((stem("users"), stem("tp"), stem("gpus")), ("user", "tp", "gpu"));
        assert_ne!(stem("prefill"), stem("prefix"));
    }
}
