//! The event queue: a 4-ary heap of 16-byte keys over a slab of events.
//!
//! A key packs (time, sequence, slot) into one 128-bit integer, so that keys compare in one operation and four children
//! fill one cache line. The sequence number makes ties first come, first served. Events stay in the slab while keys
//! move. Events at the end of the current instant are kept in a separate list, and so are events that are scheduled in
//! order of time, such as the ends of activities of equal length.
//!
//! Canceling marks the slot; its key is skipped when it reaches the head of the heap. When more than a quarter of the
//! keys are marked, all marked keys are swept, at an amortized constant cost per canceled event. Handles carry a
//! generation, so that canceling a stale handle has no effect. Heap and slab grow to the peak number of pending events
//! and never shrink: in the steady state, events need no allocation.

use super::time::Time;
use std::collections::VecDeque;
use std::hint::select_unpredictable;

/// Bits of a key for the slot: 268 million pending events, more than fit in memory.
const SLOT_BITS: u32 = 28;
/// Bits of a key for the sequence number. When they are used up, the pending events are renumbered.
const SEQUENCE_BITS: u32 = 36;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;
const ARITY: usize = 4;
/// Sweeping does not pay off below this many canceled events, nor below this fraction of the heap: it costs about as
/// much for each pending event as it saves for each canceled one.
const MIN_SWEEP_EVENTS: usize = 16;
const MIN_SWEEP_DIVISOR: usize = 4;

/// Number of lines: FIFO lists of events that are scheduled in the order of their times.
pub const FIFO_LISTS: usize = 2;
/// Sentinel key of an absent event. Sequence numbers never reach it.
const NEVER: u128 = u128::MAX;

/// Identifies a scheduled event for cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    slot: u32,
    generation: u32,
}

impl Default for Handle {
    fn default() -> Self {
        Handle::NONE
    }
}

impl Handle {
    /// Handle of no event. Canceling it does nothing.
    pub const NONE: Handle = Handle { slot: u32::MAX, generation: u32::MAX };
}

#[derive(Debug, Clone, Copy)]
struct Slot<E> {
    event: E,
    generation: u32,
    live: bool,
}

/// Pending events in order of time, ties in order of scheduling, and the simulation clock.
#[derive(Debug, Clone)]
pub struct EventQueue<E> {
    heap: Vec<u128>,
    slots: Vec<Slot<E>>,
    free: Vec<u32>,
    /// Events scheduled in order of time, with their keys, and the first key of each line.
    lines: [VecDeque<(u128, E)>; FIFO_LISTS],
    fronts: [u128; FIFO_LISTS],
    late: VecDeque<E>,
    /// Number of events on the lines and in `late`.
    aside: usize,
    sequence: u64,
    canceled: usize,
    now: Time,
    handled: u64,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::with_capacity(0)
    }
}

impl<E: Copy> EventQueue<E> {
    /// Creates a queue at time zero, with capacity for `pending` events.
    pub fn with_capacity(pending: usize) -> Self {
        EventQueue {
            heap: Vec::with_capacity(pending),
            slots: Vec::with_capacity(pending),
            free: Vec::with_capacity(pending),
            lines: [const { VecDeque::new() }; FIFO_LISTS],
            fronts: [NEVER; FIFO_LISTS],
            late: VecDeque::new(),
            aside: 0,
            sequence: 0,
            canceled: 0,
            now: Time::ZERO,
            handled: 0,
        }
    }

