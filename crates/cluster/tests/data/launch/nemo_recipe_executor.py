# Copyright (c) 2025
import argparse

import nemo_run as run
import pytorch_lightning as pl
from nemo.collections import llm
from nemo.collections.llm.recipes.precision.mixed_precision import bf16_with_fp8_mixed
from nemo.lightning.pytorch.callbacks.garbage_collection import GarbageCollectionCallback

NODES = 16
GPUS_PER_NODE = 8


def slurm_executor(nodes: int = NODES, devices: int = GPUS_PER_NODE, time: str = "04:00:00"):
    executor = run.SlurmExecutor(
        account="coreai",
        partition="batch",
        nodes=nodes,
        ntasks_per_node=devices,
        gpus_per_node=devices,
        mem="0",
        exclusive=True,
        container_image="nvcr.io/nvidia/nemo:25.04",
        time=time,
    )
    executor.launcher = None
    return executor


def configure_recipe():
    recipe = llm.llama31_70b.pretrain_recipe(
        name="llama31_70b_fp8",
        dir="/checkpoints",
        num_nodes=NODES,
        num_gpus_per_node=GPUS_PER_NODE,
    )
    recipe.data.micro_batch_size = 1
    recipe.data.global_batch_size = 512
    recipe.data.seq_length = 8192
    recipe.model.config.seq_length = recipe.data.seq_length
    recipe.trainer.strategy.tensor_model_parallel_size = 4
    recipe.trainer.strategy.pipeline_model_parallel_size = 4
    recipe.trainer.strategy.virtual_pipeline_model_parallel_size = 5
    recipe.trainer.strategy.context_parallel_size = 2
    recipe.trainer.strategy.sequence_parallel = True
    recipe.trainer.plugins = bf16_with_fp8_mixed()
    recipe.trainer.max_steps = 200
    recipe.trainer.callbacks.append(run.Config(GarbageCollectionCallback, 100, 100))
    return recipe


if __name__ == "__main__":
    with run.Experiment("llama31-70b") as exp:
        exp.add(configure_recipe(), executor=slurm_executor(), name="pretrain")
        exp.run(sequential=True, detach=True)
