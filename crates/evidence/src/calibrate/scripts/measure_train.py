#!/usr/bin/env python3
"""Measures a transformer's training step, or its forward pass, and appends rows that `atlas calibrate` reads.

Runs alone or under torchrun. Data are synthetic, warm-up is left out, every step is timed to its end.
"""

import argparse
import csv
import os
import statistics
import subprocess
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--mode", choices=["training", "inference"], default="training")
    p.add_argument("--layers", type=int, default=8)
    p.add_argument("--hidden", type=int, default=4096)
    p.add_argument("--heads", type=int, default=32)
    p.add_argument("--vocab", type=int, default=32000)
    p.add_argument("--seq", type=int, default=2048)
    p.add_argument("--batch", type=int, default=4, help="sequences per micro-batch")
    p.add_argument("--micro-batches", type=int, default=1, help="micro-batches per step")
    p.add_argument("--tp", type=int, default=1)
    p.add_argument("--pp", type=int, default=1)
    p.add_argument("--precision", choices=["bf16", "fp16", "fp32"], default="bf16")
    p.add_argument("--warmup", type=int, default=20)
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--runs", type=int, default=0, help="runs of --steps to time, one row each (jitter)")
    p.add_argument("--cuda-graphs", choices=["on", "off"], default="off")
    p.add_argument("--peak-tflops", type=float, default=0.0, help="dense peak of one accelerator, to compute the MFU")
    p.add_argument("--label", action="append", default=[], help="NAME=VALUE: column added to every row")
    p.add_argument("--out", required=True, help="CSV file to append rows to")
    return p.parse_args()


