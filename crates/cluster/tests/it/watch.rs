//! Synthetic runs that slow down midway, and their diagnoses.

use atlas_plan::estimate::TimePart;
use std::fmt::Write as _;

use atlas_cluster::watch::tail::Piece;
use atlas_cluster::watch::{Cause, Event, Position, Prediction, Quantity, Tail, WatchState};
use atlas_ingest::{Context, Follow};

/// A run on 64 accelerators with a step time of 4 s, of which 0.8 s are exposed communication.
fn training() -> Prediction {
    Prediction {
        name: "h100-sxm-64 × llama3.1-8b-train".to_owned(),
        quantity: Quantity::Step,
        seconds: 4.0,
        band: [3.4, 4.6],
        terms: [
            (TimePart::Gemm, 2.6),
            (TimePart::Attention, 0.4),
            (TimePart::Host, 0.1),
            (TimePart::DataParallel, 0.8),
            (TimePart::Optimizer, 0.1),
        ]
        .to_vec(),
        accelerators: 64.0,
        tokens_per_step: Some(1_048_576.0),
        steps: None,
        usd_per_hour: Some(160.0),
        watts: Some(620.0),
        batch: None,
    }
}

/// Deterministic pseudo-random numbers between 0 and 1.
fn chance(index: u64) -> f64 {
    (index as f64 * 0.618_033_988_75).fract()
}

/// Log lines of Megatron-LM's iterations; `seconds` returns the time of a step.
fn megatron(steps: std::ops::Range<u64>, seconds: impl Fn(u64) -> f64) -> String {
    let mut out = String::new();
    for step in steps {
        let _ = writeln!(
            out,
            " [2026-06-10 20:05:40] iteration {step:8}/    1000 | consumed samples: {:12} | elapsed time per iteration \
             (ms): {:.1} | throughput per GPU (TFLOP/s/GPU): 412.1 | learning rate: 2.000000E-05 | global batch size:   \
             256 | lm loss: {:.6E} | loss scale: 1.0 | grad norm: 3.021 | number of skipped iterations:   0 | number of \
             nan iterations:   0 |",
            step * 256,
            1e3 * seconds(step),
            10.0 - 0.01 * step as f64,
        );
    }
    out
}

/// A step time with noise.
fn noisy(step: u64, level: f64, noise: f64) -> f64 {
    level * (1.0 + noise * (chance(step) - 0.5))
}

struct Watch {
    state: WatchState,
    follows: Vec<Follow>,
    events: Vec<Event>,
}

impl Watch {
    fn new(prediction: Prediction, names: &[&str]) -> Watch {
        Watch {
            state: WatchState::new(Some(prediction), names.iter().map(|name| (*name).to_owned())),
            follows: names.iter().map(|_| Follow::new(&Context::default())).collect(),
            events: Vec::new(),
        }
    }

    fn feed(&mut self, source: usize, text: &str) {
        let state = &mut self.state;
        self.follows[source].feed(text.as_bytes(), |seen| state.observe(source, 0.0, seen));
        self.events.extend(state.tick(0.0));
    }

    fn names(&self) -> Vec<&'static str> {
        self.events.iter().map(Event::name).collect()
    }

    fn first(&self) -> Cause {
        self.state.diagnosis.as_ref().and_then(|diagnosis| diagnosis.first()).unwrap().cause
    }

    fn described(&self) -> String {
        Event::LeftInterval.text(&self.state)
    }
}

#[test]
fn run_within_the_prediction_is_reported_once() {
    let mut watch = Watch::new(training(), &["train.log"]);
    for from in (1..200).step_by(7) {
        watch.feed(0, &megatron(from..from + 7, |step| noisy(step, 4.05, 0.03)));
    }
    assert_eq!(watch.names(), ["compared"]);
    assert_eq!(watch.state.position, Position::Within);
    let progress = watch.state.progress().unwrap();
    assert_eq!((progress.step, progress.of), (203, 1000));
    assert!((progress.seconds / (797.0 * 4.05) - 1.0).abs() < 0.02);
    assert!((progress.usd.unwrap() / (progress.seconds / 3600.0 * 160.0) - 1.0).abs() < 1e-9);
}

#[test]
fn noisy_slowdown_is_diagnosed_as_network() {
    let mut watch = Watch::new(training(), &["train.log"]);
    watch.feed(0, &megatron(1..121, |step| noisy(step, 4.0, 0.02)));
    watch.feed(0, &megatron(121..200, |step| noisy(step, 5.6, 0.35)));
    let Position::Slower { since: Some(since), share } = watch.state.position else {
        panic!("{:?}", watch.state.position)
    };
    assert!((120..=123).contains(&since), "{since}");
    assert!((0.25..0.6).contains(&share), "{share}");
    assert_eq!(watch.first(), Cause::Network, "{}", watch.described());
    assert!(watch.names().contains(&"left_band"));
}

