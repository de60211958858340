#!/bin/bash
MODEL=meta-llama/Llama-3.1-8B-Instruct
for conc in 1 8 32; do
genai-perf profile -m $MODEL --endpoint-type chat --service-kind openai --streaming \
  --synthetic-input-tokens-mean 3000 --synthetic-input-tokens-stddev 0 --output-tokens-mean 150 \
  --extra-inputs max_tokens:150 --extra-inputs ignore_eos:true --request-count 300 --warmup-request-count 10 --concurrency $conc -u localhost:8000
done
