#!/usr/bin/env python3
"""A small training program for tests on machines without accelerators.

Trains a two-layer network on synthetic data in plain Python, and prints the arguments and step lines of Megatron-LM. It takes
Megatron-LM's arguments, of which it uses --global-batch-size and --train-iters. From the environment: WIDTH of the network;
SLOW_FROM, the step from which it does its work SLOW_FACTOR times, as with a busy neighbor; STEP_MS, what a step of undisturbed
work counts in the log, since one core stands for accelerators that are some thousand times as fast. Passes over the same batch
before and after a step measure how fast the machine is at that time.
"""

import argparse
import math
import os
import random
import time


def arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--global-batch-size", type=int, default=64)
    parser.add_argument("--train-iters", type=int, default=100)
    return parser.parse_known_args()


def step(inner, outer, batch, rate):
    """One pass forward and backward over the batch, and the update in place; returns the mean loss."""
    gradient_inner = [[0.0] * len(row) for row in inner]
    gradient_outer = [0.0] * len(outer)
    loss = 0.0
    for inputs, wanted in batch:
        hidden = [math.tanh(sum(w * x for w, x in zip(row, inputs))) for row in inner]
        error = sum(w * h for w, h in zip(outer, hidden)) - wanted
        loss += error * error
        for i, h in enumerate(hidden):
            gradient_outer[i] += error * h
            back = error * outer[i] * (1 - h * h)
            gradient = gradient_inner[i]
            for j, x in enumerate(inputs):
                gradient[j] += back * x
    scale = rate / len(batch)
    for i, row in enumerate(inner):
        outer[i] -= scale * gradient_outer[i]
        inner[i] = [w - scale * g for w, g in zip(row, gradient_inner[i])]
    return loss / len(batch)


def log_arguments(known, other):
    print("------------------------ arguments ------------------------")
    for name, value in sorted(vars(known).items()):
        print(f"  {name} ................................ {value}")
    for name, value in zip(other, other[1:] + ["--"]):
        if name.startswith("--"):
            print(f"  {name[2:].replace('-', '_')} ................................ {'True' if value.startswith('--') else value}")
    print(f"  world_size ................................ {4 * int(os.environ.get('SLURM_NNODES', '1'))}")
    print("-------------------- end of arguments ---------------------", flush=True)


def main():
    known, other = arguments()
    if os.environ.get("SLURM_PROCID", "0") != "0":
        return
    width = int(os.environ.get("WIDTH", "32"))
    slow_from, factor = int(os.environ.get("SLOW_FROM", "1000000000")), int(os.environ.get("SLOW_FACTOR", "2"))
    step_ms = float(os.environ["STEP_MS"])
    generator = random.Random(7)
    inner = [[generator.gauss(0, 0.3) for _ in range(width)] for _ in range(width)]
    outer = [generator.gauss(0, 0.3) for _ in range(width)]
    truth = [generator.gauss(0, 1) for _ in range(width)]
    log_arguments(known, other)
    size, steps = known.global_batch_size, known.train_iters
    batches = []
    for _ in range(4):
        inputs = [[generator.gauss(0, 1) for _ in range(width)] for _ in range(size)]
        batches.append([(x, math.sin(sum(t * v for t, v in zip(truth, x)) / width)) for x in inputs])
    for iteration in range(1, steps + 1):
        batch = batches[iteration % len(batches)]
        # Processor time: what other programs take of the core is not this program's.
        times = [time.process_time()]
        for passes, rate in ((1, 0.0), (factor if iteration >= slow_from else 1, 0.1), (1, 0.0)):
            for _ in range(passes):
                loss = step(inner, outer, batch, rate)
            times.append(time.process_time())
        before, work, after = (end - begin for begin, end in zip(times, times[1:]))
        elapsed = step_ms * work / max((before + after) / 2, 1e-9)
        print(
            f" iteration {iteration:8d}/{steps:8d} | consumed samples: {iteration * size:12d} |"
            f" elapsed time per iteration (ms): {elapsed:.3f} | learning rate: 1.000000E-01 |"
            f" global batch size: {size:5d} | lm loss: {loss:.6E} | number of nan iterations:   0 |",
            flush=True,
        )


if __name__ == "__main__":
    main()
