"""The server's flags under SGLang's names, and the rules that turn asked-for into effective values.

Pure: it parses and decides, prints nothing and knows no torch. Only flags that mean something here
(or that are harmless to accept) exist; what would need another engine is refused by name.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NoReturn

from specdebug.reference import capture
from specdebug.reference import release as releases

# A chain must fit into the rows behind the longest context (layers.SLACK, which needs torch).
MAX_STEPS = 96

GRAPH_OFF = "Cuda graph is disabled because of using torch native attention backend"
RUNNING_RESET = (
    "Max running requests is reset to 48 for speculative decoding. "
    "You can override this by explicitly setting --max-running-requests."
)
OVERLAP_OFF = (
    "Overlap scheduler is disabled when spec v2 is off or using unsupported speculative algorithm. "
    "You can set env SGLANG_ENABLE_SPEC_V2=True to enable the experimental overlap scheduler. "
)
TOKENS_ADJUSTED = (
    "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 "
    "when speculative_eagle_topk == 1"
)


class ArgsError(Exception):
    """Arguments that the release, or this engine, does not run.

    `lines` go to stderr as they stand: first what is wrong and what to do, then the error that the
    release itself ends with, where it has one.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(lines[0])
        self.lines = lines


@dataclass(frozen=True)
class Resolved:
    """Effective server arguments in SGLang's order and names, and the warnings on the way."""

    args: dict[str, Any]
    warnings: tuple[str, ...]
    release: releases.EngineRelease
    capture_id_offset: int = capture.ID_OFFSET

    @property
    def speculative(self) -> bool:
        """Whether a draft model is served."""
        return self.args["speculative_algorithm"] is not None

    def log_line(self) -> str:
        """The `server_args=ServerArgs(...)` line."""
        inside = ", ".join(f"{key}={value!r}" for key, value in self.args.items())
        return f"server_args=ServerArgs({inside})"


