//! Tests of post-training steps: their parts, and comparison with published fine-tuning throughput.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::{Step, StepError, StepOptions, step};
use crate::engine::estimate;
use crate::knob::{Knob, Overrides, Setting};
use crate::scenario::{Parts, Scenario};
use crate::testing;
use atlas_core::count::Count;

const BASE: StepOptions = StepOptions {
    prompts: Count::new(128),
    samples: Some(Count::new(8)),
    scorers: Count::ONE,
    rollout_nodes: None,
    asynchronous: false,
};

fn step_of(target: &str, options: &StepOptions) -> Result<Step, StepError> {
    let find = |workload| testing::parts(target, workload);
    let (train, rollout) = (find("llama3.1-8b-rl-train"), find("llama3.1-8b-rl-rollout"));
    step((&train, &Overrides::new()), (Some(&rollout), &Overrides::new()), options)
}

#[test]
fn step_parts_sum_to_the_step_time_unless_pools_run_asynchronously() {
    let whole = step_of("h100-sxm-64", &BASE).unwrap();
    let parts: f64 = whole.parts().iter().map(|(_, seconds)| seconds).sum();
    assert!((parts / whole.seconds - 1.0).abs() < 1e-9);
    assert!(
        whole.parts().iter().all(|(name, seconds)| *seconds > 0.0 || *name == "state moves" || panic!("{name}")),
        "{whole:?}"
    );
    assert_eq!((whole.sequences, whole.updates, whole.nodes), (1024.0, 2.0, [Count::new(8); 2]));
    // A single pool idles only while waiting for the longest answers and for weights.
    assert!((whole.idle - (whole.tail + whole.sync + whole.moves) / whole.seconds).abs() < 1e-9, "{whole:?}");

    let apart = StepOptions { rollout_nodes: Some(Count::new(4)), ..BASE };
    let in_turn = step_of("h100-sxm-64", &apart).unwrap();
    let beside = step_of("h100-sxm-64", &StepOptions { asynchronous: true, ..apart }).unwrap();
    assert!(in_turn.idle > 0.4 && beside.idle < in_turn.idle, "{} {}", in_turn.idle, beside.idle);
    let longest = beside.rollout.max(beside.scoring + beside.training);
    assert!((beside.seconds - longest - beside.sync).abs() < 1e-9 && beside.seconds < in_turn.seconds);
    assert!(beside.usd.unwrap() < in_turn.usd.unwrap() && in_turn.sync > whole.sync);
}

#[test]
fn states_of_training_that_do_not_fit_beside_the_rollout_move_to_the_host_and_back() {
    let notes = |step: &Step| step.notes.iter().any(|note| note.contains("do not fit beside the rollout"));
    let whole = step_of("h100-sxm-8", &BASE).unwrap();
    assert!(notes(&whole) && whole.moves > 0.0, "{whole:?}");
    // An eighth of the states fits. Nodes of their own keep their states.
    let many = step_of("h100-sxm-64", &BASE).unwrap();
    let apart = step_of("h100-sxm-64", &StepOptions { rollout_nodes: Some(Count::new(4)), ..BASE }).unwrap();
    assert!([many, apart].iter().all(|step| !notes(step) && step.moves == 0.0));
    // States that are in host memory anyway do not move.
    let (train, rollout) =
        (testing::parts("h100-sxm-8", "llama3.1-8b-rl-train"), testing::parts("h100-sxm-8", "llama3.1-8b-rl-rollout"));
    let moves = |set: &[(Knob, Setting)]| {
        let knobs: Overrides = set.iter().cloned().collect();
        step((&train, &knobs), (Some(&rollout), &Overrides::new()), &BASE).unwrap().moves
    };
    let choice = |knob, name: &str| (knob, Setting::Choice(name.to_owned().into()));
    assert!(moves(&[choice(Knob::CpuOffload, "optimizer")]) < 0.5 * whole.moves);
    // 14 to 16 bytes of each of 8.03 B parameters on 8 devices, there and back over PCIe of 64 GB/s.
    let least = 2.0 * 14.0 * 8.03e9 / 8.0 / 64e9;
    assert!(whole.moves > least && whole.moves < 1.6 * least, "{} {least}", whole.moves);
}

