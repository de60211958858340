//! Reruns a recorded step: tasks with dependencies, on lanes that run one task at a time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::kernel::Time;

/// One task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Lane that the task occupies, if any.
    pub lane: Option<u32>,
    /// Duration, s.
    pub seconds: f64,
    /// Delay between the end of the last dependency and the start of the task, s.
    pub delay: f64,
    /// Dependencies, as indices into the list of tasks.
    pub after: Vec<u32>,
}

/// Result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Time from the start of the step to the end of its last task, s.
    pub seconds: f64,
    /// Start and end of every task, s.
    pub times: Vec<(f64, f64)>,
}

/// Reason why a step cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Tasks depend on each other in a cycle. Holds the number of tasks that could not run.
    #[error("{0} tasks cannot run: their dependencies form a cycle")]
    Cycle(usize),
    /// A dependency is not in the list, or a time is negative or not finite. Holds the index of a task.
    #[error("task {0} depends on a task that does not exist, or its duration or delay is negative or not finite")]
    Task(usize),
}

/// Replays the step. A lane runs its tasks in the order in which they become ready; ties are resolved by their order in
/// the list.
///
/// # Errors
/// Returns an error for cyclic dependencies, for dependencies that are not in the list, and for invalid times.
pub fn replay(tasks: &[Task]) -> Result<Output, ReplayError> {
    let sound = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
    let mut waiting: Vec<usize> = Vec::with_capacity(tasks.len());
    let mut followers: Vec<Vec<u32>> = vec![Vec::new(); tasks.len()];
    for (index, task) in tasks.iter().enumerate() {
        if !sound(task.seconds) || !sound(task.delay) {
            return Err(ReplayError::Task(index));
        }
        for other in &task.after {
            followers.get_mut(*other as usize).ok_or(ReplayError::Task(index))?.push(index as u32);
        }
        waiting.push(task.after.len());
    }
    let mut ready: BinaryHeap<Reverse<(Time, u32)>> = BinaryHeap::new();
    let mut since: Vec<Time> = vec![Time::ZERO; tasks.len()];
    for (index, task) in tasks.iter().enumerate().filter(|(_, task)| task.after.is_empty()) {
        ready.push(Reverse((Time::from_seconds(task.delay), index as u32)));
    }
    let mut free: BTreeMap<u32, Time> = BTreeMap::new();
    let mut times = vec![(0.0, 0.0); tasks.len()];
    let (mut done, mut last) = (0, Time::ZERO);
    while let Some(Reverse((at, index))) = ready.pop() {
        let place = index as usize;
        let (Some(task), Some(slot)) = (tasks.get(place), times.get_mut(place)) else { continue };
        let begin = task.lane.and_then(|lane| free.get(&lane)).map_or(at, |free| at.max(*free));
        let end = begin.plus(Time::from_seconds(task.seconds));
        if let Some(lane) = task.lane {
            free.insert(lane, end);
        }
        *slot = (begin.seconds(), end.seconds());
        done += 1;
        last = last.max(end);
        for follower in followers.get(place).into_iter().flatten() {
            let (next, index) = (*follower as usize, *follower);
            let (Some(left), Some(since), Some(task)) = (waiting.get_mut(next), since.get_mut(next), tasks.get(next))
            else {
                continue;
            };
            *left = left.saturating_sub(1);
            *since = (*since).max(end);
            if *left == 0 {
                ready.push(Reverse((since.plus(Time::from_seconds(task.delay)), index)));
            }
        }
    }
    if done < tasks.len() {
        return Err(ReplayError::Cycle(tasks.len() - done));
    }
    Ok(Output { seconds: last.seconds(), times })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    fn task(lane: u32, seconds: f64, after: &[u32]) -> Task {
        Task { lane: Some(lane), seconds, delay: 0.0, after: after.to_vec() }
    }

    #[test]
    fn communication_overlaps_compute_until_it_takes_longer() {
        let step = |network: f64| {
            let tasks = [task(0, 1.0, &[]), task(1, network, &[0]), task(0, 2.0, &[0]), task(0, 0.5, &[1, 2])];
            replay(&tasks).unwrap().seconds
        };
        assert_eq!((step(1.0), step(2.0), step(3.0)), (3.5, 3.5, 4.5));
    }

    #[test]
    fn cyclic_and_missing_dependencies_are_refused() {
        assert_eq!(replay(&[task(0, 1.0, &[1]), task(0, 1.0, &[0])]), Err(ReplayError::Cycle(2)));
        assert_eq!(replay(&[task(0, 1.0, &[4])]), Err(ReplayError::Task(0)));
        assert_eq!(replay(&[task(0, f64::NAN, &[])]), Err(ReplayError::Task(0)));
    }

    proptest! {
        #[test]
        fn a_step_takes_at_least_its_busiest_lane_and_its_longest_chain(
            list in prop::collection::vec((0_u32..3, 0.0..10.0_f64, prop::collection::vec(any::<prop::sample::Index>(), 0..3)), 1..40)
        ) {
            let tasks: Vec<Task> = list
                .iter()
                .enumerate()
                .map(|(n, (lane, seconds, after))| {
                    let after: Vec<u32> = if n == 0 { Vec::new() } else { after.iter().map(|i| i.index(n) as u32).collect() };
                    task(*lane, *seconds, &after)
                })
                .collect();
            let out = replay(&tasks).unwrap();
            let mut chain: Vec<f64> = Vec::new();
            for task in &tasks {
                let before = task.after.iter().map(|other| chain[*other as usize]).fold(0.0, f64::max);
                chain.push(before + task.seconds);
            }
            let longest = chain.iter().copied().fold(0.0, f64::max);
            let busiest = (0..3).map(|lane| tasks.iter().filter(|t| t.lane == Some(lane)).map(|t| t.seconds).sum::<f64>()).fold(0.0, f64::max);
            let all: f64 = tasks.iter().map(|task| task.seconds).sum();
            prop_assert!(out.seconds >= longest.max(busiest) - 1e-9 && out.seconds <= all + 1e-9);
            for (task, (begin, _)) in tasks.iter().zip(&out.times) {
                prop_assert!(task.after.iter().all(|other| out.times[*other as usize].1 <= begin + 1e-9));
            }
        }
    }
}