class Copy(torch.autograd.Function):
    """Into a tensor-parallel part: as it is forward, summed over the ranks backward."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class Reduce(torch.autograd.Function):
    """Out of a tensor-parallel part: summed over the ranks forward, as it is backward."""

    @staticmethod
    def forward(ctx, x, group):
        x = x.contiguous()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


class Block(nn.Module):
    def __init__(self, hidden, heads, tp, group):
        super().__init__()
        self.heads, self.tp, self.group = heads // tp, tp, group
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden // tp, bias=False)
        self.out = nn.Linear(hidden // tp, hidden, bias=False)
        self.up = nn.Linear(hidden, 4 * hidden // tp, bias=False)
        self.down = nn.Linear(4 * hidden // tp, hidden, bias=False)

    def enter(self, x):
        return Copy.apply(x, self.group) if self.tp > 1 else x

    def leave(self, x):
        return Reduce.apply(x, self.group) if self.tp > 1 else x

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (
            part.view(b, s, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.enter(self.norm1(x))).chunk(3, dim=-1)
        )
        mixed = attention(q, k, v).transpose(1, 2).reshape(b, s, -1)
        x = x + self.leave(self.out(mixed))
        return x + self.leave(self.down(F.gelu(self.up(self.enter(self.norm2(x))))))


class Stage(nn.Module):
    def __init__(self, a, first, last, layers, group):
        super().__init__()
        self.embedding = nn.Embedding(a.vocab, a.hidden) if first else None
        self.blocks = nn.Sequential(*[Block(a.hidden, a.heads, a.tp, group) for _ in range(layers)])
        self.head = nn.Linear(a.hidden, a.vocab // a.tp, bias=False) if last else None

    def forward(self, x):
        x = self.embedding(x) if self.embedding is not None else x
        x = self.blocks(x)
        return x if self.head is None else self.head(x).float().logsumexp(-1).mean()


class Busy:
    """The share of the time the accelerator is busy, as the driver samples it; nothing where there is no driver."""

    def __init__(self, index):
        command = ["nvidia-smi", f"--id={index}", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-l", "1"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None

    def stop(self):
        if self.process is None:
            return None
        self.process.terminate()
        text = self.process.communicate()[0]
        samples = [float(line) for line in text.split("\n")[1:] if line.strip().isdigit()]
        return sum(samples) / len(samples) / 100.0 if samples else None


def main():
    a = arguments()
    cuda = torch.cuda.is_available()
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
    if world > 1:
        dist.init_process_group("nccl" if cuda else "gloo")
    dp = world // (a.tp * a.pp)
    if dp * a.tp * a.pp != world:
        raise SystemExit(f"{world} ranks are no multiple of tp {a.tp} x pp {a.pp}")
    if a.layers % a.pp or a.heads % a.tp or a.vocab % a.tp:
        raise SystemExit("layers must divide by pp, heads and vocab by tp")
    # Ranks of a tensor-parallel group are neighbours, replicas come next, stages last.
    at_tp, at_dp, at_pp = rank % a.tp, rank // a.tp % dp, rank // (a.tp * dp)
    of = lambda t, d, p: t + a.tp * (d + dp * p)
    tp_group = dp_group = None
    if world > 1:
        for p in range(a.pp):
            for d in range(dp):
                group = dist.new_group([of(t, d, p) for t in range(a.tp)])
                tp_group = group if (p, d) == (at_pp, at_dp) else tp_group
            for t in range(a.tp):
                group = dist.new_group([of(t, d, p) for d in range(dp)])
                dp_group = group if (p, t) == (at_pp, at_tp) else dp_group
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[a.precision]
    first, last = at_pp == 0, at_pp == a.pp - 1
    stage = Stage(a, first, last, a.layers // a.pp, tp_group).to(device=device, dtype=dtype)
    before, after = of(at_tp, at_dp, at_pp - 1), of(at_tp, at_dp, at_pp + 1)
    shape = (a.batch, a.seq, a.hidden)
    tokens = torch.randint(0, a.vocab, (a.batch, a.seq), device=device)
    training = a.mode == "training"
    if a.cuda_graphs == "on":
        if not cuda or world > 1:
            raise SystemExit("--cuda-graphs on needs one CUDA device")
        stage = torch.cuda.make_graphed_callables(stage, (tokens,))
    optimizer = torch.optim.AdamW(stage.parameters(), lr=1e-5) if training else None

    def step():
        kept = []
        for _ in range(a.micro_batches):
            if first:
                x = tokens
            else:
                x = torch.empty(shape, device=device, dtype=dtype)
                dist.recv(x, src=before)
                x.requires_grad_(training)
            y = stage(x)
            if not last:
                dist.send(y.detach().contiguous(), dst=after)
            kept.append((x, y))
        if training:
            for x, y in reversed(kept):
                if last:
                    y.backward()
                else:
                    gradient = torch.empty(shape, device=device, dtype=dtype)
                    dist.recv(gradient, src=after)
                    y.backward(gradient)
                if not first:
                    dist.send(x.grad.contiguous(), dst=before)
            if dp > 1:
                for parameter in stage.parameters():
                    if parameter.grad is not None:
                        dist.all_reduce(parameter.grad, group=dp_group)
            optimizer.step()
            optimizer.zero_grad(set_to_none=a.cuda_graphs == "off")
        if cuda:
            torch.cuda.synchronize()

    context = torch.enable_grad() if training else torch.no_grad()
    rows = []
    with context:
        for _ in range(a.warmup):
            step()
        if world > 1:
            dist.barrier()
        busy = Busy(local) if rank == 0 and cuda else None
        times, runs = [], []
        for _ in range(max(1, a.runs)):
            begin = time.perf_counter()
            for _ in range(a.steps):
                start = time.perf_counter()
                step()
                times.append(time.perf_counter() - start)
            runs.append(time.perf_counter() - begin)
        share = busy.stop() if busy else None
    if rank != 0:
        return
    middle, mean = statistics.median(times), statistics.fmean(times)
    spread = statistics.stdev(times) if len(times) > 1 else 0.0
    made = a.batch * a.micro_batches * dp * a.seq
    common = {
        "mode": a.mode,
        "hardware": torch.cuda.get_device_name() if cuda else "cpu",
        "num_gpus": world,
        "tp": a.tp,
        "pp": a.pp,
        "dp": dp,
        "batch": a.batch,
        "global_batch": a.batch * a.micro_batches * dp,
        "seq_len": a.seq,
        "precision": a.precision,
        "num_layers": a.layers,
        "hidden_size": a.hidden,
        "num_attention_heads": a.heads,
        "vocab_size": a.vocab,
        "cuda_graphs": a.cuda_graphs,
        "warmup_steps": a.warmup,
    }
    common.update(label.split("=", 1) for label in a.label)
    if a.runs:
        rows = [{**common, "runtime_s": run} for run in runs]
    elif training:
        weights = 12 * a.layers * a.hidden**2 + a.hidden * a.vocab
        flops = 6 * weights + 12 * a.layers * a.hidden * a.seq
        rate = made / middle
        mfu = rate / world * flops / (a.peak_tflops * 1e12) if a.peak_tflops else ""
        rows = [
            {
                **common,
                "tokens_per_sec": rate,
                "std": spread / mean * rate,
                "samples": len(times),
                "utilization": "" if share is None else share,
                "mfu": mfu,
            }
        ]
    else:
        times.sort()
        at = lambda q: 1e3 * times[min(len(times) - 1, int(q * len(times)))]
        rows = [
            {
                **common,
                "p50_ms": 1e3 * middle,
                "p95_ms": at(0.95),
                "p99_ms": at(0.99),
                "samples": len(times),
                "compute_rate": made / middle / world,
            }
        ]
    os.makedirs(os.path.dirname(a.out) or ".", exist_ok=True)
    fresh = not os.path.exists(a.out)
    with open(a.out, "a", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        if fresh:
            writer.writeheader()
        writer.writerows(rows)
    print(f"median {1e3 * middle:.2f} ms, spread {100 * spread / mean:.1f} %, {len(times)} steps -> {a.out}")


if __name__ == "__main__":
    main()
