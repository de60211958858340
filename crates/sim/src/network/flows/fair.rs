//! Recomputes max-min fair rates after a change, only for the flows whose rates it affects.
//!
//! Rates are max-min fair if every flow has a link that is full and on which no flow is faster (Bertsekas and Gallager,
//! section 6.5.2). This condition can be checked link by link. So the flows next to a change are recomputed while all
//! others keep their rates. A flow that no longer has such a link, or prevents another flow from having one, is
//! included as well, until no such flow is left. Since the max-min fair rates are unique, they equal those of a full
//! recomputation.
#![expect(clippy::indexing_slicing, reason = "`Flows` numbers flows and hops, the topology its links")]

use super::{Flows, NetworkEvent, SAME, UNSCHEDULED};
use crate::kernel::{EventQueue, Handle, Time};

/// Relative tolerance: a link with this share of its bandwidth left counts as full, and rates that differ by less count
/// as equal. Wider than the difference below which a rate is not updated.
const RATE_TOLERANCE: f64 = 10.0 * SAME;
/// Number of rounds after which all flows of the affected channels are included, so that a change that affects all
/// flows does not spread to them one by one.
const MAX_PARTIAL_ROUNDS: u32 = 6;

/// State of a channel while rates are computed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChannelState {
    /// State of the current filling: bandwidth left, bandwidth per unfixed flow, highest rate so far, number of unfixed
    /// flows, and whether the channel limits any flow.
    spare: f64,
    share: f64,
    top: f64,
    unfrozen: u32,
    decides: bool,
    /// Round of settling in which it was last included, and how many of its flows are recomputed.
    met: u32,
    inside: u32,
}

impl Flows {
    /// Recomputes the rates of all flows that a change affects.
    pub(super) fn settle<E: Copy + From<NetworkEvent>>(&mut self, queue: &mut EventQueue<E>) {
        self.settling = false;
        self.round = self.round.wrapping_add(1);
        self.met_channels.clear();
        self.met_flows.clear();
        self.looked_at.clear();
        self.begin_with_changes();
        let mut rounds = 0;
        loop {
            self.fill();
            rounds += 1;
            if !self.include_unfair_flows(rounds > MAX_PARTIAL_ROUNDS) {
                break;
            }
        }
        let now = queue.now();
        let (flows, courses) = (self.flows.as_mut_slice(), self.courses.as_mut_slice());
        for &id in &self.met_flows {
            let flow = &mut flows[id as usize];
            let (old, new) = (flow.rate, flow.fair);
            if (new - old).abs() <= SAME * old {
                continue;
            }
            flow.rate = new;
            let course = &mut courses[id as usize];
            course.remaining = (course.remaining - old * now.since(course.since).seconds()).max(0.0);
            course.since = now;
            course.ends = now.plus(Time::from_seconds(course.remaining / new));
            if course.due != UNSCHEDULED && course.handle == Handle::NONE {
                // `due` is the end at full rate; an earlier end is a rounding error.
                course.ends = course.ends.max(course.due);
            } else if course.ends < course.due || course.due == UNSCHEDULED {
                queue.cancel(course.handle);
                course.due = course.ends;
                course.handle = queue.at(course.ends, NetworkEvent::Departed(id).into());
            }
        }
    }

    /// Includes the flows next to a change: those limited by a link that another flow has left, new flows, and flows
    /// with more than an equal share of a link that a new flow uses.
    fn begin_with_changes(&mut self) {
        for place in 0..self.relieved.len() {
            let id = self.relieved[place];
            // The flow may have ended itself in the meantime.
            if self.flows[id as usize].hops > 0 {
                self.include(id);
            }
        }
        self.relieved.clear();
        for place in 0..self.fresh.len() {
            let id = self.fresh[place];
            self.include(id);
            let hops = self.flows[id as usize].hops();
            let mut least = f64::INFINITY;
            for hop in &self.hops[hops.clone()] {
                let channel = &self.channels[hop.channel as usize];
                least = least.min(channel.capacity / f64::from(channel.flows));
            }
            for hop in hops {
                let number = self.hops[hop].channel as usize;
                let listed = self.channels[number].listed();
                // Another new flow has already included the flows of this channel.
                if listed.len() == 1 || self.fillings[number].top <= least {
                    continue;
                }
                self.fillings[number].top = least;
                for entry in listed {
                    let (other, _) = self.listed[entry];
                    if self.flows[other as usize].rate >= least {
                        self.include(other);
                    }
                }
            }
        }
        self.fresh.clear();
    }

    /// Includes a flow among those that are recomputed, and its channels among those that are considered. A channel
    /// that it does not share and that is not its narrowest cannot limit it.
    #[inline]
    fn include(&mut self, id: u32) {
        if self.flows[id as usize].met != self.round {
            self.include_new(id);
        }
    }

