#!/bin/bash
set -x
NODES=${1:-4}
TP=${TP:-4} PP=${PP:-2}
HYDRA_FULL_ERROR=1 python3 main.py \
    training=gpt3/40b \
    stages=[training] \
    training.trainer.num_nodes=${NODES} \
    training.trainer.devices=8 \
    training.model.micro_batch_size=2 \
    training.model.global_batch_size=1024 \
    training.model.tensor_model_parallel_size=$TP \
    training.model.pipeline_model_parallel_size=$PP \
    training.model.virtual_pipeline_model_parallel_size=null \
    +training.model.fp8=True training.model.fp8_hybrid=True \
    training.model.encoder_seq_length=2048 \
    training.trainer.precision=bf16
