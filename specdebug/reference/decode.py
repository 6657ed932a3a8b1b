"""Greedy decoding, plain or with a verified EAGLE-3 chain; one request at a time, no text.

Per speculative cycle: a draft extend over the tokens accepted last (it gives draft token 1),
num_steps - 1 draft decode forwards, one target pass over [last token, drafts]. The longest prefix
of drafts that equals the target's own choices is kept, plus one token of the target's: the output
is what plain greedy decoding gives, token for token.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from specdebug.reference.draft import Draft
from specdebug.reference.layers import KVCache
from specdebug.reference.target import Target


@dataclass
class Seconds:
    """Where the time of the cycles went."""

    extend: float = 0.0
    chain: float = 0.0
    verify: float = 0.0


@dataclass
class Counts:
    """What a request's cycles did: histogram[k] = cycles with exactly k accepted drafts.

    The last cycle counts in full, also where its tokens run past the asked length.
    """

    cycles: int = 0
    accepted: int = 0
    histogram: list[int] = field(default_factory=list)
    seconds: Seconds = field(default_factory=Seconds)

    def add(self, accepted: int) -> None:
        """Record one cycle."""
        self.cycles += 1
        self.accepted += accepted
        self.histogram.extend([0] * (accepted + 1 - len(self.histogram)))
        self.histogram[accepted] += 1


class Decoder(Protocol):
    """One request at a time: begin with a prompt, then cycle for further tokens.

    cache is the target's; counts are of the request at hand.
    """

    cache: KVCache
    counts: Counts

    def begin(self, prompt: Sequence[int]) -> int:
        """Prefill; returns the first token."""

    def cycle(self) -> list[int]:
        """The next tokens, at least one."""


class PlainDecoder:
    """One target forward per token."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.cache = target.new_cache()
        self.counts = Counts()
        self.last = torch.zeros(1, dtype=torch.long)

    @torch.inference_mode()
    def begin(self, prompt: Sequence[int]) -> int:
        """Prefill; returns the first token."""
        self.counts = Counts()
        self.cache.used = 0
        logits, _ = self.target.step(torch.tensor(prompt), self.cache)
        token = int(logits[-1].argmax())
        self.last = torch.tensor([token])
        return token

    @torch.inference_mode()
    def cycle(self) -> list[int]:
        """One more token."""
        started = time.perf_counter()
        logits, _ = self.target.step(self.last, self.cache)
        self.last = logits.argmax(-1)
        token = int(self.last)
        self.counts.add(0)
        self.counts.seconds.verify += time.perf_counter() - started
        return [token]


class ChainDecoder:
    """Draft num_steps tokens in a chain, verify them in one target forward."""

    def __init__(
        self,
        target: Target,
        draft: Draft,
        *,
        hidden_states: Sequence[int],
        num_steps: int,
        position_offset: int,
    ) -> None:
        self.target, self.draft = target, draft
        self.hidden_states = tuple(hidden_states)
        self.num_steps, self.position_offset = num_steps, position_offset
        self.cache, self.draft_cache = target.new_cache(), draft.new_cache()
        self.counts = Counts()
        self.window = torch.zeros(num_steps + 1, dtype=torch.long)
        self.fresh = torch.zeros(0, dtype=torch.long)
        self.captured = torch.zeros(0)

    @torch.inference_mode()
    def begin(self, prompt: Sequence[int]) -> int:
        """Prefill the target; the draft's prefill is the first cycle's extend."""
        self.counts = Counts()
        self.cache.used = self.draft_cache.used = 0
        logits, self.captured = self.target.step(
            torch.tensor(prompt), self.cache, self.hidden_states
        )
        token = int(logits[-1].argmax())
        self.window[0] = token
        # The draft reads token t + 1 beside the target's state at t.
        self.fresh = torch.tensor([*prompt[1:], token])
        return token

    @torch.inference_mode()
    def cycle(self) -> list[int]:
        """Draft, verify, keep; returns the accepted drafts and the target's token after them."""
        marks = [time.perf_counter()]
        self._draft(marks)
        base = self.cache.used
        logits, captured = self.target.step(self.window, self.cache, self.hidden_states)
        choices = logits.argmax(-1)
        agree = (self.window[1:] == choices[:-1]).tolist()
        accepted = agree.index(False) if False in agree else self.num_steps
        self.cache.used = base + accepted + 1
        self.fresh = choices[: accepted + 1]
        self.captured = captured[: accepted + 1]
        self.window[0] = choices[accepted]
        tokens: list[int] = self.fresh.tolist()
        self.counts.add(accepted)
        marks.append(time.perf_counter())
        seconds = self.counts.seconds
        seconds.extend += marks[1] - marks[0]
        seconds.chain += marks[2] - marks[1]
        seconds.verify += marks[3] - marks[2]
        return tokens

    def _draft(self, marks: list[float]) -> None:
        """Fill window[1:] with the chain; the draft's cache keeps only the extended rows."""
        draft, cache, window = self.draft, self.draft_cache, self.window
        logits, hidden = draft.step(self.fresh, draft.fuse(self.captured), cache)
        kept = cache.used
        window[1] = draft.target_ids[logits.argmax()]
        marks.append(time.perf_counter())
        for step in range(1, self.num_steps):
            logits, hidden = draft.step(
                window[step : step + 1], hidden, cache, self.position_offset
            )
            window[step + 1] = draft.target_ids[logits.argmax()]
        cache.used = kept
        marks.append(time.perf_counter())


def stream(decoder: Decoder, prompt: Sequence[int], length: int) -> Iterator[list[int]]:
    """Yield pieces of the output until `length` tokens; the last piece is cut to fit."""
    piece = [decoder.begin(prompt)]
    total = 0
    while True:
        piece = piece[: length - total]
        total += len(piece)
        yield piece
        if total >= length:
            return
        piece = decoder.cycle()


def generate(decoder: Decoder, prompt: Sequence[int], length: int) -> list[int]:
    """The first `length` tokens after the prompt; counts are in decoder.counts."""
    return [token for piece in stream(decoder, prompt, length) for token in piece]


@torch.inference_mode()
def logit_gap(target: Target, prompt: Sequence[int], output: Sequence[int]) -> float:
    """Distance of the best two logits after prompt + output: how near a tie the next choice is."""
    logits, _ = target.step(torch.tensor([*prompt, *output]), target.new_cache())
    best: Tensor = logits[-1].topk(2).values
    return float(best[0] - best[1])
