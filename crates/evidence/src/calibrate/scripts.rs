//! Scripts for the planned measurements: shell scripts, and Slurm batch files that run them on a node.

use super::plan::{Measurement, SERVING_MODEL, Step};
use atlas_config::Target;
use atlas_core::count::Count;
use atlas_perf::accelerator::Precision;
use atlas_plan::scenario::Machine;

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// File name.
    pub name: String,
    /// Content.
    pub text: String,
    /// Whether it is executable.
    pub executable: bool,
}

/// Programs that the shell scripts run.
const TRAIN: &str = include_str!("scripts/measure_train.py");
const POWER: &str = include_str!("scripts/measure_power.py");

/// Target of the scripts.
#[derive(Debug, Clone, Copy)]
pub struct ScriptTarget<'a> {
    /// The target.
    pub target: &'a Target,
    /// Its accelerator, if it is in the catalog.
    pub machine: Option<&'a Machine>,
}

impl ScriptTarget<'_> {
    /// Accelerators per node.
    fn gpus(&self) -> u64 {
        self.target.accelerators_per_node.max(Count::ONE).get().into()
    }

    /// Degrees of parallelism (2, 4, 8) that fit in a node.
    fn degrees(&self) -> Vec<u64> {
        [2, 4, 8].into_iter().filter(|degree| *degree <= self.gpus()).collect()
    }

    fn peak(&self) -> f64 {
        self.machine.map_or(0.0, |machine| machine.device.peak(Precision::Bf16) * machine.dies * 1e-12)
    }
}

/// Returns all files for the measurements, in their order.
#[must_use]
pub fn scripts(site: &ScriptTarget<'_>, steps: &[Step]) -> Vec<Script> {
    let mut files = Vec::new();
    let mut names = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let Some(body) = body(site, step.measurement) else { continue };
        let stem = format!("{:02}-{}", index + 1, step.measurement.name());
        let text = format!("{}{body}", head(step.measurement));
        files.push(Script { name: format!("{stem}.sh"), text, executable: true });
        files.push(Script {
            name: format!("{stem}.sbatch"),
            text: batch(site, step.measurement, &stem),
            executable: false,
        });
        names.push((stem, step.measurement));
    }
    files.push(Script { name: "measure_train.py".to_owned(), text: TRAIN.to_owned(), executable: true });
    files.push(Script { name: "measure_power.py".to_owned(), text: POWER.to_owned(), executable: true });
    files.push(Script { name: "README.md".to_owned(), text: readme(site, &names), executable: false });
    files
}

fn head(measurement: Measurement) -> String {
    format!(
        "#!/usr/bin/env bash\n# Measures {}.\n# Writes to results/ in the directory of this file. Run it on an idle \
         node.\nset -euo pipefail\ncd \"${{ATLAS_DIR:-$(dirname \"$(readlink -f \"$0\")\")}}\"\nmkdir -p \
         results\nPYTHON=${{PYTHON:-python3}}\nTORCHRUN=${{TORCHRUN:-torchrun}}\n\n",
        measurement.determines()
    )
}

