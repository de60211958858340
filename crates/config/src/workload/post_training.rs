//! `post_training`: reinforcement learning or preference optimization that contains a training workload.

use atlas_core::count::Count;
use atlas_document::decode::{Bounds, Fields};

/// Method of post-training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostTrainingMethod {
    /// Reinforcement learning (PPO, GRPO): responses are sampled from the model and scored.
    Rl,
    /// Preference optimization (DPO): pairs of responses are given, and a frozen reference model evaluates them too.
    Dpo,
}

impl PostTrainingMethod {
    /// Names of the methods, as spelled in files.
    pub const WORDS: [(&'static str, PostTrainingMethod); 4] = [
        ("rl", PostTrainingMethod::Rl),
        ("ppo", PostTrainingMethod::Rl),
        ("grpo", PostTrainingMethod::Rl),
        ("dpo", PostTrainingMethod::Dpo),
    ];
}

/// A step of reinforcement learning or preference optimization, which contains an optimizer step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PostTrainingSpec {
    /// Method; reinforcement learning by default.
    pub method: Option<PostTrainingMethod>,
    /// Name of the serving workload that generates the responses.
    pub rollout: Option<String>,
    /// Prompts per step; pairs of responses in preference optimization.
    pub prompts: Option<Count>,
    /// Responses per prompt.
    pub responses: Option<Count>,
    /// Number of frozen models of the same size that evaluate every response.
    pub scorers: Option<Count>,
    /// Nodes dedicated to rollouts; by default, all nodes alternate between rollout and training.
    pub rollout_nodes: Option<Count>,
    /// Whether the rollout of the next step overlaps with training, which makes it one step stale.
    pub asynchronous: Option<bool>,
}

impl PostTrainingSpec {
    /// Bounds of `prompts`.
    pub const PROMPTS: Bounds = Bounds { max: 1e7, ..Bounds::COUNT };
    /// Bounds of `responses`.
    pub const RESPONSES: Bounds = Bounds { max: 1e5, ..Bounds::COUNT };
    /// Bounds of `scorers`.
    pub const SCORERS: Bounds = Bounds { max: 100.0, ..Bounds::NATURAL };
    /// Bounds of `rollout_nodes`.
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
