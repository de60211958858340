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
