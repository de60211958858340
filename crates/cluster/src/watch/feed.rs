//! Reading and parsing of one watched file.

use std::path::Path;

use atlas_ingest::{Context, Follow, Ingested, Observation};

use super::tail::Piece;
use super::{Event, Tail};

/// A file and its parser.
pub struct Feed {
    tail: Tail,
    follow: Follow,
    /// Whether the last read failed; consecutive failures are reported once.
    failing: bool,
}

impl Feed {
    /// The feed of a file, which may not exist yet.
    #[must_use]
    pub fn of(path: &Path) -> Feed {
        let context = Context { name: path.display().to_string(), ..Context::default() };
        Feed { tail: Tail::new(path), follow: Follow::new(&context), failing: false }
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.tail.path()
    }

    /// Reads up to `max_bytes` new bytes; returns their number, and events about the file.
    pub fn poll(&mut self, max_bytes: u64, mut give: impl FnMut(Observation)) -> (u64, Vec<Event>) {
        let follow = &mut self.follow;
        let polled = self.tail.poll(max_bytes, |piece| match piece {
            Piece::Bytes(bytes) => follow.feed(bytes, &mut give),
            Piece::Gap => follow.discard_partial_line(),
        });
        let name = self.tail.path().display();
        match polled {
            Ok(polled) => {
                self.failing = false;
                let events = [
                    (polled.rotated, "was rotated"),
                    (polled.truncated, "was truncated"),
                    (polled.damaged, "has corrupt gzip data; the rest is not read"),
                ];
                let events =
                    events.into_iter().filter(|(is, _)| *is).map(|(_, what)| Event::File(format!("{name} {what}")));
                (polled.bytes, events.collect())
            }
            Err(_) if self.failing => (0, Vec::new()),
            Err(error) => {
                self.failing = true;
                (0, vec![Event::File(format!("cannot read {name}: {error}; retrying"))])
            }
        }
    }

    /// Reads the last, incomplete line and returns the results for the whole file.
    pub fn finish(self, give: impl FnMut(Observation)) -> Ingested {
        self.follow.finish(give)
    }
}
