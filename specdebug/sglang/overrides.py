"""What a release makes of a launch command before it serves: changed, defaulted, refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from specdebug.sglang.accept_rate import (
    AcceptRate,
    WindowReading,
    accept_rate_formula,
    infer_window,
)
from specdebug.sglang.flags import FlagValue, LaunchCommand, Value, parse_argv
from specdebug.sglang.releases import KNOWN, Release, nearest_known
from specdebug.sglang.rule_words import DEFAULTS, NUMBERS, Draft, Target, assign, names_of
from specdebug.sglang.rules import UNKNOWN, Function, evaluate, table

__all__ = [
    "PERHAPS",
    "AcceptRate",
    "Draft",
    "EffectiveValue",
    "Note",
    "Origin",
    "Prediction",
    "Reading",
    "Rejection",
    "Severity",
    "Target",
    "WindowReading",
    "accept_rate_formula",
    "infer_window",
    "predict",
]

Origin = Literal["explicit", "default", "override"]
Severity = Literal["critical", "high", "medium", "low", "info"]


@dataclass(frozen=True)
class EffectiveValue:
    """The value in force for one argument.

    `requested` is what the command asked (None if it did not), `origin` says whether the command, a
    default or a rule decided, `rule` names that rule. `since`/`until` bound the releases for which
    this very value holds when the release is not known (None: no bound among the releases read).
    """

    value: Value
    requested: Value
    origin: Origin
    rule: str | None
    why: str
    since: Release | None = None
    until: Release | None = None


@dataclass(frozen=True)
class Rejection:
    """A combination with which this release does not start: `error` is the exception it raises."""

    rule: str
    error: str
    why: str
    fix: str
    log: str | None = None


@dataclass(frozen=True)
class Note:
    """A silent trap or side effect that changes no argument, or one whose amount is not known."""

    rule: str
    severity: Severity
    why: str
    fix: str = ""


@dataclass(frozen=True)
class Reading:
    """What happens on the releases `since` to `until` (both included), when the release is not
    known."""

    since: Release
    until: Release
    effective: Mapping[str, EffectiveValue]
    rejections: tuple[Rejection, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Prediction:
    """The arguments in force after the release's own rules, or why it refuses them.

    With an unknown release, `effective` is that of the newest release read, each value bounded by
    `since`/`until`; `depends_on_release` names the arguments on which releases differ and
    `readings` holds one entry per run of releases that agree. With a known release `readings` is
    empty.
    """

    effective: Mapping[str, EffectiveValue]
    rejections: tuple[Rejection, ...]
    notes: tuple[Note, ...]
    release: Release | None
    release_known: bool
    depends_on_release: tuple[str, ...]
    readings: tuple[Reading, ...]

    @property
    def changed(self) -> dict[str, EffectiveValue]:
        """The arguments that were asked for and came out different."""
        return {
            dest: value
            for dest, value in self.effective.items()
            if value.requested is not None and value.value != value.requested
        }

    @property
    def window(self) -> int | None:
        """Tokens verified per step (draft tokens, the bonus position included), if decided."""
        found = self.effective.get("speculative_num_draft_tokens")
        return found.value if found is not None and isinstance(found.value, int) else None


# How the note of a refusal begins that hangs on what the engine chooses by itself.
PERHAPS = "Perhaps refused:"
# Releases up to this one take the exact names of algorithms only; later ones any case.
_LAST_EXACT = Release.parse("0.5.11")


def predict(
    given: LaunchCommand | Mapping[str, FlagValue] | Mapping[str, Value] | Sequence[str],
    target: Target | None = None,
    release: Release | None = None,
    *,
    draft: Draft | None = None,
    env: Mapping[str, str] | None = None,
) -> Prediction:
    """Apply the release's rules to a command (or its flags, or an argument list).

    `env` defaults to the command's own environment. A release that was not read is judged by the
    newest older one; `release_known` is then False and `release` is the one asked for.
    """
    asked, environment = _asked(given)
    environment = environment if env is None else dict(env)
    if release is not None:
        effective, rejections, notes = _apply(asked, environment, target, draft, release)
        return Prediction(
            effective, rejections, notes, release, release.known, depends_on_release=(), readings=()
        )
    return _over_releases(asked, environment, target, draft)


def _asked(
    given: LaunchCommand | Mapping[str, FlagValue] | Mapping[str, Value] | Sequence[str],
) -> tuple[dict[str, Value], dict[str, str]]:
    if not isinstance(given, LaunchCommand | Mapping):
        given = parse_argv(given)
    if isinstance(given, LaunchCommand):
        return {dest: flag.value for dest, flag in given.flags.items()}, dict(given.env)
    values: dict[str, Value] = {}
    for dest, value in given.items():
        values[dest] = value.value if isinstance(value, FlagValue) else value
    return values, {}


_Outcome = tuple[dict[str, EffectiveValue], tuple[Rejection, ...], tuple[Note, ...]]


def _over_releases(
    asked: Mapping[str, Value],
    env: Mapping[str, str],
    target: Target | None,
    draft: Draft | None,
) -> Prediction:
    """The prediction for every release read that has the algorithm, and where they differ."""
    first = table().algorithms.get(str(asked.get("speculative_algorithm")), KNOWN[0])
    releases = [release for release in KNOWN if release >= first]
    outcomes = [_apply(asked, env, target, draft, release) for release in releases]
    keys = [
        (
            {dest: (value.value, value.origin) for dest, value in effective.items()},
            [rejection.rule for rejection in rejections],
        )
        for effective, rejections, _ in outcomes
    ]
    readings: list[Reading] = []
    start = 0
    for at in range(1, len(releases) + 1):
        if at == len(releases) or keys[at] != keys[start]:
            readings.append(Reading(releases[start], releases[at - 1], *outcomes[at - 1]))
            start = at
    newest, rejections, notes = outcomes[-1]
    dests = {dest for effective, _, _ in outcomes for dest in effective}
    differing = []
    bounded: dict[str, EffectiveValue] = {}
    for dest in sorted(dests):
        values = [effective.get(dest) for effective, _, _ in outcomes]
        last = values[-1]
        same = [
            value is not None
            and last is not None
            and (value.value == last.value or value.value is last.value)  # nan equals nothing
            for value in values
        ]
        if all(same) or all(value is None for value in values):
            bounded[dest] = newest[dest]
            continue
        differing.append(dest)
        if last is not None:
            since = len(same) - same[::-1].index(False)
            bounded[dest] = replace(last, since=releases[since])
    return Prediction(
        effective=bounded,
        rejections=rejections,
        notes=notes,
        release=None,
        release_known=False,
        depends_on_release=tuple(differing),
        readings=tuple(readings) if len(readings) > 1 else (),
    )


def _apply(
    asked: Mapping[str, Value],
    env: Mapping[str, str],
    target: Target | None,
    draft: Draft | None,
    release: Release,
) -> _Outcome:
    """Run the rules of one release, in their order, over a copy of the arguments.

    Of a release that was not read the rules are those of the newest older one.
    """
    read = nearest_known(release)
    effective = {
        dest: EffectiveValue(value, value, "explicit", None, "as given")
        for dest, value in asked.items()
    }
    rejections = _malformed(asked, read)
    notes: list[Note] = []
    if asked.get("speculative_algorithm") is None:
        if any(dest.startswith("speculative_") for dest in asked):
            notes.append(
                Note(
                    "no_algorithm",
                    "high",
                    "Speculative arguments do nothing without --speculative-algorithm.",
                    "add --speculative-algorithm",
                )
            )
        return effective, tuple(rejections), tuple(notes)
    if rejections:
        return effective, tuple(rejections), tuple(notes)
    names = names_of(asked, env, target, draft)
    functions: dict[str, Function] = {
        "from_release": lambda text: release >= Release.parse(text),
        "maybe_not": lambda value: True if value is False else UNKNOWN,
        "whole_part": lambda a, b: a // b if a is not UNKNOWN and b is not UNKNOWN else UNKNOWN,
    }
    if names["algorithm"] != asked["speculative_algorithm"]:
        effective["speculative_algorithm"] = EffectiveValue(
            names["algorithm"],
            asked["speculative_algorithm"],
            "override",
            None,
            "algorithms are named in upper case",
        )
    undecided = False
    for rule in table().rules:
        if not rule.when or not rule.holds(read) or not rule.concerns(names["algorithm"]):
            continue
        applies = evaluate(rule.when, names, functions)
        if applies is UNKNOWN:
            if rule.kind == "default" and NUMBERS[0] in rule.set:
                undecided = True
                for dest in rule.set:
                    assign(names, dest, UNKNOWN)
            elif rule.kind == "reject" and names["topk"] is not UNKNOWN:
                notes.append(Note(rule.id, "medium", f"{PERHAPS} {rule.why}", rule.fix))
            continue
        if not applies:
            continue
        if rule.kind == "reject":
            rejections.append(Rejection(rule.id, rule.error, rule.why, rule.fix, rule.log or None))
            continue
        for dest, expression in rule.set.items():
            value = evaluate(expression, names, functions)
            assign(names, dest, value)
            if value is UNKNOWN:
                if rule.kind == "default" and dest in NUMBERS:
                    notes.append(Note(rule.id, "info", rule.why, rule.fix))
                continue
            requested = asked.get(dest)
            if dest in effective and effective[dest].value == value:
                continue
            if dest not in effective and DEFAULTS.get(dest) is not None and DEFAULTS[dest] == value:
                continue
            origin: Origin = "default" if requested is None else "override"
            if requested is None and rule.kind != "default" and dest not in NUMBERS:
                origin = "override"
            effective[dest] = EffectiveValue(value, requested, origin, rule.id, rule.why)
        if rule.kind == "silent":
            notes.append(Note(rule.id, cast("Severity", rule.severity), rule.why, rule.fix))
    if undecided:
        notes.append(
            Note(
                "defaults_by_target",
                "info",
                "Steps, topk and draft tokens are not given and this release chooses them by the "
                "target's architecture, which is not known: 3, 1, 4 or 5, 4, 8.",
                "give the target's config.json",
            )
        )
    return effective, tuple(rejections), tuple(notes)


def _malformed(asked: Mapping[str, Value], release: Release) -> list[Rejection]:
    """What the argument parser refuses: a word for a number, an algorithm it does not know."""
    out = [
        Rejection(
            "not_a_number",
            "SystemExit",
            f"--{dest.replace('_', '-')} needs a whole number, not {asked[dest]!r}.",
            "give a whole number",
        )
        for dest in NUMBERS
        if asked.get(dest) is not None
        and (isinstance(asked[dest], bool) or not isinstance(asked[dest], int))
    ]
    algorithm = asked.get("speculative_algorithm")
    if algorithm is None:
        return out
    since = table().algorithms
    name = str(algorithm)
    if name in since and release < since[name]:
        out.append(
            Rejection(
                "algorithm_not_yet",
                "SystemExit",
                f"{name} is not an algorithm of {release}; {since[name]} has it.",
                f"use {since[name]} or later",
            )
        )
    elif name not in since and (name.upper() not in since or release <= _LAST_EXACT):
        right = name.upper() if name.upper() in since else ""
        out.append(
            Rejection(
                "algorithm_unknown",
                "SystemExit",
                f"{name!r} is no speculative algorithm of the releases read.",
                f"write {right}" if right else f"one of {', '.join(since)}",
            )
        )
    return out