#[test]
fn constant_slowdown_is_diagnosed_as_straggler() {
    let mut watch = Watch::new(training(), &["train.log"]);
    watch.feed(0, &megatron(1..121, |step| noisy(step, 4.0, 0.02)));
    watch.feed(0, &megatron(121..200, |step| noisy(step, 5.2, 0.02)));
    assert_eq!(watch.first(), Cause::Straggler, "{}", watch.described());
}

#[test]
fn timers_distinguish_network_straggler_and_clocks() {
    // Either collectives grow on every rank, or computation grows on one rank and the others wait inside collectives.
    let timers = |forward: [f64; 2], sync: [f64; 2]| {
        format!(
            "(min, max) time across ranks (ms):\n    forward-compute ......: ({:.2}, {:.2})\n    all-grads-sync .......: \
             ({:.2}, {:.2})\n",
            forward[0], forward[1], sync[0], sync[1]
        )
    };
    for (slow, cause) in [
        (timers([1000.0, 1010.0], [2000.0, 2100.0]), Cause::Network),
        (timers([1000.0, 2200.0], [800.0, 2000.0]), Cause::Straggler),
        (timers([2200.0, 2210.0], [800.0, 900.0]), Cause::Clocks),
    ] {
        let mut watch = Watch::new(training(), &["train.log"]);
        for step in 1..60 {
            let late = step >= 40;
            watch.feed(0, &megatron(step..step + 1, |step| noisy(step, if late { 5.2 } else { 4.0 }, 0.02)));
            let usual = timers([1000.0, 1010.0], [800.0, 900.0]);
            watch.feed(0, if late { &slow } else { &usual });
        }
        assert_eq!(watch.first(), cause, "{}", watch.described());
        assert!(watch.state.diagnosis.as_ref().unwrap().is_clear());
    }
}

#[test]
fn power_log_distinguishes_throttling_from_a_straggler() {
    let head = "timestamp, index, power.draw [W], temperature.gpu, clocks.current.sm [MHz], utilization.gpu [%]\n";
    let samples = |slow: &dyn Fn(u64, bool) -> (f64, u64, u64)| {
        let mut out = head.to_owned();
        for second in 0..400_u64 {
            for device in 0..8 {
                let (watts, celsius, clock) = slow(device, second >= 300);
                let _ = writeln!(
                    out,
                    "2026/06/10 20:{:02}:{:02}.000, {device}, {watts:.2} W, {celsius}, {clock} MHz, 98 %",
                    second / 60,
                    second % 60
                );
            }
        }
        out
    };
    let throttled = samples(&|_, late| if late { (480.0, 86, 1300) } else { (620.0, 70, 1980) });
    let one = samples(&|device, late| match (device, late) {
        (3, true) => (600.0, 70, 1200),
        (_, true) => (430.0, 60, 1980),
        _ => (620.0, 70, 1980),
    });
    for (power, cause) in [(throttled, Cause::Clocks), (one, Cause::Straggler)] {
        let mut watch = Watch::new(training(), &["train.log", "gpu.csv"]);
        watch.feed(1, &power);
        watch.feed(0, &megatron(1..60, |step| noisy(step, 4.0, 0.02)));
        watch.feed(0, &megatron(60..80, |step| noisy(step, 5.0, 0.02)));
        // The last samples are taken at the time of the last step.
        assert_eq!(watch.first(), cause, "{}", watch.described());
    }
}

#[test]
fn periodic_long_steps_are_diagnosed_as_host() {
    let mut watch = Watch::new(training(), &["train.log"]);
    watch.feed(0, &megatron(1..100, |step| noisy(step, 4.0, 0.02)));
    watch.feed(0, &megatron(100..200, |step| if step % 5 == 0 { 12.0 } else { noisy(step, 4.0, 0.02) }));
    assert!(matches!(watch.state.position, Position::Slower { .. }), "{:?}", watch.state.position);
    assert_eq!(watch.first(), Cause::Host, "{}", watch.described());
}

#[test]
fn slowdown_within_the_interval_and_recovery_are_reported() {
    let mut watch = Watch::new(training(), &["train.log"]);
    watch.feed(0, &megatron(1..60, |step| noisy(step, 3.8, 0.02)));
    watch.feed(0, &megatron(60..120, |step| noisy(step, 4.2, 0.02)));
    watch.feed(0, &megatron(120..160, |step| noisy(step, 6.0, 0.02)));
    watch.feed(0, &megatron(160..200, |step| noisy(step, 3.8, 0.02)));
    assert_eq!(watch.names(), ["compared", "slower_than_before", "left_band", "back_in_band"]);
}

#[test]
fn slow_rank_is_found_from_per_rank_logs() {
    let mut watch = Watch::new(training(), &["rank0.log", "rank1.log", "rank2.log"]);
    for from in (1..120).step_by(4) {
        for source in 0..3 {
            let slow = if source == 2 && from >= 60 {
                6.2
            } else if from >= 60 {
                5.4
            } else {
                4.0
            };
            watch.feed(source, &megatron(from..from + 4, |step| noisy(step, slow, 0.02)));
        }
    }
    assert_eq!(watch.first(), Cause::Straggler, "{}", watch.described());
    assert!(watch.described().contains("rank2.log is"), "{}", watch.described());
    assert_eq!(watch.state.last_step(), Some(120));
}

