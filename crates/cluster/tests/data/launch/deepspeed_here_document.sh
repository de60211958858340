#!/bin/bash
ZERO_STAGE=${1:-3}
MICRO=4
ACC=8
cat <<EOT > ds_config.json
{
  "train_micro_batch_size_per_gpu": $MICRO,
  "gradient_accumulation_steps": $ACC,
  "zero_optimization": {"stage": $ZERO_STAGE, "overlap_comm": true},
  "bf16": {"enabled": true},
  "gradient_clipping": 1.0
}
EOT
deepspeed --num_nodes 2 --num_gpus 8 --hostfile hosts train.py \
  --model_name_or_path meta-llama/Llama-2-13b-hf \
  --deepspeed ds_config.json --gradient_checkpointing \
  --max_seq_len 4096 --per_device_train_batch_size $MICRO --gradient_accumulation_steps $ACC
