//! The TUI with an imported job.

use std::io::Write as _;
use std::process::{Command, Stdio};

#[test]
fn explanations_of_an_imported_job_name_the_lines_of_the_users_files() {
    let dir = tempfile::tempdir().unwrap();
    let script = "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gres=gpu:h100:8\n\nARGS=(\n  --tensor-model-parallel-size 8\n  \
                  --pipeline-model-parallel-size 2\n  --seq-length 4096 --micro-batch-size 1 --global-batch-size 64\n  \
                  --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --ffn-hidden-size 28672\n  \
                  --group-query-attention --num-query-groups 8 --vocab-size 128256 --bf16\n)\n\
                  srun python pretrain_gpt.py ${ARGS[@]}\n";
    std::fs::write(dir.path().join("train.sbatch"), script).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_atlas"))
        .args(["tui", "--plain", "--import", "train.sbatch"])
        .current_dir(dir.path())
        .env("ATLAS_STATE_DIR", dir.path().join("state"))
        .env("ATLAS_CONFIG_DIR", dir.path().join("config"))
        .env("ATLAS_HISTORY", "off")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(b"explain\nquit\n").unwrap();
    let output = program.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("train.sbatch:6 (parallelism.tp)"), "{text}\n{errors}");
    assert!(!text.contains("atlas-import-"), "{text}");
}