#[test]
fn restart_resets_the_comparison() {
    let mut watch = Watch::new(training(), &["train.log"]);
    watch.feed(0, &megatron(1..100, |step| noisy(step, 6.0, 0.02)));
    watch.feed(0, &megatron(51..150, |step| noisy(step, 4.0, 0.02)));
    assert_eq!(watch.names(), ["compared", "left_band", "restarted"]);
    assert_eq!((watch.state.position, watch.state.restarts), (Position::Within, 1));
}

#[test]
fn silence_is_reported_as_stall_until_the_next_step() {
    let mut watch = Watch::new(training(), &["train.log"]);
    watch.feed(0, &megatron(1..20, |step| noisy(step, 4.0, 0.02)));
    assert_eq!(watch.state.tick(30.0), []);
    assert_eq!(watch.state.tick(90.0), [Event::Stalled]);
    assert!(Event::Stalled.is_alarm(&watch.state));
    assert_eq!(watch.state.tick(95.0), []);
    let mut state = watch.state.clone();
    watch.follows[0].feed(megatron(20..21, |_| 4.0).as_bytes(), |seen| state.observe(0, 100.0, seen));
    assert_eq!(state.tick(100.0), [Event::Resumed]);
}

fn serving() -> Prediction {
    Prediction {
        name: "h100-sxm-8 × llama3.1-70b-serve".to_owned(),
        quantity: Quantity::Token,
        seconds: 0.028,
        band: [0.022, 0.035],
        terms: [
            (TimePart::Compute, 0.004),
            (TimePart::Weights, 0.012),
            (TimePart::KvCache, 0.005),
            (TimePart::Communication, 0.004),
            (TimePart::Host, 0.003),
        ]
        .to_vec(),
        accelerators: 8.0,
        tokens_per_step: None,
        steps: None,
        usd_per_hour: None,
        watts: None,
        batch: Some(64.0),
    }
}

fn vllm(reports: u64, seconds: f64, running: u64, waiting: u64, cache: f64) -> String {
    let mut out = String::new();
    for report in 0..reports {
        let rate = running as f64 / noisy(report, seconds, 0.03);
        let _ = writeln!(
            out,
            "(APIServer pid=7) INFO 06-10 20:05:13 [loggers.py:271] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg \
             generation throughput: {rate:.1} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache \
             usage: {cache:.1}%, Prefix cache hit rate: 0.0%"
        );
    }
    out
}

#[test]
fn full_kv_cache_and_higher_load_are_distinguished() {
    for (late, cause) in [
        (vllm(40, 0.045, 64, 30, 99.0), Cause::KvCache),
        (vllm(40, 0.045, 160, 0, 70.0), Cause::Load),
        (vllm(40, 0.045, 64, 0, 40.0), Cause::Clocks),
    ] {
        let mut watch = Watch::new(serving(), &["server.log"]);
        watch.feed(0, &vllm(60, 0.027, 64, 0, 40.0));
        assert_eq!(watch.state.position, Position::Within);
        watch.feed(0, &late);
        assert!(
            matches!(watch.state.position, Position::Slower { since: Some(59..=62), .. }),
            "{:?}",
            watch.state.position
        );
        assert_eq!(watch.first(), cause, "{}", watch.described());
    }
}

#[test]
fn truncated_lines_and_a_rotated_or_packed_log_give_the_same_steps() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train.log");
    let text = megatron(1..101, |step| noisy(step, 4.0, 0.02));
    let cut = text.match_indices('\n').nth(59).unwrap().0 + 1;
    let (head, rest) = text.split_at(cut);
    let mut tail = Tail::new(&path);
    let mut watch = Watch::new(training(), &["train.log"]);
    let mut poll = |watch: &mut Watch| {
        let (state, follow) = (&mut watch.state, &mut watch.follows[0]);
        tail.poll(u64::MAX, |piece| match piece {
            Piece::Bytes(bytes) => follow.feed(bytes, |seen| state.observe(0, 0.0, seen)),
            Piece::Gap => follow.discard_partial_line(),
        })
        .unwrap();
    };
    // The writer is killed in the middle of a line, and the log is rotated.
    std::fs::write(&path, format!("{head}{}", &rest[..150])).unwrap();
    poll(&mut watch);
    assert_eq!(watch.state.times.records(), 60);
    std::fs::rename(&path, directory.path().join("train.log.1")).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, rest.as_bytes()).unwrap();
    std::fs::write(&path, encoder.finish().unwrap()).unwrap();
    poll(&mut watch);
    poll(&mut watch);
    assert_eq!(watch.state.times.records(), 100);
    assert_eq!(watch.state.last_step(), Some(100));
    assert_eq!(watch.state.restarts, 0);
}
