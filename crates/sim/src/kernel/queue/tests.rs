//! Order, ties, cancellation and renumbering, compared with a reference list that is sorted on every access.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::kernel::random::Stream;
use proptest::prelude::*;

#[test]
fn ties_are_handled_in_the_order_of_scheduling() {
    let mut queue = EventQueue::default();
    for event in 0..100 {
        queue.at(Time::from_ps(7), event);
    }
    for event in 0..100 {
        assert_eq!(queue.pop(), Some(event));
    }
    assert_eq!(queue.pop(), None);
    assert_eq!(queue.now(), Time::from_ps(7));
}

#[test]
fn end_of_instant_events_come_last() {
    let mut queue = EventQueue::default();
    queue.at(Time::from_ps(3), 'a');
    queue.at(Time::from_ps(4), 'z');
    assert_eq!(queue.pop(), Some('a'));
    queue.at_end_of_instant('l');
    queue.at(Time::from_ps(3), 'b');
    queue.after(Time::ZERO, 'c');
    let order: Vec<char> = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(order, ['b', 'c', 'l', 'z']);
}

#[test]
fn past_events_pop_at_the_current_time() {
    let mut queue = EventQueue::default();
    queue.at(Time::from_ps(10), 1);
    queue.pop();
    queue.at(Time::from_ps(5), 2);
    assert_eq!(queue.pop(), Some(2));
    assert_eq!(queue.now(), Time::from_ps(10));
}

#[test]
fn a_stale_handle_cancels_nothing() {
    let mut queue = EventQueue::default();
    let first = queue.at(Time::from_ps(1), 1);
    assert_eq!(queue.pop(), Some(1));
    let second = queue.at(Time::from_ps(2), 2);
    assert!(!queue.cancel(first));
    assert!(!queue.cancel(Handle::NONE));
    assert!(queue.cancel(second));
    assert!(!queue.cancel(second));
    assert!(queue.is_empty());
    assert_eq!(queue.pop(), None);
}

#[test]
fn renumbering_preserves_event_order() {
    let mut queue = EventQueue::<u32> { sequence: (1 << SEQUENCE_BITS) - 50, ..EventQueue::default() };
    for event in 0..100 {
        match event % 3 {
            0 => queue.push_fifo(event as usize % 2, Time::from_ps(5), event),
            _ => drop(queue.at(Time::from_ps(5), event)),
        }
    }
    assert!(queue.sequence < 1000);
    let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
    let expected: Vec<u32> = (0..100).collect();
    assert_eq!(order, expected);
}

#[test]
fn the_steady_state_does_not_allocate() {
    let mut queue = EventQueue::default();
    let mut stream = Stream::new(1, 0, 0);
    for event in 0..1000u32 {
        queue.at(Time::from_ps(stream.below(1000)), event);
    }
    let room = |q: &EventQueue<u32>| (q.heap.capacity(), q.slots.capacity());
    let before = room(&queue);
    for _ in 0..100_000 {
        let event = queue.pop().unwrap();
        queue.after(Time::from_ps(stream.below(1000)), event);
    }
    assert_eq!(before, room(&queue));
    assert_eq!(queue.handled(), 100_000);
}

#[test]
fn canceled_events_do_not_pile_up() {
    let mut queue = EventQueue::default();
    let mut timeout = Handle::NONE;
    for step in 0..100_000u64 {
        queue.cancel(timeout);
        timeout = queue.at(Time::from_ps(1_000_000 + step), step);
        queue.at(Time::from_ps(step), step);
        queue.pop();
    }
    assert!(queue.heap.len() < 2 * MIN_SWEEP_EVENTS + 8, "{}", queue.heap.len());
    assert_eq!(queue.len(), 1);
}

proptest! {
    /// Any mixture of scheduling, canceling and popping matches a sorted list.
    #[test]
    fn event_queue_agrees_with_a_sorted_list(actions in prop::collection::vec((0u8..6, 0u64..20, any::<prop::sample::Index>()), 1..600)) {
        let mut queue = EventQueue::default();
        let mut list: Vec<(u64, bool, usize, Handle)> = Vec::new();
        for (number, (action, delay, pick)) in actions.into_iter().enumerate() {
            match action {
                0 | 1 => {
                    let at = queue.now().plus(Time::from_ps(delay));
                    let handle = queue.at(at, number);
                    list.push((at.ps(), false, number, handle));
                }
                2 => {
                    queue.at_end_of_instant(number);
                    list.push((queue.now().ps(), true, number, Handle::NONE));
                }
                3 => {
                    let at = queue.now().plus(Time::from_ps(delay));
                    queue.push_fifo(number % (FIFO_LISTS + 1), at, number);
                    list.push((at.ps(), false, number, Handle::NONE));
                }
                4 if !list.is_empty() => {
                    let place = pick.index(list.len());
                    if list[place].3 != Handle::NONE {
                        let (_, _, _, handle) = list.remove(place);
                        prop_assert!(queue.cancel(handle));
                    }
                }
                _ => {
                    list.sort_by_key(|&(at, late, number, _)| (at, late, number));
                    let expected = if list.is_empty() { None } else { Some(list.remove(0)) };
                    let horizon = pick.index(40) as u64;
                    if let Some((at, ..)) = expected.filter(|&(at, ..)| horizon < 20 && at > horizon) {
                        prop_assert_eq!(queue.next_until(Time::from_ps(horizon)), None);
                        prop_assert!(at >= queue.now().ps());
                    }
                    prop_assert_eq!(queue.pop(), expected.map(|e| e.2));
                    if let Some((at, _, _, handle)) = expected {
                        prop_assert_eq!(queue.now().ps(), at);
                        prop_assert!(!queue.cancel(handle));
                    }
                }
            }
            prop_assert_eq!(queue.len(), list.len());
        }
    }
}
