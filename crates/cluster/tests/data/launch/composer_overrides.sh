#!/bin/bash
set -eux
for SEQ in 2048; do
composer -n 8 train/train.py train/yamls/pretrain/mpt-7b.yaml \
  variables.data_local=./my-copy-c4 \
  train_loader.dataset.split=train_small \
  variables.max_seq_len=$SEQ \
  max_duration=10ba \
  eval_interval=0 \
  global_train_batch_size=512 \
  device_train_microbatch_size=16 \
  precision=amp_bf16 \
  fsdp_config.sharding_strategy=FULL_SHARD \
  fsdp_config.activation_checkpointing=true \
  save_folder=mpt-7b
done
