#!/bin/bash
read -r TP PP GBS <<< "8 4 512"
IFS=, read -ra MODELS <<< "a,b"
LAYERS=${LAYERS:=96}
NAME=gpt3_${LAYERS//[^0-9]/}L
ARGS="--tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --num-layers $LAYERS --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --micro-batch-size 1 --global-batch-size $GBS --fp16 --distributed-timeout-minutes 60 --recompute-activations --use-distributed-optimizer"
for n in $(seq 1 1); do
  mpirun -np 128 --map-by ppr:8:node -x NCCL_DEBUG python pretrain_gpt.py $ARGS 2>&1 | tee $NAME.log
done
