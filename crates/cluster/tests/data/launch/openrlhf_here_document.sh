set -x
read -r -d '' training_commands <<EOF
openrlhf.cli.train_sft \
   --max_len 2048 \
   --dataset Open-Orca/OpenOrca \
   --train_batch_size 256 \
   --micro_train_batch_size 2 \
   --pretrain meta-llama/Meta-Llama-3-8B \
   --zero_stage 2 \
   --bf16 \
   --flash_attn \
   --gradient_checkpointing
EOF
if [[ ${1} != "slurm" ]]; then
    deepspeed --module $training_commands
fi
