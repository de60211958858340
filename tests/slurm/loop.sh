#!/usr/bin/env bash
# The whole loop on a real Slurm: detect, plan, launch, submit, watch, history, calibrate, plan again. The job is a small
# training program on the processor, train.py.
#
#   tests/slurm/loop.sh ATLAS       ATLAS is the program to test
#
# Uses the cluster that SLURM_CONF names where one answers; else starts a private one with tests/slurm/cluster.sh, which
# needs the programs of Slurm and munge. Where they are missing it says so and ends with 77, as skipped tests do.
set -euo pipefail
atlas=$(readlink -f "${1:?usage: loop.sh ATLAS}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/atlas-loop.XXXXXX")
chmod 755 "$work" # munge asks for directories that all may enter
own=0
export PATH=$PATH:/usr/sbin

finish() {
  local rc=$?
  if ((own)); then "$here/cluster.sh" stop >/dev/null 2>&1 || true; fi
  if ((rc == 0 || rc == 77)); then rm -rf "$work"; else echo "FAILED; files are in $work" >&2; fi
  exit "$rc"
}
trap finish EXIT

if ! timeout 10 sinfo -h >/dev/null 2>&1; then
  for program in slurmctld slurmd munged sbatch; do
    if ! command -v "$program" >/dev/null; then
      echo "SKIPPED: no Slurm answers and $program is not installed (Debian: slurmctld slurmd slurm-client munge)"
      exit 77
    fi
  done
  export STC_DIR=$work/slurm STC_PORT=${STC_PORT:-27510} STC_NODES=2 STC_CPUS=4 STC_GPUS=4 STC_INSTALL=0
  own=1
  "$here/cluster.sh" start >"$work/cluster.log" 2>&1 || { tail -5 "$work/cluster.log"; exit 1; }
  export SLURM_CONF=$STC_DIR/etc/slurm.conf
fi

cd "$work"
unset ATLAS_HISTORY
export ATLAS_STATE_DIR=$work/state ATLAS_CONFIG_DIR=$work/no-config NO_COLOR=1
export PATH=$here:$PATH # torchrun of this directory, which sbatch hands on to the job

say() { printf '== %s\n' "$*"; }
die() { echo "loop: $*" >&2; exit 1; }
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }

