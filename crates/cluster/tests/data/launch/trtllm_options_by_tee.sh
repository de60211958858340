#!/bin/bash
EXTRA=$(mktemp)
tee $EXTRA <<-EOF
	enable_attention_dp: true
	cuda_graph_config:
	  enable_padding: true
	  max_batch_size: 512
	kv_cache_config:
	  dtype: fp8
	  free_gpu_memory_fraction: 0.8
	moe_config:
	  backend: DEEPGEMM
	speculative_config:
	  decoding_type: MTP
	  num_nextn_predict_layers: 1
EOF
mpirun -n 1 --oversubscribe --allow-run-as-root \
trtllm-serve nvidia/DeepSeek-R1-FP4 --host 0.0.0.0 --port 8000 --backend pytorch \
  --tp_size 8 --ep_size 8 --max_batch_size 512 --max_num_tokens 8192 --max_seq_len 9216 --extra_llm_api_options $EXTRA