    /// Removes all events and resets the clock to zero; keeps the allocated capacity.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.slots.clear();
        self.free.clear();
        self.lines.iter_mut().for_each(VecDeque::clear);
        self.fronts = [NEVER; FIFO_LISTS];
        self.late.clear();
        self.aside = 0;
        self.sequence = 0;
        self.canceled = 0;
        self.now = Time::ZERO;
        self.handled = 0;
    }

    /// Time of the event handled last.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of events handled so far.
    pub fn handled(&self) -> u64 {
        self.handled
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len() - self.canceled + self.aside
    }

    /// Whether no events are pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Schedules `event` at `time`, or at the current time if `time` has passed.
    #[inline]
    pub fn at(&mut self, time: Time, event: E) -> Handle {
        self.push(time, event)
    }

    /// Schedules `event` after `delay`.
    #[inline]
    pub fn after(&mut self, delay: Time, event: E) -> Handle {
        self.push(self.now.plus(delay), event)
    }

    /// Like [`EventQueue::at`], for an event that is never canceled and usually happens after all others scheduled on
    /// the same line (of [`FIFO_LISTS`]). In this case it does not go through the heap.
    #[inline]
    pub fn push_fifo(&mut self, line: usize, time: Time, event: E) {
        let fits = |line: &&mut VecDeque<(u128, E)>| line.back().is_none_or(|&(last, _)| time_of(last) <= time);
        if self.lines.get_mut(line).filter(fits).is_none() {
            self.push(time, event);
            return;
        }
        let key = self.key(time, 0);
        if let (Some(line), Some(front)) = (self.lines.get_mut(line), self.fronts.get_mut(line)) {
            *front = key.min(*front);
            line.push_back((key, event));
            self.aside += 1;
        }
    }

    /// Schedules `event` at the end of the current instant: after all other events at this time, including those not
    /// yet scheduled. A single reaction can then handle several simultaneous changes.
    #[inline]
    pub fn at_end_of_instant(&mut self, event: E) {
        self.late.push_back(event);
        self.aside += 1;
    }

    #[inline]
    fn push(&mut self, time: Time, event: E) -> Handle {
        let (slot, generation) = self.take_slot(event);
        let key = self.key(time, slot);
        self.heap.push(key);
        sift_up(&mut self.heap, key);
        Handle { slot, generation }
    }

    /// Returns the key of an event scheduled now for `time`.
    #[inline]
    fn key(&mut self, time: Time, slot: u32) -> u128 {
        if self.sequence >> SEQUENCE_BITS != 0 {
            self.renumber();
        }
        let low = (self.sequence << SLOT_BITS) | u64::from(slot);
        self.sequence += 1;
        (u128::from(time.max(self.now).ps()) << 64) | u128::from(low)
    }

    #[inline]
    fn take_slot(&mut self, event: E) -> (u32, u32) {
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index as usize)
        {
            slot.event = event;
            slot.live = true;
            return (index, slot.generation);
        }
        let index = self.slots.len() as u32;
        self.slots.push(Slot { event, generation: 0, live: true });
        (index, 0)
    }

    /// Cancels an event. Returns `false` if it was already handled or canceled, or never existed.
    pub fn cancel(&mut self, handle: Handle) -> bool {
        let Some(slot) = self.slots.get_mut(handle.slot as usize) else { return false };
        if slot.generation != handle.generation || !slot.live {
            return false;
        }
        slot.live = false;
        self.canceled += 1;
        if self.canceled > MIN_SWEEP_EVENTS && MIN_SWEEP_DIVISOR * self.canceled > self.heap.len() {
            self.sweep();
        }
        true
    }

    /// Returns the next event and advances the clock to it.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        self.next_until(Time::MAX)
    }

    /// Returns the next event and advances the clock to it, unless it happens after `until`.
    #[inline]
    pub fn next_until(&mut self, until: Time) -> Option<E> {
        loop {
            let first = self.heap.first().copied().unwrap_or(NEVER);
            // The separate lists are usually empty.
            if self.aside > 0 {
                let [one, other] = self.fronts;
                let in_turn = one.min(other);
                if !self.late.is_empty() {
                    let key = first.min(in_turn);
                    if time_of(key) > self.now || key == NEVER {
                        // A canceled event at the head of the heap does not matter: the events behind it are even
                        // later.
                        return self.next_at_end_of_instant(until);
                    }
                }
                if in_turn < first {
                    return self.next_fifo(usize::from(other < one), time_of(in_turn), until);
                }
            }
            if first == NEVER {
                return None;
            }
            let time = time_of(first);
            let index = slot_of(first);
            let slot = self.slots.get_mut(index as usize)?;
            if !slot.live {
                pop_first(&mut self.heap);
                slot.generation = slot.generation.wrapping_add(1);
                self.free.push(index);
                self.canceled -= 1;
                continue;
            }
            if time > until {
                return None;
            }
            slot.live = false;
            slot.generation = slot.generation.wrapping_add(1);
            let event = slot.event;
            pop_first(&mut self.heap);
            self.free.push(index);
            self.now = time;
            self.handled += 1;
            return Some(event);
        }
    }

    /// Takes the first event of a line, which happens at `time`.
    #[inline]
    fn next_fifo(&mut self, line: usize, time: Time, until: Time) -> Option<E> {
        if time > until {
            return None;
        }
        let (line, front) = (self.lines.get_mut(line)?, self.fronts.get_mut(line)?);
        let event = line.pop_front().map(|(_, event)| event);
        *front = line.front().map_or(NEVER, |&(key, _)| key);
        self.now = time;
        self.handled += 1;
        self.aside -= 1;
        event
    }

    /// Takes the first event that waits for the end of the instant.
    #[inline]
    fn next_at_end_of_instant(&mut self, until: Time) -> Option<E> {
        if self.now > until {
            return None;
        }
        let event = self.late.pop_front()?;
        self.aside -= 1;
        self.handled += 1;
        Some(event)
    }

    /// Removes the keys of canceled events from the heap.
    #[cold]
    #[inline(never)]
    fn sweep(&mut self) {
        let (slots, free) = (&mut self.slots, &mut self.free);
        self.heap.retain(|&key| {
            let index = slot_of(key);
            match slots.get_mut(index as usize) {
                Some(slot) if !slot.live => {
                    slot.generation = slot.generation.wrapping_add(1);
                    free.push(index);
                    false
                }
                _ => true,
            }
        });
        self.canceled = 0;
        order(&mut self.heap);
    }

    /// Renumbers the pending events from 0, in their current order.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self) {
        self.heap.sort_unstable();
        let mut number = 0u64;
        let in_turn = self.lines.iter_mut().flatten().map(|(key, _)| key);
        let mut keys: Vec<&mut u128> = self.heap.iter_mut().chain(in_turn).collect();
        keys.sort_unstable();
        for key in keys {
            *key = (*key >> 64) << 64 | u128::from(number) << SLOT_BITS | u128::from(slot_of(*key));
            number += 1;
        }
        self.sequence = number;
        self.fronts = self.lines.each_ref().map(|line| line.front().map_or(NEVER, |&(key, _)| key));
    }
}

