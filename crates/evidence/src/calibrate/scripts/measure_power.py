#!/usr/bin/env python3
"""Measures power at rest and at 25, 50, 75 and 100 % load, and appends rows that `atlas calibrate` reads.

The load is a large matrix product that runs for its share of every 100 ms on every accelerator of the node. The power
is the node's by `ipmitool dcmi power reading`, else that of the accelerators alone by `nvidia-smi`.
"""

import argparse
import csv
import os
import re
import subprocess
import threading
import time

import torch

PERIOD = 0.1


def reading():
    """(column, watts): of the node where the board tells it, else of the accelerators."""
    try:
        text = subprocess.run(["ipmitool", "dcmi", "power", "reading"], capture_output=True, text=True, timeout=10).stdout
        found = re.search(r"Instantaneous power reading:\s+(\d+)", text)
        if found:
            return "power_w", float(found.group(1))
    except (OSError, subprocess.TimeoutExpired):
        pass
    command = ["nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    return "gpu_power_w", sum(float(line) for line in text.split() if line.replace(".", "", 1).isdigit())


def load(index, share, stop):
    device = torch.device("cuda", index)
    a = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    while not stop.is_set():
        begin = time.perf_counter()
        while time.perf_counter() - begin < share * PERIOD:
            a @ a
            torch.cuda.synchronize(device)
        time.sleep(max(0.0, PERIOD * (1 - share)))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--seconds", type=float, default=300, help="duration of each load, s")
    p.add_argument("--out", required=True)
    a = p.parse_args()
    os.makedirs(os.path.dirname(a.out) or ".", exist_ok=True)
    rows = []
    for share in [0.0, 0.25, 0.5, 0.75, 1.0]:
        stop = threading.Event()
        count = torch.cuda.device_count() if share > 0 else 0
        threads = [threading.Thread(target=load, args=(index, share, stop)) for index in range(count)]
        for thread in threads:
            thread.start()
        time.sleep(min(30.0, a.seconds / 4))  # let clocks, fans and temperatures settle
        end, samples, column = time.time() + a.seconds, [], "power_w"
        while time.time() < end:
            column, watts = reading()
            samples.append(watts)
            time.sleep(1.0)
        stop.set()
        for thread in threads:
            thread.join()
        mean = sum(samples) / len(samples)
        rows.append({column: mean, "utilization": share})
        print(f"load {share:.0%}: {mean:.0f} W ({column})")
    names = sorted({name for row in rows for name in row}, reverse=True)
    with open(a.out, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=names)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
