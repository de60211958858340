//! Fields of iteration lines, and a fast path to parse them. All lines of a run have the same layout, so most lines can
//! be parsed by comparing them with the layout of an earlier line instead of searching for fields.

use crate::text::{parse_leading_number, trim_start_ascii};

/// Spellings of the loss in derivatives of Megatron-LM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossName {
    Spaced,
    Hyphened,
    Underscored,
}

/// Meaning of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Seconds,
    Milliseconds,
    /// TFLOP/s per accelerator, in current versions.
    Throughput,
    TokensPerGpu,
    Loss(Option<LossName>),
    LearningRate,
    Batch,
    GradNorm,
    Skipped,
    Nan,
    Samples,
    Tokens,
    /// Samples per second, as named by Megatron-DeepSpeed.
    DeepSpeedRate,
    /// Samples per second, as named by GPT-NeoX.
    NeoxRate,
    /// TFLOP/s per accelerator, in Megatron-DeepSpeed.
    DeepSpeedTflops,
    ApproximateFlops,
    ActualSeqLen,
    /// Used, free and total memory, in Primus.
    MemoryUsage,
    MaxMemory,
    Other,
}

impl Meaning {
    /// The meaning of a field by its name.
    pub(super) fn of(key: &str) -> Meaning {
        match key.as_bytes().first() {
            Some(b'e') if key.starts_with("elapsed time per iteration") => {
                if key.ends_with("(s)") || key.ends_with("(sec)") { Meaning::Seconds } else { Meaning::Milliseconds }
            }
            Some(b't') if key.starts_with("throughput per GPU") => Meaning::Throughput,
            Some(b't') if key.starts_with("tokens per GPU") || key.starts_with("tokens per gpu") => {
                Meaning::TokensPerGpu
            }
            Some(b'l') if key == "lm loss" => Meaning::Loss(Some(LossName::Spaced)),
            Some(b'l') if key == "lm-loss" => Meaning::Loss(Some(LossName::Hyphened)),
            Some(b'l') if key == "lm_loss" => Meaning::Loss(Some(LossName::Underscored)),
            Some(b'l') if key == "loss" => Meaning::Loss(None),
            Some(b'l') if key == "learning rate" => Meaning::LearningRate,
            Some(b'g') if key == "global batch size" => Meaning::Batch,
            Some(b'g') if key == "grad norm" => Meaning::GradNorm,
            Some(b'n') if key == "number of skipped iterations" => Meaning::Skipped,
            Some(b'n') if key == "number of nan iterations" => Meaning::Nan,
            Some(b'c') if key == "consumed samples" => Meaning::Samples,
            Some(b'c') if key == "consumed tokens" => Meaning::Tokens,
            Some(b's') if key == "samples per second" => Meaning::DeepSpeedRate,
            Some(_) if key.ends_with("samples/sec") => Meaning::NeoxRate,
            Some(b'T') if key == "TFLOPs" => Meaning::DeepSpeedTflops,
            Some(b'a') if key == "approx flops per GPU" => Meaning::ApproximateFlops,
            Some(b'a') if key == "actual seqlen" => Meaning::ActualSeqLen,
            Some(b'h' | b'r') if key.ends_with("mem usage/free/total/usage_ratio") => Meaning::MemoryUsage,
            Some(b'm') if key.starts_with("max_memory_allocated") => Meaning::MaxMemory,
            _ => Meaning::Other,
        }
    }
}

/// Layout of the lines of a run: `… iteration 1/ 2 | name: 3.5 | name: 4 |`.
#[derive(Debug)]
pub(super) struct Layout {
    /// Text before the step counter, with every digit replaced by 0.
    masked_prefix: Box<[u8]>,
    fields: Vec<Field>,
    /// The last line read. Most lines have the same length as the previous one and differ from it in few places, so
    /// comparing them is cheaper than parsing.
    last: Vec<u8>,
}

/// A field between two bars.
#[derive(Debug)]
struct Field {
    /// Name, including the colon and all blanks.
    name: Box<str>,
    meaning: Meaning,
    /// Value, and its position in the last line: its start, and the end of the field after the bar.
    from: usize,
    to: usize,
    value: f64,
}

/// Text before the step counter.
const COUNTER: &str = "iteration ";
/// Number of bytes compared at a time.
const BLOCK: usize = 16;

