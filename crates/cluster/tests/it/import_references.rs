//! References between values of a document.

use crate::common::{expect, read, read_with};
use serde_json::json;

#[test]
fn arithmetic_and_relative_references_are_calculated_as_by_omegaconf() {
    let text = "
trainer: {num_nodes: 4, devices: 8, precision: bf16}
model:
  micro_batch_size: 2
  global_batch_size: ${mul:${divide_floor:${multiply:${trainer.num_nodes},${trainer.devices}},${.pipeline_model_parallel_size}},${.micro_batch_size}}
  pipeline_model_parallel_size: 4
  tensor_model_parallel_size: ${oc.select:model.absent,1}
  data: {seq_length: ${..encoder_seq_length}}
  encoder_seq_length: ${add:4096,${max:1024,4096}}
";
    let wanted = json!({ "global_batch": 16, "pp": 4, "tp": 1, "dp": 8, "seq_len": 8192 });
    expect(&read("conf.yaml", text), &wanted);
}

#[test]
fn required_document_variables_are_missing_until_given() {
    let text = "
services:
  server:
    image: vllm/vllm-openai:v0.10.2
    command: --model ${MODEL:?name a model} --tensor-parallel-size ${TP:?} --max-model-len ${LENGTH:-8192}
";
    let open = read("compose.yaml", text);
    expect(&open, &json!({ "framework": "vllm", "model": null, "tp": null, "max_model_len": 8192 }));
    let names: Vec<&str> = open.missing.iter().map(|m| m.name.as_str()).collect();
    assert!(names.contains(&"TP"), "{names:?}");
    let given = read_with(&[("compose.yaml", text)], &[("TP", "4"), ("MODEL", "Qwen/Qwen3-32B")]);
    expect(&given, &json!({ "model": "Qwen/Qwen3-32B", "tp": 4 }));
}

#[test]
fn recursive_and_exponential_references_terminate() {
    let fold = |next: &str| format!("\n  - ${{{next}}}").repeat(60);
    let mut text = String::from(
        "trainer:\n  num_nodes: 2\nmodel:\n  tensor_model_parallel_size: ${a0}\n  micro_batch_size: ${self}\nself: ${self}\n",
    );
    for level in 0..12 {
        text.push_str(&format!("a{level}:{}\n", fold(&format!("a{}", level + 1))));
    }
    expect(&read("conf.yaml", &text), &json!({ "nodes": 2, "micro_batch": null }));
}