/// Content of a script; `None` if the target cannot run it.
fn body(site: &ScriptTarget<'_>, measurement: Measurement) -> Option<String> {
    let (gpus, peak) = (site.gpus(), site.peak());
    let peak = if peak > 0.0 { format!(" --peak-tflops {peak:.1}") } else { String::new() };
    let degrees: Vec<String> = site.degrees().iter().map(u64::to_string).collect();
    let degrees = degrees.join(" ");
    Some(match measurement {
        // The guide's sweep over model sizes, sequence lengths and batch sizes. Configurations that do not fit are
        // skipped.
        Measurement::BaseThroughput => format!(
            "# Layers, width and heads: GPT-2 XL, and GPT-J and Llama 7B with fewer layers, to fit on one \
             accelerator.\nfor model in \"48 1600 25\" \"8 4096 16\" \"8 4096 32\"; do\n  read -r layers hidden heads \
             <<<\"$model\"\n  for seq in 512 1024 2048 4096 8192; do\n    for batch in 1 2 4 8 16 32 64 128; do\n      \
             CUDA_VISIBLE_DEVICES=${{CUDA_VISIBLE_DEVICES:-0}} $PYTHON measure_train.py --layers $layers --hidden $hidden \
             --heads $heads \\\n        --seq $seq --batch $batch --warmup 20 --steps 200{peak} --out results/base.csv || {{ echo \
             \"$model, seq $seq, batch $batch: skipped\"; break; }}\n    done\n  done\ndone\n"
        ),
        Measurement::TensorParallel if !degrees.is_empty() => format!(
            "$PYTHON measure_train.py --batch 4 --warmup 20 --steps 100{peak} --out results/parallel.csv\nfor tp in \
             {degrees}; do\n  $TORCHRUN --standalone --nproc_per_node $tp measure_train.py --tp $tp --batch 4 --warmup 20 \
             --steps 100{peak} \\\n    --out results/parallel.csv\ndone\n"
        ),
        Measurement::PipelineParallel if !degrees.is_empty() => format!(
            "$PYTHON measure_train.py --batch 4 --micro-batches 8 --warmup 20 --steps 100{peak} --out \
             results/pipeline.csv\nfor pp in {degrees}; do\n  $TORCHRUN --standalone --nproc_per_node $pp \
             measure_train.py --pp $pp --batch 4 --micro-batches 8 --warmup 20 --steps 100{peak} \\\n    --out \
             results/pipeline.csv\ndone\n"
        ),
        Measurement::TensorParallel | Measurement::PipelineParallel => return None,
        Measurement::Fabrics => format!(
            "# NCCL_TESTS is the build directory of https://github.com/NVIDIA/nccl-tests (rccl-tests for AMD). LAUNCH starts \
             one\n# process per node, as in LAUNCH=\"mpirun -N 1\". Without it, the fabric within the node is \
             measured.\nTESTS=${{NCCL_TESTS:-./nccl-tests/build}}\nFABRIC=${{FABRIC:-IB}}\n[ -x \
             \"$TESTS/all_reduce_perf\" ] || {{ echo \"no $TESTS/all_reduce_perf: set NCCL_TESTS\" >&2; exit 1; }}\nif \
             [ -n \"${{LAUNCH:-}}\" ]; then\n  $LAUNCH \
             \"$TESTS/all_reduce_perf\" -b 1M -e 1G -f 2 -g {gpus} | tee \"results/nccl_$FABRIC.log\"\n  \
             # The same over sockets: bandwidth without RDMA.\n  NCCL_IB_DISABLE=1 $LAUNCH \
             \"$TESTS/all_reduce_perf\" -b 1M -e 1G -f 2 -g {gpus} | tee results/nccl_Ethernet.log\nelse\n  \
             \"$TESTS/all_reduce_perf\" -b 1M -e 1G -f 2 -g {gpus} | tee results/nccl_NVLink.log\n  # Through the host: \
             bandwidth without the links between accelerators.\n  NCCL_P2P_DISABLE=1 \"$TESTS/all_reduce_perf\" -b 1M \
             -e 1G -f 2 -g {gpus} | tee results/nccl_Host.log\nfi\n"
        ),
        Measurement::CudaGraphs => format!(
            "for run in 1 2 3; do\n  for graphs in off on; do\n    CUDA_VISIBLE_DEVICES=${{CUDA_VISIBLE_DEVICES:-0}} $PYTHON \
             measure_train.py --batch 1 --seq 512 --cuda-graphs $graphs --warmup 20 --steps 300{peak} \\\n      --out \
             results/graphs.csv\n  done\ndone\n"
        ),
        Measurement::Gpudirect if site.target.num_nodes > 1.0 => format!(
            "# Run this on every node of an allocation of at least two nodes, as srun does in the batch \
             file.\nHEAD=${{HEAD:-$(hostname)}}\n\
             for run in 1 2 3; do\n  for direct in off on; do\n    level=$([ $direct = on ] && echo SYS || echo LOC)\n    \
             NCCL_NET_GDR_LEVEL=$level $TORCHRUN --nnodes ${{SLURM_NNODES:-2}} --nproc_per_node {gpus} --rdzv_backend c10d \
             --rdzv_endpoint $HEAD:29500 \\\n      measure_train.py --batch 2 --warmup 20 --steps 100{peak} --label \
             gpudirect_rdma=$direct --label fabric=${{FABRIC:-IB}} \\\n      --out results/gpudirect.csv\n  done\ndone\n"
        ),
        Measurement::Gpudirect => return None,
        Measurement::Jitter => format!(
            "# The profile uses the result only for virtualized networks (virt=sriov).\n$TORCHRUN --standalone \
             --nproc_per_node {gpus} measure_train.py --batch 1 --seq 512 --warmup 20 --steps 20 --runs 100 \\\n  --label \
             virt=${{VIRT:-sriov}} --out results/jitter.csv\n"
        ),
        Measurement::Latency => "export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}\n# The smallest model and one \
             token: lat_min.\n$PYTHON \
             measure_train.py --mode inference --layers 1 --hidden 256 --heads 4 --seq 1 --batch 1 --warmup 100 --steps 1000 \
             \\\n  --out results/latency.csv\nfor batch in 1 2 4 8 16; do\n  $PYTHON measure_train.py --mode inference --seq \
             128 --batch $batch --warmup 50 --steps 1000 --out results/latency.csv\ndone\n"
            .to_owned(),
        Measurement::Serving => format!(
            "# Serves a model with vLLM and benchmarks it at several loads, with 500 requests each.\n\
             MODEL=${{MODEL:-meta-llama/Llama-3.1-8B-Instruct}}\nPORT=${{PORT:-8000}}\nCUDA_VISIBLE_DEVICES=${{CUDA_VISIBLE_DEVICES:-0}} vllm \
             serve \"$MODEL\" --port $PORT --max-model-len 4096 > results/server.log 2>&1 &\nSERVER=$!\ntrap 'kill $SERVER' \
             EXIT\nuntil curl -sf localhost:$PORT/health > /dev/null; do sleep 5; kill -0 $SERVER; done\nfor concurrency in 1 \
             4 16 64; do\n  vllm bench serve --model \"$MODEL\" --port $PORT --dataset-name random --random-input-len 1024 \
             --random-output-len 256 \\\n    --num-prompts 500 --max-concurrency $concurrency --percentile-metrics \
             ttft,tpot,itl,e2el --metric-percentiles 95,99 \\\n    --save-result --result-dir results --result-filename \
             serve_c$concurrency.json\ndone\n# Append settings that a file does not contain to its name: \
             results/serve_c16.json:num_gpus=1,tp=1,model={SERVING_MODEL}\n"
        ),
        Measurement::Power => "$PYTHON measure_power.py --seconds 300 --out results/power.csv\n".to_owned(),
    })
}

