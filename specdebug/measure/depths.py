"""Accept length at a depth that was not run, from the profiles of depths that were; no engine.

A deep chain meets its first position at other places of the text than a shallow one: long accepted
runs end where the text is hard. Acceptance by position therefore differs from depth to depth, and a
prediction lies between what the neighbouring depths say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specdebug.measure.acceptance import chain_accept_len

__all__ = ["AcceptanceByDepth", "Estimate", "Profile"]

Z = 1.96
# Where only accept lengths are known, how far one of them is taken to repeat.
ASSUMED_ERROR = 0.03


@dataclass(frozen=True, slots=True)
class Profile:
    """Acceptance of one run. conditional[k]: P(position k + 1 accepted | all before were).

    verifies: verification passes behind it, 0 where not known. accept_len: as the run reports it,
    where known; it is a little below the chain's, because the last pass of a request is cut.
    """

    num_steps: int
    conditional: tuple[float, ...]
    verifies: int = 0
    accept_len: float | None = None

    @property
    def cut(self) -> float:
        """Drafts that count over drafts that were accepted, 1 where no accept length is known."""
        accepted = chain_accept_len(self.conditional, self.num_steps) - 1
        if self.accept_len is None or accepted <= 0:
            return 1.0
        return (self.accept_len - 1) / accepted

    def at(self, num_steps: int) -> float:
        """Accept length at another depth if the profile held there."""
        return 1 + self.cut * (chain_accept_len(self.conditional, num_steps) - 1)


@dataclass(frozen=True, slots=True)
class Estimate:
    """An accept length with its range."""

    value: float
    low: float
    high: float


class AcceptanceByDepth:
    """Accept length as a function of num_steps, from one or more measured profiles."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        """Raises ValueError without a profile that knows its first position."""
        known: Mapping[int, Profile] = {p.num_steps: p for p in profiles if p.conditional}
        if not known:
            raise ValueError("no run tells how the first draft position is accepted")
        self.profiles = tuple(known[n] for n in sorted(known))

    @property
    def deepest(self) -> int:
        return self.profiles[-1].num_steps

    def at(self, num_steps: int) -> Estimate:
        """Expected accept length, bonus included.

        At a measured depth the run's own, between two depths what both say, weighted by the
        distance in log depth; beyond the deepest its last rate goes on, up to certainty and down
        to nothing.
        """
        below = [p for p in self.profiles if p.num_steps <= num_steps]
        above = [p for p in self.profiles if p.num_steps >= num_steps]
        if below and above:
            low, high = below[-1], above[0]
            if low is high:
                return self._own(low, num_steps)
            return self._between(low, high, num_steps)
        if above:
            return self._own(above[0], num_steps, self._drift())
        return self._beyond(below[-1], num_steps)

    def _own(self, profile: Profile, num_steps: int, drift: float = 0.0) -> Estimate:
        value = profile.at(num_steps)
        error = math.hypot(_error(profile, num_steps), drift * (value - 1))
        return Estimate(value, max(value - error, 1.0), min(value + error, num_steps + 1.0))

    def _between(self, low: Profile, high: Profile, num_steps: int) -> Estimate:
        tail = high.conditional[len(low.conditional) :]
        # The shallow run's positions, continued as the deep one goes on.
        first = 1 + low.cut * (chain_accept_len((*low.conditional, *tail), num_steps) - 1)
        second = high.at(num_steps)
        along = math.log(num_steps / low.num_steps) / math.log(high.num_steps / low.num_steps)
        value = (1 - along) * first + along * second
        error = max(_error(low, num_steps), _error(high, num_steps))
        return Estimate(
            value,
            max(min(first, second) - error, 1.0),
            min(max(first, second) + error, num_steps + 1.0),
        )

    def _beyond(self, deepest: Profile, num_steps: int) -> Estimate:
        value, seen = deepest.at(num_steps), deepest.at(deepest.num_steps)
        error = _error(deepest, num_steps)
        reach = math.prod(deepest.conditional)
        most = seen + reach * (num_steps - deepest.num_steps)
        return Estimate(value, max(seen - error, 1.0), min(most + error, num_steps + 1.0))

    def _drift(self) -> float:
        """How much more of its drafts a shallower run may have accepted, as a fraction."""
        if len(self.profiles) < 2:
            return 0.15
        firsts = [p.conditional[0] for p in self.profiles]
        return max(abs(firsts[0] / firsts[-1] - 1), 0.05) if firsts[-1] else 0.15


def _error(profile: Profile, num_steps: int) -> float:
    """Half the 95 % range of the accept length, from the counts of the passes."""
    mean = chain_accept_len(profile.conditional, num_steps) - 1
    if not profile.verifies:
        return ASSUMED_ERROR * (1 + mean)
    reach, square = 1.0, 0.0
    for k in range(min(num_steps, 10_000)):  # beyond, a chain that long is a typing error
        reach *= profile.conditional[min(k, len(profile.conditional) - 1)]
        square += (2 * k + 1) * reach  # E[A^2] = sum (2 k - 1) P(A >= k)
    variance = max(square - mean * mean, 0.0)
    # Passes of one request hang together: taken as twice the variance of independent ones.
    return Z * math.sqrt(2 * variance / profile.verifies)
