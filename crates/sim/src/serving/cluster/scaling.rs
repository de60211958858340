//! Autoscaling of replicas.
#![expect(clippy::indexing_slicing, reason = "replica ids are minted by the cluster, whose list never shrinks")]

use super::{Cluster, Event};
use crate::kernel::{EventQueue, Time};
use crate::serving::input::Autoscaling;
use crate::serving::replica::{Phase, Replica};

impl Cluster<'_> {
    pub(super) fn scale(&mut self, a: &Autoscaling, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let of = |cluster: &Self, phase: Phase| cluster.replicas.iter().filter(|r| r.phase == phase).count() as u32;
        let load: u32 = self.replicas.iter().map(|r| r.outstanding).sum();
        let wanted = ((f64::from(load) / a.target).ceil() as u32).clamp(a.min_replicas, a.max_replicas);
        let active = of(self, Phase::Ready) + of(self, Phase::Starting);
        for _ in active..wanted {
            let off = self.replicas.iter().position(|r| r.phase == Phase::Off);
            let replica = off.unwrap_or(self.replicas.len());
            if off.is_none() {
                self.replicas.push(Replica::new(&self.engine, Phase::Starting));
            } else {
                let old = std::mem::replace(&mut self.replicas[replica], Replica::new(&self.engine, Phase::Starting));
                (self.replicas[replica].prompt_tokens, self.replicas[replica].work) = (old.prompt_tokens, old.work);
            }
            self.change_replicas(now, 1.0);
            queue.after(Time::from_seconds(a.start), Event::Started(replica as u32));
        }
        if wanted >= active {
            self.low_since = None;
        } else {
            let since = *self.low_since.get_or_insert(now);
            if now.since(since) >= Time::from_seconds(a.scale_down_delay) {
                for _ in wanted..active.min(self.ready.len() as u32) {
                    self.drain(now);
                }
                self.low_since = None;
            }
        }
        if self.left < u64::from(self.workload.total()) && (self.seeds_left || load > 0) {
            queue.after(Time::from_seconds(a.interval), Event::Scale);
        }
    }

    /// Stops the replica that became ready last.
    fn drain(&mut self, now: Time) {
        if self.ready.len() < 2 {
            return;
        }
        let Some(replica) = self.ready.pop() else { return };
        let r = &mut self.replicas[replica as usize];
        r.phase = if r.outstanding == 0 { Phase::Off } else { Phase::Draining };
        if r.phase == Phase::Off {
            self.change_replicas(now, -1.0);
        }
    }

    /// Changes the number of replicas by `change`.
    pub(super) fn change_replicas(&mut self, now: Time, change: f64) {
        self.paid.change(now, change);
        self.capacity.change(now, change * self.engine.total_blocks as f64);
    }
}