#[test]
fn weight_sync_transfers_the_weights_of_a_rollout_device() {
    let options = StepOptions { prompts: Count::new(512), ..BASE };
    let sync_ms = |target, train, rollout, knobs: &[(Knob, Setting)]| {
        let (train, rollout) = (testing::parts(target, train), testing::parts(target, rollout));
        let knobs: Overrides = knobs.iter().cloned().collect();
        1e3 * step((&train, &Overrides::new()), (Some(&rollout), &knobs), &options).unwrap().sync
    };
    // Most parameters are experts: four times the bits take about four times as long.
    let gpt = |knobs: &[_]| sync_ms("gb200-nvl72", "gpt-oss-120b-train", "gpt-oss-120b-serve", knobs);
    let (fp4, bf16) = (gpt(&[]), gpt(&[(Knob::ExpertPrecision, Setting::Choice("bf16".into()))]));
    assert!(bf16 > 3.0 * fp4 && bf16 < 4.0 * fp4, "{fp4} {bf16}");
    // With data-parallel attention, experts are divided among all ranks of the replica.
    let deepseek = |knobs: &[_]| sync_ms("gb200-nvl72-4", "deepseek-v3-train", "deepseek-v3-serve", knobs);
    let eight = [(Knob::Tp, 1.0), (Knob::AttentionDp, 8.0), (Knob::Ep, 8.0)];
    let (tensor, data) = (deepseek(&[]), deepseek(&eight.map(|(knob, ranks)| (knob, Setting::Number(ranks)))));
    assert!(data > tensor && data < 1.5 * tensor, "{tensor} {data}");
}

#[test]
fn knobs_of_the_target_apply_to_training_and_rollout() {
    let find = |workload| testing::parts("h100-sxm-64", workload);
    let (train, rollout) = (find("llama3.1-8b-rl-train"), find("llama3.1-8b-rl-rollout"));
    let of = |knobs: Overrides, own: Overrides| step((&train, &knobs), (Some(&rollout), &own), &BASE).unwrap();
    let ten = Overrides::from([(Knob::HourlyUsd, Setting::Number(10.0))]);
    let priced = of(ten.clone(), Overrides::new());
    let usd = 8.0 * 10.0 * priced.seconds / 3600.0;
    assert!((priced.usd.unwrap() / usd - 1.0).abs() < 1e-9, "{:?} {usd}", priced.usd);
    // There is only one price of the same nodes.
    assert_eq!(of(Overrides::new(), ten), of(Overrides::new(), Overrides::new()));
    assert_eq!(of(Overrides::from([(Knob::HourlyUsd, Setting::Number(0.0))]), Overrides::new()).usd, None);
    let capped = of(Overrides::from([(Knob::PowerCap, Setting::Number(300.0))]), Overrides::new());
    assert!(capped.rollout > priced.rollout && capped.training > priced.training, "{capped:?}");
}

fn step_with(train: &[(Knob, f64)], rollout: &[(Knob, f64)], options: &StepOptions) -> Step {
    let find = |workload| testing::parts("h100-sxm-64", workload);
    let knobs = |all: &[(Knob, f64)]| all.iter().map(|(knob, value)| (*knob, Setting::Number(*value))).collect();
    let (trained, rolled) = (find("llama3.1-8b-rl-train"), find("llama3.1-8b-rl-rollout"));
    step((&trained, &knobs(train)), (Some(&rolled), &knobs(rollout)), options).unwrap()
}

