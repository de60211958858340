//! Words of a question, and operations on phrases.

/// Words without significance in a question.
const FILLERS: [&str; 76] = [
    "a", "an", "the", "my", "our", "your", "this", "that", "these", "it", "its", "is", "are", "was", "be", "am", "do",
    "does", "did", "will", "would", "can", "could", "should", "shall", "i", "we", "you", "me", "us", "for", "of", "to",
    "with", "and", "or", "so", "very", "too", "much", "many", "there", "here", "now", "then", "just", "please", "need",
    "needed", "have", "has", "get", "use", "using", "used", "if", "in", "from", "when", "which", "what", "at", "run",
    "running", "want", "way", "ways", "until", "else", "show", "maybe", "given", "how", "where", "who", "why",
];

/// Words that this module recognizes.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    FILLERS.into_iter()
}

/// The words of a question in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(Vec<String>);

impl Words {
    pub(super) fn of(line: &str) -> Words {
        let line = line.to_lowercase().replace('’', "'");
        let line = line.replace("what's", "what is").replace("how's", "how is").replace("n't", " not");
        let line = format!(" {line} ").replace(" whats ", " what is ").replace(" hows ", " how is ");
        let line: String = line.chars().map(|c| if matches!(c, '?' | '!' | '"' | '`') { ' ' } else { c }).collect();
        let line = line.replace([',', ';'], " , ").replace(" tpu v", " tpu-v").replace(" rtx ", " rtx-");
        let clean = |word: &str| word.trim_end_matches(['.', ':']).trim_end_matches("'s").trim_matches('\'').to_owned();
        Words(line.split_whitespace().map(clean).filter(|word| !word.is_empty()).collect())
    }

    pub(super) fn all(&self) -> &[String] {
        &self.0
    }

    fn find(&self, phrase: &str) -> Option<(usize, usize)> {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        let at = self.0.windows(phrase.len()).position(|window| window.iter().zip(&phrase).all(|(a, b)| a == b));
        at.map(|at| (at, phrase.len()))
    }

    /// Whether it contains a phrase.
    pub(super) fn has(&self, phrase: &str) -> bool {
        self.find(phrase).is_some()
    }

    /// Whether it begins with a phrase.
    pub(super) fn begins(&self, phrase: &str) -> bool {
        self.find(phrase).is_some_and(|(at, _)| at == 0)
    }

    /// Removes the first occurrence of a phrase.
    pub(super) fn take(&mut self, phrase: &str) -> bool {
        self.replace(phrase, &[])
    }

    /// Replaces the first occurrence of a phrase.
    pub(super) fn replace(&mut self, phrase: &str, with: &[&str]) -> bool {
        let Some((at, length)) = self.find(phrase) else { return false };
        self.0.splice(at..at + length, with.iter().map(|word| (*word).to_owned()));
        true
    }

    /// Puts `what if` in front.
    pub(super) fn begin_with_what_if(&mut self) {
        self.0.splice(0..0, ["what".to_owned(), "if".to_owned()]);
    }

    /// Rewrites pairs of adjacent words.
    pub(super) fn rewrite_pairs(&mut self, rewrite: impl Fn(&str, &str) -> Option<Vec<String>>) {
        let mut at = 0;
        while let (Some(first), Some(second)) = (self.0.get(at), self.0.get(at + 1)) {
            if let Some(with) = rewrite(first, second) {
                self.0.splice(at..at + 2, with);
            }
            at += 1;
        }
    }

    /// Rewrites triples of adjacent words.
    pub(super) fn rewrite_triples(&mut self, rewrite: impl Fn(&str, &str, &str) -> Option<Vec<String>>) {
        let mut at = 0;
        while let (Some(first), Some(second), Some(third)) = (self.0.get(at), self.0.get(at + 1), self.0.get(at + 2)) {
            if let Some(with) = rewrite(first, second, third) {
                self.0.splice(at..at + 3, with);
            }
            at += 1;
        }
    }

    /// Rewrites a phrase and the value before or after it to one word. Words of `between` may separate them.
    pub(super) fn rewrite_value(&mut self, phrase: &str, between: &[&str], rewrite: impl Fn(&str) -> Option<String>) {
        let Some((at, length)) = self.find(phrase) else { return };
        let behind = self.0.iter().skip(at + length).take_while(|word| between.contains(&word.as_str())).count();
        let value = at + length + behind;
        if let Some(with) = self.0.get(value).and_then(|word| rewrite(word)) {
            self.0.splice(at..=value, [with]);
        } else if let Some(before) = at.checked_sub(1)
            && let Some(with) = self.0.get(before).and_then(|word| rewrite(word))
        {
            self.0.splice(before..at + length, [with]);
        }
    }

    /// Rewrites single words.
    pub(super) fn rewrite(&mut self, mut rewrite: impl FnMut(&str) -> Option<Vec<String>>) {
        self.0 = self.0.drain(..).flat_map(|word| rewrite(&word).unwrap_or_else(|| vec![word])).collect();
    }

    /// Removes words without significance. Relations of two words are first replaced by signs, so that they remain.
    pub(super) fn without_fillers(mut self) -> Words {
        const RELATIONS: [(&str, &str); 5] =
            [("at most", "<="), ("up to", "<="), ("at least", ">="), ("less than", "<"), ("more than", ">")];
        for (phrase, sign) in RELATIONS {
            while self.replace(phrase, &[sign]) {}
        }
        self.0.retain(|word| !FILLERS.contains(&word.as_str()));
        self
    }

    /// The words joined with spaces.
    pub(super) fn line(&self) -> String {
        self.0.join(" ")
    }
}

/// Parses a number in digits, or a small number as a word.
pub(super) fn count(word: &str) -> Option<f64> {
    const NAMES: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    if word == "single" {
        return Some(1.0);
    }
    if let Some(at) = NAMES.iter().position(|name| *name == word) {
        return u32::try_from(at).ok().map(f64::from);
    }
    let digits = word.replace('_', "");
    let (digits, scale) = match digits.strip_suffix('k') {
        Some(digits) => (digits.to_owned(), 1e3),
        None => (digits, 1.0),
    };
    let starts = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    digits.parse::<f64>().ok().map(|value| value * scale).filter(|value| starts && value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_taken_and_filler_words_are_dropped() {
        let mut words = Words::of("How many H100s do I need to serve Llama 70B, please?");
        assert!(words.begins("how many") && words.take("how many"));
        assert_eq!(words.without_fillers().line(), "h100s serve llama 70b ,");
        assert_eq!(Words::of("ttft at most 2s").without_fillers().line(), "ttft <= 2s");
    }

    #[test]
    fn count_parses_number_words_digits_and_suffixes() {
        assert_eq!(
            (count("four"), count("16"), count("2k"), count("h100")),
            (Some(4.0), Some(16.0), Some(2000.0), None)
        );
    }
}
