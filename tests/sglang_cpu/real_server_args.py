"""Parses argument lists with the real engine: runs in its environment, JSON in, JSON out; no test.

Input: {"cases": [{"argv": [...], "env": {...}}, ...]}. Output: {"args": {...}} or {"error": ...}
for each case.
"""

import json
import os
import sys
import traceback


def main() -> None:
    # The published torchvision is a CUDA build; beside a CPU torch two operator names must exist.
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from sglang.srt.server_args import prepare_server_args

    out = []
    for case in json.load(sys.stdin)["cases"]:
        os.environ.pop("SGLANG_ENABLE_SPEC_V2", None)
        os.environ.update(case["env"])
        try:
            args = prepare_server_args(case["argv"])
            # The engine calls this itself when it launches; some refusals are only here.
            args.check_server_args()
        except SystemExit:
            out.append({"error": "SystemExit", "message": "argument parser"})
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            out.append(
                {
                    "error": type(error).__name__,
                    "message": str(error)[:300],
                    "where": f"{where.filename.rsplit('/', 1)[-1]}:{where.lineno} {where.name}",
                }
            )
        else:
            kept = {
                name: value
                for name, value in vars(args).items()
                if name.startswith("speculative_")
                or name
                in (
                    "max_running_requests",
                    "disable_overlap_schedule",
                    "enable_mixed_chunk",
                    "page_size",
                    "attention_backend",
                )
            }
            out.append({"args": kept})
    json.dump(out, sys.stdout)


main()
