#!/bin/bash
lmdeploy serve api_server \
    internlm/internlm2_5-20b-chat \
    --backend turbomind \
    --model-name internlm2_5 \
    --tp 2 \
    --session-len 32768 \
    --max-batch-size 128 \
    --cache-max-entry-count 0.8 \
    --quant-policy 8 \
    --enable-prefix-caching \
    --server-port 23333
