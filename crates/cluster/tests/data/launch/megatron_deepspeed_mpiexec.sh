#!/bin/bash
# Polaris
#PBS -l select=32:system=polaris
#PBS -l walltime=01:00:00
#PBS -q prod
cd ${PBS_O_WORKDIR}
NNODES=`wc -l < $PBS_NODEFILE`
NRANKS_PER_NODE=4
NTOTRANKS=$(( NNODES * NRANKS_PER_NODE ))
TP=4
PP=2
MICRO_BATCH=1
GRAD_ACC=8
let "DP=128/(TP*PP)"
GLOBAL_BATCH=$((MICRO_BATCH*GRAD_ACC*DP))
cat <<EOT > ds.json
{ "train_batch_size": $GLOBAL_BATCH, "train_micro_batch_size_per_gpu": $MICRO_BATCH,
  "zero_optimization": {"stage": 1}, "bf16": {"enabled": true} }
EOT
mpiexec -n ${NTOTRANKS} --ppn ${NRANKS_PER_NODE} --depth=8 --cpu-bind depth --hostfile $PBS_NODEFILE \
  ./affinity.sh python pretrain_gpt.py --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
  --num-layers 40 --hidden-size 6144 --num-attention-heads 48 --seq-length 2048 --max-position-embeddings 2048 \
  --micro-batch-size $MICRO_BATCH --global-batch-size $GLOBAL_BATCH --bf16 --deepspeed --deepspeed_config ds.json --zero-stage 1 \
  --checkpoint-activations --deepspeed-activation-checkpointing
