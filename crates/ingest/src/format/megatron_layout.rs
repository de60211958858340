//! The fields of iteration lines. A run writes all its lines alike, so that most can be read by comparing them with the
//! layout of one before instead of searching them for fields.

use crate::text::{leading, unblanked};

/// The names that descendants have for the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossName {
    Spaced,
    Hyphened,
    Underscored,
}

/// What a field means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Seconds,
    Milliseconds,
    /// TFLOP/s of one accelerator, in current releases.
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
    /// Its rate of samples, as Megatron-DeepSpeed names it.
    DeepSpeedRate,
    /// Its rate of samples, as GPT-NeoX names it.
    NeoxRate,
    /// TFLOP/s of one accelerator, in Megatron-DeepSpeed.
    DeepSpeedTflops,
    ApproximateFlops,
    ActualSeqLen,
    /// Used, free and whole memory, in Primus.
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

/// How the lines of a run are laid out: `… iteration 1/ 2 | name: 3.5 | name: 4 |`.
#[derive(Debug)]
pub(super) struct Layout {
    /// What is in front of the counter, with all digits as zeros.
    front: Box<[u8]>,
    fields: Vec<Field>,
}

/// A field between two bars.
#[derive(Debug)]
struct Field {
    /// Its name with the colon and all blanks.
    name: Box<str>,
    meaning: Meaning,
    /// The whole field of a line before with its bar, and the number in it: batch and loss scale rarely change, and comparing
    /// is cheaper than reading. Empty where nothing is compared.
    known: String,
    value: f64,
    /// Lines that differed from `known` since it was last met.
    misses: u32,
}

/// Lines after which a field that always changes is no longer compared.
const MOST_MISSES: u32 = 8;

/// The word in front of the counter.
const COUNTER: &str = "iteration ";

impl Field {
    /// Reads the field at the beginning of `rest`: its number, and what follows its bar.
    fn read<'a>(&mut self, rest: &'a str) -> Option<(f64, &'a str)> {
        if self.misses < MOST_MISSES {
            if let Some(behind) = rest.strip_prefix(&*self.known).filter(|_| !self.known.is_empty()) {
                self.misses = 0;
                return Some((self.value, behind));
            }
            self.misses += 1;
        }
        let (value, behind) = leading(rest.strip_prefix(&*self.name)?)?;
        let behind = unblanked(behind).strip_prefix('|')?;
        if self.misses < MOST_MISSES {
            self.known.clear();
            self.known.push_str(rest.get(..rest.len() - behind.len())?);
            self.value = value;
        }
        Some((value, behind))
    }
}

impl Layout {
    /// The layout of a line; `None` if it is not one number a field.
    pub(super) fn of(text: &str) -> Option<Layout> {
        let (counter, mut rest) = text.split_once('|')?;
        let front = counter.get(..counter.find(COUNTER)? + COUNTER.len())?;
        let mut fields: Vec<Field> = Vec::new();
        while !unblanked(rest).is_empty() {
            let (field, behind) = rest.split_once('|')?;
            let name = field.get(..=field.find(':')?)?;
            let meaning = Meaning::of(name.trim_end_matches(':').trim_ascii());
            let twice = meaning != Meaning::Other && fields.iter().any(|field| field.meaning == meaning);
            // Another counter begins another iteration.
            if twice || name.contains(COUNTER) && name.contains('/') {
                return None;
            }
            fields.push(Field { name: name.into(), meaning, known: String::new(), value: 0.0, misses: 0 });
            rest = behind;
        }
        let ranked = front.contains("[rank-");
        let front = front.bytes().map(zeroed).collect();
        let mut layout = Layout { front, fields };
        layout.read(text, |_, _| {}).filter(|_| !ranked).map(|_| layout)
    }

    /// Reads a line of exactly this layout: passes the numbers of its fields to `each`, and returns the counter and its
    /// end. The numbers are those that reading field by field finds.
    pub(super) fn read(&mut self, text: &str, mut each: impl FnMut(Meaning, f64)) -> Option<(u64, Option<u64>)> {
        let front = text.as_bytes().get(..self.front.len())?;
        if !front.iter().zip(&self.front).all(|(byte, known)| byte == known || zeroed(*byte) == *known) {
            return None;
        }
        let counter = unblanked(text.get(self.front.len()..)?);
        let (now, rest) = leading(counter).filter(|_| counter.starts_with(|c: char| c.is_ascii_digit()))?;
        let (planned, rest) = leading(unblanked(rest).strip_prefix('/')?)?;
        let mut rest = unblanked(rest).strip_prefix('|')?;
        for field in &mut self.fields {
            let (value, behind) = field.read(rest)?;
            rest = behind;
            if value.is_finite() {
                each(field.meaning, value);
            }
        }
        let planned = Some(planned).filter(|planned| (0.0..1e19).contains(planned)).map(|planned| planned as u64);
        unblanked(rest).is_empty().then_some((now as u64, planned))
    }
}

fn zeroed(byte: u8) -> u8 {
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
        // One field changes always, one at times, one never; a digit behind a known number makes another one.
        for (step, loss) in ["7.98E+00", "7.98E+005", "7.9"].into_iter().flat_map(|loss| [loss; 15]).enumerate() {
            let time = format!("{step}12.3");
            let line = LINE.replace("812.3", &time).replace("7.98E+00", loss);
            let (_, _, fields) = read(&mut layout, &line).unwrap();
            let values: Vec<f64> = fields.iter().map(|(_, value)| *value).collect();
            assert_eq!(values, [time.parse().unwrap(), loss.parse().unwrap(), 1.0]);
        }
    }

    #[test]
    fn a_line_of_another_layout_is_left_to_the_search() {
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
