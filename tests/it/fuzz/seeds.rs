//! Seeds for fuzzing: built-in files, test samples, and a few lines of each format.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

pub(super) const SIMULATOR: &[&str] = &[
    "experiment_name: a\nhardware: { gpu_model: A100, num_gpus_per_node: 8 }\nmodel: { model_type: transformer, num_layers: 12, \
     hidden_size: 768 }\ntraining: { batch_size_per_gpu: 8, num_nodes: 1 }\nnetwork: { topology_type: ring }\n",
    "target: h100-sxm-8\nworkload: llama3.1-8b-serve\nset: [tp=2]\nsimulate: { steps: 3, jitter: 0.1 }\n",
];
pub(super) const RECORDS: &[&str] = &[
    r#"{"target": "a", "workload": "b", "seed": 1337, "dollar_per_1k_tokens": 0.1, "record": {"tokens_per_sec": 1.5e3}}"#,
    r#"{"id": 1, "target": "h100-sxm-8", "workload": "llama3.1-8b-serve", "knobs": {"tp": 8}}"#,
];
pub(super) const SESSIONS: &[&str] =
    &[r#"{"version": 1, "theme": "dark", "tab": 0, "tabs": [{"target": "a", "workload": "b"}]}"#];
pub(super) const SWEEPS: &[&str] =
    &["target,workload,tp,tokens_per_sec,verdict\na,b,1,100.5,fits\na,b,2,200,fits\nc,\"b,d\",4,1e3,too large\n"];
pub(super) const TRACES: &[&str] = &[
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
    "{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0, 1, 2]}\n{\"timestamp\": 3000, \
     \"input_length\": 7322, \"output_length\": 490, \"hash_ids\": [0, 3]}\n",
    "{\"input_lens\": [10, 20], \"output_lens\": [5, 6], \"ttfts\": [0.1, 0.2], \"duration\": 2.5}\n",
];
pub(super) const SCRIPTS: &[&str] = &[
    "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\nTP=8; for i in 1 2; do X=$((TP * i)); done\n\
     torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size ${TP:-4} --bf16 \\\n  \
     --num-layers 32 --hidden-size 4096 \"$@\"\n",
    "vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 8 --max-num-seqs 256 --kv-cache-dtype fp8\n",
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai:v0.6\n    args: [\"--model\", \"x\"]\n    \
     resources: { limits: { nvidia.com/gpu: 8 } }\n",
];
pub(super) const KEYS: &[&str] =
    &["jj\u{1b}[A\u{1b}[1;5C\u{1b}[<0;12;7M\u{1b}[<65;1;1Mé界\u{1b}[200~pasted\u{1b}[201~q\u{1b}OP\u{1b}[24~\u{3}\r\t"];

/// Root of the repository, in which tests and fuzzing run.
fn root() -> &'static Path {
    Path::new("")
}

/// Maximum size of a piece, bytes, and maximum number of pieces of all seeds.
const PIECE: usize = 700;
const MAX_PIECES: usize = 400;

/// Splits seeds at line ends: into the entries of a list, else into groups of a few lines. Small inputs are fast to
/// try, and more of their mutations are significant.
pub(super) fn pieces(seeds: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut pieces = BTreeSet::new();
    for seed in seeds {
        let mut piece: Vec<u8> = Vec::new();
        for line in seed.split_inclusive(|byte| *byte == b'\n') {
            let new_entry = line.starts_with(b"- ") && piece.starts_with(b"- ");
            if !piece.is_empty() && (new_entry || piece.len() + line.len() > PIECE) {
                pieces.insert(std::mem::take(&mut piece));
            }
            piece.extend(line);
        }
        pieces.insert(piece);
    }
    let step = pieces.len().div_ceil(MAX_PIECES).max(1);
    pieces.into_iter().step_by(step).collect()
}

/// Whether a byte can be part of a word: a key, a name or a value.
pub(super) fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

/// Words of the seeds.
pub(super) fn words(seeds: &[Vec<u8>]) -> BTreeSet<&[u8]> {
    let words = seeds.iter().flat_map(|seed| seed.split(|byte| !is_of_word(*byte)));
    words.filter(|word| (2..40).contains(&word.len())).collect()
}

pub(super) fn lines(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}

/// Files at these paths, each truncated to `most` bytes.
pub(super) fn files(paths: &[&str], most: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for path in paths {
        let path = root().join(path);
        let list = if path.is_dir() {
            let mut list: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
            list.sort();
            list
        } else {
            vec![path]
        };
        found.extend(list.iter().filter(|path| path.is_file()).map(|path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes.truncate(most);
            bytes
        }));
    }
    found
}

pub(super) fn documents() -> Vec<Vec<u8>> {
    let mut seeds = files(&["demo", "themes", "examples"], 8000);
    seeds.extend(lines(&[
        "base: &b {x: 1, y: [2]}\nother:\n  <<: *b\n  y: 3\nlist: [*b, 'q', \"r\"]\ntext: |\n  a\n  b\n",
    ]));
    seeds
}

/// Beginnings of the logs in the test data, decompressed.
pub(super) fn logs() -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut tools: Vec<_> =
        std::fs::read_dir(root().join("tests/data/logs")).unwrap().map(|e| e.unwrap().path()).collect();
    tools.sort();
    for tool in tools.iter().filter(|tool| tool.is_dir()) {
        let mut samples: Vec<_> = std::fs::read_dir(tool).unwrap().map(|entry| entry.unwrap().path()).collect();
        samples.sort();
        for sample in samples.iter().take(2) {
            let mut text = Vec::new();
            let packed = flate2::read::GzDecoder::new(std::fs::File::open(sample).unwrap());
            packed.take(12_000).read_to_end(&mut text).unwrap();
            found.push(text);
        }
    }
    found
}

