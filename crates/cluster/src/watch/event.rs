//! When a watch says something: changes, and nothing else.

/// A change that is worth saying.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Enough was read to compare.
    Compared,
    /// The run left the interval, or its cause is seen differently now.
    Left,
    /// The run is inside the interval, yet slower than it was itself.
    Slower,
    /// The run is back inside the interval.
    Back,
    /// No step has come for long.
    Stalled,
    /// Steps continue after a stall.
    Resumed,
    /// The counter of steps went back: the job was restarted.
    Restarted,
    /// A file was rotated, truncated or cannot be read.
    File(String),
    /// The watch ends.
    Ended,
}

impl Event {
    /// Its name in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Event::Compared => "compared",
            Event::Left => "left_band",
            Event::Slower => "slower_than_before",
            Event::Back => "back_in_band",
            Event::Stalled => "stalled",
            Event::Resumed => "resumed",
            Event::Restarted => "restarted",
            Event::File(_) => "file",
            Event::Ended => "ended",
        }
    }
}
