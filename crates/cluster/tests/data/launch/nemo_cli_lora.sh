#!/bin/bash
# fine-tune with LoRA on one node
export WANDB_MODE=offline
nemo llm finetune -y --factory "llama3_70b(num_nodes=2, num_gpus_per_node=8)" \
    peft=lora \
    trainer.devices=8 trainer.num_nodes=2 trainer.max_steps=300 \
    trainer.strategy.tensor_model_parallel_size=8 \
    trainer.strategy.pipeline_model_parallel_size=1 \
    data.micro_batch_size=2 data.global_batch_size=64 data.seq_length=4096