#[test]
fn accelerators_outside_the_layout_count_as_idle() {
    let part = step_with(&[(Knob::Dp, 8.0)], &[], &BASE);
    let least = 7.0 / 8.0 * part.training / part.seconds;
    assert!(part.idle > least && part.idle < least + 0.25, "{part:?}");
    assert!(part.notes.iter().any(|note| note.contains("training uses 8 of 64 accelerators")), "{:?}", part.notes);
    let rollout = step_with(&[], &[(Knob::Dp, 4.0)], &BASE);
    assert!(rollout.idle > 0.85, "{rollout:?}");
    assert!(rollout.notes.iter().any(|note| note.contains("the rollout uses 4 of 64")), "{:?}", rollout.notes);
    assert!(step_with(&[], &[], &BASE).notes.is_empty());
}

#[test]
fn last_update_takes_the_time_of_its_own_responses() {
    let training = |prompts: u32| {
        let step = step_with(&[], &[], &StepOptions { prompts: Count::new(prompts), ..BASE });
        (step.training, step.updates, step.notes)
    };
    let (whole, updates, notes) = training(64);
    assert!(updates == 1.0 && notes.is_empty());
    for (prompts, rest) in [(65, 8.0), (100, 288.0)] {
        let (partial, updates, notes) = training(prompts);
        let extra = partial / whole - 1.0;
        assert!(updates == 2.0 && extra > rest / 512.0 && extra < 0.3 + rest / 512.0, "{prompts}: {extra}");
        assert!(notes.iter().any(|note| note.contains(&format!("the last of 2 updates has {rest}"))), "{notes:?}");
    }
    assert!((training(128).0 / whole - 2.0).abs() < 1e-9);
}

#[test]
fn settings_that_a_step_replaces_are_noted() {
    let base = step_with(&[], &[], &BASE);
    for (train, rollout, name) in [
        (None, Some((Knob::Concurrency, 64.0)), "concurrency has no effect"),
        (Some((Knob::Prompt, 8192.0)), None, "prompt has no effect"),
    ] {
        let changed = step_with(train.as_slice(), rollout.as_slice(), &BASE);
        assert!(changed.notes.iter().any(|note| note.contains(name)), "{:?}", changed.notes);
        assert_eq!(Step { notes: Vec::new(), ..changed }, base);
    }
    let limited = step_with(&[], &[(Knob::MaxNumSeqs, 4.0)], &BASE);
    assert!(limited.notes.is_empty() && limited.rollout > base.rollout);
}

#[test]
fn every_setting_of_a_step_changes_it() {
    let base = step_of("h100-sxm-64", &BASE).unwrap();
    for changed in [
        StepOptions { prompts: Count::new(256), ..BASE },
        StepOptions { samples: Some(Count::new(16)), ..BASE },
        StepOptions { samples: None, ..BASE },
        StepOptions { scorers: Count::new(2), ..BASE },
        StepOptions { rollout_nodes: Some(Count::new(4)), ..BASE },
    ] {
        assert_ne!(step_of("h100-sxm-64", &changed).unwrap(), base, "{changed:?}");
    }
    let more = step_of("h100-sxm-64", &StepOptions { prompts: Count::new(256), ..BASE }).unwrap();
    assert!(more.seconds > base.seconds && more.usd.unwrap() > base.usd.unwrap());
    // Preference optimization has no rollout and no weight transfer.
    let preferences = step_of("h100-sxm-8", &StepOptions { samples: None, ..BASE }).unwrap();
    assert_eq!((preferences.rollout, preferences.sync, preferences.sequences), (0.0, 0.0, 256.0));
    assert!(preferences.scoring > 0.0 && preferences.scoring < preferences.training);
}

#[test]
fn invalid_post_training_step_is_refused_with_a_reason() {
    let refused = |target, what: &StepOptions| step_of(target, what).unwrap_err().to_string();
    assert!(
        refused("h100-sxm-64", &StepOptions { rollout_nodes: Some(Count::new(8)), ..BASE })
            .contains("expected from 1 to 7")
    );
    assert!(refused("h100-sxm-64", &StepOptions { asynchronous: true, ..BASE }).contains("nodes of their own"));
    assert!(
        refused("h100-sxm-64", &StepOptions { samples: None, rollout_nodes: Some(Count::new(2)), ..BASE })
            .contains("without rollouts")
    );
    assert!(refused("rtx-3090-4", &BASE).contains("does not fit"), "{}", refused("rtx-3090-4", &BASE));
    let find = |workload| testing::parts("h100-sxm-64", workload);
    let (train, other, serve) = (find("llama3.1-8b-rl-train"), find("llama3.1-70b-serve"), find("llama3.1-8b-serve"));
    let none = Overrides::new();
    let error =
        |train: &Parts, rollout: &Parts| step((train, &none), (Some(rollout), &none), &BASE).unwrap_err().to_string();
    assert!(error(&train, &other).contains("different models"));
    assert!(error(&serve, &serve).contains("expected training"));
    assert!(error(&train, &train).contains("expected inference"));
}

