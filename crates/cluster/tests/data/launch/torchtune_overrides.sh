tune run --nnodes 1 --nproc_per_node 8 full_finetune_distributed --config llama3_1/70B_full batch_size=2 gradient_accumulation_steps=4 tokenizer.max_seq_len=4096 tensor_parallel_dim=2
