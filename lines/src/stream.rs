//! Lines out of a stream, in constant memory: gzip unpacked, colours and NUL bytes taken out, carriage returns of
//! progress bars understood as ends of lines, invalid UTF-8 replaced.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

/// Longest line kept; what a longer one holds beyond it is dropped. One line is one JSON document in some formats.
const LONGEST: usize = 64 << 20;
/// Bytes asked of the source at a time.
const CHUNK: usize = 1 << 18;

/// One line of a file.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Without its end, colours and NUL bytes.
    pub text: &'a str,
    /// Which line of the file it is, from 1. Parts between carriage returns share the number of their line.
    pub number: u64,
    /// Whether it had an end; the last line of a file that is still written, or was cut, has none.
    pub whole: bool,
}

/// Reads lines.
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where the next line begins in the buffer.
    start: usize,
    /// How far the buffer has been searched for an end.
    searched: usize,
    number: u64,
    ended: bool,
    /// Bytes read so far.
    pub bytes: u64,
    /// Lines that were too long and were cut.
    pub cut: u64,
    /// Whether the last line had no end: the file may have been cut there.
    pub unfinished: bool,
    dropping: bool,
}

impl<R: Read> Lines<R> {
    /// Lines of `source`.
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
        }
    }

    /// Gives `each` every line, with its bytes cleaned.
    ///
    /// # Errors
    ///
    /// What reading the source says.
    pub fn each(&mut self, mut each: impl FnMut(Line<'_>)) -> io::Result<()> {
        loop {
            while let Some((from, to, end)) = self.next_range() {
                if !std::mem::take(&mut self.dropping) {
                    let raw = self.buffer.get(from..to).unwrap_or_default();
                    each(Line { text: &clean(raw), number: self.number, whole: true });
                }
                self.number += u64::from(end == b'\n');
            }
            if self.ended {
                let rest = self.buffer.get(self.start..).unwrap_or_default();
                self.unfinished = !rest.is_empty();
                if self.unfinished && !self.dropping {
                    each(Line { text: &clean(rest), number: self.number, whole: false });
                }
                self.start = self.buffer.len();
                return Ok(());
            }
            if self.buffer.len() - self.start > LONGEST {
                // What was gathered of an endless line is all that is looked at.
                if !std::mem::replace(&mut self.dropping, true) {
                    let rest = self.buffer.get(self.start..).unwrap_or_default();
                    self.cut += 1;
                    each(Line { text: &clean(rest), number: self.number, whole: false });
                }
                self.buffer.clear();
                (self.start, self.searched) = (0, 0);
            }
            self.fill()?;
        }
    }

    /// The next line that is whole in the buffer, and the byte that ended it.
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

/// The source unpacked where it is gzip, also where several members follow each other.
///
/// # Errors
///
/// What reading the source says.
pub fn unpacked<'a>(source: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut source = BufReader::with_capacity(CHUNK, source);
    if source.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(BufReader::with_capacity(CHUNK, flate2::bufread::MultiGzDecoder::new(source))));
    }
    Ok(Box::new(source))
}

/// The text of a line without what steers a terminal; nothing is copied where there is nothing to take out.
fn clean(raw: &[u8]) -> Cow<'_, str> {
    // Marks of the byte order: that of UTF-8, and that of UTF-16, whose NUL bytes are taken out below.
    let marks: [&[u8]; 2] = [b"\xef\xbb\xbf", b"\xff\xfe"];
    let raw = marks.iter().find_map(|mark| raw.strip_prefix(*mark)).unwrap_or(raw);
    if memchr::memchr2(0x1b, 0, raw).is_none() {
        // Checking whole lines is a good deal faster than looking for the place to mend; few need it.
        return std::str::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr2(0x1b, 0, rest) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        rest = match from {
            // CSI: parameters, then one byte from @ to ~.
            [0x1b, b'[', inside @ ..] => behind(inside, |byte| (0x40..=0x7e).contains(&byte)),
            // OSC: to BEL, or to the escape of ST.
            [0x1b, b']', inside @ ..] => behind(inside, |byte| byte == 0x07 || byte == 0x1b),
            [0x1b, 0x40..=0x7e, inside @ ..] | [_, inside @ ..] => inside,
            [] => from,
        };
    }
    out.extend_from_slice(rest);
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// What follows the first byte that ends a sequence; nothing where it has no end. NUL bytes in between do not count.
fn behind(bytes: &[u8], ends: impl Fn(u8) -> bool) -> &[u8] {
    let end = bytes.iter().position(|byte| ends(*byte)).map_or(bytes.len(), |at| at + 1);
    bytes.get(end..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn all(bytes: &[u8]) -> Vec<(u64, String)> {
        let mut out = Vec::new();
        Lines::new(bytes).each(|line| out.push((line.number, line.text.to_owned()))).unwrap();
        out
    }

    #[test]
    fn ends_colours_and_nul_bytes() {
        let lines = all(b"a\r\nbar 1\rbar 2\n\x1b[36mstep:\x1b[0m 4\x00\nno\xffend");
        let expected = [(1, "a"), (1, ""), (2, "bar 1"), (2, "bar 2"), (3, "step: 4"), (4, "no\u{fffd}end")];
        assert_eq!(lines, expected.map(|(number, text)| (number, text.to_owned())));
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\xef\xbb\xbfa"), [(1, "a".to_owned())]);
        assert_eq!(all(b"\xff\xfea\0b\0\n\0c\0"), [(1, "ab".to_owned()), (2, "c".to_owned())]);
    }

    #[test]
    fn gzip_is_unpacked() {
        use std::io::Write as _;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"one\ntwo\n").unwrap();
        let packed = packed.finish().unwrap();
        let mut text = String::new();
        unpacked([packed.clone(), packed].concat().as_slice()).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\none\ntwo\n");
    }
}
