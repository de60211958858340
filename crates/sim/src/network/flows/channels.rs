//! What flows share: cables, two of which are one where whatever passes the one passes the other.

use crate::network::topology::{Link, NodeKind, Topology};
use smallvec::SmallVec;
use std::ops::Range;

/// A cable, or several in a row.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct Channel {
    pub(super) capacity: f64,
    /// Bytes carried to the end of their flows.
    pub(super) carried: f64,
    /// Where the flows over it are listed, how many they are, and how many there is room for.
    pub(super) first: u32,
    pub(super) flows: u32,
    pub(super) room: u32,
    /// Round of settling after which a flow was the first to leave it.
    pub(super) left: u32,
}

impl Channel {
    /// Where its flows are listed.
    #[inline]
    pub(super) fn listed(&self) -> Range<usize> {
        self.first as usize..(self.first + self.flows) as usize
    }

    /// Its list moves to where it has twice the room.
    #[cold]
    pub(super) fn make_room(&mut self, listed: &mut Vec<(u32, u32)>) {
        let (old, first) = (self.listed(), listed.len());
        listed.resize(first + 2 * self.room as usize, (0, 0));
        listed.copy_within(old, first);
        (self.first, self.room) = (first as u32, 2 * self.room);
    }
}

/// The links at a network card.
#[derive(Debug, Clone, Copy, Default)]
struct Card {
    into: [u32; 2],
    out_of: [u32; 2],
    /// How many of each there are.
    ins: usize,
    outs: usize,
}

/// The channels of a network, and the one of each link. A card between two others begins and ends nothing and gives no
/// choice: the link into it and the link out of it on its other side are always taken together.
pub(super) fn channels(topology: &Topology) -> (Vec<Channel>, Vec<u32>) {
    let links = topology.links();
    let before = taken_together(topology, links);
    let mut channels: Vec<Channel> = Vec::with_capacity(links.len());
    let mut of: Vec<u32> = vec![u32::MAX; links.len()];
    for link in 0..links.len() {
        // Back to the first link of the row; a ring of nothing but cards has none, and is left as it is.
        let mut row = SmallVec::<[u32; 4]>::from_slice(&[link as u32]);
        while let Some(&Some(previous)) = row.last().and_then(|&last| before.get(last as usize)) {
            if row.contains(&previous) {
                row.truncate(1);
                break;
            }
            row.push(previous);
        }
        let known = row.iter().find_map(|&link| of.get(link as usize).copied().filter(|&channel| channel != u32::MAX));
        let number = known.unwrap_or_else(|| {
            channels.push(Channel { capacity: f64::INFINITY, ..Channel::default() });
            (channels.len() - 1) as u32
        });
        for &link in &row {
            if let (Some(place), Some(channel), Some(link)) =
                (of.get_mut(link as usize), channels.get_mut(number as usize), links.get(link as usize))
            {
                *place = number;
                channel.capacity = channel.capacity.min(link.bandwidth);
            }
        }
    }
    (channels, of)
}

/// For each link the one that is taken before it whenever it is taken.
fn taken_together(topology: &Topology, links: &[Link]) -> Vec<Option<u32>> {
    let mut cards = vec![Card::default(); topology.len()];
    for (number, link) in (0..).zip(links) {
        if let Some(card) = cards.get_mut(link.to as usize) {
            if let Some(place) = card.into.get_mut(card.ins) {
                *place = number;
            }
            card.ins += 1;
        }
        if let Some(card) = cards.get_mut(link.from as usize) {
            if let Some(place) = card.out_of.get_mut(card.outs) {
                *place = number;
            }
            card.outs += 1;
        }
    }
    let mut before = vec![None; links.len()];
    for (node, card) in (0..).zip(&cards) {
        if topology.kind(node) != Some(NodeKind::Nic) || (card.ins, card.outs) != (2, 2) {
            continue;
        }
        for into in card.into {
            for out in card.out_of {
                let ends = links.get(into as usize).zip(links.get(out as usize));
                if let Some(place) = before.get_mut(out as usize)
                    && ends.is_some_and(|(into, out)| into.from != out.to)
                {
                    *place = Some(into);
                }
            }
        }
    }
    before
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::network::topology::Wire;

    #[test]
    fn cables_at_a_card_are_one_channel_each_way_and_others_stay_apart() {
        let mut t = Topology::default();
        // Accelerator, card, card, switch, accelerator; and a card on which two accelerators hang.
        for kind in [
            NodeKind::Accelerator,
            NodeKind::Nic,
            NodeKind::Nic,
            NodeKind::Switch,
            NodeKind::Accelerator,
            NodeKind::Nic,
        ] {
            t.node(kind);
        }
        for (a, b, bandwidth) in
            [(2, 3, 3.0), (0, 1, 5.0), (1, 2, 4.0), (3, 4, 7.0), (0, 5, 1.0), (4, 5, 2.0), (3, 5, 9.0)]
        {
            t.cable(a, b, Wire { bandwidth, latency: 0.0 });
        }
        let (channels, of) = channels(&t);
        assert_eq!(of[2], of[0]);
        assert_eq!(of[4], of[0]);
        assert_eq!(of[3], of[1]);
        assert_eq!(of[5], of[1]);
        assert_ne!(of[0], of[1]);
        let capacity = |link: usize| channels[of[link] as usize].capacity;
        assert_eq!([0, 1, 6, 7, 8, 10, 12].map(capacity), [3.0, 3.0, 7.0, 7.0, 1.0, 2.0, 9.0]);
        assert_eq!(channels.len(), 2 + 8);
    }
}
