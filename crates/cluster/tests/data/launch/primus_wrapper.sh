#!/bin/bash
###############################################################################
# Copyright (c) 2025, Advanced Micro Devices, Inc. All rights reserved.
###############################################################################
export HF_TOKEN=${HF_TOKEN:-"your_hf_token"}
export DOCKER_IMAGE="docker.io/rocm/primus:v25.9_gfx942"
export NNODES=${NNODES:-4}
export GPUS_PER_NODE=8
export MBS=${MBS:-4}
export GBS=${GBS:-$((NNODES * GPUS_PER_NODE * MBS * 4))}
export EXP=examples/megatron/configs/MI300X/llama3.1_70B-BF16-pretrain.yaml

bash ./examples/run_slurm_pretrain.sh \
    --tensor_model_parallel_size 2 \
    --pipeline_model_parallel_size 1 \
    --micro_batch_size "$MBS" \
    --global_batch_size $GBS \
    --recompute_granularity full \
    --recompute_method block \
    --recompute_num_layers 80 \
    --train_iters 15 2>&1 | tee output/log.txt
