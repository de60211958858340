//! Messages of a collective: sender, receiver, size and dependencies.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Placeholder for a message that does not exist.
const NONE: u32 = u32::MAX;
/// Marks a follower that waits only until the message has left, not until it has arrived.
const ON_LEAVING: u32 = 1 << 31;
/// Maximum number of messages of a run: some gigabytes of memory.
pub(super) const MAX_MESSAGES: usize = 1 << 26;

/// Messages and their order. Ranks are numbered below [`Transfers::ranks`]; a reducing switch, if there is one, has the
/// next number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transfers {
    pub(super) ranks: u32,
    /// Distinct pairs of sender and receiver.
    pub(super) pairs: Vec<(u32, u32)>,
    /// Pair, bytes and number of dependencies of each message.
    pub(super) pair: Vec<u32>,
    pub(super) bytes: Vec<f64>,
    pub(super) waits: Vec<u32>,
    /// Followers of message `m`: `followers[first[m]..first[m + 1]]`.
    first: Vec<u32>,
    followers: Vec<u32>,
}

impl Transfers {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.pair.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.pair.is_empty()
    }

    /// Sender, receiver and bytes of every message.
    pub fn messages(&self) -> impl Iterator<Item = (u32, u32, f64)> {
        self.pair.iter().zip(&self.bytes).map(|(&pair, &bytes)| {
            let (from, to) = self.pairs.get(pair as usize).copied().unwrap_or_default();
            (from, to, bytes)
        })
    }

    /// Followers of `message` that wait for it to leave (if `leaving`), or those that wait for it to arrive.
    #[inline]
    pub(super) fn followers(&self, message: u32, leaving: bool) -> impl Iterator<Item = u32> {
        let at = |place: u32| self.first.get(place as usize).copied().unwrap_or(0) as usize;
        let all = self.followers.get(at(message)..at(message + 1)).unwrap_or(&[]);
        all.iter().filter(move |&&f| (f & ON_LEAVING != 0) == leaving).map(|f| f & !ON_LEAVING)
    }
}

/// Sender and receiver, packed into one number.
type Pair = u64;

/// Hashes pairs of ranks: multiplication by an odd number near 2^64 over the golden ratio (Knuth, *The Art of Computer
/// Programming*, volume 3, section 6.4), with the upper half folded into the lower. Deliberate collisions are no
/// concern for ranks.
#[derive(Debug, Clone, Copy, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 ^ u64::from(byte)));
    }

    fn write_u64(&mut self, pair: Pair) {
        let wide = u128::from(pair) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Builder of [`Transfers`].
#[derive(Debug)]
pub(super) struct Builder {
    out: Transfers,
    /// Pairs so far, unless no pair occurs twice.
    by_pair: Option<HashMap<Pair, u32, BuildHasherDefault<Spread>>>,
    edges: Vec<(u32, u32)>,
    /// Last message into and out of each end.
    into: Vec<u32>,
    out_of: Vec<u32>,
}

/// One message of a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Send {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: f64,
}

impl Builder {
    pub(super) fn new(ranks: u32) -> Self {
        let ends = ranks as usize + 1;
        Builder {
            out: Transfers { ranks, ..Transfers::default() },
            by_pair: Some(HashMap::default()),
            edges: Vec::new(),
            into: vec![NONE; ends],
            out_of: vec![NONE; ends],
        }
    }

    /// Declares that no pair of ranks occurs twice, so that pairs need not be looked up.
    pub(super) fn assume_unique_pairs(&mut self) {
        self.by_pair = None;
    }

    /// Clears the last messages of each rank: following messages do not depend on earlier ones.
    pub(super) fn start_independent(&mut self) {
        self.into.fill(NONE);
        self.out_of.fill(NONE);
    }

    /// Adds a message. [`Builder::after_arrival`] and [`Builder::after_leaving`] add its dependencies.
    pub(super) fn message(&mut self, from: u32, to: u32, bytes: f64) -> u32 {
        let pairs = &mut self.out.pairs;
        let mut new = || {
            pairs.push((from, to));
            (pairs.len() - 1) as u32
        };
        let pair = match &mut self.by_pair {
            Some(met) => *met.entry(u64::from(from) << 32 | u64::from(to)).or_insert_with(new),
            None => new(),
        };
        self.out.pair.push(pair);
        self.out.bytes.push(bytes);
        self.out.waits.push(0);
        (self.out.pair.len() - 1) as u32
    }

    fn edge(&mut self, before: u32, after: u32, mark: u32) {
        if before == NONE {
            return;
        }
        if let Some(waits) = self.out.waits.get_mut(after as usize) {
            *waits += 1;
        }
        self.edges.push((before, after | mark));
    }

    /// Makes `after` wait until `before` has arrived.
    pub(super) fn after_arrival(&mut self, before: u32, after: u32) {
        self.edge(before, after, 0);
    }

    /// Makes `after` wait until `before` has left.
    pub(super) fn after_leaving(&mut self, before: u32, after: u32) {
        self.edge(before, after, ON_LEAVING);
    }

    /// Adds a round in which every rank sends at most one message and receives at most one. Each message waits for the
    /// last ones that its sender received and sent before the round.
    pub(super) fn round(&mut self, sends: &[Send]) {
        let first = self.out.pair.len() as u32;
        for send in sends {
            let message = self.message(send.from, send.to, send.bytes);
            let last = |list: &[u32]| list.get(send.from as usize).copied().unwrap_or(NONE);
            let (into, out_of) = (last(&self.into), last(&self.out_of));
            self.after_arrival(into, message);
            self.after_leaving(out_of, message);
        }
        for (send, message) in sends.iter().zip(first..) {
            if let Some(into) = self.into.get_mut(send.to as usize) {
                *into = message;
            }
            if let Some(out_of) = self.out_of.get_mut(send.from as usize) {
                *out_of = message;
            }
        }
    }

    pub(super) fn finish(mut self) -> Transfers {
        let messages = self.out.pair.len();
        let mut first = vec![0u32; messages + 2];
        for &(before, _) in &self.edges {
            if let Some(count) = first.get_mut(before as usize + 2) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in &mut first {
            sum += *count;
            *count = sum;
        }
        // `first[m + 1]` is where the followers of `m` begin, and advances to where they end.
        self.out.followers = vec![0; self.edges.len()];
        for &(before, after) in &self.edges {
            if let Some(place) = first.get_mut(before as usize + 1) {
                if let Some(follower) = self.out.followers.get_mut(*place as usize) {
                    *follower = after;
                }
                *place += 1;
            }
        }
        first.pop();
        self.out.first = first;
        self.out
    }
}
