"""Commands that no start in the logs can have come from, although a start is there; says what
speaks against it and judges nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from specdebug.diagnosis.arguments import (
    ALGORITHM,
    DRAFT_TOKENS,
    NUM_STEPS,
    TOPK,
    Setup,
    contradictions,
    prediction,
    setups,
)
from specdebug.diagnosis.facts import Boot, Case, Fact, Launch, ServerState

__all__ = ["Stranger", "asker", "strangers"]

_COMPARED = ("model_path", "speculative_draft_model_path", "tp_size", NUM_STEPS, TOPK, DRAFT_TOKENS)


@dataclass(frozen=True, eq=False)
class Stranger:
    """A command beside the nearest start, or server, that does not have its arguments.

    against: the arguments that releases pass on unchanged, or change to something else than this.
    """

    setup: Setup
    start: Boot | ServerState
    against: tuple[str, ...]

    @property
    def launch(self) -> Launch:
        assert self.setup.launch is not None  # noqa: S101 (`strangers` makes no other)
        return self.setup.launch

    @property
    def plain(self) -> bool:
        """One of the two does not speculate: a baseline beside the command of another run."""
        return ALGORITHM in self.against

    def differing(self) -> list[tuple[str, Fact, Fact]]:
        """Every compared argument that has another value here and there."""
        keys = (*self.against, *(key for key in _COMPARED if key not in self.against))
        pairs = [(k, self.setup.asked(k), self.start.effective.get(k)) for k in keys]
        return [(k, a, b) for k, a, b in pairs if a and b and str(a.value) != str(b.value)]

    def foreseen(self, key: str) -> object:
        """What the release makes of the argument by its own rules, None where it leaves it."""
        guess = prediction(self.setup)
        value = guess.changed.get(key) if guess is not None else None
        return value.value if value is not None else None


@lru_cache(maxsize=16)
def strangers(case: Case) -> tuple[Stranger, ...]:
    """Each command without a start of its own, with the start that contradicts it least."""
    found = setups(case)
    seen = {id(s.state) for s in found} | {id(s.boot) for s in found if s.launch is not None}
    starts: list[Boot | ServerState] = [
        b
        for b in case.boots
        if id(b) not in seen and b.effective and not b.heading and b.engine == "sglang"
    ]
    starts += [s for s in case.states if id(s) not in seen and s.effective]
    out = []
    for setup in found:
        alone = setup.boot is None and setup.state is None
        if setup.launch is None or not alone or setup.engine == "vllm":
            continue
        asked = setup.launch.requested
        told = [(contradictions(asked, start.effective), start) for start in starts]
        nearest = min((t for t in told if t[0]), key=lambda t: len(t[0]), default=None)
        if nearest is not None and all(against for against, _ in told):
            out.append(Stranger(setup, nearest[1], nearest[0]))
    return tuple(out)


def asker(case: Case, setup: Setup) -> Setup:
    """The setup whose command tells what was asked: this one's own, else that of the stranger."""
    if setup.launch is not None:
        return setup
    for stranger in strangers(case):
        if not stranger.plain and stranger.start in (setup.boot, setup.state):
            return stranger.setup
    return setup