pub(super) const JOB_TRACES: &[&str] = &[
    "JobID|Submit|Start|End|ElapsedRaw|NNodes|AllocTRES|State\n1|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T01:01:00|3600|2|\
     gres/gpu=16|COMPLETED\n2|2024-01-01T00:05:00|Unknown|Unknown|0|1|gres/gpu:a100=4|CANCELLED by 1\n",
    "; SWF\n1 0 10 3600 16 -1 -1 16 4000 -1 1 1 1 1 1 1 -1 -1\n2 60 0 100 8 -1 -1 8 200 -1 1 2 1 1 1 1 -1 -1\n",
    "submit_time,gpu_num,duration,state\n0,8,3600,COMPLETED\n30,1,60.5,FAILED\n",
    "[{\"jobid\": \"a\", \"submitted_time\": \"2017-10-07 13:52:50\", \"attempts\": [{\"start_time\": \"2017-10-07 13:53:00\", \
     \"end_time\": \"2017-10-07 14:53:00\", \"detail\": [{\"ip\": \"m1\", \"gpus\": [\"gpu0\", \"gpu1\"]}]}]}]",
];
pub(super) const STREAMS: &[&str] = &[
    "data: {\"choices\": [{\"delta\": {\"content\": \"about 12 k\"}}]}\n\ndata: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \
     \"id\": \"c1\", \"function\": {\"name\": \"estimate\", \"arguments\": \"{\\\"target\\\": 1\"}}]}, \"finish_reason\": null}]}\n\n\
     data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    "{\"choices\": [{\"message\": {\"content\": \"yes\", \"tool_calls\": []}, \"finish_reason\": \"stop\"}]}",
    "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"a\"}, {\"functionCall\": {\"name\": \"sweep\", \"args\": {\"x\": [1]}}}]}, \
     \"finishReason\": \"STOP\"}], \"usageMetadata\": {\"totalTokenCount\": 3}}\r\n\r\n",
    "{\"error\": {\"code\": 400, \"message\": \"no\"}}",
];
pub(super) const QUESTIONS: &[&str] = &[
    "cheapest tpot<50ms ttft<2s 10% free on h100, h200 for llama3.1-70b-serve",
    "why is the step so slow?",
    "what if prices fall by a third and tp is 8?",
    "how many h100 nodes do I need for 1M tokens per second of llama 70b?",
    "what is MFU? fastest training of llama3.1-8b 15T tokens in 30 days with fp8",
];
pub(super) const ENTRIES: &[&str] = &[
    "{\"history\": 1, \"id\": \"20250101T000000000-run-00000000\", \"at\": \"2025-01-01T00:00:00Z\", \"kind\": \"run\", \"target\": \"a\", \
     \"workload\": \"b\", \"figures\": {\"tokens_per_sec\": 1.5}, \"inputs\": {\"knobs\": {\"tp\": 8}}, \"sources\": [], \"body\": {}, \
     \"origin\": {\"version\": \"0.2.0\", \"host\": null, \"directory\": \"d\", \"command\": [\"atlas\"]}}",
];
pub(super) const MODELS: &[&str] = &[
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \
     \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"num_hidden_layers\": 32, \"vocab_size\": 128256, \
     \"max_position_embeddings\": 131072, \"torch_dtype\": \"bfloat16\", \"tie_word_embeddings\": false}",
    "{\"model_type\": \"deepseek_v3\", \"hidden_size\": 7168, \"num_hidden_layers\": 61, \"n_routed_experts\": 256, \
     \"num_experts_per_tok\": 8, \"n_shared_experts\": 1, \"moe_intermediate_size\": 2048, \"first_k_dense_replace\": 3, \
     \"kv_lora_rank\": 512, \"q_lora_rank\": 1536, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"vocab_size\": 129280, \
     \"num_attention_heads\": 128, \"quantization_config\": {\"quant_method\": \"fp8\"}}",
];
pub(super) const MEASUREMENTS: &[&str] = &[
    "id,source,model,accelerator,num_accelerators,tp,pp,dp,seq_len,global_batch,precision,tokens_per_sec_per_accel\na,s,llama3.1-8b,\
     nvidia-h100-sxm-80gb,8,1,1,8,8192,128,bf16,14000\n",
    "id,source,model,accelerator,num_accelerators,tp,input_len,output_len,concurrency,precision,output_tokens_per_sec\nb,s,\
     llama3.1-70b,nvidia-h100-sxm-80gb,8,8,1024,\"1,024\",64,fp8,3000\n",
    "id,input_len,output_len,ttft_ms,tpot_ms\nc,100,100,50,10\n",
];
pub(super) const TEXTS: &[&str] =
    &["=1+1", "-1.5 %", "it's", "a,\"b\"\n```c```", "<b>&amp;|\u{1b}[31m\u{202e}\u{0}", "..", "CON:\\a/b"];
pub(super) const SETTINGS: &[&str] = &[
    "tp=1,2,4,8",
    "micro=1..16",
    "pue=1..1.5:0.1",
    "pp=divisors(layers)",
    "virt=all",
    "tpot<50ms",
    "ttft<=2s",
    "tokens_per_sec>=1e3",
    "fits",
    "precision!=fp8",
    "engine=event",
    "concurrency=1..20000",
];
pub(super) const ANSWERS: &[&str] = &[
    "\0tp=8\nconcurrency=64\nprecision=fp8",
    "\u{1}tp=4\npp=4\nmicro=2\nglobal=512\nprecision=bf16\nsp=true",
    "\u{2}prompt=8192\ngenerate=1024\nkv_dtype=fp8",
    "\u{3}cp=2\nvirt=2\nzero=1\nrecompute=full",
    "\u{4}ep=8\nglobal=15360",
    "\u{5}prompt=1\npue=1.1",
];
