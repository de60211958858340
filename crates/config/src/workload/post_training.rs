//! `post_training`: reinforcement learning or preference optimization that a training workload is a part of.

use atlas_core::count::Count;
use atlas_document::decode::{Bounds, Fields};

/// What is trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostTrainingMethod {
    /// Answers are sampled by the model, scored and trained on (PPO, GRPO).
    Rl,
    /// Pairs of answers are data, and a frozen reference reads them too (DPO).
    Dpo,
}

impl PostTrainingMethod {
    /// Both variants with their names in files.
    pub const WORDS: [(&'static str, PostTrainingMethod); 2] =
        [("rl", PostTrainingMethod::Rl), ("dpo", PostTrainingMethod::Dpo)];
}

/// A step of reinforcement learning or preference optimization around the optimizer's.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PostTrainingSpec {
    /// What is trained on; reinforcement learning by default.
    pub method: Option<PostTrainingMethod>,
    /// The serving workload that generates the answers, by name.
    pub rollout: Option<String>,
    /// Prompts of a step; pairs under preference optimization.
    pub prompts: Option<Count>,
    /// Answers to each prompt.
    pub responses: Option<Count>,
    /// Frozen models of the same size that read every answer.
    pub scorers: Option<Count>,
    /// Nodes that only roll out; by default all nodes alternate.
    pub rollout_nodes: Option<Count>,
    /// Whether the next step is rolled out beside training, one step behind.
    pub asynchronous: Option<bool>,
}

impl PostTrainingSpec {
    /// Prompts of a step.
    pub const PROMPTS: Bounds = Bounds { max: 1e7, ..Bounds::COUNT };
    /// Answers to a prompt.
    pub const RESPONSES: Bounds = Bounds { max: 1e5, ..Bounds::COUNT };
    /// Frozen models.
    pub const SCORERS: Bounds = Bounds { max: 100.0, ..Bounds::NATURAL };
    /// Nodes that only roll out.
    pub const ROLLOUT_NODES: Bounds = Bounds { max: 1e6, ..Bounds::COUNT };

    pub(super) fn read(fields: &mut Fields<'_>) -> PostTrainingSpec {
        PostTrainingSpec {
            method: fields.choice("method", &PostTrainingMethod::WORDS),
            rollout: fields.text("rollout"),
            prompts: fields.count("prompts", Self::PROMPTS),
            responses: fields.count("responses", Self::RESPONSES),
            scorers: fields.count("scorers", Self::SCORERS),
            rollout_nodes: fields.count("rollout_nodes", Self::ROLLOUT_NODES),
            asynchronous: fields.boolean("asynchronous"),
        }
    }
}
