"""What can be known to be wrong with a plan before anything is started; it starts nothing."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdebug.eagle.draft_config import DraftConfig, TargetConfig
from specdebug.reference import release as reference
from specdebug.reference import server_args
from specdebug.sglang import preflight
from specdebug.sglang.preflight import Preflight
from specdebug.sglang.releases import Release
from workers import engines
from workers.plan import RunEnded, RunPlan

MOST_CONCURRENT = 4096
LARGEST_CONFIG = 4 << 20
CLIENTS = ("specdebug", "bench-serving")


def check(plan: RunPlan, folder: Path) -> None:
    """Raises RunEnded with the field that cannot be used and what it must be."""
    if wrong := _folder(folder) or _workload(plan) or _limits(plan) or _arguments(plan):
        raise RunEnded("failed", f"The plan cannot be carried out: {wrong}.")


def _folder(folder: Path) -> str:
    if folder.is_dir() and os.access(folder, os.W_OK):
        return ""
    return f"its folder {folder} is not there or cannot be written"


def _workload(plan: RunPlan) -> str:
    work = plan.workload
    for name, least in (
        ("repeats", 1),
        ("prompts_per_repeat", 1),
        ("max_new_tokens", 1),
        ("concurrency", 1),
        ("warm_up_prompts", 0),
        ("seed", 0),
    ):
        value = getattr(work, name)
        if type(value) is not int or value < least:
            return f"workload.{name} is {value!r}, not a whole number of at least {least}"
    if work.concurrency > MOST_CONCURRENT:
        return f"workload.concurrency is {work.concurrency}, more than {MOST_CONCURRENT}"
    rate = work.request_rate
    if rate is not None and not (isinstance(rate, int | float) and 0 < rate < math.inf):
        return f"workload.request_rate is {rate!r}, not a number of requests per second"
    if work.client not in CLIENTS:
        return f"workload.client is {work.client!r}, not one of {', '.join(CLIENTS)}"
    return ""


def _limits(plan: RunPlan) -> str:
    for name, seconds in dataclasses.asdict(plan.deadlines).items():
        if not isinstance(seconds, int | float) or not 0 < seconds < 7 * 86400:
            return f"deadlines.{name} is {seconds!r}, not a number of seconds"
    return ""


def _arguments(plan: RunPlan) -> str:
    if all(isinstance(argument, str) and "\0" not in argument for argument in plan.server_args):
        return ""
    return "its server arguments are not all plain text"


def foresee(plan: RunPlan, versions: Mapping[str, str]) -> Preflight:
    """What the release that is installed will make of the plan's arguments."""
    own = ""
    if plan.engine == "reference":
        own = server_args.refusal(plan.server_args)
        asked = engines.flag(plan.server_args, "--engine-release") or reference.DEFAULT
        release, source = Release.find(asked), "the release that the reference engine follows"
    else:
        release = Release.find(versions.get("sglang", ""))
        source = "the engine's own environment"
    target = config_of(engines.flag(plan.server_args, "--model-path", "--model"))
    draft = config_of(
        engines.flag(
            plan.server_args, "--speculative-draft-model-path", "--speculative-draft-model"
        )
    )
    return preflight.foresee(
        plan.server_args,
        release=release,
        source=source,
        target=TargetConfig.from_dict(target) if target else None,
        draft=DraftConfig.from_dict(draft) if draft else None,
        env=plan.env,
        own=own,
    )


def config_of(folder: str | None) -> dict[str, Any] | None:
    """The config.json of a model folder; None for a hub name or what is no config."""
    if not folder:
        return None
    path = Path(folder) / "config.json"
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_CONFIG:
            return None
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
