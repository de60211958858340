//! `atlas calibrate` and `atlas validate --measured`, through the real binary.

use std::path::Path;

use crate::common::program::{atlas, stderr, stdout};
use serde_json::Value;

/// A directory with a sweep, bandwidths of two fabrics, and a real log.
fn measurements() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut sweep = "mode,num_gpus,tp,pp,batch_size,sequence_length,tokens_per_second,utilization,mfu\n".to_owned();
    for rate in [990, 1000, 1010] {
        sweep += &format!("training,1,1,1,32,2048,{rate},0.95,0.5\n");
    }
    for (tp, pp, rate) in [(2, 1, 1740), (4, 1, 3000), (8, 1, 4500), (1, 2, 1860), (1, 4, 3500)] {
        sweep += &format!("training,{},{tp},{pp},32,2048,{rate},,\n", tp * pp);
    }
    std::fs::write(dir.path().join("sweep.csv"), sweep).unwrap();
    for (name, rate) in [("ib", 40.0), ("roce", 30.0)] {
        let rows: String = (20..28).map(|size| format!("{},{rate}\n", 1_u64 << size)).collect();
        std::fs::write(dir.path().join(format!("{name}.csv")), format!("message_bytes,busbw\n{rows}")).unwrap();
    }
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs/tprimat/train_amd_prim_llama.json.gz");
    std::fs::copy(log, dir.path().join("run.json.gz")).unwrap();
    dir
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

const PREDECESSOR: &str = "NVIDIA_H100_8x_NVLink";

#[test]
fn calibrate_writes_the_active_profile_and_overwrites_only_with_force() {
    let dir = measurements();
    let args = ["calibrate", "sweep.csv", "ib.csv:fabric=IB", "roce.csv:fabric=RoCE", "--target", PREDECESSOR];
    let first = atlas(dir.path(), &args).assert().code(0);
    let text = stdout(&first);
    for expected in ["B_base", "chi_tp", "gamma_fabric(RoCE)", "rho_base", "Median absolute error", "p95_mult: needs"] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let path = dir.path().join("workload/profiles/nvidia_h100_8x_nvlink.yaml");
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.contains("sources: [\"sweep.csv\"]"), "{written}");
    atlas(dir.path(), &["check", "workload/profiles/nvidia_h100_8x_nvlink.yaml"]).assert().code(0);
    // The profile takes effect at once: the model reproduces the measurements.
    let args = ["run", "--target", PREDECESSOR, "--workload", "gpt5_1t_train", "--engine", "semi-empirical"];
    atlas(dir.path(), &args).assert().code(0);
    // An existing file is replaced only with --force.
    let again = atlas(dir.path(), &["calibrate", "roce.csv:fabric=RoCE", "ib.csv:fabric=IB", "--target", PREDECESSOR]);
    assert!(stderr(&{ again }.assert().code(1)).contains("--force"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    let args = ["calibrate", "ib.csv:fabric=IB", "roce.csv:fabric=RoCE", "--target", PREDECESSOR, "--force"];
    atlas(dir.path(), &args).assert().code(0);
    // The next calibration starts from the previous one.
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now != written && now.contains("base_tokens_per_accel: 1000.0"), "{now}");
}

#[test]
fn calibrate_dry_run_writes_nothing_and_prints_json_parameters() {
    let dir = measurements();
    let args = ["calibrate", "sweep.csv", "--target", PREDECESSOR, "--dry-run", "--format", "json"];
    let got = json(&stdout(&atlas(dir.path(), &args).assert().code(0)));
    assert!(!dir.path().join("workload").exists());
    let of = |symbol: &str| got["parameters"].as_array().unwrap().iter().find(|one| one["symbol"] == symbol).unwrap();
    let base = of("B_base");
    assert_eq!(
        (base["value"].as_f64(), base["n"].as_u64(), base["before"].as_f64()),
        (Some(1000.0), Some(3), Some(1100.0))
    );
    let [low, high] = [0, 1].map(|end| base["interval"][end].as_f64().unwrap());
    assert!(low > 960.0 && high < 1040.0 && low < 1000.0);
    assert!(of("chi_tp")["r2"].as_f64().unwrap() > 0.9);
    assert!(got["missing"].as_array().unwrap().iter().any(|one| one["symbol"] == "lat_min"));
    let errors = got["errors"].as_array().unwrap();
    assert!(errors.iter().any(|one| one["median_abs_pct_after"].as_f64() < one["median_abs_pct_before"].as_f64()));
}

