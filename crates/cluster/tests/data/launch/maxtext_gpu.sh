export XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true"
python3 -m MaxText.train MaxText/configs/base.yml run_name=$RUN model_name=llama3-70b hardware=gpu \
 per_device_batch_size=2 max_target_length=4096 ici_fsdp_parallelism=8 dcn_fsdp_parallelism=16 ici_tensor_parallelism=1 \
 remat_policy=full quantization=fp8 dtype=bfloat16 attention=cudnn_flash_te gradient_accumulation_steps=4 steps=30
