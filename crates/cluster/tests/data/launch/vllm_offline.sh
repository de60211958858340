python benchmarks/benchmark_throughput.py --model meta-llama/Llama-2-70b-hf --tensor-parallel-size 8 --input-len 128 --output-len 2048 --num-prompts 3000 --dtype float16 --max-model-len 4096
python benchmarks/benchmark_latency.py --model meta-llama/Llama-2-70b-hf -tp 8 --input-len 2048 --output-len 128 --batch-size 16 --dtype float16
