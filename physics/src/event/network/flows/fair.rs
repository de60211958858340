//! Max-min fair rates after a change, found for those flows only whose rate it reaches.
//!
//! Rates are max-min fair where every flow has a link that is full and on which nobody is faster (Bertsekas and Gallager,
//! section 6.5.2): a condition that is looked up link by link. So the flows next to a change are filled anew while all
//! others keep their rates; whoever of these no longer has such a link, or stands in the way of one, is filled too,
//! until nobody is left. The rates so found are those of filling everything anew, for there is one such set.
#![expect(clippy::indexing_slicing, reason = "flows and hops are numbered in the floor above, links by the topology")]

use super::{Channel, Flows, NetworkEvent, SAME};
use crate::event::kernel::{EventQueue, Handle, Time};

/// Share of a link's bandwidth that counts as none, and by which rates may differ that count as equal: wider than the
/// difference at which a rate is not set anew.
const SLACK: f64 = 10.0 * SAME;
/// Rounds after which whole neighbourhoods are taken in, so that a change that reaches everybody does not get there one
/// by one.
const PATIENCE: u32 = 6;

impl Flows {
    /// Finds the rates of all flows that a change has reached.
    pub(super) fn settle<E: Copy + From<NetworkEvent>>(&mut self, queue: &mut EventQueue<E>) {
        self.settling = false;
        self.round = self.round.wrapping_add(1);
        self.met_links.clear();
        self.met_flows.clear();
        self.begin_with_changes();
        let mut rounds = 0;
        loop {
            self.fill();
            rounds += 1;
            if !self.take_in(rounds > PATIENCE) {
                break;
            }
        }
        let now = queue.now();
        for place in 0..self.met_flows.len() {
            let id = self.met_flows[place];
            let flow = &mut self.flows[id as usize];
            let (old, new) = (flow.rate, flow.fair);
            if (new - old).abs() <= SAME * old {
                continue;
            }
            flow.remaining = (flow.remaining - old * now.since(flow.since).seconds()).max(0.0);
            flow.since = now;
            flow.rate = new;
            flow.ends = now.plus(Time::from_seconds(flow.remaining / new));
            if flow.handle == Handle::NONE || flow.ends < flow.due {
                queue.cancel(flow.handle);
                flow.due = flow.ends;
                flow.handle = queue.at(flow.ends, NetworkEvent::Left(id).into());
            }
        }
    }

    /// The flows next to a change: those that a link held back which somebody has left, those that have come, and those
    /// who have more than an equal share of a link that these come over.
    fn begin_with_changes(&mut self) {
        for place in 0..self.dirty.len() {
            let link = self.dirty[place];
            for entry in 0..self.channels[link as usize].flows.len() {
                let (id, _) = self.channels[link as usize].flows[entry];
                if self.flows[id as usize].decided_by == link {
                    self.include(id);
                }
            }
        }
        self.dirty.clear();
        for place in 0..self.fresh.len() {
            let id = self.fresh[place];
            self.include(id);
            let base = id as usize * self.stride;
            let hops = base..base + self.flows[id as usize].hops as usize;
            let equal = |channel: &Channel| channel.capacity / channel.flows.len() as f64;
            let links = self.hops[hops.clone()].iter();
            let least = links.map(|hop| equal(&self.channels[hop.link as usize])).fold(f64::INFINITY, f64::min);
            for hop in hops {
                let link = self.hops[hop].link as usize;
                for entry in 0..self.channels[link].flows.len() {
                    let (other, _) = self.channels[link].flows[entry];
                    if self.flows[other as usize].rate >= least {
                        self.include(other);
                    }
                }
            }
        }
        self.fresh.clear();
    }

