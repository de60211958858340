//! The zero-bubble schedule, planned as its authors do (arXiv 2401.10241, section 3.1): passes are laid out in the order of
//! time; gradients of inputs come first, for other stages wait for them, then forward passes while memory lasts, and
//! gradients of weights fill the gaps.

use super::{Kind, Pass, Times};

/// A stage as it is being laid out.
#[derive(Debug, Clone, Default)]
struct Stage {
    free: f64,
    /// When the inputs of forward passes and the gradients of backward passes are there, in order of micro-batches.
    inputs: Vec<f64>,
    gradients: Vec<f64>,
    /// Passes laid out so far: forward, of inputs, of weights.
    done: [u32; 3],
    order: Vec<Pass>,
}

impl Stage {
    fn pass(&mut self, kind: Kind, place: usize, begin: f64, seconds: f64) -> f64 {
        let Some(done) = self.done.get_mut(place) else { return begin };
        self.order.push(Pass { kind, micro: *done, chunk: 0 });
        *done += 1;
        self.free = begin + seconds;
        self.free
    }

    /// What comes next, and when: the kind's place, and its beginning. `None` where nothing is known to come.
    fn next(&self, micros: u32, limit: u32, weights: f64) -> Option<(usize, f64)> {
        let [ahead, back, behind] = self.done;
        let arrives = |list: &[f64], at: u32| list.get(at as usize).map(|time| time.max(self.free));
        let backward = if back < ahead { arrives(&self.gradients, back) } else { None };
        let room = ahead < micros && ahead - behind < limit;
        let forward = if room { arrives(&self.inputs, ahead) } else { None };
        let now = |time: &f64| *time <= self.free;
        if let Some(time) = backward.filter(now) {
            return Some((1, time));
        }
        if let Some(time) = forward.filter(now) {
            return Some((0, time));
        }
        let soonest = [(1, backward), (0, forward)].into_iter().filter_map(|(place, time)| Some((place, time?)));
        let soonest = soonest.min_by(|a, b| a.1.total_cmp(&b.1));
        // Half of it may hold up what comes: the gap that is not filled would be as long.
        if behind < back && soonest.is_none_or(|(_, time)| time >= self.free + 0.5 * weights) {
            return Some((2, self.free));
        }
        soonest
    }
}

/// The orders of all stages.
pub(super) fn orders(micros: u32, times: &Times) -> Vec<Vec<Pass>> {
    let count = times.stages.len();
    // As many micro-batches as the first stage of one forward, one backward holds; more where there is room, up to the
    // number that leaves no bubble (section 2.3).
    let least = count.max(1) as f64;
    let limit = times.in_flight.floor().clamp(least, 2.0 * least - 1.0) as u32;
    let mut stages = vec![Stage::default(); count];
    if let Some(first) = stages.first_mut() {
        first.inputs = vec![0.0; micros as usize];
    }
    let weights = |at: usize| times.stages.get(at).map_or(0.0, |time| time[2]);
    loop {
        // The stage whose next pass begins first: what it may hand on comes after all that has been laid out.
        let soonest = stages
            .iter()
            .enumerate()
            .filter_map(|(at, stage)| stage.next(micros, limit, weights(at)).map(|(place, begin)| (at, place, begin)))
            .min_by(|a, b| a.2.total_cmp(&b.2));
        let Some((at, place, begin)) = soonest else { break };
        let (Some(stage), Some(time)) = (stages.get_mut(at), times.stages.get(at)) else { break };
        let [forward, input, weight] = *time;
        let (kind, seconds) = [(Kind::Forward, forward), (Kind::Backward, input), (Kind::Weights, weight)]
            .get(place)
            .copied()
            .unwrap_or((Kind::Weights, weight));
        let end = stage.pass(kind, place, begin, seconds);
        match kind {
            // The last stage's own outputs are its gradients.
            Kind::Forward if at + 1 == count => stage.gradients.push(end),
            Kind::Forward => {
                if let Some(next) = stages.get_mut(at + 1) {
                    next.inputs.push(end + times.transfer);
                }
            }
            Kind::Backward => {
                if let Some(before) = at.checked_sub(1).and_then(|before| stages.get_mut(before)) {
                    before.gradients.push(end + times.transfer);
                }
            }
            Kind::Weights => {}
        }
    }
    stages.into_iter().map(|stage| stage.order).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flying(order: &[Pass]) -> i32 {
        let mut now = 0;
        let count = |pass: &Pass| {
            now += match pass.kind {
                Kind::Forward => 1,
                Kind::Weights => -1,
                Kind::Backward => 0,
            };
            now
        };
        order.iter().map(count).max().unwrap_or(0)
    }

    #[test]
    fn every_pass_is_planned_once_within_memory() {
        for stages in [1usize, 2, 4, 7] {
            for micros in [1, 3, 4, 16] {
                for room in [0.0, 1.5, 9.0] {
                    let in_flight = room * stages as f64;
                    let times = Times { stages: vec![[1.0, 1.2, 0.8]; stages], transfer: 0.05, in_flight };
                    for order in orders(micros, &times) {
                        assert_eq!(order.len() as u32, 3 * micros, "{stages} {micros}");
                        assert!(flying(&order) < 2 * stages as i32);
                        assert!(room > 1.0 || flying(&order) <= stages as i32);
                        for micro in 0..micros {
                            let at = |kind| order.iter().position(|&p| p == Pass { kind, micro, chunk: 0 });
                            assert!(at(Kind::Forward) < at(Kind::Backward) && at(Kind::Backward) < at(Kind::Weights));
                        }
                    }
                }
            }
        }
    }
}
