//! Formats events as text and as JSON.

use serde_json::Value;

use super::cause::Diagnosis;
use super::diagnose::{duration, durations};
use super::event::Event;
use super::standing::Position;
use super::state::WatchState;

impl Event {
    /// Whether the event is an alarm.
    #[must_use]
    pub fn is_alarm(&self, state: &WatchState) -> bool {
        match self {
            Event::LeftInterval => matches!(state.position, Position::Slower { .. }),
            Event::Stalled => true,
            _ => false,
        }
    }

    /// The event as text of one or several lines.
    #[must_use]
    pub fn text(&self, state: &WatchState) -> String {
        let at = state.last_step().map_or_else(String::new, |step| format!("{} {step}: ", state.counter()));
        let mut out = at + &self.what(state);
        if matches!(self, Event::LeftInterval | Event::Slower)
            && let Some(diagnosis) = &state.diagnosis
        {
            out += &described(diagnosis);
        }
        if !matches!(self, Event::File(_))
            && let Some(line) = outlook(state)
        {
            out += &format!("\n  {line}");
        }
        out
    }

    /// The verdict, if the event reports nothing else.
    #[must_use]
    pub fn verdict(&self, state: &WatchState) -> Option<Position> {
        matches!(self, Event::LeftInterval | Event::ReturnedToInterval | Event::Ended).then_some(state.position)
    }

    fn what(&self, state: &WatchState) -> String {
        let measured = measured(state);
        match self {
            Event::Comparable => measured,
            Event::LeftInterval | Event::ReturnedToInterval | Event::Ended => {
                format!("{}: {measured}", state.position.text(state.counter()))
            }
            Event::Slower => {
                let shift = state.shift.map_or_else(String::new, |shift| {
                    let rise = 100.0 * shift.rise();
                    format!("{rise:.0} % slower than before since {} {}", state.counter(), shift.since)
                });
                format!("{shift}, within the interval: {measured}")
            }
            Event::Stalled => format!("no {} for {}", state.counter(), duration(state.silent_s)),
            Event::Resumed => "steps continue".to_owned(),
            Event::Restarted => "the step counter decreased: the job was restarted".to_owned(),
            Event::File(what) => what.clone(),
        }
    }

    /// The event as a JSON object.
    #[must_use]
    pub fn json(&self, state: &WatchState) -> Value {
        let mut out = state.json();
        if let Some(map) = out.as_object_mut() {
            map.insert("event".to_owned(), self.name().into());
            map.insert("alarm".to_owned(), self.is_alarm(state).into());
            map.insert("text".to_owned(), self.text(state).into());
        }
        out
    }
}

/// Measured and predicted time.
fn measured(state: &WatchState) -> String {
    let unit = state.quantity().unit();
    let Some(now) = state.now else { return format!("no {unit} yet") };
    match &state.prediction {
        Some(plan) => {
            let [now, planned, low, high] = durations([now, plan.seconds, plan.band[0], plan.band[1]]);
            format!("{now} per {unit}, predicted {planned} ({low} to {high})")
        }
        None => format!("{} per {unit}", duration(now)),
    }
}

/// The diagnosis: one line for each of the two most likely causes, and what to check next.
fn described(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    for suspect in diagnosis.suspects.iter().take(2).filter(|suspect| suspect.weight >= 0.1) {
        let evidence =
            if suspect.evidence.is_empty() { String::new() } else { format!(": {}", suspect.evidence.join("; ")) };
        out += &format!("\n  {} {:.0} %{evidence}", suspect.cause.name(), 100.0 * suspect.weight);
    }
    if let Some(first) = diagnosis.first() {
        let lead = if diagnosis.is_clear() { "next" } else { "cause uncertain; next" };
        out += &format!("\n  {lead}: {}", first.cause.check());
    }
    out
}

/// Progress, time to completion and remaining cost.
fn outlook(state: &WatchState) -> Option<String> {
    let progress = state.progress()?;
    let mut out = format!("{} of {} steps, {} to go", progress.step, progress.of, duration(progress.seconds));
    if let Some(planned) = progress.planned_seconds {
        let late = progress.seconds - planned;
        let word = if late >= 0.0 { "later" } else { "earlier" };
        out += &format!(" ({} {word} than at the predicted pace)", duration(late.abs()));
    }
    if let Some(usd) = progress.usd {
        out += &format!(", {usd:.2} USD to completion");
    }
    if let Some((measured, planned)) = state.power() {
        out += &format!("; {measured:.0} W per device, planned {planned:.0} W");
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::field_reassign_with_default)]
    use super::*;

    #[test]
    fn verdict_comparison_ignores_the_share_but_not_the_start() {
        let slower = |since, share| Position::Slower { since, share };
        assert!(slower(Some(61), 0.2).is_same(slower(Some(61), 0.3)));
        assert!(!slower(Some(61), 0.2).is_same(slower(Some(80), 0.2)));
        assert!(Position::Faster { share: 0.1 }.is_same(Position::Faster { share: 0.2 }));
        // The event for a run that is slower than before, but within the interval, reports more than the verdict.
        let mut state = WatchState::default();
        state.position = Position::Within;
        assert_eq!(
            (Event::ReturnedToInterval.verdict(&state), Event::Slower.verdict(&state)),
            (Some(Position::Within), None)
        );
    }
}
