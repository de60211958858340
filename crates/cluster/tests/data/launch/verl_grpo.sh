set -x
gsm8k_train_path=$HOME/data/gsm8k/train.parquet
python3 -m verl.trainer.main_ppo \
 algorithm.adv_estimator=grpo \
 data.train_files="['$gsm8k_train_path']" \
 data.train_batch_size=1024 \
 data.max_prompt_length=512 \
 data.max_response_length=1024 \
 actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \
 actor_rollout_ref.actor.optim.lr=1e-6 \
 actor_rollout_ref.actor.ppo_mini_batch_size=256 \
 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 \
 actor_rollout_ref.actor.fsdp_config.param_offload=False \
 actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
 actor_rollout_ref.rollout.name=vllm \
 actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
 actor_rollout_ref.model.enable_gradient_checkpointing=True \
 trainer.n_gpus_per_node=8 \
 trainer.nnodes=1 \
 trainer.total_epochs=15 $@
