#!/usr/bin/env python3
"""Hands the commands of launch scripts to the argument parsers of the tools themselves.

    python3 tests/parsers/check.py DIR...      DIR holds the files of one `atlas launch … --wrap plain`

Runs each script with stand-ins for the programs that it starts, which write down their arguments, and parses those with the
packages that are installed: accelerate, deepspeed, maxtext, megatron-bridge, megatron-core, sglang, torch (torchrun), torchtitan
and vllm need no accelerator for that. A tool without its package is reported as skipped. Ends with 1 where a parser refuses an argument.

megatron-core needs numpy, packaging, pyyaml and typing_extensions; packages that only its computation needs may be absent.
"""

import argparse
import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import typing
import unittest.mock

PROGRAMS = ["vllm", "python", "python3", "torchrun", "accelerate", "deepspeed"]
STAND_IN = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["COMMANDS"], "a") as out:
    out.write(json.dumps([os.path.basename(sys.argv[0])] + sys.argv[1:]) + "\\n")
"""


def commands(script):
    """The commands that a script starts."""
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            path = pathlib.Path(folder, name)
            path.write_text(STAND_IN)
            path.chmod(0o755)
        log = pathlib.Path(folder, "commands")
        env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", COMMANDS=str(log), HEAD_NODE="localhost")
        subprocess.run(["bash", str(script)], env=env, cwd=script.parent, check=True, stdout=subprocess.DEVNULL, timeout=60)
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def vllm(words, _folder):
    import vllm.platforms
    from vllm.platforms.cpu import CpuPlatform

    # Defaults depend on a platform, and none is detected here.
    vllm.platforms._current_platform = CpuPlatform()
    from vllm.utils import FlexibleArgumentParser

    if words[:1] == ["serve"]:
        from vllm.entrypoints.openai.cli_args import make_arg_parser

        return make_arg_parser(FlexibleArgumentParser()).parse_args(words[1:])
    from vllm.benchmarks.serve import add_cli_args

    parser = FlexibleArgumentParser()
    add_cli_args(parser)
    return parser.parse_args(words[2:])


def sglang(words, _folder):
    parser = argparse.ArgumentParser()
    if words[1] == "sglang.launch_server":
        from sglang.srt.server_args import ServerArgs

        ServerArgs.add_cli_args(parser)
        return parser.parse_args(words[2:])
    source = pathlib.Path(importlib.metadata.distribution("sglang").locate_file("sglang/bench_serving.py")).read_text()
    flags = set(re.findall(r'"(--[a-z0-9-]+)"', source))
    return known(words[2:], flags)


def known(words, flags):
    unknown = [w for w in (w.split("=")[0] for w in words if w.startswith("--")) if w not in flags]
    if unknown:
        raise SystemExit(f"unknown: {' '.join(unknown)}")
    return flags


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for packages of the computation, which a parser imports and does not use."""

    PACKAGES = {"torch", "transformer_engine", "transformer_engine_torch", "apex", "einops", "triton", "flash_attn", "modelopt",
                "transformers", "tokenizers", "wandb", "tensorstore", "zarr", "nvidia_resiliency_ext", "causal_conv1d",
                "mamba_ssm", "flashinfer", "h5py", "tqdm", "sentencepiece", "tiktoken", "boto3", "botocore", "omegaconf", "hydra"}
    PARTS = ("megatron.core.ssm", "megatron.core.inference", "megatron.core.fusions")

    def find_spec(self, name, _path, _target=None):
        package = name.split(".")[0]
        missing = package in self.PACKAGES and importlib.machinery.PathFinder.find_spec(package) is None
        if missing or name.startswith(self.PARTS):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return AbsentModule(spec.name)

    def exec_module(self, module):
        pass


class AnyClass(type(typing.Protocol)):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return unittest.mock.MagicMock(name=name)

    def __or__(cls, _other):
        return object

    def __ror__(cls, _other):
        return object