#[test]
fn fine_tuning_rates_are_within_20_percent_of_published() {
    // Tokens/s per accelerator: DGX Cloud benchmarking 25.02, Llama 3 70B on H100 in bf16.
    for (target, workload, nodes, published) in
        [("h100-sxm-64", "llama3-70b-sft", 4.0, 1219.03), ("h100-sxm-8", "llama3-70b-lora", 1.0, 1796.88)]
    {
        let parts = testing::parts(target, workload);
        let nodes = Overrides::from([(Knob::NumNodes, Setting::Number(nodes))]);
        let scenario = Scenario::resolve(&parts, &nodes).unwrap();
        let answer = estimate(&scenario);
        assert!(answer.detail.unwrap().verdict.fits(), "{workload}");
        let each = answer.total.tokens_per_sec / scenario.accelerators();
        assert!((each / published - 1.0).abs() < 0.2, "{workload}: {each} of {published}");
    }
}

#[test]
fn preference_optimization_has_the_lengths_of_training_and_notes_models_that_do_not_fit() {
    let find = |workload| testing::parts("h100-sxm-64", workload);
    let (train, rollout) = (find("llama3.1-8b-rl-train"), find("llama3.1-8b-rl-rollout"));
    let own = Scenario::resolve(&train, &Overrides::new()).unwrap();
    let given = |scorers: u32| {
        let options = StepOptions { samples: None, scorers: Count::new(scorers), ..BASE };
        step((&train, &Overrides::new()), (Some(&rollout), &Overrides::new()), &options).unwrap()
    };
    let one = given(1);
    let length = own.base.shape.prompt + own.base.shape.generate;
    assert_eq!(one.tokens, one.sequences * length);
    let many = given(40);
    let loads = |step: &Step| step.notes.iter().any(|note| note.contains("to load them from host memory"));
    assert!(loads(&many) && !loads(&one), "{:?} {:?}", many.notes, one.notes);
    // 16 GB each over PCIe of 64 GB/s.
    assert!(many.scoring > 40.0 * (one.scoring + 0.2) && many.scoring < 40.0 * (one.scoring + 0.5), "{many:?}");
    assert!(many.notes.iter().any(|note| note.contains("GB of host memory per node")), "{:?}", many.notes);
}

#[test]
fn preference_optimization_needs_no_serving_workload() {
    let train = testing::parts("h100-sxm-64", "llama3-70b-sft");
    let options = StepOptions { samples: None, ..BASE };
    let of = |samples, knobs: &Overrides| {
        step((&train, &Overrides::new()), (None, knobs), &StepOptions { samples, ..options })
    };
    let own = of(None, &Overrides::new()).unwrap();
    assert_eq!((own.rollout, own.sync, own.tokens), (0.0, 0.0, 256.0 * 4096.0));
    // A pass of the frozen model is about a third of a training step of the same sequences.
    assert!(own.scoring > 0.2 * own.training && own.scoring < 0.6 * own.training, "{own:?}");
    // The same model served in the format of training.
    let rollout = testing::parts("h100-sxm-64", "llama3.1-70b-serve");
    assert!(matches!(
        step((&train, &Overrides::new()), (Some(&rollout), &Overrides::new()), &options),
        Err(StepError::Models(..))
    ));
    assert!(matches!(of(Some(Count::new(8)), &Overrides::new()), Err(StepError::Setting(_))));
}
