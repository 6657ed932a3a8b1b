"""Which hidden states of a target was a draft trained on? Scores them by how well the draft then
foretells the target; serves nothing, and reads only checkpoints that this engine can run.

`python -m specdebug.reference.probe TARGET DRAFT`, or `specdebug probe`. The score of a set of
layers is the cross-entropy of the draft's first token against the target's whole distribution over
the draft's vocabulary, in nats a token. Two sets are compared token by token, as a paired mean
difference over its standard error (z): a served set is called wrong from z 3 on. A state that is
small beside the others, as an embedding often is, leaves no trace: any layer fits its slot then.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from specdebug.reference.draft import Draft
from specdebug.reference.target import Target

Layers = tuple[int, ...]
# From here on two sets differ; a false answer was seen at 2.2, none at 3.
CERTAIN = 3.0
SWEEPS = 6


@dataclass(frozen=True)
class Score:
    """One set of hidden states. loss: nats a token; worse: how much more than the best, with z over
    the same tokens; agreement: share of tokens at which draft and target name the same."""

    layers: Layers
    loss: float
    worse: float
    z: float
    agreement: float


@dataclass(frozen=True)
class Slot:
    """One input of the draft's fc. share: its part of the fused state, as root mean squares;
    losses: nats a token by hidden state, the other slots as in the best set; alike: the states that
    cannot be told apart here."""

    layer: int
    share: float
    alike: tuple[int, ...]
    losses: tuple[float, ...]


@dataclass(frozen=True)
class Probe:
    """best: in ascending order unless another order is better beyond doubt. alike: the sets that
    cannot be told from it, itself among them, as far as they were scored. served: the set that was
    asked about, None where none was."""

    best: Score
    alike: tuple[Score, ...]
    served: Score | None
    slots: tuple[Slot, ...]
    tokens: int
    tried: int
    exhaustive: bool

    @property
    def fits(self) -> bool | None:
        """Whether the served set is the best or cannot be told from it; None without one."""
        return None if self.served is None else self.served.z < CERTAIN


class _Scorer:
    """Losses a token by set of hidden states; each set is scored once."""

    def __init__(self, target: Target, draft: Draft, ids: Tensor) -> None:
        logits, states = target(ids)
        weights = torch.chunk(draft.fc.weight, draft.num_aux, dim=1)
        # [slot][layer]: a set is then a sum, whatever its size.
        self.parts = [[F.linear(state, weight) for state in states] for weight in weights]
        self.draft, self.read = draft, ids[:, 1:]
        # Row t reads token t + 1 and foretells token t + 2, which the target does at t + 1.
        self.wanted = torch.softmax(logits[:, 1:][..., draft.target_ids], -1)
        self.named = logits[:, 1:].argmax(-1)
        self.kept: dict[Layers, tuple[Tensor, float]] = {}

    @property
    def layers(self) -> range:
        return range(len(self.parts[0]))

    def fused(self, layers: Layers) -> Tensor:
        return torch.stack([part[k] for part, k in zip(self.parts, layers, strict=True)]).sum(0)

    def losses(self, layers: Layers) -> Tensor:
        """Nats of each token [tokens]."""
        return self._scored(layers)[0]

    def loss(self, layers: Layers) -> float:
        return float(self.losses(layers).mean())

    def agreement(self, layers: Layers) -> float:
        return self._scored(layers)[1]

    def _scored(self, layers: Layers) -> tuple[Tensor, float]:
        if layers not in self.kept:
            rows = self.fused(layers)[:, : self.read.shape[1]]
            (logits,) = self.draft.unroll_fused(rows, self.read, 1)
            lost = -(self.wanted * torch.log_softmax(logits, -1)).sum(-1).flatten()
            same = self.draft.target_ids[logits.argmax(-1)] == self.named
            self.kept[layers] = lost, float(same.float().mean())
        return self.kept[layers]

    def compared(self, layers: Layers, best: Layers) -> Score:
        """A set against the best, over the same tokens."""
        more = self.losses(layers) - self.losses(best)
        mean, error = float(more.mean()), float(more.std()) / math.sqrt(len(more))
        z = mean / error if error > 0 else (0.0 if mean == 0 else math.inf)
        return Score(layers, self.loss(layers), mean, z, self.agreement(layers))


@torch.no_grad()
def probe(
    target: Target,
    draft: Draft,
    ids: Tensor,
    served: Sequence[int] | None = None,
    *,
    exhaustive: bool = False,
) -> Probe:
    """Score sets of hidden states on windows of text: a slot at a time until nothing is better, or
    all sets where `exhaustive`.

    ids [windows, tokens], at least 3 tokens a window; served: hidden-state numbers in the order in
    which the release concatenates them. Raises ValueError where these do not fit the models.
    """
    if ids.dim() != 2 or ids.shape[1] < 3:
        raise ValueError(f"ids are {tuple(ids.shape)}; windows of at least 3 tokens are needed")
    scorer = _Scorer(target, draft, ids)
    asked = None if served is None else tuple(served)
    if asked is not None and not (
        len(asked) == draft.num_aux and all(k in scorer.layers for k in asked)
    ):
        raise ValueError(
            f"served states {list(asked)} are not {draft.num_aux} of 0 to {scorer.layers[-1]}"
        )
    if exhaustive:
        sets = itertools.permutations(scorer.layers, draft.num_aux)
        best = min(sets, key=scorer.loss)
    else:
        starts = _starts(scorer, draft.num_aux, asked)
        best = min((_descended(scorer, start) for start in starts), key=scorer.loss)
    best = _ascending(scorer, best)
    found = [scorer.compared(layers, best) for layers in scorer.kept]
    alike = sorted((s for s in found if s.z < CERTAIN), key=lambda s: s.loss)
    return Probe(
        best=scorer.compared(best, best),
        alike=tuple(alike),
        served=None if asked is None else scorer.compared(asked, best),
        slots=tuple(_slots(scorer, best)),
        tokens=len(scorer.losses(best)),
        tried=len(scorer.kept),
        exhaustive=exhaustive,
    )


def _starts(scorer: _Scorer, num_aux: int, served: Layers | None) -> list[Layers]:
    """Spread over the target, and what is served; descents from 30 random starts all agreed."""
    last = scorer.layers[-1]
    even = tuple(round(last * (k + 1) / (num_aux + 1)) for k in range(num_aux))
    return [even] if served is None or served == even else [even, tuple(sorted(served))]


def _descended(scorer: _Scorer, start: Layers) -> Layers:
    """The best layer of each slot in turn, until a sweep changes nothing."""
    now = start
    for _ in range(SWEEPS):
        before = now
        for slot in range(len(now)):
            now = min(_varied(scorer, now, slot), key=scorer.loss)
        if now == before:
            break
    return now


def _varied(scorer: _Scorer, layers: Layers, slot: int) -> Iterable[Layers]:
    """The set with each layer in one slot; no layer is fed twice."""
    for k in scorer.layers:
        made = (*layers[:slot], k, *layers[slot + 1 :])
        if len(set(made)) == len(made):
            yield made


def _ascending(scorer: _Scorer, best: Layers) -> Layers:
    """A set in ascending order, as every release feeds them, where one cannot be told from `best`:
    a state that hardly counts, as an embedding, fits from any layer."""
    sets = (made for slot in range(len(best)) for made in _varied(scorer, best, slot))
    ordered = [made for made in sets if made == tuple(sorted(made))]
    if not ordered:
        return best
    found = min(ordered, key=scorer.loss)
    return found if scorer.compared(found, best).z < CERTAIN else best


def _slots(scorer: _Scorer, best: Layers) -> Iterable[Slot]:
    sizes = [
        float(part[k].square().mean().sqrt()) for part, k in zip(scorer.parts, best, strict=True)
    ]
    for slot, layer in enumerate(best):
        sets = [(*best[:slot], k, *best[slot + 1 :]) for k in scorer.layers]
        scores = [scorer.compared(made, best) for made in sets]
        yield Slot(
            layer=layer,
            share=sizes[slot] / (sum(sizes) or 1.0),
            alike=tuple(k for k, score in enumerate(scores) if score.z < CERTAIN),
            losses=tuple(score.loss for score in scores),
        )