#[test]
fn corrections_from_a_real_log_are_applied_and_noted_in_run_output() {
    let dir = measurements();
    let args = ["calibrate", "run.json.gz", "--target", "mi300x-8", "--workload", "llama3.1-8b-compare"];
    let made = atlas(dir.path(), &args).assert().code(0);
    assert!(stderr(&made).contains("only corrections"), "{}", stderr(&made));
    let run = |target: &str, extra: &[&str]| {
        let mut args = vec!["run", "--target", target, "--workload", "llama3.1-8b-compare"];
        args.extend(extra);
        stdout(&atlas(dir.path(), &args).assert().code(0))
    };
    let text = run("mi300x-8", &[]);
    // Notes are wrapped.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("after calibration with 1 run (run.json.gz)") && text.contains("as shipped"), "{text}");
    let got = json(&run("mi300x-8", &["--format", "json"]));
    let beside = &got["calibrated"][0];
    assert_eq!(beside["quantity"], "training_throughput");
    assert_eq!(beside["calibrated"], got["record"]["tokens_per_sec"]);
    assert!(beside["shipped"].as_f64() != beside["calibrated"].as_f64());
    assert!(json(&run("h100-sxm-8", &["--format", "json"])).get("calibrated").is_none());
    // After the calibration of corrections, the semi-empirical engine still reports its missing profile.
    let args = ["run", "--target", "mi300x-8", "--workload", "llama3.1-8b-compare", "--engine", "semi-empirical"];
    assert!(stderr(&atlas(dir.path(), &args).assert().code(1)).contains("a profile with coefficients"));
}

#[test]
fn invalid_measurement_cells_are_refused_with_their_position() {
    let dir = tempfile::tempdir().unwrap();
    let text = "mode,num_gpus,tp,precision,model,seq_len,tokens_per_sec\n\
                trainin,8,1,bf16,llama-3.1-8b,2048,80000\n\
                training,-8,1,fp99,llama-3.1-8b,2048,-80000\n";
    std::fs::write(dir.path().join("bad.csv"), text).unwrap();
    let made = atlas(dir.path(), &["calibrate", "bad.csv", "--target", "h100-sxm-8"]).assert().code(1);
    let described = stderr(&made);
    for expected in [
        "bad.csv:2:1: mode: found \"trainin\"",
        "bad.csv:3:10: num_gpus",
        "bad.csv:3:15: precision",
        "bad.csv:3:38: tokens_per_sec",
    ] {
        assert!(described.contains(expected), "{expected}\n{described}");
    }
    assert!(!dir.path().join("workload").exists());
}

/// A table with the columns of workload/measurements; only the typed columns describe the runs.
#[test]
fn three_measured_rows_correct_other_workloads() {
    let dir = tempfile::tempdir().unwrap();
    let text = "id,source,accelerator,num_accelerators,model,software,tp,pp,seq_len,micro_batch,global_batch,sharding,\
                precision,tokens_per_sec_per_accel\n\
                a,mine,nvidia-h100-sxm-80gb,8,llama-3.1-8b,torchtitan,1,1,8192,1,64,fsdp,bf16,5000\n\
                b,mine,nvidia-h100-sxm-80gb,16,llama-3.1-8b,torchtitan,1,1,8192,1,64,fsdp,bf16,4900\n\
                c,mine,nvidia-h100-sxm-80gb,64,llama-3.1-8b,torchtitan,1,1,8192,1,128,fsdp,bf16,4800\n";
    std::fs::write(dir.path().join("runs.csv"), text).unwrap();
    atlas(dir.path(), &["calibrate", "runs.csv", "--target", "h100-sxm-8"]).assert().code(0);
    let args = ["run", "--target", "h100-sxm-64", "--workload", "llama3.1-70b-train", "--format", "json"];
    let got = json(&stdout(&atlas(dir.path(), &args).assert().code(0)));
    assert_eq!(got["calibrated"][0]["runs"], 3, "{got}");
    // Targets of other accelerators are not calibrated.
    let compare = |targets: &str| {
        let args = ["compare", "--target", targets, "--workload", "llama3.1-70b-train"];
        stderr(&atlas(dir.path(), &args).assert().code(0))
    };
    let noted = compare("h100-sxm-64,h200-sxm-64");
    assert!(noted.contains("only h100-sxm-64 (throughput × "), "{noted}");
    assert!(!compare("h100-sxm-64,h100-sxm-128").contains("calibrated"));
}