# killed NAME CHECK COMMAND…: kills the command after growing delays; CHECK must hold after each, and the command must
# work afterwards where it is run again.
killed() {
  local name=$1 check=$2 delay pid
  shift 2
  for delay in 0.002 0.01 0.03 0.1; do
    # In braces, so that bash says nothing of the kill.
    { "$@" >/dev/null 2>&1 & pid=$!; sleep "$delay"; kill -9 "$pid" 2>/dev/null || true; wait "$pid" || true; } 2>/dev/null
    "$check" || die "$name: kill -9 after $delay s left a bad state"
  done
  say "kill -9 during $name left a valid state four times"
}
whole_history() {
  "$atlas" history --format json >"$work/history.json" 2>"$work/history.err" || return 1
  python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/history.json" || return 1
  ! grep -q "left out" "$work/history.err"
}
no_half_target() { [[ ! -e $work/killed.yaml ]] || grep -q accelerators_per_node "$work/killed.yaml"; rm -f "$work/killed.yaml"; }
no_half_launch() {
  local file
  for file in "$work"/killed-launch/*; do [[ ! -e $file || $file != *.sbatch ]] || bash -n "$file" || return 1; done
  rm -rf "$work/killed-launch"
}
no_half_profile() { [[ ! -e $work/killed-profile.yaml ]] || "$atlas" check "$work/killed-profile.yaml" >/dev/null || return 1; rm -f "$work/killed-profile.yaml"; }

say "detect"
killed detect no_half_target "$atlas" detect --only slurm --out "$work/killed.yaml"
"$atlas" detect --only slurm --out targets.yaml
# What cannot be determined is filled in by hand, as the comments of the file ask for.
"$atlas" check targets.yaml >/dev/null 2>&1 && die "a target that lacks its price was taken"
sed -i -e 's/# accelerator: nvidia-h100-sxm-80gb/accelerator: nvidia-h100-sxm-80gb/' \
  -e '0,/# memory_gb_per_accel: 80/s//memory_gb_per_accel: 80/' -e 's/# hourly_usd: .*/hourly_usd: 24/' \
  -e 's/# energy_watts_node: .*/energy_watts_node: 6000/' -e 's/# pue: .*/pue: 1.2/' targets.yaml
grep -v '^ *#' targets.yaml
target=$(sed -n 's/^ *- *name: *"\{0,1\}\([^"]*\)"\{0,1\} *$/\1/p' targets.yaml | head -1)
[[ -n $target ]] || die "no target was detected"
"$atlas" detect --only slurm --idle | grep -q "nodes idle" || die "idle nodes are not known"

plan=(--targets targets.yaml --target "$target" --workload llama3.1-8b-train --set tp=4)
say "plan for $target"
killed run whole_history "$atlas" run "${plan[@]}" --out "$work/killed-run"
"$atlas" run "${plan[@]}" --format json >plan.json
step_ms=$("$atlas" history show last --format json | json 'd["figures"]["step_time_ms"]')
say "predicted step: $step_ms ms"

launch=("${plan[@]}" --tool megatron-lm --wrap slurm --steps 120 --time 00:10:00)
say "launch"
killed launch no_half_launch "$atlas" launch "${launch[@]}" --out "$work/killed-launch"
"$atlas" launch "${launch[@]}" --out job >/dev/null
script=$(echo job/*.sbatch)
sbatch --test-only "$script" 2>&1 | tail -1

# The log of the program counts in the time of the planned accelerators.
export WIDTH=8 STEP_MS=$step_ms SLOW_FROM=61 SLOW_FACTOR=2
batch=$(sed -n 's/.*--global-batch-size[ =]*\([0-9]*\).*/\1/p' "$script" | head -1)
say "submit"
before=$("$atlas" history --kind submission --format json | json 'len(d)')
"$atlas" submit "${launch[@]}" --out refused </dev/null >/dev/null 2>&1 && die "submitted without confirmation"
[[ ! -e refused ]] || die "a submission that was refused wrote files"
job=$("$atlas" submit "${launch[@]}" --out submitted --yes 2>submit.err | sed -n 's/^run 1: //p')
[[ $job =~ ^[0-9]+$ ]] || { cat submit.err; die "no job"; }
grep -q "sbatch --parsable" submit.err || die "the command was not shown"
[[ $("$atlas" history --kind submission --format json | json 'len(d)') == $((before + 1)) ]] || die "not recorded"
say "submitted job $job"

say "kill -9 during submit loses no job"
for delay in 0.05 0.1 0.15 0.2 0.25 0.3; do
  { setsid "$atlas" submit "${launch[@]}" --out "killed-submit-$delay" --yes >/dev/null 2>&1 & pid=$!; sleep "$delay"; kill -9 "$pid" || true; wait "$pid" || true; } 2>/dev/null
done
# An sbatch that answers late, so that the kill falls between the job and its record.
mkdir -p slow
printf '#!/bin/sh\n%s "$@"\ntouch "%s"\nsleep 10\n' "$(command -v sbatch)" "$work/slow/submitted" >slow/sbatch
chmod +x slow/sbatch
{ PATH=$work/slow:$PATH setsid "$atlas" submit "${launch[@]}" --out killed-between --yes >/dev/null 2>&1 & pid=$!
  for _ in $(seq 600); do [[ -e slow/submitted ]] && break; sleep 0.1; done
  kill -9 "$pid"; wait "$pid" || true; } 2>/dev/null
[[ -e slow/submitted ]] || die "nothing was submitted within a minute"
# What was begun a moment ago and has no job is looked for again later: made old, so that the test need not wait.
sed -i 's/"ts": "20[0-9][0-9]/"ts": "2020/' state/submissions/pending-*.json 2>/dev/null || true
"$atlas" history --kind submission --format json >submissions.json 2>recovered.err
sed 's/^/  /' recovered.err
grep -q "was interrupted; found" recovered.err || die "a job that was submitted and not recorded was not found again"
compgen -G "state/submissions/pending-*" >/dev/null && die "a submission that was broken off is still pending"
squeue --me --noheader --states=all --format='%i %k' | awk '$2 ~ /^atlas-/ {print $1}' >marked
[[ -s marked ]] || die "no job bears a mark"
python3 - submissions.json marked <<'PY'
import json, sys
known = {job for entry in json.load(open(sys.argv[1])) for job in entry["inputs"].get("jobs", "").split()}
lost = [job for job in open(sys.argv[2]).read().split() if job not in known]
assert not lost, f"jobs without a record: {lost}"
PY
grep -vx "$job" marked | xargs -r scancel

say "watch, killed once and begun again"
watch=("$atlas" watch "$job" --targets targets.yaml --poll 0.2)
for _ in $(seq 100); do compgen -G "submitted/*-$job.log" >/dev/null && break; sleep 0.2; done
{ "${watch[@]}" >/dev/null 2>&1 & pid=$!; sleep 1; kill -9 "$pid" || true; wait "$pid" || true; } 2>/dev/null
whole_history || die "kill -9 of the watch left a bad history"
"${watch[@]}" --once --on-alarm "touch $work/unasked" </dev/null >/dev/null 2>&1 && die "an alarm was accepted without confirmation"
rc=0
timeout 300 "${watch[@]}" --exit-code --format json --on-alarm "touch '$work/alarm {cause}'" --yes >watch.jsonl 2>watch.err || rc=$?
[[ $rc == 3 ]] || { cat watch.err; tail -2 watch.jsonl; die "watch ended with $rc, expected 3 for a run outside its interval"; }
grep -q "of submission" watch.err || die "the prediction of the submission was not used"
python3 - watch.jsonl <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
left = [line for line in lines if line["event"] == "left_band"]
assert left, [line["event"] for line in lines]
assert abs(left[-1]["since"] - 61) <= 1, left[-1]["since"]
cause = left[-1]["suspects"][0]
print("diagnosis:", left[-1]["text"].replace("\n", "\n  "))
assert cause["cause"] in ("straggler", "clocks", "network", "host"), cause
PY
ls "$work"/alarm* >/dev/null || die "the alarm ran no command"

say "the same log without a slowdown exits 0"
SLOW_FROM=1000000 torchrun x.py --train-iters 120 --global-batch-size "$batch" >good.log
"$atlas" watch good.log --once --exit-code "${plan[@]}" >/dev/null || die "a log without a slowdown is outside its interval"

say "history"
whole_history || die "the history is damaged"
run=$("$atlas" history --kind run --format json | json '[e["id"] for e in d if e["inputs"].get("job") == "'"$job"'"][0]')
"$atlas" history show "$run" --format json | json '"chain: " + " -> ".join(i.split("-")[1] for i in d["chain"])' | tee chain
grep -q "prediction -> submission -> run" chain || die "the run is not connected with its submission"

say "calibrate and plan again"
mkdir -p workload; cp targets.yaml workload/
"$atlas" --workload-dir workload list targets >/dev/null
again=(--workload-dir workload --target "$target" --workload llama3.1-8b-train)
if ! "$atlas" "${again[@]:0:2}" list workloads 2>/dev/null | grep -q llama3.1-8b-train; then
  again=(--targets targets.yaml --hardware workload/profiles "${again[@]:2}")
fi
log=$(echo "$work"/submitted/*-"$job".log)
calibrate=("$atlas" calibrate "$log" --target "$target" --workload llama3.1-8b-train --targets targets.yaml --set tp=4)
killed calibrate no_half_profile "${calibrate[@]}" --out "$work/killed-profile.yaml"
"${calibrate[@]}" --out workload/profiles/measured.yaml >calibrate.out 2>calibrate.err || { cat calibrate.out calibrate.err; die "calibration failed"; }
"$atlas" history show last --format json | json '"calibration from " + " ".join(i.split("-")[1] for i in d["sources"])' | tee calibration
grep -q "run" calibration || die "the calibration does not name the run that it came from"
"$atlas" run "${again[@]}" --set tp=4 --format json >again.json 2>/dev/null || "$atlas" run "${plan[@]}" --hardware workload/profiles --format json >again.json
after=$("$atlas" history show last --format json | json 'd["figures"]["step_time_ms"]')
say "predicted step before $step_ms ms, after calibration $after ms"
python3 -c "import sys; a,b=map(float,sys.argv[1:]); assert b > a * 1.1, 'the calibration changed nothing'" "$step_ms" "$after"
"$atlas" history show last --format json | json '"chain: " + " -> ".join(i.split("-")[1] for i in d["chain"])' | tee chain
grep -q "prediction -> submission -> run -> calibration -> prediction" <(sed 's/run -> run/run/g' chain) || die "the chain is not closed"
say "benchmark: two targets, two methodologies, two runs each"
{ cat targets.yaml
  sed -e "s/^- name: $target/&-other/" -e 's/nvidia-h100-sxm-80gb/amd-mi300x/' -e '0,/ memory_gb_per_accel: 80/s// memory_gb_per_accel: 192/' targets.yaml
} >both.yaml
benchmark=(--targets both.yaml --target "$target" --target "$target-other" --workload llama3.1-8b-train --tool megatron-lm
  --methodology identical-config --methodology maximum-performance --wrap slurm --steps 20 --time 00:10:00)
"$atlas" submit "${benchmark[@]}" --partition nowhere=x --out benchmark --yes >/dev/null 2>benchmark.err && die "a partition of no target was taken"
grep -q "nowhere=x" benchmark.err || { cat benchmark.err; die "the partition of no target was not named"; }
before=$("$atlas" history --kind submission --format json | json 'len(d)')
SLOW_FROM=1000000 "$atlas" submit "${benchmark[@]}" --runs 2 --out benchmark --yes >jobs 2>benchmark.err || { cat benchmark.err; die "the benchmark was refused"; }
[[ $(wc -l <jobs) == 8 ]] || { cat jobs; die "expected eight jobs"; }
[[ $("$atlas" history --kind submission --format json | json 'len(d)') == $((before + 4)) ]] || die "not all are recorded"
for _ in $(seq 600); do [[ -z $(squeue --me --noheader) ]] && break; sleep 0.2; done
[[ $(echo benchmark/*/*.log | wc -w) == 8 ]] || die "a log is missing"
"$atlas" compare --targets both.yaml --measured benchmark/*/*.log --model llama-3.1-8b --format json >compared.json || die "the logs cannot be compared"
[[ $(json 'len(d["measured"])' <compared.json) == 8 ]] || die "not all runs are compared"
say "all stages passed"