impl Layout {
    /// Determines the layout of a line. Returns `None` unless every field has exactly one number.
    pub(super) fn of(text: &str) -> Option<Layout> {
        let (counter, mut rest) = text.split_once('|')?;
        let masked_prefix = counter.get(..counter.find(COUNTER)? + COUNTER.len())?;
        let mut fields: Vec<Field> = Vec::new();
        while !trim_start_ascii(rest).is_empty() {
            let (field, behind) = rest.split_once('|')?;
            let name = field.get(..=field.find(':')?)?;
            let meaning = Meaning::of(name.trim_end_matches(':').trim_ascii());
            let twice = meaning != Meaning::Other && fields.iter().any(|field| field.meaning == meaning);
            // Another step counter starts another iteration.
            if twice || name.contains(COUNTER) && name.contains('/') {
                return None;
            }
            fields.push(Field { name: name.into(), meaning, from: 0, to: 0, value: 0.0 });
            rest = behind;
        }
        let ranked = masked_prefix.contains("[rank-");
        let masked_prefix = masked_prefix.bytes().map(mask_digit).collect();
        let mut layout = Layout { masked_prefix, fields, last: Vec::new() };
        layout.read(text, |_, _| {}).filter(|_| !ranked).map(|_| layout)
    }

    /// Parses a line of exactly this layout. Passes the values of its fields to `each`, and returns the step number and
    /// the planned number of steps. The values are the same as if the line were parsed field by field.
    pub(super) fn read(&mut self, text: &str, mut each: impl FnMut(Meaning, f64)) -> Option<(u64, Option<u64>)> {
        let masked_prefix = text.as_bytes().get(..self.masked_prefix.len())?;
        // Compare all bytes: the compiler vectorizes loops without early exit.
        if masked_prefix
            .iter()
            .zip(&self.masked_prefix)
            .fold(0, |differs, (byte, known)| differs | (mask_digit(*byte) ^ known))
            != 0
        {
            return None;
        }
        let counter = trim_start_ascii(text.get(self.masked_prefix.len()..)?);
        let (now, rest) =
            parse_leading_number(counter).filter(|_| counter.starts_with(|c: char| c.is_ascii_digit()))?;
        let (planned, rest) = parse_leading_number(trim_start_ascii(rest).strip_prefix('/')?)?;
        let rest = trim_start_ascii(rest).strip_prefix('|')?;
        if !self.changed_fields(text, text.len() - rest.len()) {
            self.all_fields(text, rest)?;
        }
        for field in self.fields.iter().filter(|field| field.value.is_finite()) {
            each(field.meaning, field.value);
        }
        let planned = Some(planned).filter(|planned| (0.0..1e19).contains(planned)).map(|planned| planned as u64);
        Some((now as u64, planned))
    }

    /// Parses only the fields that differ from the last line. Returns whether that was possible: both lines must have
    /// the same length, and all names and bars the same positions.
    fn changed_fields(&mut self, text: &str, start: usize) -> bool {
        let first = self.fields.first().map(|field| field.from.saturating_sub(field.name.len()));
        if text.len() != self.last.len() || first != Some(start) {
            return false;
        }
        let mut at = first_difference(text, &self.last, start);
        for field in &mut self.fields {
            if at >= field.to {
                continue;
            }
            let value = text.get(field.from..).filter(|_| at >= field.from).and_then(parse_leading_number);
            let Some((number, behind)) = value else { return false };
            if trim_start_ascii(behind).strip_prefix('|').map(|rest| text.len() - rest.len()) != Some(field.to) {
                return false;
            }
            field.value = number;
            at = first_difference(text, &self.last, field.to);
        }
        self.last.copy_from_slice(text.as_bytes());
        at == text.len()
    }

    /// Parses all fields of a line.
    fn all_fields(&mut self, text: &str, mut rest: &str) -> Option<()> {
        self.last.clear();
        for field in &mut self.fields {
            let value = rest.strip_prefix(&*field.name)?;
            field.from = text.len() - value.len();
            let (number, behind) = parse_leading_number(value)?;
            rest = trim_start_ascii(behind).strip_prefix('|')?;
            (field.to, field.value) = (text.len() - rest.len(), number);
        }
        trim_start_ascii(rest).is_empty().then(|| self.last.extend_from_slice(text.as_bytes()))
    }
}

/// Returns the index of the first byte, not before `from`, in which two lines of equal length differ, or their length
/// if there is none.
fn first_difference(text: &str, last: &[u8], from: usize) -> usize {
    let (text, last) = (text.as_bytes(), last.get(..text.len()).unwrap_or_default());
    let (blocks, _) = text.get(from..).unwrap_or_default().as_chunks::<BLOCK>();
    let (known, _) = last.get(from..).unwrap_or_default().as_chunks::<BLOCK>();
    let same = BLOCK * blocks.iter().zip(known).take_while(|(now, before)| now == before).count();
    let rest = text.iter().zip(last).skip(from + same);
    from + same + rest.take_while(|(now, before)| now == before).count()
}

