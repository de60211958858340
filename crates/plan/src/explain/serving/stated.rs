//! Stated settings of experts, drafts, caches and pools, listed with the parts of a time that they affect.

use super::Reported;
use crate::estimate::TimePart;
use crate::explain::{Origin, Term};
use crate::knob::Knob;
use atlas_perf::serving::speculative::tokens_per_step;

impl Reported<'_> {
    /// Those of `knobs` that files or the user state and that have an effect.
    pub(super) fn stated(&self, knobs: &[Knob]) -> Vec<Term> {
        let scenario = self.whole.scenario;
        let matters = |knob: &&Knob| scenario.uses(**knob) && scenario.sets_number(**knob);
        knobs.iter().filter(matters).map(|knob| self.knob(knob.name(), *knob)).collect()
    }

    /// Stated knobs that affect a part of the time per token.
    pub(super) fn stated_of_part(&self, part: TimePart) -> Vec<Term> {
        self.stated(match part {
            TimePart::Weights => {
                &[Knob::Ep, Knob::AttentionDp, Knob::RedundantExperts, Knob::SharedExperts, Knob::TwoBatchOverlap]
            }
            TimePart::KvCache => &[Knob::AttentionDp, Knob::ContextRanks],
            TimePart::Communication => {
                &[Knob::Ep, Knob::AttentionDp, Knob::ContextRanks, Knob::MoeDispatcher, Knob::TwoBatchOverlap]
            }
            TimePart::Images => &[Knob::Images, Knob::ImageSize],
            _ => &[],
        })
    }

    /// Stated knobs that affect how much of a prompt is computed, and where.
    pub(super) fn stated_of_prefill(&self) -> Vec<Term> {
        self.stated(&[
            Knob::Images,
            Knob::ImageSize,
            Knob::Conversations,
            Knob::Turns,
            Knob::SharedPrefix,
            Knob::Routing,
            Knob::KvHostGb,
            Knob::KvHostGbps,
            Knob::KvSsdGb,
            Knob::KvSsdGbps,
            Knob::KvRemoteGb,
            Knob::KvRemoteGbps,
            Knob::PrefillAccelerators,
            Knob::PrefillWorkers,
            Knob::PrefillTp,
            Knob::PrefillPp,
            Knob::PrefillEp,
            Knob::PrefillAttentionDp,
            Knob::KvTransfer,
        ])
    }

    /// Tokens per step with speculative decoding, and their dependencies; `None` without drafts.
    pub(super) fn drafting(&self) -> Option<Term> {
        let scenario = self.whole.scenario;
        let drafts = scenario.drafts(&scenario.base);
        if drafts.tokens <= 0.0 {
            return None;
        }
        let knobs = [
            ("k", Knob::DraftTokens),
            ("method", Knob::DraftMethod),
            ("a", Knob::DraftAcceptance),
            ("decline", Knob::DraftDecline),
            ("most", Knob::DraftMaxBatch),
        ];
        let name = "tokens per verification step: one, plus the accepted drafts";
        let cost = if drafts.draft_params > 0.0 {
            self.knob("p", Knob::DraftParams)
        } else {
            Term::input("c", "layers that draft a token, relative to those of the model", "", drafts.draft_layers)
                .from(Origin::Engine("one layer, and the output layer of the draft"))
        };
        let bearing = knobs.into_iter().map(|(symbol, knob)| self.knob(symbol, knob)).chain([cost]).collect();
        let how =
            "(1 - a^(k+1)) / (1 - a) if all positions have the same acceptance rate (arXiv 2211.17192, equation 1)";
        Some(
            Term::input("n_step", name, "tok", tokens_per_step(&drafts))
                .from(Origin::Engine(how))
                .depending_on(bearing),
        )
    }
}
