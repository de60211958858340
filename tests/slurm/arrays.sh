#!/usr/bin/env bash
# Simulations and sweeps as job arrays on a real Slurm: a requeued task, a killed node, a killed merge, a cancel, and the
# results compared with those of one process.
#
#   tests/slurm/arrays.sh ATLAS [speed]     ATLAS is the program to test; speed also compares one node with two
#
# Starts a private cluster with tests/slurm/cluster.sh, since it kills a node. Where Slurm is not installed it says so and
# ends with 77, as skipped tests do.
set -euo pipefail
atlas=$(readlink -f "${1:?usage: arrays.sh ATLAS [speed]}")
here=$(cd "$(dirname "$0")" && pwd)
export PATH=$PATH:/usr/sbin
for program in slurmctld slurmd munged sbatch; do
  if ! command -v "$program" >/dev/null; then
    echo "SKIPPED: $program is not installed (Debian: slurmctld slurmd slurm-client munge)"
    exit 77
  fi
done
work=$(mktemp -d "${TMPDIR:-/tmp}/atlas-arrays.XXXXXX")
chmod 755 "$work" # munge asks for directories that all may enter
export STC_DIR=$work/slurm STC_PORT=${STC_PORT:-27710} STC_NODES=2 STC_CPUS=1 STC_GPUS=0 STC_INSTALL=0

finish() {
  local rc=$?
  "$here/cluster.sh" stop >/dev/null 2>&1 || true
  if ((rc == 0)); then rm -rf "$work"; else echo "FAILED; files are in $work" >&2; fi
  exit "$rc"
}
trap finish EXIT
"$here/cluster.sh" start >"$work/cluster.log" 2>&1 || { tail -5 "$work/cluster.log"; exit 1; }
export SLURM_CONF=$STC_DIR/etc/slurm.conf ATLAS_HISTORY=off NO_COLOR=1
cd "$work"
die() { echo "arrays: $*" >&2; exit 1; }
say() { printf '== %s\n' "$*"; }
running() { squeue -h -r -t R -o '%i %N' | head -1; }
until_running() { for _ in $(seq 100); do [[ -n $(running) ]] && return; sleep 0.1; done; die "no task runs"; }
# Slurm holds requeued jobs back for two minutes.
release() { local id; for id in $(squeue -h -r -t PD -o %i); do scontrol update jobid="$id" starttime=now 2>/dev/null || true; done; }

simulate=("$atlas" simulate --target h100-sxm-8 --workload llama3.1-70b-serve --arrivals gamma:2
  --replications 41 --format json)
small=(--requests 8000)
slurm=(--slurm --tasks 8 --retries 3 --yes --sbatch=--mem=100 --sbatch=--cpus-per-task=1)
"${simulate[@]}" "${small[@]}" --out alone >alone.json 2>/dev/null

say "a task is requeued, a node dies, the merge is killed"
"${simulate[@]}" "${small[@]}" --out array "${slurm[@]}" >array.json 2>first.err & merge=$!
until_running
scontrol requeue "$(running | cut -d' ' -f1)"
until_running
node=$(cat "$STC_DIR/run/slurmd.node2.pid")
{ kill -9 "$node"; } 2>/dev/null
for job in $(squeue -h -r -w node2 -t R -o %A); do # what runs there dies with it
  for step in $(pgrep -f "^slurmstepd: \\[$job\\." || true); do
    { pkill -9 -P "$step" || true; kill -9 "$step" || true; } 2>/dev/null
  done
done
{ kill -9 "$merge"; wait "$merge" || true; } 2>/dev/null
scontrol update nodename=node2 state=down reason=test
slurmd -N node2
scontrol update nodename=node2 state=resume 2>/dev/null || true # it may be back by itself
[[ ! -s array.json ]] || die "a killed merge printed results"
say "the same command goes on"
"${simulate[@]}" "${small[@]}" --out array "${slurm[@]}" >array.json 2>second.err & merge=$!
while kill -0 "$merge" 2>/dev/null; do release; sleep 0.5; done
wait "$merge" || { tail -3 second.err; die "the merge failed"; }
cmp alone.json array.json || die "results differ from those of one process"
compgen -G 'array.*.parts' >/dev/null && die "parts were left"

say "cancel from the login node"
"${simulate[@]}" "${small[@]}" --seed 7 --out canceled "${slurm[@]}" >/dev/null 2>&1 & merge=$!
until_running
"${simulate[@]}" "${small[@]}" --seed 7 --out canceled "${slurm[@]}" --cancel
{ kill -9 "$merge"; wait "$merge" || true; } 2>/dev/null
for _ in $(seq 50); do [[ -z $(squeue -h -t R,PD) ]] && break; sleep 0.2; done
[[ -z $(squeue -h -t R,PD) ]] || die "tasks still run"

say "inputs that changed are refused, and a task that fails is named"
part=$(mktemp -d)
"${simulate[@]}" "${small[@]}" --part "0/8@00000000000000ff" --out "$part/p.runs" 2>changed.err && die "another work was computed"
grep -q "have changed since" changed.err || die "the reason is missing"
[[ -z $(ls "$part") ]] || die "a refused part left a file"
rmdir "$part"

say "a sweep equals one of one process"
sweep=("$atlas" sweep --target h100-sxm-8 --workload llama3.1-70b-serve --over concurrency=1..512 --over tp=1,2,4,8)
"${sweep[@]}" --out alone.csv 2>/dev/null
"${sweep[@]}" --out array.csv "${slurm[@]}" 2>/dev/null
cmp alone.csv array.csv || die "sweeps differ"

if [[ ${2:-} == speed ]]; then
  say "speedup: the same simulation on one node and on two, in turns"
  for round in 1 2 3; do
    for nodes in 1 2; do
      [[ $nodes == 1 ]] && scontrol update nodename=node2 state=drain reason=test || scontrol update nodename=node2 state=resume
      sleep 2
      : >"$STC_DIR/log/jobcomp.txt"
      began=$(date +%s.%N)
      "${simulate[@]}" --requests 100000 --seed "10$round" --out "speed$nodes-$round" "${slurm[@]}" >/dev/null 2>&1
      ended=$(date +%s.%N)
      sleep 1 # the log of ended jobs is written behind
      python3 - "$nodes" "$began" "$ended" "$STC_DIR/log/jobcomp.txt" <<'PY' | tee -a speed.txt
import re, sys, datetime
nodes, began, ended = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
at = lambda text: datetime.datetime.fromisoformat(text).timestamp()
tasks = [(at(a), at(b)) for a, b in re.findall(r"StartTime=(\S+) EndTime=(\S+)", open(sys.argv[4]).read())]
busy = sum(b - a for a, b in tasks)
first, last = min(a for a, _ in tasks), max(b for _, b in tasks)
print(f"  {nodes} nodes: {ended - began:.1f} s in all, {first - began:.1f} s before the first task, {ended - last:.1f} s after the last,",
      f"{len(tasks)} tasks of {busy / len(tasks):.1f} s, nodes busy {100 * busy / (nodes * (last - first)):.0f} % of the time between")
PY
    done
  done
  python3 - speed.txt <<'PY'
import re, statistics, sys
lines = [line.split() for line in open(sys.argv[1])]
one, two = (statistics.median(float(l[2]) for l in lines if l[0] == n) for n in "12")
print(f"  medians: 1 node {one:.1f} s, 2 nodes {two:.1f} s: {one / two:.2f} times, {50 * one / two:.0f} % of linear")
PY
fi
say "all passed"
