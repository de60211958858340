//! Admission of waiting requests.

use super::*;

/// A scheduler that polls its queue every 30 decode steps delays requests by 15 steps on average, but not if nothing
/// else is running.
#[test]
fn infrequent_queue_polling_delays_requests() {
    let run = |concurrency: f64, recv_interval| {
        let load = Load::Closed { concurrency, requests: 10.0 * concurrency };
        let case = ServingInput {
            admission: Admission::Polled,
            recv_interval,
            chunked_prefill: false,
            isl: 200.0,
            osl: 1000.0,
            ..system(load)
        };
        let mut input = Input::of(&case, &Constants::default(), 1);
        input.lengths.osl = Distribution::Uniform { low: 800.0, high: 1200.0 };
        simulated(&input)
    };
    let (often, seldom) = (run(16.0, Count::ONE), run(16.0, Count::new(30)));
    let steps = (seldom.ttft.mean - often.ttft.mean) / often.itl.p50;
    assert!((10.0..20.0).contains(&steps), "{steps}");
    assert!((run(1.0, Count::new(30)).ttft.mean - run(1.0, Count::ONE).ttft.mean).abs() < 1e-9);
}

/// Waiting requests interrupt decoding when enough of them wait, or after a number of steps.
#[test]
fn gathering_of_requests_matches_the_closed_form() {
    for osl in [20.0, 200.0] {
        let case = ServingInput {
            chunked_prefill: false,
            isl: 128.0,
            osl,
            gathering: Some(Gathering { steps: Count::new(20), ratio: 1.2 }),
            ..closed(64.0)
        };
        let theory = estimate(&case, &Constants::default());
        let mut input = Input::of(&case, &Constants::default(), 6_400);
        input.warm_up = 640;
        input.lengths.osl = Distribution::Uniform { low: 1.0, high: 2.0 * osl - 1.0 };
        let found = simulated(&input);
        near("tokens", found.steady_output_tokens_per_sec, theory.output_tokens_per_sec, 0.15);
        let free = estimate(&ServingInput { gathering: None, ..case }, &Constants::default());
        assert!(theory.output_tokens_per_sec < free.output_tokens_per_sec);
    }
}
