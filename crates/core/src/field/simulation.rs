//! Fields that only simulations use: randomness, stragglers, failures.

use super::slot::{count, flag, nonzero, number, positive};
use super::{Field, Group, Knob, Step, ValueType, entry, real, whole};

pub(super) const SIMULATION: &[Field] = &[
    entry(
        Knob::Replications,
        "replications",
        &["repetitions"],
        Group::Simulation,
        whole(1.0, 1000.0, Step::Add(1.0)),
        &["simulation", "replications"],
        "independent runs with consecutive seeds: metrics are means, and the spread widens the interval",
    )
    .slot(count!(simulation.replications))
    .simulated(),
    entry(
        Knob::Requests,
        "requests",
        &["num_prompts"],
        Group::Simulation,
        whole(0.0, 1_000_000.0, Step::Double),
        &["simulation", "requests"],
        "requests measured per run; 0: as many as the load needs, at least 1,000",
    )
    .slot(nonzero!(simulation.requests))
    .zero_is_unset()
    .with_default(0.0)
    .unit("req")
    .inference()
    .simulated(),
    entry(
        Knob::Steps,
        "steps",
        &["simulated_steps"],
        Group::Simulation,
        whole(1.0, 10_000.0, Step::Double),
        &["simulation", "steps"],
        "optimizer steps per run",
    )
    .slot(count!(simulation.steps))
    .training()
    .simulated(),
    entry(
        Knob::Jitter,
        "jitter",
        &["compute_jitter"],
        Group::Simulation,
        real(0.0, 2.0, 0.01),
        &["simulation", "jitter"],
        "coefficient of variation of a rank's compute time; every step waits for its slowest rank",
    )
    .slot(number!(simulation.jitter))
    .with_default(0.0)
    .training()
    .simulated(),
    entry(
        Knob::SlowNodes,
        "slow_nodes",
        &["stragglers", "slow_hosts"],
        Group::Simulation,
        whole(0.0, 1_000_000.0, Step::Add(1.0)),
        &["simulation", "slow_nodes"],
        "number of permanently slow nodes; the seed selects which",
    )
    .slot(count!(simulation.slow_nodes))
    .with_default(0.0)
    .training()
    .simulated(),
    entry(
        Knob::SlowFactor,
        "slow_factor",
        &["straggler_factor"],
        Group::Simulation,
        real(1.0, 100.0, 0.1),
        &["simulation", "slow_factor"],
        "slowdown of a slow node's compute time",
    )
    .slot(number!(simulation.slow_factor))
    .training()
    .simulated(),
    entry(
        Knob::NodeMtbf,
        "node_mtbf_h",
        &["mtbf", "node_mtbf"],
        Group::Simulation,
        real(0.0, 1e7, 1000.0),
        &["simulation", "node_mtbf_h"],
        "mean time between failures of one node; 0: no failures (Llama 3: 6,300 h, arXiv 2407.21783, table 5)",
    )
    .slot(positive!(simulation.node_mtbf_h))
    .zero_is_unset()
    .with_default(0.0)
    .unit("h")
    .training()
    .simulated(),
    entry(
        Knob::CheckpointInterval,
        "checkpoint_interval_s",
        &["checkpoint_interval"],
        Group::Simulation,
        real(0.0, 1e7, 60.0),
        &["simulation", "checkpoint_interval_s"],
        "time between checkpoints; 0: Daly's optimal interval",
    )
    .slot(positive!(simulation.checkpoint_interval_s))
    .zero_is_unset()
    .with_default(0.0)
    .unit("s")
    .training()
    .simulated(),
    entry(
        Knob::Checkpoint,
        "checkpoint_s",
        &["checkpoint_cost"],
        Group::Simulation,
        real(0.0, 1e5, 5.0),
        &["simulation", "checkpoint_s"],
        "time to write a checkpoint, during which training stops; default: all states at 1 GB/s per node",
    )
    .slot(number!(simulation.checkpoint_s))
    .unit("s")
    .training()
    .simulated(),
    entry(
        Knob::CheckpointAsync,
        "checkpoint_async",
        &["async_checkpoint"],
        Group::Simulation,
        ValueType::Toggle,
        &["simulation", "checkpoint_async"],
        "asynchronous checkpoints: training stops only for the copy to host memory",
    )
    .slot(flag!(simulation.checkpoint_async))
    .with_default_flag(false)
    .training()
    .simulated(),
    entry(
        Knob::Restart,
        "restart_s",
        &["recovery"],
        Group::Simulation,
        real(0.0, 1e6, 60.0),
        &["simulation", "restart_s"],
        "time from a failure until training resumes on a spare node from the last checkpoint",
    )
    .slot(number!(simulation.restart_s))
    .unit("s")
    .training()
    .simulated(),
];
