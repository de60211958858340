//! Line breaking.

use super::font::{Font, encode};
use super::sheet::{BLACK, Sheets};

/// Text of one font.
#[derive(Debug, Clone)]
pub(super) struct Run {
    font: Font,
    text: Vec<u8>,
}

/// A line: words with their horizontal offset and font.
pub(super) type Pieces = Vec<(f32, Font, Vec<u8>)>;

impl Run {
    /// Text of one font.
    pub(super) fn plain(font: Font, text: &str) -> Run {
        Run { font, text: encode(text) }
    }

    /// Splits prose into runs; backticks enclose code.
    pub(super) fn of(font: Font, text: &str) -> Vec<Run> {
        let parts = text.split('`').count();
        let run = |(number, part): (usize, &str)| {
            // A backtick without a closing one is kept as a character.
            let alone = number % 2 == 1 && number + 1 == parts;
            let font = if number % 2 == 1 && !alone { Font::Mono } else { font };
            Run::plain(font, &if alone { format!("`{part}") } else { part.to_owned() })
        };
        text.split('`').enumerate().map(run).filter(|run| !run.text.is_empty()).collect()
    }
}

/// Breaks text into lines of at most `width`. Words that are longer than a line are split.
pub(super) fn lines(runs: &[Run], size: f32, width: f32) -> Vec<Pieces> {
    let mut out = Vec::new();
    let (mut line, mut x) = (Pieces::new(), 0.0);
    for run in runs {
        let space = run.font.width(b" ", size);
        for (number, word) in run.text.split(|byte| *byte == b' ').enumerate() {
            if number > 0 {
                x += space;
            }
            let mut word = word;
            while !word.is_empty() {
                let wide = run.font.width(word, size);
                if x + wide <= width {
                    line.push((x, run.font, word.to_vec()));
                    x += wide;
                    break;
                }
                if x > 0.0 && !line.is_empty() {
                    out.push(std::mem::take(&mut line));
                    x = 0.0;
                    continue;
                }
                // A word longer than a line is split after as many letters as fit, at least one.
                let fits =
                    (1..word.len()).take_while(|n| run.font.width(word.get(..*n).unwrap_or(word), size) <= width);
                let (now, later) = word.split_at(fits.last().unwrap_or(1).min(word.len()));
                out.push(vec![(0.0, run.font, now.to_vec())]);
                (word, x) = (later, 0.0);
            }
        }
    }
    if !line.is_empty() {
        out.push(line);
    }
    out
}

/// Writes a line with its baseline at the given position.
pub(super) fn put(sheets: &mut Sheets, pieces: &Pieces, size: f32, (x, y): (f32, f32)) {
    for (from, font, word) in pieces {
        sheets.text(*font, size, BLACK, (x + from, y), word);
    }
}

/// Writes a paragraph below the content of the page.
pub(super) fn paragraph(sheets: &mut Sheets, runs: &[Run], size: f32, left: f32, width: f32) {
    let high = 1.35 * size;
    for pieces in lines(runs, size, width) {
        sheets.ensure_space(high);
        put(sheets, &pieces, size, (left, sheets.used_height + size));
        sheets.used_height += high;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_line_exceeds_the_width_and_no_letter_is_lost() {
        let text = "a few words, `some code` and averyveryveryverylongwordthatfitsnowhere in the end";
        let all = lines(&Run::of(Font::Regular, text), 10.0, 90.0);
        assert!(all.len() > 4);
        for line in &all {
            let (x, font, word) = line.last().unwrap();
            assert!(x + font.width(word, 10.0) <= 90.01);
        }
        let letters: Vec<u8> = all.iter().flatten().flat_map(|(_, _, word)| word.iter().copied()).collect();
        let want: Vec<u8> = text.bytes().filter(|byte| !b" `".contains(byte)).collect();
        assert_eq!(letters, want);
    }
}
