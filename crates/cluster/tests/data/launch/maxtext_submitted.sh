#!/bin/bash
# Llama 3.1 70B on 2 slices of v6e-256 with XPK
export CLUSTER_NAME=bodaborg-v6e-256
export WORKLOAD_NAME="${USER}-llama31-70b-$(date +%H%M)"

export XLA_FLAGS="--xla_tpu_enable_async_collective_fusion=true"

python3 xpk/xpk.py workload create \
  --cluster ${CLUSTER_NAME} \
  --workload ${WORKLOAD_NAME} \
  --tpu-type=v6e-256 \
  --num-slices=2 \
  --docker-image=${DOCKER_IMAGE:-gcr.io/tpu/maxtext:latest} \
  --command="export LIBTPU_INIT_ARGS='--xla_tpu_scoped_vmem_limit_kib=98304'; \
    python3 -m MaxText.train MaxText/configs/base.yml \
      model_name=llama3.1-70b \
      run_name=${WORKLOAD_NAME} \
      per_device_batch_size=4 \
      max_target_length=8192 \
      dcn_data_parallelism=2 \
      ici_fsdp_parallelism=-1 \
      remat_policy=custom decoder_layer_input=offload \
      dataset_type=synthetic attention=flash steps=30 \
      dtype=bfloat16 opt_type=adamw"