/// Slurm batch file that runs a shell script.
fn batch(site: &ScriptTarget<'_>, measurement: Measurement, stem: &str) -> String {
    let nodes = if measurement == Measurement::Gpudirect { 2 } else { 1 };
    let gpus = match measurement {
        Measurement::BaseThroughput | Measurement::CudaGraphs | Measurement::Latency | Measurement::Serving => 1,
        _ => site.gpus(),
    };
    // Twice the usual time, since the scheduler kills late jobs.
    let minutes = (2.0 * measurement.minutes()) as u64;
    let exclusive = if measurement == Measurement::Power { "#SBATCH --exclusive\n" } else { "" };
    format!(
        "#!/usr/bin/env bash\n#SBATCH --job-name=atlas-{name}\n#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node=1\n#SBATCH \
         --gres=gpu:{gpus}\n#SBATCH --time={hours:02}:{rest:02}:00\n#SBATCH --output={stem}-%j.out\n{exclusive}\
         # Add the partition, account and environment (modules, container) of your site here.\nset -euo \
         pipefail\nexport ATLAS_DIR=$SLURM_SUBMIT_DIR\nexport HEAD=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head \
         -n1)\nsrun bash \"$SLURM_SUBMIT_DIR/{stem}.sh\"\n",
        name = measurement.name(),
        hours = minutes / 60,
        rest = minutes % 60,
    )
}

fn readme(site: &ScriptTarget<'_>, names: &[(String, Measurement)]) -> String {
    let target = &site.target.name;
    let mut out = format!(
        "# Measurements for {target}\n\nMost informative first. Run each with `bash NAME.sh` on an idle node, or with \
         `sbatch NAME.sbatch` in this directory. They need PyTorch; `fabrics` needs nccl-tests, `serving` \
         vLLM.\n\n| script | determines | minutes |\n| --- | --- | --- |\n"
    );
    for (stem, measurement) in names {
        out += &format!("| {stem} | {} | {:.0} |\n", measurement.determines(), measurement.minutes());
    }
    out += &format!(
        "\nThen run, in this directory:\n\n    atlas calibrate results/*.csv --target {target} --dry-run\n\nIf a log \
         does not contain its fabric or its number of accelerators, append them to its \
         name:\n`results/nccl_IB.log:fabric=IB \
         results/nccl_Ethernet.log:fabric=Ethernet`.\n"
    );
    out
}