fn mask_digit(byte: u8) -> u8 {
    if byte.is_ascii_digit() { b'0' } else { byte }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    type ReadLine = (u64, Option<u64>, Vec<(Meaning, f64)>);

    const LINE: &str = " [2026-01-01 00:00:31] iteration       10/     100 | elapsed time per iteration (ms): 812.3 | \
                        lm loss: 7.98E+00 | load_balancing_loss: 1.0 |";

    fn read(layout: &mut Layout, text: &str) -> Option<ReadLine> {
        let mut out = Vec::new();
        let (now, planned) = layout.read(text, |meaning, value| out.push((meaning, value)))?;
        Some((now, planned, out))
    }

    #[test]
    fn a_line_of_the_same_layout_is_read() {
        let mut layout = Layout::of(LINE).unwrap();
        let next = LINE.replace("00:31", "01:02").replace(" 10/", " 9999/").replace("812.3", "-1.25e3");
        let loss = Meaning::Loss(Some(LossName::Spaced));
        let expected = vec![(Meaning::Milliseconds, -1250.0), (loss, 7.98), (Meaning::Other, 1.0)];
        assert_eq!(read(&mut layout, &next), Some((9999, Some(100), expected)));
        let nan = LINE.replace("7.98E+00", "nan");
        assert_eq!(read(&mut layout, &nan).unwrap().2.len(), 2);
    }

    #[test]
    fn fields_that_stay_and_fields_that_change_are_read_alike() {
        let mut layout = Layout::of(LINE).unwrap();
        // One field always changes, one sometimes, one never. A digit appended to a known number gives another number.
        for (step, loss) in ["7.98E+00", "7.98E+005", "7.9"].into_iter().flat_map(|loss| [loss; 15]).enumerate() {
            let time = format!("{step}12.3");
            let line = LINE.replace("812.3", &time).replace("7.98E+00", loss);
            let (_, _, fields) = read(&mut layout, &line).unwrap();
            let values: Vec<f64> = fields.iter().map(|(_, value)| *value).collect();
            assert_eq!(values, [time.parse().unwrap(), loss.parse().unwrap(), 1.0]);
        }
    }

    #[test]
    fn cached_layout_parses_lines_of_equal_length_like_a_fresh_one() {
        // Numbers that grow into their padding, names and bars that move, different trailing blanks.
        let line = "iteration  9/ 90 | elapsed time per iteration (ms):  9.5 | lm loss: 7.98E+00 | a: 1 | b: 2 |  ";
        let mut layout = Layout::of(line).unwrap();
        for (from, to) in [
            ("  9.5", " 10.5"),
            ("  9.5", "9.5  "),
            ("7.98E+00", "     nan"),
            ("a: 1 | b: 2", "a: 3 | b: 4"),
            ("a: 1 | b: 2", "b: 1 | a: 2"),
            ("a: 1 | b: 2", "a:1 | b:  2"),
            (" 9/ 90", "10/ 90"),
            ("a: 1", "a: x"),
            ("|  ", "| x"),
        ] {
            let changed = line.replacen(from, to, 1);
            assert_eq!(changed.len(), line.len());
            let expected = Layout::of(&changed)
                .filter(|other| other.fields.iter().zip(&layout.fields).all(|(other, field)| other.name == field.name));
            let expected = expected.and_then(|mut fresh| read(&mut fresh, &changed));
            assert_eq!(read(&mut layout, &changed), expected, "{to}");
            assert!(read(&mut layout, line).is_some());
        }
    }

    #[test]
    fn line_of_another_layout_is_not_parsed() {
        let mut layout = Layout::of(LINE).unwrap();
        for (from, to) in [
            ("812.3", "812.3/813.0"),
            ("[2026", "[rank"),
            ("lm loss", "lm-loss"),
            ("1.0 |", "1.0 | more: 2 |"),
            ("1.0 |", "1.0 |\u{20}iteration 11/ 100 |"),
            ("1.0 |", "1.0 | [Rank 0] max allocated: 5"),
            ("1.0 |", "1.0"),
            ("10/", "x/"),
            ("812.3", ""),
        ] {
            assert_eq!(read(&mut layout, &LINE.replacen(from, to, 1)), None, "{to}");
        }
        assert!(Layout::of(&LINE.replace("load_balancing_loss", "lm loss")).is_none());
        assert!(Layout::of("iteration 1/ 2 | elapsed time per iteration (ms): 1").is_none());
    }
}
