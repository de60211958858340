//! Mutation of inputs: bytes are changed, pieces moved, duplicated and joined, numbers and words replaced.

use std::sync::Arc;

use super::seeds::{is_of_word, words};

/// Words that are significant to one of the parsers, and numbers at the limits of number types.
const WORDS: [&str; 46] = [
    "0",
    "-1",
    "1e308",
    "-1e-308",
    "NaN",
    ".nan",
    ".inf",
    "-.inf",
    "Infinity",
    "9223372036854775807",
    "170141183460469231731687303715884105728",
    "1,5",
    "null",
    "~",
    "true",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a",
    "<<: ",
    "- ",
    ": ",
    "#",
    "|\n",
    "\u{1b}[31m",
    "\u{202e}",
    "\0",
    "\u{feff}",
    "\r\n",
    "\n\n",
    "$(x)",
    "`",
    "\\",
    "../",
    "%n",
    "\u{1b}[200~",
    "\u{1b}[<0;",
    "name: ",
    "tp: ",
    "---\n",
    "é",
    "日",
];

/// Maximum words taken from the seeds.
const MAX_CHOICES: usize = 4000;

/// Generates mutants; the same seed gives the same sequence.
pub(crate) struct Mutator {
    state: u64,
    /// Words of the seeds: keys, names and values that the parser may recognize.
    words: Arc<[Box<[u8]>]>,
}

impl Mutator {
    pub(crate) fn new(seed: u64, seeds: &[Vec<u8>]) -> Mutator {
        let words = words(seeds);
        // If there are too many words, take every n-th.
        let step = words.len().div_ceil(MAX_CHOICES).max(1);
        Mutator { state: seed, words: words.into_iter().step_by(step).map(Box::from).collect() }
    }

    /// A word from the common list or from the seeds.
    fn word(&mut self) -> Vec<u8> {
        if self.words.is_empty() || self.below(3) == 0 {
            WORDS[self.below(WORDS.len())].as_bytes().to_vec()
        } else {
            let at = self.below(self.words.len());
            self.words[at].to_vec()
        }
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.draw() % end.max(1) as u64) as usize
    }

    /// A mutant of one of the seeds, up to `longest` bytes long.
    pub(crate) fn mutant(&mut self, seeds: &[Vec<u8>], longest: usize) -> Vec<u8> {
        let mut out = seeds[self.below(seeds.len())].clone();
        out.truncate(longest);
        for _ in 0..=self.below(6) {
            self.change(&mut out, seeds);
        }
        out.truncate(longest);
        out
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        let most = if self.below(4) == 0 { length } else { 40 };
        from..(from + self.below(most.min(length) + 1)).min(length)
    }

    fn change(&mut self, out: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let length = out.len();
        let at = self.below(length + 1);
        match self.below(12) {
            0 if length > 0 => out[at.min(length - 1)] ^= 1 << self.below(8),
            1 if length > 0 => out[at.min(length - 1)] = self.draw() as u8,
            2 => {
                out.drain(self.range(length));
            }
            3 => {
                let piece = out[self.range(length)].to_vec();
                out.splice(at..at, piece);
            }
            4 => {
                let other = &seeds[self.below(seeds.len())];
                let piece = other[self.range(other.len())].to_vec();
                out.splice(at..at, piece);
            }
            5 => out.truncate(at),
            6 => {
                let piece = out[self.range(length)].repeat(2 + self.below(60));
                out.splice(at..at, piece);
            }
            7 | 8 => {
                // Replaces a number.
                let word = WORDS[self.below(WORDS.len())];
                let digit = (at..length).find(|at| out[*at].is_ascii_digit());
                let Some(from) = digit else { return out.extend(word.bytes()) };
                let to = (from..length).find(|at| !matches!(out[*at], b'0'..=b'9' | b'.')).unwrap_or(length);
                out.splice(from..to, word.bytes());
            }
            9 | 10 => {
                // Replaces a word.
                let word = self.word();
                let Some(from) = (at..length).find(|at| is_of_word(out[*at])) else { return out.extend(word) };
                let to = (from..length).find(|at| !is_of_word(out[*at])).unwrap_or(length);
                out.splice(from..to, word);
            }
            _ => {
                let word = self.word();
                out.splice(at..at, word);
            }
        }
    }
}
