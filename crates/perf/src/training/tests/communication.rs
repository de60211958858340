//! Volume and place of collectives inside layers.

use super::*;

/// Mixtral on 64 accelerators in nodes of eight.
fn spread_mixtral(tp: u32, ep: u32) -> TrainingInput {
    TrainingInput {
        arch: mixtral(),
        accelerators: 64.0,
        tp: Count::new(tp),
        dp: Count::new(64 / tp),
        ep: Count::new(ep),
        global: 256.0,
        sequence_parallel: tp > 1,
        recompute: Recompute::None,
        ..TrainingInput::default()
    }
}

#[test]
fn expert_exchange_stays_in_the_node_whatever_tensor_parallelism_is() {
    let c = Constants::default();
    let exchange = |tp, ep| {
        let i = spread_mixtral(tp, ep);
        comm::expert(&i, &c, &comm::fabric(&i, &c), Plan::NONE)
    };
    // A rank sends a tp-th of the tokens, over the same links.
    assert!(exchange(2, 8) < 0.6 * exchange(1, 8), "{} {}", exchange(2, 8), exchange(1, 8));
    assert!(exchange(4, 8) < 0.4 * exchange(1, 8), "{} {}", exchange(4, 8), exchange(1, 8));
    assert!(exchange(4, 16) > 2.0 * exchange(4, 8));
}

#[test]
fn recomputed_mlps_and_mixtures_repeat_their_collectives() {
    let c = Constants::default();
    let i = spread_mixtral(2, 8);
    let f = comm::fabric(&i, &c);
    let expert = |plan| comm::expert(&i, &c, &f, plan);
    let half = Plan { mlp_share: 0.5, ..Plan::SELECTIVE };
    assert!((expert(Plan::MLPS) / expert(Plan::NONE) - 1.5).abs() < 1e-9);
    assert!((expert(half) / expert(Plan::NONE) - 1.25).abs() < 1e-9);
    assert_eq!(expert(Plan::MLPS), expert(Plan::FULL));
    assert_eq!(expert(Plan::SELECTIVE), expert(Plan::NONE));
    // One of the two blocks of a dense layer is recomputed.
    let dense = TrainingInput { arch: llama_70b(), ..i };
    let tensor = |plan| comm::tensor(&dense, &c, &f, plan);
    assert!((tensor(Plan::MLPS) / tensor(Plan::NONE) - 1.25).abs() < 1e-9);
    assert!((tensor(Plan::FULL) / tensor(Plan::NONE) - 1.5).abs() < 1e-9);
    assert!((comm::calls(&dense, Plan::MLPS) / comm::calls(&dense, Plan::NONE) - 1.25).abs() < 1e-9);
}
