//! Properties: no input panics or hangs, and equal spellings give equal fields.

use std::time::{Duration, Instant};

use crate::common::{read, read_all};
use proptest::prelude::*;

const SAMPLES: &[(&str, &str)] = &[
    (
        "a.sbatch",
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:8\nset -e\n: \"${TP:=2}\"\nARGS=( --tensor-model-parallel-size $TP --micro-batch-size 1 )\nif [[ -n \"${FP8:-}\" ]]; then ARGS+=( --fp8-format hybrid ); fi\ncase \"$MODE\" in fast) X=1;; *) X=$((2 * TP));; esac\ncat > ds.json <<EOF\n{\"zero_optimization\": {\"stage\": $X}}\nEOF\nfor i in {1..3}; do echo \"$i\"; done\nf() { local n=${1:-4}; srun torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py \"${ARGS[@]}\" --global-batch-size $(( n * 16 )) --bf16 | tee log; }\nf 8\n",
    ),
    (
        "b.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: &m {name: x}\nspec:\n  replicas: 2\n  template:\n    metadata: *m\n    spec:\n      containers:\n        - name: c\n          image: vllm/vllm-openai\n          args: [--model=org/base-7B, --tensor-parallel-size=2, \"--speculative-config={\\\"method\\\": \\\"mtp\\\"}\"]\n          resources: {limits: {nvidia.com/gpu: 2}}\n",
    ),
    (
        "c.json",
        "{\"train_micro_batch_size_per_gpu\": 4, \"zero_optimization\": {\"stage\": 2}, \"fp16\": {\"enabled\": true}} // end\n",
    ),
    (
        "d.toml",
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\n[parallelism]\ntensor_parallel_degree = 2\n",
    ),
    ("Modelfile", "FROM base:7b\nTEMPLATE \"\"\"x\n{{ .Prompt }}\"\"\"\nPARAMETER num_ctx 4096\n"),
    (
        "e.yaml",
        "trainer: {num_nodes: 2, devices: 8}\nmodel:\n  tensor_model_parallel_size: 4\n  global_batch_size: ${multiply:2,3}\n  optim: {name: adam}\n",
    ),
];

const NOISE: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "$",
    "${",
    "$((",
    "))",
    "`",
    "\"",
    "'",
    "\\",
    "\n",
    "\t",
    ":",
    ";",
    "|",
    "&",
    "<",
    "<<EOF\n",
    ">",
    "=",
    "-",
    "#",
    "if ",
    "fi\n",
    "do ",
    "done\n",
    "case x in ",
    "esac\n",
    "[[ ",
    " ]]",
    "\u{e000}",
    "\u{e001}",
    "é",
    "\u{2028}",
    "%",
    "*",
    "?",
    "!",
    "&a ",
    "*a",
    "<<: ",
];

fn quick(files: &[(&str, &str)]) {
    let start = Instant::now();
    let i = read_all(files);
    let _ = i.to_json().to_string();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?} for {:?}", start.elapsed(), files[0].0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn truncated_files_never_panic(which in 0..SAMPLES.len(), share in 0.0..1.0_f64) {
        let (name, text) = SAMPLES[which];
        let mut n = (text.len() as f64 * share) as usize;
        while !text.is_char_boundary(n) { n -= 1; }
        quick(&[(name, &text[..n])]);
    }

    #[test]
    fn mutated_files_never_panic(which in 0..SAMPLES.len(), edits in prop::collection::vec((0.0..1.0_f64, 0..NOISE.len(), 1..40_usize, any::<bool>()), 1..6)) {
        let (name, text) = SAMPLES[which];
        let mut t: Vec<char> = text.chars().collect();
        for (share, noise, times, cut) in edits {
            let at = (t.len() as f64 * share) as usize;
            if cut {
                t.drain(at..(at + times).min(t.len()));
            } else {
                t.splice(at..at, NOISE[noise].repeat(times).chars());
            }
        }
        let t: String = t.into_iter().collect();
        quick(&[(name, &t), ("other.sh", "source a.sbatch\nbash a.sbatch\n")]);
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,400}", name in prop::sample::select(vec!["x.sh", "x.yaml", "x.json", "x.toml", "Modelfile", "x"])) {
        quick(&[(name, &text)]);
    }

    /// The same settings, spelled in other ways.
    #[test]
    fn equivalent_spellings_give_the_same_fields(
        order in Just((0..FLAGS.len()).collect::<Vec<_>>()).prop_shuffle(),
        equals in prop::collection::vec(any::<bool>(), 8),
        under in prop::collection::vec(any::<bool>(), 8),
        quotes in prop::collection::vec(0..3_u8, 8),
        breaks in prop::collection::vec(any::<bool>(), 8),
        style in 0..5_u8,
        variable in "[A-Z][A-Z0-9_]{2,10}",
    ) {
        let mut flags = Vec::new();
        for (k, i) in order.iter().enumerate() {
            let (name, value) = FLAGS[*i];
            let name = if under[k] { name.replace('-', "_").replacen("__", "--", 1) } else { name.to_owned() };
            let value = match quotes[k] { 0 => value.to_owned(), 1 => format!("\"{value}\""), _ => format!("'{value}'") };
            flags.push((format!("{name}{}{value}", if equals[k] { "=" } else { " " }), breaks[k]));
        }
        let join = |sep: &str| flags.iter().map(|(f, b)| if *b { format!("{f}{sep}") } else { format!("{f} ") }).collect::<String>();
        let v = format!("V_{variable}");
        let plain = flags.iter().all(|(f, _)| !f.contains('"') && !f.contains('\''));
        let script = match style {
            0 => format!("vllm serve org/base-7B {}", join("\\\n  ")),
            1 => format!("{v}=(\n{})\nvllm serve org/base-7B \"${{{v}[@]}}\"", join("\n")),
            2 if plain => format!("{v}=\"{}\"\nvllm serve org/base-7B ${v}", join("\\\n  ")),
            3 => format!("{v}=()\n{v}+=({})\npython3 -m vllm.entrypoints.openai.api_server --model org/base-7B ${{{v}[@]}}", join("\n")),
            _ => format!("srun bash -c \"vllm serve org/base-7B {}\"", join(" ").replace('"', "\\\"")),
        };
        let got = read("s.sh", &format!("#!/bin/bash\n{script}\n"));
        let want = read("s.sh", "#!/bin/bash\nvllm serve org/base-7B --tensor-parallel-size 4 --pipeline-parallel-size 2 --max-model-len 8192 --max-num-seqs 128 --gpu-memory-utilization 0.85 --kv-cache-dtype fp8 --block-size 32 --dtype bfloat16\n");
        let strip = |mut m: serde_json::Map<String, serde_json::Value>| { m.remove("launcher"); let mut v: Vec<_> = m.into_iter().collect(); v.sort_by(|a, b| a.0.cmp(&b.0)); v };
        prop_assert_eq!(strip(got.fields), strip(want.fields), "{}", script);
    }
}

