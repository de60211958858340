//! TensorBoard event files: TFRecords of Protocol Buffers messages `Event`, from which scalars are read.

use std::io::{self, Read};

use super::protobuf::{Field, field};
use super::scalars::Scalars;

/// Maximum size in bytes of a record. Only scalars are used, which are small; images and graphs are skipped.
const MAX_RECORD_BYTES: u64 = 64 << 20;

/// Whether `head` starts like a TFRecord: with a length and its checksum.
pub(crate) fn begins(head: &[u8]) -> bool {
    let (Some(length), Some(sum)) = (head.first_chunk::<8>(), head.get(8..12)) else { return false };
    u64::from_le_bytes(*length) <= MAX_RECORD_BYTES && sum == masked(crc32c(length)).to_le_bytes()
}

/// Reads the scalars of an event file. Also returns the number of records, and whether the last one is truncated or
/// damaged.
pub(crate) fn read(source: &mut dyn Read) -> io::Result<(Scalars, u64, bool)> {
    let (mut scalars, mut records) = (Scalars::default(), 0);
    loop {
        let mut head = [0; 12];
        match filled(source, &mut head)? {
            0 => return Ok((scalars, records, false)),
            12 if begins(&head) => {}
            _ => return Ok((scalars, records, true)),
        }
        let length = head.first_chunk::<8>().map_or(0, |length| u64::from_le_bytes(*length));
        let mut data = Vec::new();
        source.take(length + 4).read_to_end(&mut data)?;
        let Some((event, sum)) = data.split_last_chunk::<4>() else { return Ok((scalars, records, true)) };
        if event.len() as u64 != length || *sum != masked(crc32c(event)).to_le_bytes() {
            return Ok((scalars, records, true));
        }
        records += 1;
        take(event, records, &mut scalars);
    }
}

/// Reads until the buffer is full or the source ends. Returns the number of bytes read.
fn filled(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while let Some(rest) = buffer.get_mut(n..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n)
}

/// Adds the scalars of an event.
fn take(event: &[u8], record: u64, scalars: &mut Scalars) {
    let (mut step, mut at, mut summary) = (0, None, None);
    let mut rest = event;
    while let Some((number, value)) = field(&mut rest) {
        match (number, value) {
            (1, Field::Fixed64(bytes)) => at = Some(f64::from_le_bytes(bytes)),
            (2, Field::Varint(value)) => step = value,
            (5, Field::Bytes(bytes)) => summary = Some(bytes),
            _ => {}
        }
    }
    let mut rest = summary.unwrap_or_default();
    while let Some((number, value)) = field(&mut rest) {
        if let (1, Field::Bytes(bytes)) = (number, value)
            && let Some((tag, value)) = scalar(bytes)
        {
            scalars.take(&tag, step, value, at, record);
        }
    }
}

/// Decodes name and value of a `Summary.Value`. Returns `None` if it is not a scalar.
fn scalar(bytes: &[u8]) -> Option<(String, f64)> {
    let (mut tag, mut found, mut rest) = (None, None, bytes);
    while let Some((number, value)) = field(&mut rest) {
        match (number, value) {
            (1, Field::Bytes(bytes)) => tag = Some(String::from_utf8_lossy(bytes).into_owned()),
            (2, Field::Fixed32(bytes)) => found = Some(f64::from(f32::from_le_bytes(bytes))),
            (8, Field::Bytes(bytes)) => found = tensor(bytes).or(found),
            _ => {}
        }
    }
    Some((tag?, found?))
}

/// Decodes the number in a `TensorProto` with one element.
fn tensor(bytes: &[u8]) -> Option<f64> {
    const FLOAT: u64 = 1;
    const DOUBLE: u64 = 2;
    let (mut kind, mut content, mut found, mut rest) = (0, None, None, bytes);
    while let Some((number, value)) = field(&mut rest) {
        match (number, value) {
            (1, Field::Varint(value)) => kind = value,
            (4, Field::Bytes(bytes)) => content = Some(bytes),
            // Packed or unpacked encoding.
            (5, Field::Bytes(bytes)) if bytes.len() == 4 => {
                found = bytes.first_chunk().map(|bytes| f64::from(f32::from_le_bytes(*bytes)));
            }
            (5, Field::Fixed32(bytes)) => found = Some(f64::from(f32::from_le_bytes(bytes))),
            (6, Field::Bytes(bytes)) if bytes.len() == 8 => {
                found = bytes.first_chunk().map(|bytes| f64::from_le_bytes(*bytes));
            }
            (6, Field::Fixed64(bytes)) => found = Some(f64::from_le_bytes(bytes)),
            _ => {}
        }
    }
    found.or_else(|| match (kind, content?) {
        (FLOAT, bytes) if bytes.len() == 4 => bytes.first_chunk().map(|bytes| f64::from(f32::from_le_bytes(*bytes))),
        (DOUBLE, bytes) if bytes.len() == 8 => bytes.first_chunk().map(|bytes| f64::from_le_bytes(*bytes)),
        _ => None,
    })
}

