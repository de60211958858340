//! Measures the throughput of reading logs: `cargo run -p atlas-ingest --example throughput`.

use atlas_ingest::{Context, ingest};
use std::fmt::Write as _;

const BYTES: usize = 32 << 20;

/// Name of a log, and the function that writes its n-th line.
type Log = (&'static str, fn(&mut String, usize));

/// CPU seconds of this thread, or wall-clock time if the system does not report them.
fn cpu_seconds() -> f64 {
    let run = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanoseconds = run.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(
        || std::time::UNIX_EPOCH.elapsed().map_or(0.0, |elapsed| elapsed.as_secs_f64()),
        |nanoseconds| nanoseconds / 1e9,
    )
}

fn main() {
    let texts: [Log; 5] = [
        ("megatron", |out, i| {
            let _ = writeln!(
                out,
                " [2025-01-01 10:00:00] iteration {i:8}/  500000 | consumed samples: {:12} | elapsed time per iteration (ms): {}.{} | throughput per GPU (TFLOP/s/GPU): 402.1 | learning rate: 1.000000E-04 | global batch size:  1024 | lm loss: 7.534106E+00 | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 |",
                i * 1024,
                12000 + i % 100,
                i % 10
            );
        }),
        ("torchtitan", |out, i| {
            let _ = writeln!(
                out,
                "[rank0]:[titan] 2025-06-04 08:51:48,074 - root - INFO - step: {i:2}  loss: 8.9{}  grad_norm:  4.1  memory: 30.99GiB(32.62%)  tps: 7,0{:02}  tflops: 407.35  mfu: 41.19%",
                i % 1000,
                i % 100
            );
        }),
        ("nvidia-smi", |out, i| {
            let _ = writeln!(
                out,
                "2025/01/01 {:02}:{:02}:{:02}.{:03}, {}, {}.10 W, 35 %, 1000 MiB",
                i / 28800 % 24,
                i / 480 % 60,
                i / 8 % 60,
                i % 8,
                i % 8,
                300 + i % 300
            );
        }),
        ("vllm server", |out, i| {
            let _ = writeln!(
                out,
                "INFO 05-13 12:57:31 metrics.py:334] Avg prompt throughput: 0.2 tokens/s, Avg generation throughput: {}.2 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%\nINFO:     10.0.0.1:4711 - \"POST /v1/completions HTTP/1.1\" 200 OK",
                i % 5000
            );
        }),
        ("noise", |out, i| {
            let _ =
                writeln!(out, "DEBUG worker {i} did something with a tensor of shape (12, {i}) and went on to wait");
        }),
    ];
    for (name, write) in texts {
        let mut text = String::with_capacity(BYTES + 1024);
        let mut i = 1;
        while text.len() < BYTES {
            write(&mut text, i);
            i += 1;
        }
        if name == "noise" {
            text += "step: 1  loss: 1.0  tps: 100\n";
        }
        let best = (0..5)
            .map(|_| {
                let start = cpu_seconds();
                let read = ingest(text.as_bytes(), &Context::default());
                assert!(read.is_ok(), "{name}");
                cpu_seconds() - start
            })
            .fold(f64::INFINITY, f64::min);
        println!("{name:12} {:6.0} MB/s", text.len() as f64 / 1e6 / best);
    }
}
