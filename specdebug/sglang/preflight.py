"""What a release will make of a plan, told before anything is started and kept with the run; the
rules themselves are in `overrides`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from specdebug.sglang.flags import Value, parse_argv
from specdebug.sglang.overrides import Draft, Target, predict
from specdebug.sglang.releases import Release

__all__ = ["Change", "Preflight", "Refusal", "differing", "foresee"]

# Where the server listens and what it calls itself changes nothing that is measured.
_ADDRESS = frozenset({"host", "port", "nccl_port", "api_key", "admin_api_key", "engine_release"})


@dataclass(frozen=True)
class Change:
    """An argument that was asked for and comes out different; `rule` names what changes it."""

    key: str
    asked: Value
    effective: Value
    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.key} {self.asked} becomes {self.effective}"


@dataclass(frozen=True)
class Refusal:
    """Why the release does not start with these arguments, and what would do instead.

    own: it is the engine itself that does not run them, whatever the release.
    """

    rule: str
    error: str
    why: str
    fix: str
    own: bool = False


@dataclass(frozen=True)
class Preflight:
    """The prediction for one plan.

    `release` is "" where none is known, `release_known` whether exactly that release was read;
    `source` says how the release is known. `depends_on_release` names arguments on which the
    releases differ where none is known.
    """

    release: str
    release_known: bool
    source: str
    changes: tuple[Change, ...]
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...]
    depends_on_release: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """As it is kept: JSON's types only."""
        kept: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return kept

    def objection(self, *, strict: bool) -> str:
        """Why nothing should be started, as one sentence; "" where nothing speaks against it.

        A release whose rules were read is believed when it refuses; another may have learnt to
        accept it, so that the engine has the last word. `strict`: a change is an objection as well.
        """
        if self.refusals and (self.release_known or self.refusals[0].own):
            first = self.refusals[0]
            who = "The engine" if first.own else f"SGLang {self.release}"
            fix = f" To mend it: {first.fix}." if first.fix else ""
            return f"{who} refuses these arguments: {_stop(first.why)}{fix}"
        if strict and (self.changes or self.refusals):
            said = "; ".join([str(c) for c in self.changes] + [no.why for no in self.refusals])
            return (
                f"Not started, because the plan is strict and the engine will not do as asked: "
                f"{_stop(said)}"
            )
        return ""

    def in_short(self) -> str:
        """What will differ, for a line of progress; "" where nothing will."""
        refused = [f"may be refused: {no.why}" for no in self.refusals]
        return "; ".join([*refused, *map(str, self.changes)])


def _stop(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def foresee(
    server_args: Sequence[str],
    *,
    release: Release | None,
    source: str = "",
    target: Target | None = None,
    draft: Draft | None = None,
    env: Mapping[str, str] | None = None,
    own: str = "",
) -> Preflight:
    """Apply the release's rules to the engine's own arguments as asked for.

    own: why the engine itself does not run them, "" where it does; told where the release accepts
    them.
    """
    found = predict(server_args, target, release, draft=draft, env=env)
    refusals = [Refusal(no.rule, no.error, no.why, no.fix) for no in found.rejections]
    if own and not (refusals and found.release_known):
        refusals.insert(0, Refusal("", "", own, "", own=True))
    return Preflight(
        release=str(release) if release else "",
        release_known=found.release_known,
        source=source if release else "",
        changes=tuple(
            Change(key, value.requested, value.value, value.rule or "", value.why)
            for key, value in found.changed.items()
        ),
        refusals=tuple(refusals),
        notes=tuple(note.why for note in found.notes),
        depends_on_release=found.depends_on_release,
    )


def differing(server_args: Sequence[str], effective: Mapping[str, Any]) -> tuple[Change, ...]:
    """What was asked for and is not in force, by the running server's own arguments.

    Arguments that the server does not report are left out: nothing is known of them.
    """
    asked = {name: flag.value for name, flag in parse_argv(server_args).flags.items()}
    return tuple(
        Change(key, value, effective[key], "", "as the running server reports it")
        for key, value in asked.items()
        if key in effective and key not in _ADDRESS and not _same(value, effective[key])
    )


def _same(asked: Value, effective: Any) -> bool:
    return bool(asked == effective) or str(asked) == str(effective)