/// CRC-32C (Castagnoli), bitwise.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

/// Masks a checksum as TFRecord does.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;
    use crate::{Context, ingest};
    use proptest::prelude::*;

    fn put_varint(out: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
        put_varint(out, number << 3 | 2);
        put_varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }

    fn record(event: &[u8]) -> Vec<u8> {
        let length = (event.len() as u64).to_le_bytes();
        let sums = [masked(crc32c(&length)).to_le_bytes(), masked(crc32c(event)).to_le_bytes()];
        [&length[..], &sums[0], event, &sums[1]].concat()
    }

    /// An event file as written by PyTorch's `SummaryWriter` (`simple_value`) or by TensorFlow 2 (`tensor`).
    fn events(scalars: &[(&str, u64, f32, f64)], tensors: bool) -> Vec<u8> {
        let mut out = record(&{
            let mut event = Vec::new();
            put_bytes(&mut event, 3, b"brain.Event:2");
            event
        });
        for (tag, step, value, at) in scalars {
            let mut one = Vec::new();
            put_bytes(&mut one, 1, tag.as_bytes());
            if tensors {
                let mut tensor = vec![0x08, 0x01];
                put_bytes(&mut tensor, 4, &value.to_le_bytes());
                put_bytes(&mut one, 8, &tensor);
            } else {
                one.push(0x15);
                one.extend_from_slice(&value.to_le_bytes());
            }
            let mut summary = Vec::new();
            put_bytes(&mut summary, 1, &one);
            let mut event = vec![0x09];
            event.extend_from_slice(&at.to_le_bytes());
            event.push(0x10);
            put_varint(&mut event, *step);
            put_bytes(&mut event, 5, &summary);
            out.extend(record(&event));
        }
        out
    }

    fn megatron() -> Vec<(&'static str, u64, f32, f64)> {
        let step = |n: u64| {
            let at = 1e9 + n as f64;
            let loss = 8.0 - 0.1 * n as f32;
            [
                ("lm loss", n, loss, at),
                ("iteration-time/iteration-time", n, if n == 1 { 30.0 } else { 2.5 }, at),
                ("eval/loss", n, 0.1, at),
            ]
        };
        (1..=20).flat_map(step).collect()
    }

    #[test]
    fn crc32c_matches_the_standard_test_vectors() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn scalars_of_event_files_are_steps() {
        for tensors in [false, true] {
            let ingested = ingest(events(&megatron(), tensors).as_slice(), &Context::default()).unwrap();
            let [reading] = ingested.readings.as_slice() else { panic!("{:?}", ingested.readings) };
            assert_eq!(reading.tool, "tensorboard");
            assert_eq!(reading.runs[0].n, 20);
            let stats = reading.facts.get("step_time_s").unwrap();
            assert_eq!(stats["median_no_warmup"], 2.5);
            assert!((reading.runs[0].loss.first().unwrap() - 7.9).abs() < 1e-6, "validation is not training");
        }
    }

    #[test]
    fn missing_step_time_falls_back_to_record_time_stamps() {
        let scalars: Vec<_> = (0..10).map(|n| ("train/loss", 10 * n, 5.0_f32, 1e9 + 20.0 * n as f64)).collect();
        let ingested = ingest(events(&scalars, false).as_slice(), &Context::default()).unwrap();
        let stats = ingested.readings[0].facts.get("step_time_s").unwrap();
        assert_eq!(stats["median_no_warmup"], 2.0);
        assert!(ingested.readings[0].notes.iter().any(|note| note.contains("time stamps")));
    }

    proptest! {
        #[test]
        fn truncated_or_damaged_event_files_yield_no_invented_values(cut in 0_usize..4000, at in 0_usize..4000, flip in 1_u8..) {
            let whole = events(&megatron(), false);
            let cut = cut.min(whole.len());
            let mut damaged = whole.clone();
            let at = at % damaged.len();
            damaged[at] ^= flip;
            for bytes in [&whole[..cut], &damaged[..]] {
                if let Ok(ingested) = ingest(bytes, &Context::default()) {
                    for run in ingested.readings.iter().filter(|r| r.tool == "tensorboard").flat_map(|r| &r.runs) {
                        prop_assert!(run.n <= 20);
                        prop_assert!(run.seconds.kept().iter().all(|s| *s == 30.0 || *s == 2.5));
                    }
                }
            }
        }
    }
}
