//! Sends each frame with a single write.
//!
//! Over SSH every `write(2)` may become a packet, and a terminal that redraws between two packets shows half a frame. A
//! frame is therefore buffered and sent with one write, or not at all if it is empty. A frame that a terminal may read
//! in parts is wrapped in a synchronized update.

use std::io::{self, Write};

/// Begins a synchronized update. Terminals without support for it ignore the sequence.
const SYNC_BEGIN: &[u8] = b"\x1b[?2026h";
/// Ends a synchronized update: the terminal shows the frame.
const SYNC_END: &[u8] = b"\x1b[?2026l";

/// Frames of at least this many bytes are sent as a synchronized update. Shorter ones fit into one packet (every path
/// carries 536 bytes of TCP payload, RFC 9293, section 3.7.1) and into the 4096 bytes that a pseudo-terminal passes on
/// at once.
const SYNC_FROM: usize = 512;

/// A [`Write`] that buffers a frame until [`commit`](FrameWriter::commit) sends it to `W` with one `write_all`.
///
/// [`flush`](Write::flush) does nothing, because drawing code may flush in the middle of a frame. Only the end of a
/// frame is worth a system call.
#[derive(Debug)]
pub struct FrameWriter<W> {
    out: W,
    /// Bytes sent before the frame, [`SYNC_BEGIN`], and the frame.
    bytes: Vec<u8>,
    /// Index of the frame in `bytes`.
    begin: usize,
    /// Bytes sent after the frame, within the synchronized update.
    behind: Vec<u8>,
    sent: u64,
}

impl<W: Write> FrameWriter<W> {
    /// Creates a writer to `out` with an empty frame.
    pub fn new(out: W) -> FrameWriter<W> {
        let mut bytes = Vec::with_capacity(16 * 1024);
        bytes.extend_from_slice(SYNC_BEGIN);
        FrameWriter { out, bytes, begin: SYNC_BEGIN.len(), behind: Vec::new(), sent: 0 }
    }

    /// Returns the frame so far, without the synchronized-update sequences.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        self.bytes.get(self.begin..).unwrap_or_default()
    }

    /// Returns the frame for encoders that append to a vector. They must not change its present content.
    pub(crate) fn frame_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Sends `bytes` in the same write as the next frame, before the synchronized update. For mode switches.
    pub fn push_ahead(&mut self, bytes: &[u8]) {
        let place = self.begin - SYNC_BEGIN.len();
        self.bytes.splice(place..place, bytes.iter().copied());
        self.begin += bytes.len();
    }

    /// Sends `bytes` after the next frame, within the synchronized update. For images, which are drawn over cells that
    /// the frame has cleared.
    pub fn push_behind(&mut self, bytes: &[u8]) {
        self.behind.extend_from_slice(bytes);
    }

    /// Sends the frame and starts an empty one. Returns the number of bytes sent, which is 0 for an empty frame.
    ///
    /// # Errors
    ///
    /// Returns the error of the underlying writer. The frame is then dropped too: part of it may have been sent, and
    /// the caller has to repaint anyway.
    pub fn commit(&mut self) -> io::Result<usize> {
        self.bytes.append(&mut self.behind);
        if self.pending().len() < SYNC_FROM {
            self.bytes.drain(self.begin - SYNC_BEGIN.len()..self.begin);
        } else {
            self.bytes.extend_from_slice(SYNC_END);
        }
        let length = self.bytes.len();
        let result = if length > 0 { self.out.write_all(&self.bytes).and_then(|()| self.out.flush()) } else { Ok(()) };
        self.discard();
        result?;
        self.sent += length as u64;
        Ok(length)
    }

    /// Drops everything that was buffered and not sent.
    pub fn discard(&mut self) {
        self.bytes.clear();
        // Frees the memory of a large image.
        self.behind = Vec::new();
        self.bytes.extend_from_slice(SYNC_BEGIN);
        self.begin = SYNC_BEGIN.len();
    }

    /// Total number of bytes sent, for the status line and for tests of the output size.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.sent
    }

    /// Returns the inner writer.
    #[must_use]
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Returns the inner writer, for output outside of frames.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }
}

impl<W> Write for FrameWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Records every write separately, to count them.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn long_frame_is_one_write_between_synchronized_update_markers() {
        let mut writer = FrameWriter::new(Writes::default());
        let long = "three".repeat(SYNC_FROM);
        for part in ["one", "two", &long] {
            writer.write_all(part.as_bytes()).unwrap();
            writer.flush().unwrap();
        }
        assert_eq!(writer.get_ref().0.len(), 0);
        let length = writer.commit().unwrap();
        assert_eq!(writer.get_ref().0, [format!("\x1b[?2026honetwo{long}\x1b[?2026l").into_bytes()]);
        assert_eq!(length as u64, writer.bytes_sent());
    }

    #[test]
    fn short_frame_is_written_without_synchronized_update_markers() {
        let mut writer = FrameWriter::new(Writes::default());
        writer.write_all(b"step").unwrap();
        writer.push_ahead(b"<ahead>");
        assert_eq!(writer.commit().unwrap(), 11);
        writer.write_all(b"again").unwrap();
        writer.commit().unwrap();
        assert_eq!(writer.get_ref().0, [b"<ahead>step".to_vec(), b"again".to_vec()]);
    }

    #[test]
    fn an_empty_frame_sends_nothing() {
        let mut writer = FrameWriter::new(Writes::default());
        assert_eq!(writer.commit().unwrap(), 0);
        writer.write_all(b"x").unwrap();
        writer.push_ahead(b"y");
        writer.discard();
        assert_eq!(writer.commit().unwrap(), 0);
        assert!(writer.get_ref().0.is_empty());
    }

    #[test]
    fn mode_switches_precede_the_sync_markers_in_the_same_write() {
        let mut writer = FrameWriter::new(Writes::default());
        let frame = "frame".repeat(SYNC_FROM);
        writer.write_all(frame.as_bytes()).unwrap();
        writer.push_ahead(b"<first>");
        writer.push_ahead(b"<second>");
        writer.commit().unwrap();
        writer.push_ahead(b"<alone>");
        writer.commit().unwrap();
        writer.commit().unwrap();
        let first = format!("<first><second>\x1b[?2026h{frame}\x1b[?2026l");
        assert_eq!(writer.get_ref().0, [first.into_bytes(), b"<alone>".to_vec()]);
    }

    #[test]
    fn images_follow_the_frame_inside_the_sync_markers() {
        let mut writer = FrameWriter::new(Writes::default());
        let image = "image".repeat(SYNC_FROM);
        writer.push_behind(image.as_bytes());
        writer.write_all(b"text").unwrap();
        writer.commit().unwrap();
        writer.push_behind(b"<last>");
        writer.commit().unwrap();
        assert_eq!(writer.get_ref().0, [format!("\x1b[?2026htext{image}\x1b[?2026l").into_bytes(), b"<last>".to_vec()]);
    }

    #[test]
    fn a_failed_write_is_reported_once_and_the_frame_dropped() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("gone"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = FrameWriter::new(Broken);
        writer.write_all(b"x").unwrap();
        assert!(writer.commit().is_err());
        assert_eq!(writer.commit().unwrap(), 0);
    }
}