#[test]
fn bad_arguments_are_reported_all_at_once() {
    let dir = measurements();
    let args = ["calibrate", "sweep.csv:tpp=2", "--target", PREDECESSOR, "--set", "fabrik=IB", "--set", "nothing"];
    let described = stderr(&atlas(dir.path(), &args).assert().code(2));
    for expected in ["no setting \"tpp\"", "did you mean fabric?", "expected NAME=VALUE"] {
        assert!(described.contains(expected), "{expected}\n{described}");
    }
    let described = stderr(&atlas(dir.path(), &["calibrate", "none.csv", "--target", "nowhere"]).assert().code(1));
    assert!(described.contains("nowhere"), "{described}");
    let described = stderr(&atlas(dir.path(), &["calibrate", "none.csv", "--target", PREDECESSOR]).assert().code(1));
    assert!(described.contains("none.csv: cannot be read"), "{described}");
    atlas(dir.path(), &["calibrate", "--target", PREDECESSOR]).assert().code(2);
}

#[test]
fn calibration_plan_orders_measurements_and_writes_valid_shell_scripts() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["calibrate", "--plan", "--target", "h100-sxm-64", "--out", "plan", "--format", "json"];
    let got = json(&stdout(&atlas(dir.path(), &args).assert().code(0)));
    let steps = got["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 10);
    let reductions: Vec<f64> = steps.iter().map(|step| step["reduction"].as_f64().unwrap()).collect();
    assert!(reductions[0] > 0.15 && reductions.windows(2).all(|pair| pair[0] >= pair[1] - 1e-9), "{reductions:?}");
    let left: Vec<f64> = steps.iter().map(|step| step["left"].as_f64().unwrap()).collect();
    assert!(left.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12) && left[9] < 0.5 * got["now"].as_f64().unwrap());
    let mut shells = 0;
    for file in std::fs::read_dir(dir.path().join("plan")).unwrap() {
        let path = file.unwrap().path();
        let extension = path.extension().unwrap().to_str().unwrap().to_owned();
        if extension == "sh" || extension == "sbatch" {
            shells += 1;
            let checked = std::process::Command::new("bash").arg("-n").arg(&path).output().unwrap();
            assert!(checked.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&checked.stderr));
        }
        if extension == "sbatch" {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains("#SBATCH --gres=gpu:") && text.contains("srun bash"), "{text}");
        }
    }
    assert_eq!(shells, 20);
    // Existing files are not overwritten.
    let again =
        atlas(dir.path(), &["calibrate", "--plan", "--target", "h100-sxm-64", "--out", "plan"]).assert().code(1);
    assert!(stderr(&again).contains("--force"));
}

/// A plan does not propose what has been measured well.
#[test]
fn calibration_plan_defers_what_existing_measurements_cover() {
    let dir = measurements();
    let first = |files: &[&str]| {
        let mut args = vec!["calibrate", "--plan", "--dry-run", "--target", PREDECESSOR, "--format", "json"];
        args.extend(files);
        let got = json(&stdout(&atlas(dir.path(), &args).assert().code(0)));
        let step = got["steps"].as_array().unwrap().iter().position(|step| step["measurement"] == "base-throughput");
        (step.unwrap(), got["now"].as_f64().unwrap())
    };
    let (before, uncertain) = first(&[]);
    let (after, known) = first(&["sweep.csv"]);
    assert!(after > before && known < uncertain, "{before} {after} {uncertain} {known}");
}

