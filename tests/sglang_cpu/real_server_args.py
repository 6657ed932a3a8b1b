"""Parses argument lists with the real engine: runs in its environment, JSON in, JSON out; no test.

Input: {"cases": [{"argv": [...], "env": {...}}, ...]}. Output, behind whatever the engine prints:
{"version": ..., "defaults": {...}, "cases": [{"args": {...}} or {"error": ...}, ...]}.
"""

import argparse
import json
import os
import sys
import traceback
import types
from typing import Any

KEPT = (
    "max_running_requests",
    "disable_overlap_schedule",
    "enable_mixed_chunk",
    "page_size",
    "attention_backend",
)


def kept(name: str) -> bool:
    """Whether a field is compared."""
    return name.startswith("speculative_") or name in KEPT


def stand_ins() -> None:
    """What the published wheels expect of a machine with CUDA, as far as importing goes."""
    import torch

    # The published torchvision is a CUDA build; beside a CPU torch two operator names must exist.
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    # Releases before 0.5.9 import the package of kernels without asking whether there is CUDA.
    kernels = types.ModuleType("sgl_kernel")
    kernels.__getattr__ = lambda name: None  # type: ignore[method-assign]
    sys.modules["sgl_kernel"] = kernels
    stand_ins.kept = library  # type: ignore[attr-defined]  # undone when it is collected


def parsed(argv: list[str]) -> dict[str, Any]:
    """The arguments in force, as the engine's own launch resolves and checks them."""
    from sglang.srt.server_args import prepare_server_args

    args = prepare_server_args(argv)
    if hasattr(args, "resolve_once"):  # since 0.5.20 parsing alone decides nothing
        args.resolve_once()
        args.check_server_args()
        return dict(args.resolved_dict())
    # The engine calls this itself when it launches; some refusals are only here.
    args.check_server_args()
    return vars(args)


def defaults() -> dict[str, Any]:
    """What each compared field is before any rule, by the engine's own argument parser."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return {a.dest: a.default for a in parser._actions if kept(a.dest)}


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """What becomes of one argument list."""
    os.environ.pop("SGLANG_ENABLE_SPEC_V2", None)
    os.environ.update(case["env"])
    try:
        args = parsed(case["argv"])
    except SystemExit:
        return {"error": "SystemExit", "message": "argument parser"}
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return {
            "error": type(error).__name__,
            "message": str(error)[:300],
            "where": f"{where.filename.rsplit('/', 1)[-1]}:{where.lineno} {where.name}",
        }
    return {"args": {name: value for name, value in args.items() if kept(name)}}


def main() -> None:
    """Read the cases, parse them all in one process, print the answers."""
    stand_ins()
    import sglang

    cases = json.load(sys.stdin)["cases"]
    answers = [answer(case) for case in cases]
    report = {"version": sglang.__version__, "defaults": defaults(), "cases": answers}
    sys.stdout.write("\n@@answers@@")
    json.dump(report, sys.stdout, default=str)


main()
