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
        "independent runs, from seed on: figures are their means, and their spread widens the interval",
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
        "requests that each run serves and counts; 0: as many as the load needs, at least a thousand",
    )
    .slot(nonzero!(simulation.requests))
    .usual(0.0)
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
        "optimizer steps that each run takes",
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
        "standard deviation over mean of one rank's pass; each pass waits for the slowest of its ranks",
    )
    .slot(number!(simulation.jitter))
    .usual(0.0)
    .training()
    .simulated(),
    entry(
        Knob::SlowNodes,
        "slow_nodes",
        &["stragglers", "slow_hosts"],
        Group::Simulation,
        whole(0.0, 1_000_000.0, Step::Add(1.0)),
        &["simulation", "slow_nodes"],
        "nodes that compute slowly all the time; the seed selects them",
    )
    .slot(count!(simulation.slow_nodes))
    .usual(0.0)
    .training()
    .simulated(),
    entry(
        Knob::SlowFactor,
        "slow_factor",
        &["straggler_factor"],
        Group::Simulation,
        real(1.0, 100.0, 0.1),
        &["simulation", "slow_factor"],
        "time of a slow node's pass over another's",
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
        "mean time between failures of one node; 0: none fails (Llama 3's nodes: 6,300 h, arXiv 2407.21783, table 5)",
    )
    .slot(positive!(simulation.node_mtbf_h))
    .usual(0.0)
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
        "work between two checkpoints; 0: Daly's interval for these failures",
    )
    .slot(positive!(simulation.checkpoint_interval_s))
    .usual(0.0)
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
        "time in which a checkpoint is written, and for which it stops the work; unset, the states at 1 GB/s from each node",
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
        "checkpoints are written while work goes on; it stops only for the copy to host memory",
    )
    .slot(flag!(simulation.checkpoint_async))
    .usual_flag(false)
    .training()
    .simulated(),
    entry(
        Knob::Restart,
        "restart_s",
        &["recovery"],
        Group::Simulation,
        real(0.0, 1e6, 60.0),
        &["simulation", "restart_s"],
        "time from a failure until work goes on, on a spare node, from the last checkpoint",
    )
    .slot(number!(simulation.restart_s))
    .unit("s")
    .training()
    .simulated(),
];