#[test]
fn validate_runs_the_checks_of_the_calibration_guide() {
    let dir = measurements();
    let validate = |extra: &[&str]| {
        let mut args = vec!["validate", "--measured", "sweep.csv", "--target", PREDECESSOR];
        args.extend(extra);
        atlas(dir.path(), &args).assert()
    };
    // The built-in profile is far off.
    let before = validate(&[]).code(1);
    assert!(stderr(&before).contains("cross-validation failed"), "{}", stderr(&before));
    assert!(stdout(&before).contains("never calibrated") && stdout(&before).contains("monthly"), "{}", stdout(&before));
    atlas(dir.path(), &["calibrate", "sweep.csv", "--target", PREDECESSOR]).assert().code(0);
    let after = json(&stdout(&validate(&["--format", "json"])));
    let check =
        |name: &str| after["checks"].as_array().unwrap().iter().find(|one| one["check"] == name).unwrap().clone();
    assert_eq!(check("scaling")["passes"], true, "{after}");
    assert_eq!(check("production_percentiles")["passes"], Value::Null);
    assert!(after["ages"].as_array().unwrap().iter().all(|age| age["due"] == "nothing" && age["days"] == 0));
    // Percentiles from production, within and beyond ten percent.
    std::fs::write(dir.path().join("prod.csv"), "mode,p50_ms,p95_ms,samples\ninference,4.0,6.0,900\n").unwrap();
    let args = ["validate", "--measured", "prod.csv", "--target", PREDECESSOR, "--format", "csv"];
    let text = stdout(&atlas(dir.path(), &args).assert());
    assert!(text.lines().any(|line| line.starts_with("production percentiles,prod.csv:2,p50_ms")), "{text}");
    // The target is derived from the accelerator named in the log.
    let args = ["validate", "--measured", "run.json.gz", "--workload", "llama3.1-8b-compare"];
    let described = atlas(dir.path(), &args).assert().code(1);
    assert!(stderr(&described).contains("mi300x-8"), "{}", stderr(&described));
    // It fails if there is nothing to evaluate.
    let args = ["validate", "--measured", "ib.csv", "--target", PREDECESSOR];
    assert!(stderr(&atlas(dir.path(), &args).assert().code(1)).contains("predicts none of these metrics"));
}

#[test]
fn simulations_state_that_the_calibration_is_not_applied() {
    let dir = measurements();
    let args = ["calibrate", "run.json.gz", "--target", "mi300x-8", "--workload", "llama3.1-8b-compare"];
    atlas(dir.path(), &args).assert().code(0);
    let pair = ["--target", "mi300x-8", "--workload", "llama3.1-8b-compare"];
    for command in [&["simulate"][..], &["scale", "--nodes", "1,2"], &["run", "--engine", "event"]] {
        let outcome = atlas(dir.path(), &[command, &pair].concat()).assert().code(0);
        let text = stdout(&outcome).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("the calibration of this target is not applied to simulations"), "{command:?}\n{text}");
        std::fs::remove_dir_all(dir.path().join("out")).ok();
    }
    let other = stdout(
        &atlas(dir.path(), &["simulate", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-compare"])
            .assert()
            .code(0),
    );
    assert!(!other.contains("calibration"), "{other}");
}

#[test]
fn a_log_of_step_times_takes_the_sequence_length_of_the_workload() {
    let dir = tempfile::tempdir().unwrap();
    let line = |step: u32| {
        format!(
            " iteration {step:8}/     100 | consumed samples: {:12} | elapsed time per iteration (ms): 16600.0 | learning rate: \
             1.000E-04 | global batch size:  1152 | lm loss: 2.000000E+00 | loss scale: 1.0 | grad norm: 1.000 |\n",
            1152 * step
        )
    };
    std::fs::write(dir.path().join("w1.log"), (1..60).map(line).collect::<String>()).unwrap();
    let args = ["--target", "h100-sxm-64", "--workload", "llama3.1-8b-train", "--dry-run", "--format", "json"];
    let of =
        |file: &str| json(&stdout(&atlas(dir.path(), &[&["calibrate", file], &args[..]].concat()).assert().code(0)));
    let (filled, stated) = (of("w1.log"), of("w1.log:seq_len=8192"));
    assert_eq!(filled["parameters"], stated["parameters"]);
    assert!(!filled["parameters"].as_array().unwrap().is_empty(), "{filled}");
}