class AbsentModule(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            if name == "__version__":
                return "2.9.0"
            raise AttributeError(name)
        made = unittest.mock.MagicMock(name=name)
        if name[:1].isupper():
            methods = {"__init__": lambda self, *a, **k: None, "__class_getitem__": classmethod(lambda cls, item: cls),
                       "__call__": lambda self, *a, **k: a[0] if a else self, "__module__": self.__name__}
            made = AnyClass(name, (), methods)
        setattr(self, name, made)
        return made


def megatron(words, _folder):
    absent = Absent()
    sys.meta_path.insert(0, absent)
    try:
        from megatron.training.arguments import add_megatron_arguments

        parser = argparse.ArgumentParser(allow_abbrev=False)
        add_megatron_arguments(parser)
        return parser.parse_args(words)
    finally:
        sys.meta_path.remove(absent)


def bridge(words, _folder):
    """The recipe and the settings by their names: recipes are functions, settings are fields of configuration classes."""
    fields, functions = set(), set()
    for package in ["megatron-bridge", "megatron-core"]:
        for file in importlib.metadata.files(package):
            if file.suffix == ".py":
                for node in ast.walk(ast.parse(file.locate().read_text())):
                    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                        fields.add(node.target.id)
                    if isinstance(node, ast.FunctionDef):
                        functions.add(node.name)
                    if isinstance(node, ast.alias):
                        functions.add(node.asname or node.name)
    recipe = words[words.index("--recipe") + 1]
    unknown = [word for word in words if "=" in word and word.split("=")[0].split(".")[-1] not in fields]
    if recipe not in functions or unknown:
        raise SystemExit(f"unknown: {recipe if recipe not in functions else ''} {' '.join(unknown)}")
    return recipe


def torchrun(words, folder):
    from torch.distributed.run import get_args_parser

    parsed = get_args_parser().parse_args(words)
    if "torchtitan" in parsed.training_script:
        from torchtitan.config import ConfigManager

        with contextlib.chdir(folder):
            ConfigManager().parse_args(parsed.training_script_args)
    return parsed


def accelerate(words, folder):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    parsed = launch_command_parser().parse_args(words[1:])
    if parsed.config_file:
        load_config_from_file(str(folder / parsed.config_file))
    return parsed


def deepspeed(words, _folder):
    from deepspeed.launcher.runner import parse_args

    return parse_args(words)


def maxtext(words, _folder):
    import yaml

    base = importlib.metadata.distribution("maxtext").locate_file("maxtext/configs/base.yml")
    keys = set(yaml.safe_load(pathlib.Path(base).read_text()))
    unknown = [w for w in words[3:] if w.split("=")[0] not in keys]
    if unknown:
        raise SystemExit(f"not in base.yml: {' '.join(unknown)}")
    return keys


def parser_of(program, words):
    """The package, and what parses its arguments."""
    module = words[words.index("-m") + 1] if "-m" in words[:2] else ""
    if program.startswith("python"):
        if module.startswith("sglang"):
            return "sglang", sglang
        if module.lower().startswith("maxtext"):
            return "maxtext", maxtext
        return None, None
    for name, package, parse in [("pretrain_gpt.py", "megatron-core", megatron), ("run_recipe.py", "megatron-bridge", bridge)]:
        at = next((i for i, word in enumerate(words) if word.endswith(name)), None)
        if at is not None:
            return package, lambda words, folder, parse=parse, at=at: parse(words[at + 1 :], folder)
    if program == "torchrun":
        titan = any("torchtitan" in word for word in words)
        return ("torchtitan" if titan else "torch"), torchrun
    return program, {"vllm": vllm, "accelerate": accelerate, "deepspeed": deepspeed}[program]


def main():
    failed = 0
    for script in sorted(path for folder in sys.argv[1:] for path in pathlib.Path(folder).resolve().glob("*.sh")):
        for program, *words in commands(script):
            package, parse = parser_of(program, words)
            if parse is None:
                print(f"skipped  {script.parent.name}/{script.name}: no parser for {program} {' '.join(words[:3])}")
                continue
            flags = sum(word.startswith("--") or "=" in word for word in words)
            noise = io.StringIO()
            try:
                version = importlib.metadata.version(package)
                with contextlib.redirect_stderr(noise), contextlib.redirect_stdout(noise):
                    parse(words, script.parent)
                print(f"accepted {script.parent.name}/{script.name}: {flags} arguments by {package} {version}")
            except (ImportError, importlib.metadata.PackageNotFoundError) as error:
                print(f"skipped  {script.parent.name}/{script.name}: {package}: {error}")
            except (SystemExit, Exception) as error:  # a parser may raise what it likes
                failed += 1
                reason = noise.getvalue().strip().splitlines()[-1:] or [str(error)]
                print(f"REFUSED  {script.parent.name}/{script.name}: {package}: {error} {reason[0]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