class _Told(argparse.ArgumentParser):
    """Raises what is wrong instead of printing it and ending the process."""

    def error(self, message: str) -> NoReturn:
        raise ArgsError(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise ArgsError("it prints its help and ends")

    def print_help(self, file: Any = None) -> None:
        """Nobody would read it."""


@cache
def _telling_parser() -> argparse.ArgumentParser:
    """Made once: a sweep asks for each of its settings."""
    return parser(_Told)


def refusal(argv: Sequence[str]) -> str:
    """Why this engine does not run these arguments, beyond what its release refuses; "" where it
    does, as far as that can be told without the checkpoints."""
    try:
        resolve(list(argv), _telling_parser())
    except ArgsError as no:
        return str(no)
    return ""


def parser(
    kind: type[argparse.ArgumentParser] = argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    """All flags, in the order in which the server prints them."""
    flags = kind(
        prog="python -m specdebug.reference.serve",
        description="Serve the small reference pair behind SGLang's flags, log lines and routes.",
    )
    add = flags.add_argument
    add("--engine-release", default=releases.DEFAULT, help="the SGLang release to behave like")
    add(
        "--draft-position-offset",
        type=int,
        choices=[0, 1],
        help="positions that draft decode steps skip; without it as the release has it",
    )
    add(
        "--capture-id-offset",
        type=int,
        choices=[0, 1],
        default=capture.ID_OFFSET,
        help="1: id k captures what layer k puts out; 0: what goes into it",
    )
    add("--model-path", "--model", required=True)
    add("--tokenizer-path")
    add("--tokenizer-mode", default="auto", choices=["auto", "slow"])
    add("--load-format", default="auto", choices=["auto", "safetensors"])
    add("--trust-remote-code", action="store_true")
    add("--context-length", type=int)
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=30000)
    add("--skip-server-warmup", action="store_true")
    add("--nccl-port", type=int)
    add("--dtype", default="auto")
    add("--quantization")
    add("--kv-cache-dtype", default="auto")
    add("--mem-fraction-static", type=float)
    add("--max-running-requests", type=int)
    add("--max-queued-requests", type=int)
    add("--max-total-tokens", type=int)
    add("--chunked-prefill-size", type=int)
    add("--max-prefill-tokens", type=int, default=16384)
    add("--schedule-policy", default="fcfs")
    add("--page-size", type=int, default=1)
    add("--device", default="cpu")
    add("--tensor-parallel-size", "--tp-size", "--tp", dest="tp_size", type=int, default=1)
    add("--pipeline-parallel-size", "--pp-size", dest="pp_size", type=int, default=1)
    add("--stream-interval", type=int, default=1)
    add("--random-seed", type=int)
    add("--watchdog-timeout", type=float, default=300)
    add("--dist-timeout", type=int)
    add("--sleep-on-idle", action="store_true")
    add("--log-level", default="info", choices=["debug", "info", "warning", "error", "critical"])
    add("--log-level-http", choices=["debug", "info", "warning", "error", "critical"])
    add("--log-requests", action="store_true")
    add("--show-time-cost", action="store_true")
    add("--enable-metrics", action="store_true")
    add("--decode-log-interval", type=int, default=40)
    add("--served-model-name")
    add("--data-parallel-size", "--dp-size", dest="dp_size", type=int, default=1)
    add("--nnodes", type=int, default=1)
    add("--node-rank", type=int, default=0)
    add("--attention-backend")
    add("--decode-attention-backend")
    add("--prefill-attention-backend")
    add("--sampling-backend")
    add("--speculative-algorithm")
    add("--speculative-draft-model-path", "--speculative-draft-model")
    add("--speculative-num-steps", type=int)
    add("--speculative-eagle-topk", type=int)
    add("--speculative-num-draft-tokens", type=int)
    add("--speculative-accept-threshold-single", type=float, default=1.0)
    add("--speculative-accept-threshold-acc", type=float, default=1.0)
    add("--speculative-attention-mode", default="prefill", choices=["prefill", "decode"])
    add("--expert-parallel-size", "--ep-size", dest="ep_size", type=int, default=1)
    add("--disable-radix-cache", action="store_true")
    add("--cuda-graph-max-bs", type=int)
    add("--cuda-graph-bs", type=int, nargs="+")
    add("--disable-cuda-graph", action="store_true")
    add("--disable-cuda-graph-padding", action="store_true")
    add("--disable-custom-all-reduce", action="store_true")
    add("--disable-overlap-schedule", action="store_true")
    add("--enable-mixed-chunk", action="store_true")
    add("--disable-piecewise-cuda-graph", action="store_true")
    add("--num-continuous-decode-steps", type=int, default=1)
    return flags


def resolve(argv: list[str], flags: argparse.ArgumentParser | None = None) -> Resolved:
    """Parse and apply the release's rules for a Llama target.

    Raises ArgsError; a flag that does not exist or does not parse ends the process with status 2,
    as argparse does.
    """
    args = vars((flags or parser()).parse_args(argv))
    release = _release(args.pop("engine_release"))
    offset = args.pop("draft_position_offset")
    if offset is not None:
        release = replace(release, draft_position_offset=offset)
    id_offset = args.pop("capture_id_offset")
    _refuse_other_engines(args)
    warnings = [GRAPH_OFF]
    args["tokenizer_path"] = args["tokenizer_path"] or args["model_path"]
    args["served_model_name"] = args["served_model_name"] or args["model_path"]
    args["attention_backend"] = "torch_native"
    args["sampling_backend"] = "pytorch"
    args["disable_cuda_graph"] = True
    args["disable_overlap_schedule"] = True
    args["disable_radix_cache"] = True
    args["chunked_prefill_size"] = -1  # SGLang's word for "not chunked"
    args["random_seed"] = 0 if args["random_seed"] is None else args["random_seed"]
    if args["speculative_algorithm"] is not None:
        warnings += _speculative(args, release)
    return Resolved(args, tuple(warnings), release, id_offset)


def _release(name: str) -> releases.EngineRelease:
    found = releases.RELEASES.get(name.removeprefix("v"))
    if found is None:
        known = ", ".join(releases.RELEASES)
        raise ArgsError(f"--engine-release {name}: the reference engine behaves like {known}")
    return found


def _refuse_other_engines(args: dict[str, Any]) -> None:
    """Values that would need ranks, other hardware or kernels this engine does not have."""
    for key, flag in (
        ("tp_size", "--tp-size"),
        ("pp_size", "--pp-size"),
        ("dp_size", "--dp-size"),
        ("ep_size", "--ep-size"),
        ("nnodes", "--nnodes"),
    ):
        if args[key] != 1:
            raise ArgsError(
                f"{flag} {args[key]}: the reference engine runs as one rank; leave it out or "
                "measure on the sglang engine"
            )
    for key, allowed in (
        ("device", ("cpu",)),
        ("dtype", ("auto", "float32", "float")),
        ("kv_cache_dtype", ("auto",)),
        ("quantization", (None,)),
        ("attention_backend", (None, "torch_native")),
        ("decode_attention_backend", (None, "torch_native")),
        ("prefill_attention_backend", (None, "torch_native")),
        ("sampling_backend", (None, "pytorch")),
        ("schedule_policy", ("fcfs",)),
        ("page_size", (1,)),
        ("speculative_accept_threshold_single", (1.0,)),
        ("speculative_accept_threshold_acc", (1.0,)),
        ("enable_mixed_chunk", (False,)),
        ("num_continuous_decode_steps", (1,)),
    ):
        if args[key] not in allowed:
            flag = "--" + key.replace("_", "-")
            runs = " or ".join(str(value) for value in allowed if value is not None) or "none"
            raise ArgsError(f"{flag} {args[key]}: the reference engine runs only {runs}")
    for key in (
        "decode_log_interval",
        "max_running_requests",
        "max_total_tokens",
        "stream_interval",
    ):
        if args[key] is not None and args[key] < 1:
            flag = "--" + key.replace("_", "-")
            raise ArgsError(f"{flag} {args[key]}: must be at least 1")
    if not 0 <= args["port"] <= 65535:
        raise ArgsError(f"--port {args['port']}: must be between 0 and 65535")


def _speculative(args: dict[str, Any], release: releases.EngineRelease) -> list[str]:
    """Defaults, override and refusals for EAGLE-3 (0.5.9 server_args.py, about 2405-2460)."""
    if args["speculative_algorithm"] != "EAGLE3":
        raise ArgsError(
            f"--speculative-algorithm {args['speculative_algorithm']}: the reference engine runs "
            "only EAGLE3"
        )
    if args["speculative_draft_model_path"] is None:
        raise ArgsError(
            "--speculative-draft-model-path is missing: EAGLE3 needs a draft checkpoint"
        )
    warnings = []
    if args["max_running_requests"] is None:
        args["max_running_requests"] = 48
        warnings.append(RUNNING_RESET)
    if release.warns_overlap_off:
        warnings.append(OVERLAP_OFF)
    steps = args["speculative_num_steps"]
    topk = args["speculative_eagle_topk"]
    tokens = args["speculative_num_draft_tokens"]
    if steps is None:
        if topk is not None or tokens is not None:
            raise ArgsError(
                "--speculative-num-steps is missing: give steps, topk and draft tokens together, "
                f"or none of them; release {release.name} stops here with a bare assertion",
                "AssertionError",
            )
        steps, topk, tokens = 5, 4, 8  # the release's silent default for Llama targets
    if topk is None:
        raise ArgsError(
            "--speculative-eagle-topk is missing: give steps, topk and draft tokens together, or "
            f"none of them; release {release.name} stops here with a type error",
            "TypeError: '>' not supported between instances of 'NoneType' and 'int'",
        )
    if topk != 1:
        asked = args["speculative_eagle_topk"]
        origin = f"--speculative-eagle-topk {topk}" if asked else f"topk {topk} (the default)"
        raise ArgsError(
            f"{origin}: the reference engine drafts chains only; pass --speculative-eagle-topk 1 "
            "with --speculative-num-steps"
        )
    if not 1 <= steps <= MAX_STEPS:
        raise ArgsError(f"--speculative-num-steps {steps}: must be between 1 and {MAX_STEPS}")
    if tokens != steps + 1:
        tokens = steps + 1
        warnings.append(TOKENS_ADJUSTED)
    args["speculative_num_steps"] = steps
    args["speculative_eagle_topk"] = topk
    args["speculative_num_draft_tokens"] = tokens
    return warnings
