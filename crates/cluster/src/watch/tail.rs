//! Reads files as they grow, through rotation and truncation, on network file systems, compressed or not.
//!
//! The file is read at every poll, since network file systems do not report changes. The remainder of a rotated file is
//! read before the new one.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use flate2::write::MultiGzDecoder;

/// Size of one read, in bytes.
const CHUNK: usize = 1 << 16;
/// Number of bytes at the beginning that are compared, to detect that a file was replaced by one that is at least as
/// long.
const COMPARED_BYTES: usize = 256;

/// Result of a poll.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PollResult {
    /// Number of bytes read.
    pub bytes: u64,
    /// Whether the file was replaced by another file of the same name.
    pub rotated: bool,
    /// Whether it was truncated.
    pub truncated: bool,
    /// Whether the file does not exist.
    pub missing: bool,
    /// Whether the compressed data is damaged; the rest of the file cannot be read.
    pub damaged: bool,
}

/// A piece of the file's contents.
#[derive(Debug)]
pub enum Piece<'a> {
    /// The next bytes, decompressed.
    Bytes(&'a [u8]),
    /// The next bytes do not continue the preceding line.
    Gap,
}

struct Open {
    file: File,
    id: (u64, u64),
    offset: u64,
    head: Vec<u8>,
    unpack: Option<MultiGzDecoder<Vec<u8>>>,
    damaged: bool,
}

/// Follows a file.
pub struct Tail {
    path: PathBuf,
    open: Option<Open>,
    buffer: Vec<u8>,
}

impl Tail {
    /// Follows a file from its beginning. It need not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Tail {
        Tail { path: path.into(), open: None, buffer: vec![0; CHUNK] }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what was written since the last poll, up to `limit` bytes of the file.
    ///
    /// # Errors
    /// If the file cannot be read. The next poll tries again.
    pub fn poll(&mut self, limit: u64, mut give: impl FnMut(Piece<'_>)) -> io::Result<PollResult> {
        let mut polled = PollResult::default();
        // At most two files: the remainder of the old one, and the new one.
        for _ in 0..2 {
            if let Some(open) = &mut self.open {
                match open.read(&mut self.buffer, limit.saturating_sub(polled.bytes), &mut polled, &mut give) {
                    Ok(()) => {}
                    // On NFS, a file that was removed by another client becomes inaccessible immediately.
                    Err(error) if error.raw_os_error() == Some(STALE) => self.open = None,
                    Err(error) => return Err(error),
                }
            }
            if polled.bytes >= limit {
                break;
            }
            let meta = match std::fs::metadata(&self.path) {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // The file was renamed and its successor does not exist yet. The old file may still be written.
                    polled.missing = true;
                    break;
                }
                Err(error) => return Err(error),
            };
            if !meta.is_file() {
                // A pipe would block until it is written, and cannot be read again from an earlier position.
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            }
            let id = (meta.dev(), meta.ino());
            let again = match &mut self.open {
                Some(open) if open.id == id => open.must_reread(meta.len())?,
                Some(_) => {
                    polled.rotated = true;
                    true
                }
                None => true,
            };
            if !again {
                break;
            }
            if self.open.is_some() {
                polled.truncated |= !polled.rotated;
                give(Piece::Gap);
            }
            self.open = Some(Open::at(File::open(&self.path)?)?);
        }
        Ok(polled)
    }
}

/// Value of `ESTALE` on almost all systems.
const STALE: i32 = 116;

impl Open {
    fn at(file: File) -> io::Result<Open> {
        let meta = file.metadata()?;
        let id = (meta.dev(), meta.ino());
        Ok(Open { file, id, offset: 0, head: Vec::new(), unpack: None, damaged: false })
    }

