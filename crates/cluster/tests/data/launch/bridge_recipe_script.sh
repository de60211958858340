#!/usr/bin/env bash
WORLD=16
uv run python -m torch.distributed.run --nproc_per_node=8 --nnodes=2 --node_rank=${NODE_RANK:-0} \
  --master_addr=${MASTER_ADDR:-127.0.0.1} examples/recipes/qwen/pretrain_qwen3_30b_a3b.py \
  model.tensor_model_parallel_size=1 \
  model.pipeline_model_parallel_size=2 \
  model.expert_model_parallel_size=8 \
  model.context_parallel_size=1 \
  model.recompute_granularity=full model.recompute_method=uniform model.recompute_num_layers=1 \
  train.micro_batch_size=2 train.global_batch_size=512 train.train_iters=50 \
  dataset.sequence_length=4096 \
  mixed_precision=bf16_mixed \
  ddp.use_distributed_optimizer=true \
  logger.log_interval=1
