//! Invariants under any settings.

use atlas_core::count::Count;
use proptest::prelude::*;

use super::*;

prop_compose! {
    fn any_input()(
        (max_num_seqs, batched, threshold) in (1u32..40, 32u32..3000, prop::sample::select(vec![None, Some(64u32), Some(100), Some(5000)])),
        (chunked, reserved, overlapped, front_end) in any::<(bool, bool, bool, bool)>(),
        (drafts, acceptance) in (0u32..4, 0.0f64..=1.0),
        (block, memory, replicas) in (1u32..40, 0.225f64..0.3, 1u32..4),
        (isl, osl, cv) in (1.0f64..1500.0, 1.0f64..40.0, 0.0f64..1.0),
        prefixes in prop::sample::select(vec![0, 1, 2]),
        (pools, window, scaled) in any::<(bool, bool, bool)>(),
        arrivals in prop::sample::select(vec![
            Arrivals::Burst,
            Arrivals::Poisson { rate: 30.0 },
            Arrivals::Gamma { rate: 5.0, cv: 3.0 },
            Arrivals::Closed { concurrency: 7 },
        ]),
    ) -> Input {
        let mut input = Input::of(&closed(1.0), &Constants::default(), 60);
        let s = &mut input.system;
        s.max_num_seqs = Some(Count::new(max_num_seqs));
        s.max_num_batched_tokens = f64::from(batched);
        (s.chunked_prefill, s.reserve_output, s.host) = (chunked, reserved, host(overlapped));
        s.speculation = Speculation { tokens: Count::new(drafts), acceptance, draft_layers: 0.03, ..Speculation::default() };
        s.memory_utilization = memory;
        s.layout.dp = Count::new(replicas);
        if window {
            s.arch.window = Some(Window { size: Count::new(512), share: 0.5, chunked: false });
        }
        if pools {
            s.pools = Some(Pools { prefill: s.layout, decode: s.layout });
        } else if scaled {
            let (interval, start, scale_down_delay) = (0.5, 1.0, 1.0);
            input.autoscaling = Some(Autoscaling {
                min_replicas: 1,
                max_replicas: 5,
                target: 4.0,
                interval,
                start,
                scale_down_delay,
            });
        }
        input.block_size = block;
        input.long_prefill_token_threshold = threshold;
        input.front_end = front_end;
        input.lengths.isl = Distribution::LogNormal { mean: isl, cv };
        input.lengths.osl = Distribution::LogNormal { mean: osl, cv };
        input.prefixes = match prefixes {
            0 => Prefixes::None,
            1 => Prefixes::Share(0.4),
            _ => Prefixes::Groups { groups: 5, tokens: Distribution::Uniform { low: 0.0, high: 2.0 * isl }, skew: 1.0 },
        };
        input.arrivals = arrivals;
        input
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Whatever the settings, the run ends, nothing panics, and no block is lost.
    #[test]
    fn every_request_finishes_or_is_rejected_under_any_settings(input in any_input(), seed in 0u64..1000) {
        let Ok(o) = simulate(&input, seed, &Progress::new()) else { return Ok(()) };
        prop_assert_eq!(o.requests + o.rejected, 60, "stuck: {:?}", o.timeline.last());
        prop_assert!(o.max_kv_share <= 1.0 + 1e-9 && o.kv_share >= -1e-9);
        for r in &o.records {
            prop_assert!(r.ttft >= 0.0 && r.e2e >= r.ttft && r.tpot >= 0.0);
        }
        let end = o.timeline.last().unwrap();
        prop_assert!(end.waiting > -1e-6 && end.running > -1e-6 && end.kv_share > -1e-6);
    }
}
