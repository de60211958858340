//! Events that a watch reports. Only changes are reported.

/// A change that is reported.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// There is enough data for a comparison.
    Comparable,
    /// The run left the interval, or its most likely cause changed.
    LeftInterval,
    /// The run is within the interval, but slower than before.
    Slower,
    /// The run returned to the interval.
    ReturnedToInterval,
    /// There has been no step for a long time.
    Stalled,
    /// Steps continue after a stall.
    Resumed,
    /// The step counter decreased: the job was restarted.
    Restarted,
    /// A file was rotated, truncated or cannot be read.
    File(String),
    /// The watch ends.
    Ended,
}

impl Event {
    /// Name in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Event::Comparable => "compared",
            Event::LeftInterval => "left_band",
            Event::Slower => "slower_than_before",
            Event::ReturnedToInterval => "back_in_band",
            Event::Stalled => "stalled",
            Event::Resumed => "resumed",
            Event::Restarted => "restarted",
            Event::File(_) => "file",
            Event::Ended => "ended",
        }
    }
}
