#!/usr/bin/env bash
set -x
cat > hostfile <<HF
node0 slots=8
node1 slots=8
node2 slots=8
node3 slots=8
HF
ZERO_STAGE=${ZERO_STAGE:-3}
MB=2
GAS=4
cat > ds_config.json <<EOF
{
  "train_micro_batch_size_per_gpu": $MB,
  "gradient_accumulation_steps": $GAS,
  "zero_optimization": {
    "stage": $ZERO_STAGE,
    "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "overlap_comm": true
  },
  "bf16": {"enabled": true},
  "gradient_clipping": 1.0
}
EOF
deepspeed --hostfile hostfile --master_port 29501 \
  run_clm.py \
  --model_name_or_path EleutherAI/gpt-neox-20b \
  --deepspeed ds_config.json \
  --block_size 2048 \
  --per_device_train_batch_size $MB \
  --gradient_accumulation_steps $GAS \
  --gradient_checkpointing True \
  --optim adamw_torch \
  --bf16 --do_train \
  --output_dir out