    /// Whether the open file must be read again from the beginning, because it is shorter or begins differently.
    fn must_reread(&self, length: u64) -> io::Result<bool> {
        if length < self.offset {
            return Ok(true);
        }
        if length == self.offset {
            return Ok(false);
        }
        let mut head = vec![0; self.head.len()];
        match self.file.read_exact_at(&mut head, 0) {
            Ok(()) => Ok(head != self.head),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn read(
        &mut self,
        buffer: &mut [u8],
        limit: u64,
        polled: &mut PollResult,
        give: &mut impl FnMut(Piece<'_>),
    ) -> io::Result<()> {
        let until = polled.bytes.saturating_add(limit);
        if self.must_reread(self.file.metadata()?.len())? {
            // The file was truncated, or rewritten in place.
            (self.offset, self.unpack, self.damaged) = (0, None, false);
            self.head.clear();
            self.file.seek(SeekFrom::Start(0))?;
            polled.truncated = true;
            give(Piece::Gap);
        }
        while polled.bytes < until {
            let got = match self.file.read(buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let bytes = buffer.get(..got).unwrap_or_default();
            if self.offset == 0 && bytes.starts_with(&[0x1f, 0x8b]) {
                self.unpack = Some(MultiGzDecoder::new(Vec::new()));
            }
            let room = COMPARED_BYTES.saturating_sub(self.head.len());
            self.head.extend(bytes.iter().take(room));
            self.offset += got as u64;
            polled.bytes += got as u64;
            self.give(bytes, polled, give);
        }
        Ok(())
    }

    fn give(&mut self, bytes: &[u8], polled: &mut PollResult, give: &mut impl FnMut(Piece<'_>)) {
        let Some(unpack) = &mut self.unpack else { return give(Piece::Bytes(bytes)) };
        if self.damaged {
            return;
        }
        // In small pieces, since compressed data may expand by a factor of a thousand.
        for piece in bytes.chunks(4096) {
            let failed = unpack.write_all(piece).and_then(|()| unpack.flush()).is_err();
            give(Piece::Bytes(unpack.get_ref()));
            unpack.get_mut().clear();
            if failed {
                (self.damaged, polled.damaged) = (true, true);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    fn poll(tail: &mut Tail) -> (String, PollResult) {
        let mut text = Vec::new();
        let polled = tail
            .poll(u64::MAX, |piece| match piece {
                Piece::Bytes(bytes) => text.extend_from_slice(bytes),
                Piece::Gap => text.extend_from_slice(b"|"),
            })
            .unwrap();
        (String::from_utf8(text).unwrap(), polled)
    }

    fn append(path: &Path, text: &[u8]) {
        OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text).unwrap();
    }

    #[test]
    fn appended_text_is_read_once_and_a_missing_file_is_awaited() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut tail = Tail::new(&path);
        assert!(poll(&mut tail).1.missing);
        append(&path, b"one\ntw");
        assert_eq!(poll(&mut tail).0, "one\ntw");
        assert_eq!(poll(&mut tail), (String::new(), PollResult::default()));
        append(&path, b"o\n");
        assert_eq!(poll(&mut tail).0, "o\n");
    }

    #[test]
    fn a_rotated_file_is_read_to_its_end_before_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, b"one\n");
        let mut tail = Tail::new(&path);
        poll(&mut tail);
        append(&path, b"two\n");
        std::fs::rename(&path, directory.path().join("log.1")).unwrap();
        let (text, polled) = poll(&mut tail);
        assert_eq!((text.as_str(), polled.missing), ("two\n", true));
        append(&directory.path().join("log.1"), b"late\n");
        append(&path, b"three\n");
        let (text, polled) = poll(&mut tail);
        assert_eq!((text.as_str(), polled.rotated), ("late\n|three\n", true));
    }

    #[test]
    fn truncated_file_is_read_from_the_start_even_if_it_grew_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, b"a long first line\n");
        let mut tail = Tail::new(&path);
        poll(&mut tail);
        std::fs::write(&path, b"short\n").unwrap();
        let (text, polled) = poll(&mut tail);
        assert_eq!((text.as_str(), polled.truncated), ("|short\n", true));
        std::fs::write(&path, b"another text, longer than before\n").unwrap();
        assert_eq!(poll(&mut tail).0, "|another text, longer than before\n");
    }

    #[test]
    fn growing_gzip_file_is_decompressed_and_damage_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.gz");
        let packed = |text: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let member = packed(b"one\ntwo\n");
        append(&path, &member[..member.len() / 2]);
        let mut tail = Tail::new(&path);
        let first = poll(&mut tail).0;
        append(&path, &member[member.len() / 2..]);
        append(&path, &packed(b"three\n"));
        assert_eq!(first + &poll(&mut tail).0, "one\ntwo\nthree\n");
        append(&path, &[0x1f, 0x8b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(poll(&mut tail).1.damaged);
    }
}
