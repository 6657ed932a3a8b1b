"""What a release makes of a launch command before it serves: values changed, defaults chosen,
combinations refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from specdebug.sglang.flags import FlagValue, LaunchCommand, Value
from specdebug.sglang.releases import Release

Origin = Literal["explicit", "default", "override"]
Severity = Literal["critical", "high", "medium", "low", "info"]


class Target(Protocol):
    """What the rules ask of a target model; specdebug.eagle.draft_config.TargetConfig satisfies it."""

    @property
    def architectures(self) -> tuple[str, ...]: ...


class Draft(Protocol):
    """What the rules ask of a draft; specdebug.eagle.draft_config.DraftConfig satisfies it."""

    @property
    def architectures(self) -> tuple[str, ...]: ...


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
        """Tokens verified per step (draft tokens, the bonus position included), if that is decided."""
        found = self.effective.get("speculative_num_draft_tokens")
        return found.value if found is not None and isinstance(found.value, int) else None


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
    raise NotImplementedError


@dataclass(frozen=True)
class AcceptRate:
    """How a release computes one `accept rate`: `formula` in words, `rule` its name, first and last
    release."""

    rule: str
    formula: str
    since: Release
    until: Release | None


def accept_rate_formula(release: Release) -> AcceptRate:
    """How the decode line of `release` defines its accept rate."""
    raise NotImplementedError


@dataclass(frozen=True)
class WindowReading:
    """One reading of (accept len, accept rate): `window` tokens per step, if `formula` is the one
    in use."""

    window: float
    formula: str
    since: Release
    until: Release | None


def infer_window(
    accept_len: float,
    accept_rate: float,
    release: Release | None = None,
    *,
    until: Release | None = None,
) -> list[WindowReading]:
    """The draft window that (accept len, accept rate) betrays, one entry per formula possible.

    `release` alone is exact; `release` with `until` is a range, None means unknown. `window` is not
    rounded: both inputs carry two decimals, so average over several lines before rounding. Empty
    when the pair fits no formula (rate 0 with the strict formula, or a rate out of range).
    """
    raise NotImplementedError
