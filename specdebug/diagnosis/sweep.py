"""A sweep over settings: which are worth a run, which cannot win any more, which to measure next;
it starts nothing and knows no record."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specdebug.sglang.flags import parse_argv
from specdebug.sglang.overrides import predict
from specdebug.sglang.releases import Release

__all__ = [
    "Dropped",
    "Point",
    "Sweep",
    "grid",
    "plan_sweep",
    "with_flags",
]

STEPS, TOPK, TOKENS = "steps", "topk", "draft_tokens"
CONCURRENCY = "concurrency"
FLAGS = {
    STEPS: "--speculative-num-steps",
    TOPK: "--speculative-eagle-topk",
    TOKENS: "--speculative-num-draft-tokens",
    "backend": "--attention-backend",
}
MOST_POINTS = 200
Value = int | float | str
Values = Mapping[str, Value]


@dataclass(frozen=True)
class Point:
    """One setting that is worth a run.

    `family` names what is equal beside the depth of the chain: only within one can costs be
    foreseen. `steps` is the chain's depth in force, None without speculation or with a tree.
    """

    name: str
    values: Values
    server_args: tuple[str, ...]
    concurrency: int | None
    steps: int | None
    family: str


@dataclass(frozen=True)
class Dropped:
    """A setting that is not run, why, and the name of the one that runs in its place, if any."""

    name: str
    why: str
    same_as: str = ""


@dataclass(frozen=True)
class Sweep:
    """The settings that are run, and those that are not."""

    points: tuple[Point, ...]
    dropped: tuple[Dropped, ...]


def grid(axes: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    """Every combination of the axes' values, the last axis fastest.

    Raises ValueError for an axis that is none, without values, or more than MOST_POINTS in all.
    """
    count = 1
    for name, values in axes.items():
        _known(name)
        if not values:
            raise ValueError(f"the axis {name} has no values")
        count *= len(values)
    if not axes or count > MOST_POINTS:
        raise ValueError(f"{count if axes else 0} settings; a sweep has 1 to {MOST_POINTS}")
    return [dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*axes.values())]


def _known(name: str) -> None:
    if name not in FLAGS and name != CONCURRENCY and not name.startswith("--"):
        known = ", ".join([*FLAGS, CONCURRENCY])
        raise ValueError(f"{name!r} is no axis: {known}, or a flag of the engine as --flag")


def plan_sweep(
    base: Sequence[str],
    settings: Iterable[Values],
    *,
    release: Release | None,
    concurrency: int | None = None,
    env: Mapping[str, str] | None = None,
    own: Callable[[Sequence[str]], str] | None = None,
) -> Sweep:
    """Put each setting into the base arguments and leave out what costs and tells nothing.

    Two settings that the release turns into the same arguments are one measurement; what it
    refuses is none. Where the release is not known, only what all releases agree on is left out.
    own: says why the engine itself does not run arguments, "" where it does.
    Raises ValueError for a setting with an axis that is none, or for more than MOST_POINTS.
    """
    points: list[Point] = []
    dropped: list[Dropped] = []
    seen: dict[str, Point] = {}
    for count, values in enumerate(settings, 1):
        if count > MOST_POINTS:
            raise ValueError(f"more than {MOST_POINTS} settings")
        for name in values:
            _known(name)
        made = _made(base, values, release, concurrency, env)
        if isinstance(made, Dropped):
            dropped.append(made)
            continue
        point, key, changed = made
        if own is not None and (why := own(point.server_args)):
            dropped.append(Dropped(point.name, why))
            continue
        first = seen.setdefault(key, point)
        if first is point:
            points.append(point)
        elif first.name == point.name:
            dropped.append(Dropped(point.name, "it is in the list already", first.name))
        else:
            why = f": {changed}" if changed else ""
            dropped.append(Dropped(point.name, why, first.name))
    return _named(points, dropped)


def _named(points: Sequence[Point], dropped: Sequence[Dropped]) -> Sweep:
    """Name the points by what tells them apart: an axis that came to nothing is no name."""
    axes = dict.fromkeys(axis for point in points for axis in point.values)
    telling = [a for a in axes if len({str(p.values.get(a)) for p in points}) > 1]
    short = {p.name: _name({a: v for a, v in p.values.items() if a in telling}) for p in points}
    names = {old: new or old for old, new in short.items()}
    return Sweep(
        tuple(replace(point, name=names[point.name]) for point in points),
        tuple(
            replace(
                one,
                why=f"the engine runs it as {names[one.same_as]}{one.why}",
                same_as=names[one.same_as],
            )
            if one.same_as and one.same_as != one.name
            else one
            for one in dropped
        ),
    )


def _name(values: Values) -> str:
    return ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in values.items())


def _made(
    base: Sequence[str],
    values: Values,
    release: Release | None,
    concurrency: int | None,
    env: Mapping[str, str] | None,
) -> tuple[Point, str, str] | Dropped:
    """A point, the key of what it is in force, and what the release changes of it."""
    name = _name(values)
    flags = {FLAGS.get(axis, axis): v for axis, v in values.items() if axis != CONCURRENCY}
    args = with_flags(base, flags)
    told = predict(args, release=release, env=env)
    if told.rejections and told.release_known:
        no = told.rejections[0]
        return Dropped(name, f"SGLang {told.release} refuses it: {no.why}")
    asked: dict[str, Any] = {dest: flag.value for dest, flag in parse_argv(args).flags.items()}
    effective = {dest: value.value for dest, value in told.effective.items()}
    # What a release decides that is not known stays as it was asked.
    for dest in told.depends_on_release:
        effective.pop(dest, None)
        if dest in asked:
            effective[dest] = asked[dest]
    running = values.get(CONCURRENCY, concurrency)
    key = json.dumps([effective, running], sort_keys=True, default=str)
    changed = "; ".join(v.why for dest, v in told.changed.items() if v.why)
    topk = effective.get("speculative_eagle_topk")
    steps = effective.get("speculative_num_steps")
    chain = bool(effective.get("speculative_algorithm")) and topk == 1 and isinstance(steps, int)
    depth = ("speculative_num_steps", "speculative_num_draft_tokens")
    others = {dest: value for dest, value in effective.items() if dest not in depth}
    point = Point(
        name=name,
        values=dict(values),
        server_args=args,
        concurrency=running if isinstance(running, int) else None,
        steps=steps if chain and isinstance(steps, int) else None,
        family=json.dumps([others, running], sort_keys=True, default=str),
    )
    return point, key, changed


def with_flags(base: Sequence[str], flags: Mapping[str, Value]) -> tuple[str, ...]:
    """The arguments with these flags set, whatever name or form they had in `base`."""
    wanted = {_dest(flag): str(value) for flag, value in flags.items()}
    kept: list[str] = []
    dropping = False
    for argument in base:
        if argument.startswith("--"):
            dropping = _dest(argument.partition("=")[0]) in wanted
        if not dropping:
            kept.append(argument)
    for flag, value in flags.items():
        kept += [flag, str(value)]
    return tuple(kept)


def _dest(flag: str) -> str:
    """The engine's own name behind a flag, whichever of its names is used."""
    found = parse_argv([flag, "1"]).flags
    return next(iter(found), flag)
