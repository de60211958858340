//! Splits a stream into lines, in constant memory. Decompresses gzip, removes colors and NUL bytes, treats carriage
//! returns of progress bars as line ends, and replaces invalid UTF-8.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use crate::prefix::without_prefix;
use crate::quantity::reliable_part;

/// Maximum bytes kept of a line; longer lines are truncated. In some formats one line is a whole JSON document.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Number of bytes read from the source at a time.
const CHUNK: usize = 1 << 18;

/// One line of a file.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Text without line end, colors, NUL bytes, and prefixes of launchers or log collectors.
    pub text: &'a str,
    /// Line number, from 1. Parts separated by carriage returns share the number of their line.
    pub number: u64,
    /// Whether the line is complete. The last line of a growing or truncated file is not.
    pub whole: bool,
}

/// Reader of lines.
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// Offset in the buffer at which the next line starts.
    start: usize,
    /// Offset in the buffer up to which line ends were searched for.
    searched: usize,
    number: u64,
    ended: bool,
    /// Number of bytes read so far.
    pub bytes: u64,
    /// Number of lines truncated because they are too long.
    pub cut: u64,
    /// Whether the last line is incomplete: the file may be truncated.
    pub unfinished: bool,
    dropping: bool,
    source_truncated: bool,
}

impl<R: Read> Lines<R> {
    /// Creates a reader of the lines of `source`.
    pub fn new(source: R) -> Lines<R> {
        Lines {
            source,
            buffer: Vec::with_capacity(2 * CHUNK),
            start: 0,
            searched: 0,
            number: 1,
            ended: false,
            bytes: 0,
            cut: 0,
            unfinished: false,
            dropping: false,
            source_truncated: false,
        }
    }

    /// Passes every line to `each`, cleaned of control sequences and prefixes.
    ///
    /// # Errors
    ///
    /// If the source cannot be read.
    pub fn each(&mut self, mut each: impl FnMut(Line<'_>)) -> io::Result<()> {
        loop {
            while let Some((from, to, end)) = self.next_range() {
                if !std::mem::take(&mut self.dropping) {
                    let raw = self.buffer.get(from..to).unwrap_or_default();
                    each(Line { text: without_prefix(&decode_line(raw)), number: self.number, whole: true });
                }
                self.number += u64::from(end == b'\n');
            }
            if self.ended {
                let rest = self.buffer.get(self.start..).unwrap_or_default();
                self.unfinished = self.source_truncated || !rest.is_empty();
                if !rest.is_empty() && !self.dropping {
                    each(Line {
                        text: reliable_part(without_prefix(&decode_line(rest))),
                        number: self.number,
                        whole: false,
                    });
                }
                self.start = self.buffer.len();
                return Ok(());
            }
            if self.buffer.len() - self.start > MAX_LINE_BYTES {
                // Of a line that exceeds the maximum, only the start is kept and examined.
                if !std::mem::replace(&mut self.dropping, true) {
                    let rest = self.buffer.get(self.start..).unwrap_or_default();
                    self.cut += 1;
                    each(Line {
                        text: reliable_part(without_prefix(&decode_line(rest))),
                        number: self.number,
                        whole: false,
                    });
                }
                self.buffer.clear();
                (self.start, self.searched) = (0, 0);
            }
            self.fill()?;
        }
    }

    /// Returns start and end of the next complete line in the buffer, and the byte that ended it.
    fn next_range(&mut self) -> Option<(usize, usize, u8)> {
        let window = self.buffer.get(self.searched..)?;
        let Some(offset) = memchr::memchr2(b'\n', b'\r', window) else {
            self.searched = self.buffer.len();
            return None;
        };
        let (from, to) = (self.start, self.searched + offset);
        let end = self.buffer.get(to).copied()?;
        self.start = to + 1;
        self.searched = self.start;
        Some((from, to, end))
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        let before = self.buffer.len();
        self.buffer.resize(before + CHUNK, 0);
        let got = loop {
            match self.source.read(self.buffer.get_mut(before..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Read a truncated archive as far as possible.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.bytes > 0 => {
                    self.source_truncated = true;
                    break Ok(0);
                }
                other => break other,
            }
        };
        let got = got.inspect_err(|_| self.buffer.truncate(before))?;
        self.buffer.truncate(before + got);
        self.bytes += got as u64;
        self.ended = got == 0;
        Ok(())
    }
}

/// Decompresses `source` if it is gzip, including concatenated members, and converts it to UTF-8 if it starts with a
/// byte order mark of UTF-16, which PowerShell writes when output is redirected to a file.
///
/// # Errors
///
/// If the source cannot be read.
pub fn decompressed<'a>(source: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    decoded(Box::new(source))
}

fn decoded<'a>(source: Box<dyn Read + 'a>) -> io::Result<Box<dyn BufRead + 'a>> {
    let buffered = |source| -> Box<dyn BufRead + 'a> { Box::new(BufReader::with_capacity(CHUNK, source)) };
    let mut source = buffered(source);
    if source.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        source = buffered(Box::new(flate2::bufread::MultiGzDecoder::new(source)));
    }
    let little = match source.fill_buf()? {
        [0xff, 0xfe, ..] => true,
        [0xfe, 0xff, ..] => false,
        _ => return Ok(source),
    };
    source.consume(2);
    Ok(buffered(Box::new(Utf16 { source, little, high: None })))
}

