#!/usr/bin/env bash
NUM_GPUS=8
BS=2
EFF=64
ACC=$((EFF / BS / NUM_GPUS))
accelerate launch --config_file configs/zero2.yaml --num_processes $NUM_GPUS --num_machines 1 \
 scripts/sft.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size $BS \
 --gradient_accumulation_steps $ACC --max_length 8192 --bf16 True --gradient_checkpointing \
 --use_peft --lora_r 32 --optim adamw_torch_fused --packing
