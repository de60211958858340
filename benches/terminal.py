#!/usr/bin/env python3
"""What a full-screen program costs a terminal: bytes and CPU of its first frame and of each key, and what it does idle.

    python3 benches/terminal.py [--size 120x40] [--keys 'j*10,k*10'] [--idle 5] -- target/release/atlas

Runs the program on a pseudo-terminal of its own that answers nothing, in an empty directory with an empty home, so that
figures depend on the program alone. Bytes are exact; CPU is the kernel's account of the process, in
nanoseconds, and holds on a busy machine; times between events do not, so of those the least of several starts is reported.
Only the standard library of Python and Linux's /proc are needed.
"""

import argparse
import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time

# Seconds that a first frame may take.
PATIENCE = 10.0
NAMED = {
    "Down": "\x1b[B", "Up": "\x1b[A", "Right": "\x1b[C", "Left": "\x1b[D", "Enter": "\r", "Tab": "\t", "Esc": "\x1b",
    "Space": " ",
}


def keys(text):
    """`j*3,Tab` as a list of byte strings."""
    out = []
    for item in filter(None, text.split(",")):
        name, _, times = item.partition("*")
        out += [NAMED.get(name, name).encode()] * int(times or 1)
    return out


class Program:
    def __init__(self, command, size, home):
        columns, rows = size
        self.fd, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
        environment = {
            **kept, "HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
        }
        os.chdir(home)
        # The first terminal that the leader of a session opens is its own; spawned, not forked, so that no page of this
        # interpreter is copied in the program's time.
        files = [(os.POSIX_SPAWN_OPEN, 0, os.ttyname(terminal), os.O_RDWR, 0),
                 (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
        self.begin = time.monotonic()
        self.pid = os.posix_spawnp(command[0], command, environment, file_actions=files, setsid=True)
        os.close(terminal)

    def read(self, quiet, patience=0.0):
        """Bytes until nothing came for `quiet` seconds, waiting longer for the first, and when the last came."""
        data, last = b"", None
        while select.select([self.fd], [], [], quiet if data else max(quiet, patience))[0]:
            try:
                piece = os.read(self.fd, 1 << 20)
            except OSError:
                break
            if not piece:
                break
            data, last = data + piece, time.monotonic()
        return data, last

    def cpu(self):
        """CPU of all threads so far, ms."""
        total = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            try:
                with open(f"/proc/{self.pid}/task/{task}/schedstat") as file:
                    total += int(file.read().split()[0])
            except OSError:
                pass
        return total / 1e6

    def switches(self):
        """Times that it was woken."""
        total = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{task}/status") as file:
                total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M).group(1))
        return total

    def memory(self):
        with open(f"/proc/{self.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        self.read(0.3)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def measure(command, size, options):
    starts = []
    for _ in range(options.starts):
        with tempfile.TemporaryDirectory() as home:
            program = Program(command, size, home)
            data, last = program.read(options.quiet, PATIENCE)
            starts.append((1e3 * ((last or program.begin) - program.begin), program.cpu(), len(data)))
            program.end()
    with tempfile.TemporaryDirectory() as home:
        program = Program(command, size, home)
        program.read(options.quiet, PATIENCE)
        for key in keys(options.setup):
            os.write(program.fd, key)
            program.read(options.quiet)
        each = []
        for key in keys(options.keys):
            before = program.cpu()
            os.write(program.fd, key)
            data, _ = program.read(options.quiet)
            each.append((len(data), program.cpu() - before))
        before = program.cpu()
        os.write(program.fd, b"".join(keys(options.burst)))
        burst, _ = program.read(options.quiet)
        burst_cpu = program.cpu() - before
        # Idle begins once what was typed is dealt with: a program may keep its session a moment later.
        time.sleep(options.settle)
        before, woken = program.cpu(), program.switches()
        time.sleep(options.idle)
        cpu, woken = program.cpu() - before, program.switches() - woken
        idle = program.read(0.0)[0]
        memory = program.memory()
        program.end()
    median = statistics.median
    return {
        "size": "x".join(map(str, size)),
        "first frame": {
            "ms": round(min(start[0] for start in starts), 1), "CPU ms": round(min(start[1] for start in starts), 1),
            "bytes": starts[0][2],
        },
        "a key": {
            "bytes": median(key[0] for key in each), "most bytes": max(key[0] for key in each),
            "CPU ms": round(median(key[1] for key in each), 2),
            "least CPU ms": round(min(key[1] for key in each), 2),
        },
        "a burst": {"bytes": len(burst), "CPU ms": round(burst_cpu, 2)},
        "idle": {
            "CPU %": round(cpu / options.idle / 10, 2), "bytes/s": round(len(idle) / options.idle, 1),
            "wake-ups/s": round(woken / options.idle, 1),
        },
        "RSS MB": round(memory, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", help="columns x rows; repeatable [120x40, 200x60]")
    parser.add_argument("--setup", default="", help="keys before any is measured")
    parser.add_argument("--keys", default="j*10,k*10", help="keys to measure, one by one")
    parser.add_argument("--burst", default="j*100", help="keys that come in one packet, as from a key held down")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--settle", type=float, default=3.0, help="seconds before idleness is measured")
    parser.add_argument("--idle", type=float, default=5.0, help="seconds")
    parser.add_argument("--quiet", type=float, default=0.08, help="silence that ends a frame, seconds")
    parser.add_argument("command", nargs="+", help="the program and its arguments, after --")
    options = parser.parse_args()
    options.command[0] = os.path.abspath(options.command[0]) if "/" in options.command[0] else options.command[0]
    print(shlex.join(options.command), file=sys.stderr)
    for size in options.size or ["120x40", "200x60"]:
        columns, rows = map(int, size.split("x"))
        print(json.dumps(measure(options.command, (columns, rows), options), indent=1))


if __name__ == "__main__":
    main()
