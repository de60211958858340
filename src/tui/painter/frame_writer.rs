//! One frame, one write.
//!
//! Over SSH every `write(2)` may become a packet, and a terminal that paints between two of them shows half a frame.
//! So a frame is collected here first, then sent in one piece, or not at all when it holds nothing. One that a terminal
//! may read in two is sent between the marks of a synchronized update.

use std::io::{self, Write};

/// Opens a synchronized update; terminals that do not know the mode ignore it.
const SYNC_BEGIN: &[u8] = b"\x1b[?2026h";
/// Closes a synchronized update: the terminal shows the frame now.
const SYNC_END: &[u8] = b"\x1b[?2026l";

/// Frames of at least this many bytes have the marks. Shorter ones fit into one packet (every path carries 536 bytes of TCP
/// payload, RFC 9293, section 3.7.1) and into the 4096 bytes that a pseudo-terminal passes on at once.
const SYNC_FROM: usize = 512;

/// A [`Write`] that collects a frame until [`commit`](FrameWriter::commit) sends it to `W` with one `write_all`.
///
/// [`flush`](Write::flush) does nothing on purpose: whoever draws may flush in the middle of a frame, and only the
/// end of the frame is worth a system call.
#[derive(Debug)]
pub struct FrameWriter<W> {
    out: W,
    /// Bytes that go ahead of the frame, [`SYNC_BEGIN`], and the frame.
    bytes: Vec<u8>,
    /// Index of the frame in `bytes`.
    begin: usize,
    /// Bytes that follow the frame, within its marks.
    behind: Vec<u8>,
    sent: u64,
}

impl<W: Write> FrameWriter<W> {
    /// A writer with an empty frame in front of `out`.
    pub fn new(out: W) -> FrameWriter<W> {
        let mut bytes = Vec::with_capacity(16 * 1024);
        bytes.extend_from_slice(SYNC_BEGIN);
        FrameWriter { out, bytes, begin: SYNC_BEGIN.len(), behind: Vec::new(), sent: 0 }
    }

    /// The frame so far, without the synchronized-update marks.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        self.bytes.get(self.begin..).unwrap_or_default()
    }

    /// The frame, for encoders that append to a vector. They must not change its present content.
    pub(crate) fn frame_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Sends `bytes` in the same write as the next frame, before its marks: mode switches are no part of the picture.
    pub fn push_ahead(&mut self, bytes: &[u8]) {
        let place = self.begin - SYNC_BEGIN.len();
        self.bytes.splice(place..place, bytes.iter().copied());
        self.begin += bytes.len();
    }

    /// Sends `bytes` behind the next frame, within its marks: images stand on what the frame has cleared.
    pub fn push_behind(&mut self, bytes: &[u8]) {
        self.behind.extend_from_slice(bytes);
    }

    /// Sends the frame and starts an empty one; returns how many bytes went out. An empty frame sends nothing.
    ///
    /// # Errors
    ///
    /// Errors of the underlying writer. The frame is dropped then too: half of it may have been sent, and the
    /// caller has to repaint anyway.
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

    /// Drops what was collected and not sent.
    pub fn discard(&mut self) {
        self.bytes.clear();
        // An image may have been large.
        self.behind = Vec::new();
        self.bytes.extend_from_slice(SYNC_BEGIN);
        self.begin = SYNC_BEGIN.len();
    }

    /// All bytes sent so far, for a status line or a test of the budget.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.sent
    }

    /// The inner writer.
    #[must_use]
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// The inner writer, to write outside of frames.
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
    fn a_frame_is_one_write_between_balanced_marks() {
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
    fn what_fits_a_packet_needs_no_marks() {
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
    fn mode_switches_share_the_write_and_stay_outside_the_marks() {
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
    fn images_follow_the_frame_within_its_marks() {
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