    #[inline(never)]
    fn include_new(&mut self, id: u32) {
        let round = self.round;
        let (channels, fillings) = (self.channels.as_slice(), self.fillings.as_mut_slice());
        let flow = &mut self.flows[id as usize];
        flow.met = round;
        self.met_flows.push(id);
        let before = self.looked_at.len();
        for hop in &self.hops[flow.hops()] {
            if (channels[hop.channel as usize].flows == 1) & (hop.channel != flow.narrowest) {
                continue;
            }
            let filling = &mut fillings[hop.channel as usize];
            if filling.met != round {
                // No flow has a fixed rate yet.
                *filling = ChannelState { met: round, top: f64::INFINITY, ..ChannelState::default() };
                self.met_channels.push(hop.channel);
            }
            filling.inside += 1;
            self.looked_at.push(hop.channel);
        }
        (flow.looked_at, flow.lookers) = (before as u32, (self.looked_at.len() - before) as u32);
    }

    /// Progressive filling of the included flows: repeatedly, the channel with the smallest share per flow fixes the
    /// rate of its flows.
    fn fill(&mut self) {
        let Flows { channels, listed, fillings, flows, looked_at, active, round, filling, .. } = self;
        let (channels, listed, looked_at) = (channels.as_slice(), listed.as_slice(), looked_at.as_slice());
        let (fillings, flows) = (fillings.as_mut_slice(), flows.as_mut_slice());
        *filling = filling.wrapping_add(1);
        let (round, filling) = (*round, *filling);
        active.clear();
        active.extend_from_slice(&self.met_channels);
        for &number in &*active {
            let channel = &channels[number as usize];
            let own = &mut fillings[number as usize];
            own.spare = channel.capacity;
            if own.inside < channel.flows {
                let kept = |&(id, _): &(u32, u32)| {
                    let flow = &flows[id as usize];
                    // Branchless, because which flows are kept is unpredictable.
                    flow.rate * f64::from(u8::from(flow.met != round))
                };
                own.spare = (own.spare - listed[channel.listed()].iter().map(kept).sum::<f64>()).max(0.0);
            }
            own.unfrozen = own.inside;
            own.share = own.spare / f64::from(own.inside);
            own.top = 0.0;
            own.decides = false;
        }
        let mut left = self.met_flows.len();
        while left > 0 {
            let mut least = f64::INFINITY;
            let mut place = 0;
            while let Some(&number) = active.get(place) {
                let own = &fillings[number as usize];
                if own.unfrozen == 0 {
                    active.swap_remove(place);
                    continue;
                }
                if own.share < least {
                    least = own.share;
                }
                place += 1;
            }
            if active.is_empty() {
                break;
            }
            let limit = least * (1.0 + SAME);
            for &number in &*active {
                let own = &mut fillings[number as usize];
                if own.unfrozen == 0 || own.share > limit {
                    continue;
                }
                own.decides = true;
                for &(id, _) in &listed[channels[number as usize].listed()] {
                    let flow = &mut flows[id as usize];
                    if flow.met != round || flow.frozen == filling {
                        continue;
                    }
                    left -= 1;
                    flow.frozen = filling;
                    flow.fair = least;
                    flow.decided_by = number;
                    for &number in &looked_at[flow.considered_channels()] {
                        let own = &mut fillings[number as usize];
                        own.spare = (own.spare - least).max(0.0);
                        own.unfrozen -= 1;
                        own.share = own.spare / f64::from(own.unfrozen);
                        own.top = least;
                    }
                }
            }
        }
    }

    /// Includes flows whose rate is no longer fair: a flow whose limiting channel is no longer full or gives another
    /// flow a higher rate, and a flow that is faster than those limited by one of its channels. Returns whether there
    /// were any.
    fn include_unfair_flows(&mut self, all: bool) -> bool {
        let before = self.met_flows.len();
        for place in 0..self.met_channels.len() {
            let number = self.met_channels[place];
            let channel = &self.channels[number as usize];
            let ChannelState { spare, top, decides, inside, .. } = self.fillings[number as usize];
            if inside == channel.flows {
                continue;
            }
            let full = spare <= RATE_TOLERANCE * channel.capacity;
            for entry in channel.listed() {
                let (id, _) = self.listed[entry];
                let flow = &self.flows[id as usize];
                if flow.met == self.round {
                    continue;
                }
                let held_back = flow.decided_by == number && (!full || flow.rate < top * (1.0 - RATE_TOLERANCE));
                let in_the_way = decides && flow.rate > top * (1.0 + RATE_TOLERANCE);
                if all || held_back || in_the_way {
                    self.include(id);
                }
            }
        }
        self.met_flows.len() > before
    }
}