const FLAGS: &[(&str, &str)] = &[
    ("--tensor-parallel-size", "4"),
    ("--pipeline-parallel-size", "2"),
    ("--max-model-len", "8192"),
    ("--max-num-seqs", "128"),
    ("--gpu-memory-utilization", "0.85"),
    ("--kv-cache-dtype", "fp8"),
    ("--block-size", "32"),
    ("--dtype", "bfloat16"),
];

#[test]
fn hostile_scripts_are_parsed_in_bounded_time() {
    let cases = [
        format!("A=xx\n{}vllm serve $A\n", "A=$A$A\n".repeat(64)),
        "f() { f; f; }\nf\nwhile true; do A+=aaaa; done\nfor ((;;)); do B+=$A; done\n".to_owned(),
        "for i in {1..1000}; do for j in {1..1000}; do for k in {1..1000}; do x=$i; done; done; done\n".to_owned(),
        "(".repeat(20_000),
        format!("A={}", "${A:-".repeat(10_000)),
        format!("A={}", "$(".repeat(10_000)),
        "if true; then ".repeat(10_000),
        format!("echo $(({}", "(".repeat(10_000)),
        "! ".repeat(20_000),
        "f() ".repeat(10_000),
        "cat <<E > f\n".repeat(3_000),
        "eval \"".repeat(1_000),
        "source x.sh\nbash x.sh\n. ./x.sh\n".to_owned(),
        ": $((1<<999)) $((9223372036854775807+1)) $((-9223372036854775808/-1)) $((2**99999)) $((1/0))\nseq 1 99999999999\nC[99999999999]=1\n".to_owned(),
    ];
    for c in cases {
        quick(&[("x.sh", &format!("#!/bin/bash\n{c}"))]);
    }
}

#[test]
fn hostile_documents_are_parsed_in_bounded_time() {
    let laughs: String = (0..12)
        .map(|i| {
            format!(
                "{}: &{} [{}]\n",
                char::from(b'b' + i),
                char::from(b'b' + i),
                vec![format!("*{}", char::from(b'a' + i)); 10].join(",")
            )
        })
        .collect();
    let cases = [
        ("x.yaml", format!("a: &a [x,x,x,x,x,x,x,x,x,x]\n{laughs}tensor_parallel_size: 4\n")),
        ("x.yaml", "- ".repeat(20_000)),
        ("x.yaml", format!("a: {}", "{b: ".repeat(10_000))),
        ("x.yaml", "base_model: ${a}\na: ${b}\nb: ${a}\n".to_owned()),
        ("x.json", "[".repeat(100_000)),
        ("x.json", "{\"a\":".repeat(50_000)),
        ("x.toml", format!("a={}", "[".repeat(50_000))),
    ];
    for (n, c) in cases {
        quick(&[(n, &c)]);
    }
}
