#!/bin/bash
# run on every node: RANK=0 bash run.sh ; RANK=1 bash run.sh
export FORCE_TORCHRUN=1
export NNODES=2
export NPROC_PER_NODE=8
NODE_RANK=${RANK} MASTER_ADDR=${MASTER_ADDR} MASTER_PORT=29500 \
llamafactory-cli train \
    --stage dpo \
    --do_train \
    --model_name_or_path Qwen/Qwen2.5-72B-Instruct \
    --finetuning_type lora --lora_target all --lora_rank 16 \
    --template qwen --dataset dpo_en_demo \
    --cutoff_len 4096 \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 8 \
    --bf16 \
    --deepspeed examples/deepspeed/ds_z3_offload_config.json \
    --output_dir saves/qwen72b
