//! Scripts that do not launch anything themselves: jobs that they submit, manifests and configurations that they write,
//! and roles that the caller chooses.

use crate::common::{expect, read, read_all};
use serde_json::json;

const MEGATRON: &str = "pretrain_gpt.py --tensor-model-parallel-size $TP --pipeline-model-parallel-size 1 --micro-batch-size 1 --global-batch-size 64 --bf16";

#[test]
fn a_job_on_standard_input_is_read_with_its_directives() {
    let i = read(
        "submit.sh",
        &format!(
            "#!/bin/bash\nNODES=${{1:-4}}\nexport TP=2\nsbatch --time=02:00:00 <<EOT\n#!/bin/bash\n#SBATCH --nodes=$NODES\n#SBATCH --gpus-per-node=8\nsrun torchrun --nproc_per_node 8 --nnodes \\$SLURM_NNODES {MEGATRON}\nEOT\n"
        ),
    );
    expect(
        &i,
        &json!({ "framework": "megatron-lm", "nodes": 4, "num_accelerators": 32, "tp": 2, "dp": 16, "slurm.time": "02:00:00" }),
    );
    assert_eq!((i.origin["slurm.nodes"].line, i.origin["micro_batch"].line), (Some(6), Some(8)));
}

#[test]
fn submitted_script_inherits_exports_and_options() {
    let job = format!("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\nTP=${{TP:-1}}\nsrun {MEGATRON}\n");
    let submit = |line: &str| read_all(&[("submit.sh", line), ("train.sbatch", job.as_str())]);
    expect(&submit("#!/bin/bash\nexport TP=4\nsbatch -N 2 train.sbatch\n"), &json!({ "tp": 4, "nodes": 2, "dp": 4 }));
    expect(&submit("#!/bin/bash\nTP=4\nsbatch train.sbatch\n"), &json!({ "tp": 1, "nodes": 1 }));
    expect(&submit("#!/bin/bash\nsbatch --export=ALL,TP=8 train.sbatch\n"), &json!({ "tp": 8 }));
    let several = submit("#!/bin/bash\nfor n in 1 2; do sbatch -N $n train.sbatch; done\n");
    expect(&several, &json!({ "tp": 1, "variants.0.nodes": 1, "variants.1.nodes": 2 }));
    // A script that only mentions the other script does not hide it.
    expect(&submit("#!/bin/bash\necho now run sbatch train.sbatch\n"), &json!({ "tp": 1 }));
}

#[test]
fn manifests_are_read_from_standard_input_files_and_templates() {
    let manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec:\n  replicas: 2\n  template:\n    spec:\n      containers:\n      - name: c\n        image: vllm/vllm-openai:v1\n        args: [\"--model\", \"$MODEL\", \"--tensor-parallel-size=${TP}\"]\n        resources: {limits: {nvidia.com/gpu: ${TP}}}\n";
    let want = json!({ "framework": "vllm", "manifest": "Deployment", "model": "org/base-7B", "tp": 2, "num_accelerators": 4 });
    let begin = "#!/bin/bash\nexport TP=2 MODEL=org/base-7B\n";
    for how in [
        format!("kubectl apply -f - <<EOF\n{manifest}EOF\n"),
        format!("cat <<EOF | kubectl apply -f -\n{manifest}EOF\n"),
        format!("cat > m.yaml <<'EOF'\n{manifest}EOF\nenvsubst < m.yaml | kubectl apply -f -\n"),
    ] {
        expect(&read("k.sh", &format!("{begin}{how}")), &want);
    }
    let compose = "cat > compose.yml <<EOF\nservices:\n  a:\n    image: vllm/vllm-openai:v1\n    command: --model org/base-7B -tp 2\nEOF\ndocker compose up -d\n";
    expect(&read("c.sh", &format!("#!/bin/bash\n{compose}")), &json!({ "framework": "vllm", "tp": 2 }));
}

#[test]
fn roles_selected_by_the_caller_are_both_imported() {
    let server = |role: &str, tp: u32| {
        format!("python3 -m sglang.launch_server --model-path /models/Big-V3 --disaggregation-mode {role} --tp {tp}")
    };
    let (prefill, decode) = (server("prefill", 8), server("decode", 16));
    let want = json!({ "kind": "serving", "model": "Big-V3", "roles.prefill.tp": 8, "roles.decode.tp": 16, "num_accelerators": 24 });
    for script in [
        format!("case \"$ROLE\" in\nprefill) {prefill} ;;\ndecode) {decode} ;;\n*) echo role >&2; exit 2 ;;\nesac\n"),
        format!(
            "R=${{1:?role}}\nif [ \"$R\" = prefill ]; then\n{prefill}\nelif [ \"$R\" = decode ]; then\n{decode}\nelse exit 1\nfi\n"
        ),
    ] {
        expect(&read("pd.sh", &format!("#!/bin/bash\n{script}")), &want);
    }
}

#[test]
fn namerefs_and_printed_argument_lists_are_resolved() {
    let serve = "vllm serve \"$NAME\" \"${ARGS[@]}\"\n";
    let want = json!({ "model": "org/base-70B", "tp": 4, "max_num_seqs": 128 });
    for fill in [
        "build() { local -n out=$1; out+=(--tensor-parallel-size 4); out+=(--max-num-seqs 128); }\nARGS=()\nbuild ARGS\n",
        "readarray -t ARGS < <(printf '%s\\n' --tensor-parallel-size=4 --max-num-seqs=128)\n",
    ] {
        expect(
            &read(
                "s.sh",
                &format!("#!/bin/bash\nSIZE=70b\nprintf -v NAME 'org/base-%s' \"${{SIZE^^}}\"\n{fill}{serve}"),
            ),
            &want,
        );
    }
    let remote =
        "#!/bin/bash\nssh node1 \"cd /w && vllm serve org/base-70B --tensor-parallel-size 4 --max-num-seqs 128\"\n";
    expect(&read("r.sh", remote), &want);
}

#[test]
fn older_and_shorter_spellings_of_flags_are_read() {
    let old = read(
        "o.sh",
        &format!("#!/bin/bash\nTP=1\ntorchrun --nproc_per_node 8 {MEGATRON} --activations-checkpoint-method uniform\n"),
    );
    expect(&old, &json!({ "recompute": "full" }));
    let nemo = read(
        "n.sh",
        "#!/bin/bash\nnemo llm pretrain --factory \"base_8b(num_nodes=2)\" trainer.devices=8 trainer.strategy.tensor_model_parallel_size=2\n",
    );
    expect(&nemo, &json!({ "model": "base_8b", "nodes": 2, "num_accelerators": 16, "dp": 8 }));
    let trl = read(
        "t.sh",
        "#!/bin/bash\ntrl sft --model_name_or_path org/base-7B --per_device_train_batch_size 2 --torch_dtype bfloat16\n",
    );
    expect(&trl, &json!({ "framework": "trl", "precision": "bf16", "micro_batch": 2 }));
}