    /// Takes a flow among those that are filled anew, and its links among those that are looked at. A link that it has to
    /// itself and that is not its narrowest decides nothing.
    #[inline]
    fn include(&mut self, id: u32) {
        let round = self.round;
        let flow = &mut self.flows[id as usize];
        if flow.met == round {
            return;
        }
        flow.met = round;
        self.met_flows.push(id);
        let base = id as usize * self.stride;
        for hop in &self.hops[base..base + flow.hops as usize] {
            let channel = &mut self.channels[hop.link as usize];
            if channel.met != round {
                if channel.flows.len() == 1 && hop.link != flow.narrowest {
                    continue;
                }
                channel.met = round;
                channel.inside = 0;
                self.met_links.push(hop.link);
            }
            channel.inside += 1;
        }
    }

    /// Progressive filling of the flows taken in: the link that has least for each of them decides their rate, then the
    /// next.
    fn fill(&mut self) {
        let round = self.round;
        self.filling = self.filling.wrapping_add(1);
        let filling = self.filling;
        self.active.clear();
        for &link in &self.met_links {
            let channel = &self.channels[link as usize];
            let mut spare = channel.capacity;
            if (channel.inside as usize) < channel.flows.len() {
                let rate = |&(id, _): &(u32, u32)| match &self.flows[id as usize] {
                    flow if flow.met == round => 0.0,
                    flow => flow.rate,
                };
                spare = (spare - channel.flows.iter().map(rate).sum::<f64>()).max(0.0);
            }
            let channel = &mut self.channels[link as usize];
            channel.spare = spare;
            channel.unfrozen = channel.inside;
            channel.top = 0.0;
            channel.decides = false;
            self.active.push(link);
        }
        loop {
            let mut least = f64::INFINITY;
            let mut place = 0;
            while place < self.active.len() {
                let channel = &self.channels[self.active[place] as usize];
                if channel.unfrozen == 0 {
                    self.active.swap_remove(place);
                    continue;
                }
                least = least.min(channel.spare / f64::from(channel.unfrozen));
                place += 1;
            }
            if self.active.is_empty() {
                break;
            }
            let limit = least * (1.0 + SAME);
            for place in 0..self.active.len() {
                let link = self.active[place];
                let channel = &mut self.channels[link as usize];
                if channel.unfrozen == 0 || channel.spare > limit * f64::from(channel.unfrozen) {
                    continue;
                }
                channel.decides = true;
                for entry in 0..self.channels[link as usize].flows.len() {
                    let (id, _) = self.channels[link as usize].flows[entry];
                    let flow = &mut self.flows[id as usize];
                    if flow.met != round || flow.frozen == filling {
                        continue;
                    }
                    flow.frozen = filling;
                    flow.fair = least;
                    flow.decided_by = link;
                    let base = id as usize * self.stride;
                    for hop in &self.hops[base..base + flow.hops as usize] {
                        let channel = &mut self.channels[hop.link as usize];
                        if channel.met == round {
                            channel.spare = (channel.spare - least).max(0.0);
                            channel.unfrozen -= 1;
                            channel.top = least;
                        }
                    }
                }
            }
        }
    }

    /// Takes in whoever kept a rate that is not fair any more: a flow whose link is not full any more or lets somebody be
    /// faster, and one that is faster than those whom a link holds back. Whether there was anybody.
    fn take_in(&mut self, all: bool) -> bool {
        let before = self.met_flows.len();
        for place in 0..self.met_links.len() {
            let link = self.met_links[place];
            let channel = &self.channels[link as usize];
            if channel.inside as usize == channel.flows.len() {
                continue;
            }
            let full = channel.spare <= SLACK * channel.capacity;
            let (top, decides) = (channel.top, channel.decides);
            for entry in 0..self.channels[link as usize].flows.len() {
                let (id, _) = self.channels[link as usize].flows[entry];
                let flow = &self.flows[id as usize];
                if flow.met == self.round {
                    continue;
                }
                let held_back = flow.decided_by == link && (!full || flow.rate < top * (1.0 - SLACK));
                let in_the_way = decides && flow.rate > top * (1.0 + SLACK);
                if all || held_back || in_the_way {
                    self.include(id);
                }
            }
        }
        self.met_flows.len() > before
    }
}
