"""Which hidden states of the target an EAGLE-3 draft is fed: what ids mean to each release and
framework."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Feature = int | Literal["embed"]
Framework = Literal["specforge", "specforge-before-2025-10-20", "vllm", "speculators", "eagle"]


class ReleaseLike(Protocol):
    """An SGLang release by its sort key (major, minor, patch, stage, number);
    specdebug.sglang.releases.Release is one."""

    @property
    def key(self) -> tuple[int, int, int, int, int]: ...


@dataclass(frozen=True)
class Capture:
    """What a release feeds the draft.

    `inputs_of_layers` are the layers whose input is captured, in the order of concatenation
    (ascending); layer 0's input is the embedding. The input of layer k is Hugging Face's
    `hidden_states[k]`, so `hidden_states_indices` equals it; both are given so that nobody has to
    know. `not_capturable` are ids that yield nothing there, `errors` what the server then raises,
    `since`/`until` the releases (as text, None: open) this holds for.
    """

    ids: tuple[int, ...] | None
    inputs_of_layers: tuple[int, ...]
    hidden_states_indices: tuple[int, ...]
    convention: str
    why: str
    not_capturable: tuple[int, ...]
    errors: tuple[str, ...]
    since: str | None = None
    until: str | None = None

    @property
    def features(self) -> tuple[Feature, ...]:
        """The captured states in notes' words: "embed" or the layer whose input it is."""
        return tuple("embed" if layer == 0 else layer for layer in self.inputs_of_layers)


def captured(
    ids: Sequence[int] | None,
    num_layers: int,
    architecture: str | None,
    release: ReleaseLike,
) -> Capture:
    """What `release` captures for these ids of a draft config (None: no ids read, the default
    layers).

    `architecture` is the target's `architectures[0]`; None is taken as a target without special
    rules and `why` says so. Raises ValueError if num_layers < 1.
    """
    raise NotImplementedError


def readings(
    ids: Sequence[int] | None, num_layers: int, architecture: str | None
) -> tuple[Capture, ...]:
    """What each run of releases captures, oldest first, when the release is not known."""
    raise NotImplementedError


def normal(features: Iterable[Feature]) -> tuple[int, ...]:
    """Features as hidden_states indices ("embed" is 0), in the order given. Raises ValueError on a
    bad one."""
    raise NotImplementedError


def meaning(ids: Sequence[int], framework: Framework) -> tuple[int, ...]:
    """The hidden_states indices that another framework means by these ids."""
    raise NotImplementedError


def default_ids(framework: Framework, num_layers: int) -> tuple[int, ...]:
    """The ids another framework uses when nobody says otherwise."""
    raise NotImplementedError


@dataclass(frozen=True)
class IdsAdvice:
    """The ids to write so that a release captures the wanted features; None with the reason if it
    cannot."""

    ids: tuple[int, ...] | None
    why: str


def ids_for(
    features: Iterable[Feature], num_layers: int, architecture: str | None, release: ReleaseLike
) -> IdsAdvice:
    """The ids that make `release` capture exactly these features of this target."""
    raise NotImplementedError


SlotVerdict = Literal[
    "same", "off by one", "missing embedding", "wrong order", "wrong layer", "missing"
]


@dataclass(frozen=True)
class Slot:
    """One input slot of fc: what training fed and what serving captures (hidden_states indices)."""

    slot: int
    trained: int | None
    served: int | None
    verdict: SlotVerdict


def compare(trained: Sequence[Feature], served: Sequence[int]) -> tuple[Slot, ...]:
    """Training's features beside the captured ones, slot by slot."""
    raise NotImplementedError
