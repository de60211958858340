#!/usr/bin/env bash
# Writes launch scripts with many settings, and hands them to the tools' own argument parsers (check.py beside this file).
#
#   tests/parsers/launch.sh ATLAS [PYTHON]      PYTHON has the packages that check.py names
set -euo pipefail
atlas=$(readlink -f "${1:?usage: launch.sh ATLAS [PYTHON]}")
python=${2:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/atlas-parsers.XXXXXX")
trap 'rm -rf "$work"' EXIT
export ATLAS_HISTORY=off ATLAS_STATE_DIR=$work/state ATLAS_CONFIG_DIR=$work/config

# launch NAME TARGET WORKLOAD TOOL KNOB=VALUE…
launch() {
  local name=$1 target=$2 workload=$3 tool=$4 knobs=() knob
  shift 4
  for knob in "$@"; do knobs+=(--set "$knob"); done
  "$atlas" launch --target "$target" --workload "$workload" --tool "$tool" "${knobs[@]}" --out "$work/$name" >/dev/null 2>"$work/err" ||
    { echo "$name: $(cat "$work/err")" >&2; exit 1; }
}
serve=(max_num_seqs=64 max_num_batched_tokens=4096 gpu_memory_utilization=0.85 kv_precision=fp8 chunked_prefill=on)
for software in vllm@0.11.0 sglang@0.5.5; do # the releases of the packages
  tool=${software%@*}
  launch "$tool-plain" h100-sxm-8 llama3.1-70b-serve "$tool" software="$software"
  launch "$tool-memory" h100-sxm-8 llama3.1-70b-serve "$tool" software="$software" "${serve[@]}"
  launch "$tool-draft" h100-sxm-8 llama3.1-70b-serve "$tool" software="$software" draft_tokens=4 draft_method=ngram
  launch "$tool-experts" h200-sxm-8 deepseek-v3-serve "$tool" software="$software" tp=8 ep=8
done
launch sglang-tiers h100-sxm-8 llama3.1-70b-serve sglang software=sglang@0.5.5 kv_host_gb=64
whole=(sharding=zero3 recompute=full tp=1)
launch accelerate h100-sxm-8 llama3.1-8b-train accelerate "${whole[@]}"
launch deepspeed h100-sxm-8 llama3.1-8b-train deepspeed "${whole[@]}" cpu_offload=optimizer
launch torchtitan h100-sxm-8 llama3.1-8b-train torchtitan sharding=zero3 tp=2 cp=2
launch torchtitan-fp8 h100-sxm-64 llama3.1-70b-train torchtitan sharding=zero3 tp=8 pp=2 precision=fp8
launch maxtext h100-sxm-8 llama3.1-8b-train maxtext sharding=zero3
launch megatron-lm h100-sxm-64 llama3.1-70b-train megatron-lm
launch megatron-lm-fp8 h100-sxm-64 llama3.1-70b-train megatron-lm precision=fp8 tp=4 pp=2 vpp=5 cp=2
launch megatron-lm-full h100-sxm-64 llama3.1-70b-train megatron-lm recompute=full sharding=zero1 overlap_tensor=on
launch megatron-lm-fsdp h100-sxm-64 llama3.1-8b-train megatron-lm sharding=zero3 tp=1
launch megatron-lm-graphs h100-sxm-64 llama3.1-70b-train megatron-lm cp=2 cp_comm_type=a2a cuda_graphs=on cpu_offload=optimizer
launch megatron-lm-experts h100-sxm-128 mixtral-8x7b-train megatron-lm ep=8
launch megatron-lm-mtp h100-sxm-1024 deepseek-v3-train megatron-lm
launch megatron-bridge h100-sxm-64 llama3.1-70b-train megatron-bridge
"$python" "$here/check.py" "$work"/*/
