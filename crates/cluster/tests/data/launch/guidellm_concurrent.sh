#!/bin/bash
guidellm benchmark --target "http://localhost:8000" --model Qwen/Qwen2.5-7B-Instruct --rate-type concurrent --rate 1,4,16 --max-seconds 120 --data "prompt_tokens=512,output_tokens=128"
