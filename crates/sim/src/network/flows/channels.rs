//! Channels: links that flows share. Links that are always traversed together form one channel.

use crate::network::topology::{Link, NodeKind, Topology};
use smallvec::SmallVec;
use std::ops::Range;

/// A link, or several in a row.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct Channel {
    pub(super) capacity: f64,
    /// Bytes of finished flows.
    pub(super) carried: f64,
    /// Start, length and capacity of its list of flows.
    pub(super) first: u32,
    pub(super) flows: u32,
    pub(super) room: u32,
    /// Last round of settling after which a flow has left it.
    pub(super) left: u32,
}

impl Channel {
    /// Range of its list of flows.
    #[inline]
    pub(super) fn listed(&self) -> Range<usize> {
        self.first as usize..(self.first + self.flows) as usize
    }

    /// Moves its list of flows to a place with twice the capacity.
    #[cold]
    pub(super) fn grow_flow_list(&mut self, listed: &mut Vec<(u32, u32)>) {
        let (old, first) = (self.listed(), listed.len());
        listed.resize(first + 2 * self.room as usize, (0, 0));
        listed.copy_within(old, first);
        (self.first, self.room) = (first as u32, 2 * self.room);
    }
}

/// The links at a network card.
#[derive(Debug, Clone, Copy, Default)]
struct NicLinks {
    into: [u32; 2],
    out_of: [u32; 2],
    /// Number of links in each direction.
    ins: usize,
    outs: usize,
}

/// Returns the channels of a network, and the channel of each link. No flow starts or ends at a card between two other
/// nodes, and there is only one way through it: the link into it and the link out of it on the other side are always
/// used together.
pub(super) fn channels(topology: &Topology) -> (Vec<Channel>, Vec<u32>) {
    let links = topology.links();
    let before = preceding_links(topology, links);
    let mut channels: Vec<Channel> = Vec::with_capacity(links.len());
    let mut of: Vec<u32> = vec![u32::MAX; links.len()];
    for link in 0..links.len() {
        // Follows the row back to its first link. A ring consisting only of cards has none and is left as it is.
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

/// Returns for each link the link that always precedes it, if there is one.
fn preceding_links(topology: &Topology, links: &[Link]) -> Vec<Option<u32>> {
    let mut cards = vec![NicLinks::default(); topology.len()];
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
    fn cables_through_nics_merge_into_one_channel_per_direction() {
        let mut t = Topology::default();
        // Accelerator, card, card, switch, accelerator; and a card with two accelerators.
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