/// Converts UTF-16 to UTF-8.
struct Utf16<R> {
    source: R,
    little: bool,
    /// Pending high surrogate of a pair.
    high: Option<u16>,
}

impl<R: BufRead> Utf16<R> {
    fn unit(&mut self) -> io::Result<Option<u16>> {
        let mut bytes = [0; 2];
        for byte in &mut bytes {
            // Half a code unit at the end of a truncated file is dropped.
            let Some(next) = self.source.fill_buf()?.first().copied() else { return Ok(None) };
            *byte = next;
            self.source.consume(1);
        }
        Ok(Some(if self.little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }))
    }
}

impl<R: BufRead> Read for Utf16<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut written = 0;
        // Each iteration writes at most one character, of up to four bytes, and possibly a replacement character for an
        // unpaired surrogate before it.
        while let Some(room) = out.get_mut(written..).filter(|room| room.len() >= 8) {
            let Some(unit) = self.unit()? else { break };
            let high = self.high.take();
            if high.is_none() && (0xd800..0xdc00).contains(&unit) {
                self.high = Some(unit);
                continue;
            }
            let mut at = 0;
            for character in char::decode_utf16(high.into_iter().chain([unit])) {
                let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
                at += character.encode_utf8(room.get_mut(at..).unwrap_or_default()).len();
            }
            written += at;
        }
        Ok(written)
    }
}

/// Decodes a line and removes NUL bytes and terminal control sequences. Borrows if there is nothing to remove or
/// replace.
pub(crate) fn decode_line(raw: &[u8]) -> Cow<'_, str> {
    let raw = raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw);
    if memchr::memchr2(0x1b, 0, raw).is_none() {
        // Validating the whole line first is faster than searching for invalid bytes, which are rare.
        return std::str::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr2(0x1b, 0, rest) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        rest = match from {
            // CSI: parameters, then one final byte from `@` to `~`.
            [0x1b, b'[', inside @ ..] => after_terminator(inside, |byte| (0x40..=0x7e).contains(&byte)),
            // OSC: ends with BEL, or with the escape of ST.
            [0x1b, b']', inside @ ..] => after_terminator(inside, |byte| byte == 0x07 || byte == 0x1b),
            [0x1b, 0x40..=0x7e, inside @ ..] | [_, inside @ ..] => inside,
            [] => from,
        };
    }
    out.extend_from_slice(rest);
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// Returns the bytes after the first one for which `ends` is true; empty if there is none. Skips NUL bytes before it.
fn after_terminator(bytes: &[u8], ends: impl Fn(u8) -> bool) -> &[u8] {
    let end = bytes.iter().position(|byte| ends(*byte)).map_or(bytes.len(), |at| at + 1);
    bytes.get(end..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn all(bytes: &[u8]) -> Vec<(u64, String)> {
        let mut out = Vec::new();
        Lines::new(bytes).each(|line| out.push((line.number, line.text.to_owned()))).unwrap();
        out
    }

    #[test]
    fn line_endings_colors_and_nul_bytes_are_normalized() {
        let lines = all(b"a\r\nbar 1\rbar 2\n\x1b[36mstep:\x1b[0m 4\x00\nno\xffend");
        let expected = [(1, "a"), (1, ""), (2, "bar 1"), (2, "bar 2"), (3, "step: 4"), (4, "no\u{fffd}end")];
        assert_eq!(lines, expected.map(|(number, text)| (number, text.to_owned())));
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\xef\xbb\xbfa"), [(1, "a".to_owned())]);
    }

    #[test]
    fn utf_16_is_decoded() {
        let text = "a\u{b0}C \u{1f600}\n| \u{2502}\n";
        for (mark, bytes) in [(0xfeff_u16, u16::to_le_bytes as fn(u16) -> [u8; 2]), (0xfeff, u16::to_be_bytes)] {
            let units = std::iter::once(mark).chain(text.encode_utf16());
            let mut encoded: Vec<u8> = units.flat_map(bytes).collect();
            encoded.push(0);
            let mut decoded = String::new();
            decompressed(encoded.as_slice()).unwrap().read_to_string(&mut decoded).unwrap();
            assert_eq!(decoded, text);
        }
    }

    #[test]
    fn gzip_is_decompressed_even_when_truncated_or_concatenated() {
        use std::io::Write as _;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"one\ntwo\n").unwrap();
        let packed = packed.finish().unwrap();
        let mut lines = Lines::new(decompressed(&packed[..packed.len() - 3]).unwrap());
        let mut cut = Vec::new();
        lines.each(|line| cut.push(line.text.to_owned())).unwrap();
        assert_eq!((cut, lines.unfinished), (vec!["one".to_owned(), "two".to_owned()], true));
        let mut text = String::new();
        decompressed([packed.as_slice(), packed.as_slice()].concat().as_slice())
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "one\ntwo\none\ntwo\n");
    }
}