#[inline]
fn time_of(key: u128) -> Time {
    Time::from_ps((key >> 64) as u64)
}

#[inline]
fn slot_of(key: u128) -> u32 {
    (key as u64 & SLOT_MASK) as u32
}

/// Moves the last key, `key`, up to its position.
#[inline]
fn sift_up(heap: &mut [u128], key: u128) {
    let mut at = heap.len() - 1;
    while at > 0 {
        let parent = (at - 1) / ARITY;
        match heap.get(parent) {
            Some(&above) if above > key => {
                put(heap, at, above);
                at = parent;
            }
            _ => break,
        }
    }
    put(heap, at, key);
}

/// Removes the first key.
#[inline]
fn pop_first(heap: &mut Vec<u128>) {
    if let Some(last) = heap.pop() {
        sift_down(heap, 0, last);
    }
}

/// Moves `key` from position `at` down to its position, overwriting the key at `at`.
#[inline]
fn sift_down(heap: &mut [u128], mut at: usize, key: u128) {
    let mut first = ARITY * at + 1;
    while let Some(four) = heap.get(first..).and_then(<[u128]>::first_chunk::<ARITY>) {
        // Which child is the smallest is unpredictable, so this avoids branches. It also avoids a second memory access,
        // which would delay the next event.
        let &[a, b, c, d] = four;
        let (x, i) = select_unpredictable(b < a, (b, 1), (a, 0));
        let (y, j) = select_unpredictable(d < c, (d, 3), (c, 2));
        let (least, child) = select_unpredictable(y < x, (y, j), (x, i));
        if least >= key {
            return put(heap, at, key);
        }
        put(heap, at, least);
        at = first + child;
        first = ARITY * at + 1;
    }
    // The last group of siblings may be incomplete.
    match heap.get(first..).and_then(|fewer| fewer.iter().zip(first..).min()) {
        Some((&least, child)) if least < key => {
            put(heap, at, least);
            put(heap, child, key);
        }
        _ => put(heap, at, key),
    }
}

/// Builds a heap of keys in arbitrary order (Floyd, *Algorithm 245: Treesort*, 1964).
fn order(heap: &mut [u128]) {
    for at in (0..heap.len().div_ceil(ARITY)).rev() {
        if let Some(&key) = heap.get(at) {
            sift_down(heap, at, key);
        }
    }
}

#[inline]
fn put(heap: &mut [u128], at: usize, key: u128) {
    if let Some(place) = heap.get_mut(at) {
        *place = key;
    }
}

#[cfg(test)]
mod tests;
