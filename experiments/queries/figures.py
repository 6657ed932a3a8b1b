"""A run's figures from its repeats: mean, spread and n; definitions in docs/metrics.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from experiments.models import Repeat, Run


@dataclass(frozen=True)
class Figure:
    """n repeats of one metric, in the metric's unit. sd: sample deviation, None below two."""

    values: tuple[float, ...]

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def sd(self) -> float | None:
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def cv(self) -> float | None:
        """Spread as a fraction of the mean."""
        sd = self.sd
        return None if sd is None or not self.mean else sd / abs(self.mean)


@dataclass(frozen=True)
class Figures:
    """What the repeats of one run say together; None where no repeat knows it.

    accept_len pools counts over the repeats where they are known, and is their mean otherwise.
    accept_rate: as recorded, never derived. histogram[k]: verify passes that accepted exactly k
    drafts, summed over the repeats. outputs, prompts: hashes of what was answered and asked, where
    known.
    """

    tok_s: Figure | None = None
    accept_len: float | None = None
    accept_lens: Figure | None = None
    accept_rate: float | None = None
    step_ms: Figure | None = None
    verify_ct: int | None = None
    requests: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    histogram: tuple[int, ...] | None = None
    outputs: tuple[str, ...] = ()
    prompts: frozenset[str] = frozenset()

    @property
    def n(self) -> int:
        return 0 if self.tok_s is None else self.tok_s.n

    def metric(self, name: str) -> float | None:
        """The mean of tok_s or step_ms, or the pooled accept_len."""
        if name == "accept_len":
            return self.accept_len
        figure: Figure | None = getattr(self, name)
        return None if figure is None else figure.mean

    def values(self, name: str) -> tuple[float, ...]:
        """One value per repeat of tok_s, accept_len or step_ms."""
        figure: Figure | None = self.accept_lens if name == "accept_len" else getattr(self, name)
        return () if figure is None else figure.values


def _figure(values: Sequence[float | None]) -> Figure | None:
    known = tuple(v for v in values if v is not None and math.isfinite(v))
    return Figure(known) if known else None


def _total(values: Sequence[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None


def _histogram(repeats: Sequence[Repeat]) -> tuple[int, ...] | None:
    known = [r.accept_histogram for r in repeats if r.accept_histogram]
    if not known:
        return None
    total = [0] * max(len(h) for h in known)
    for histogram in known:
        for k, count in enumerate(histogram):
            total[k] += count
    return tuple(total)


def pooled_accept_len(tokens: int, requests: int, verify_ct: int) -> float | None:
    """Tokens after the first of each request per verify pass, the bonus token included."""
    return (tokens - requests) / verify_ct if verify_ct > 0 else None


def figures_of(repeats: Sequence[Repeat]) -> Figures:
    """The figures of one run; `repeats` in any order."""
    rows = sorted(repeats, key=lambda r: r.index)
    lengths = _figure([r.accept_len for r in rows])
    rates = _figure([r.accept_rate for r in rows])
    verify_ct = _total([r.verify_ct for r in rows])
    tokens, requests = _total([r.tokens for r in rows]), _total([r.requests for r in rows])
    pooled = None
    if verify_ct and tokens is not None and requests is not None:
        pooled = pooled_accept_len(tokens, requests, verify_ct)
    seconds = [r.seconds for r in rows if r.seconds is not None]
    return Figures(
        tok_s=_figure([r.tok_s for r in rows]),
        accept_len=pooled if pooled is not None else (lengths.mean if lengths else None),
        accept_lens=lengths,
        accept_rate=rates.mean if rates else None,
        step_ms=_figure([r.step_ms for r in rows]),
        verify_ct=verify_ct,
        requests=requests,
        tokens=tokens,
        seconds=sum(seconds) if seconds else None,
        histogram=_histogram(rows),
        outputs=tuple(r.output_sha256 for r in rows if r.output_sha256),
        prompts=frozenset(r.prompts_sha256 for r in rows if r.prompts_sha256),
    )


def outputs_equal(one: Figures, other: Figures) -> bool | None:
    """Whether two runs gave the same outputs to the same prompts; None where it cannot be said.

    Greedy speculative decoding must not change a token, so False for a run and its baseline means
    that the outputs of one of them are wrong.
    """
    if not one.outputs or not other.outputs or one.prompts != other.prompts:
        return None
    return set(one.outputs) == set(other.outputs)


def figures_in_words(run: Run) -> str:
    """A run's figures as one line for a terminal, with their spread and n."""
    figures = figures_of(list(run.repeats.all()))
    if figures.tok_s is None:
        return "no figures"
    spread = "" if figures.tok_s.sd is None else f" ± {figures.tok_s.sd:.1f}"
    words = [f"{figures.tok_s.mean:.1f}{spread} tok/s (n={figures.n})"]
    if figures.accept_len is not None:
        words.append(f"accept length {figures.accept_len:.2f}")
    if figures.step_ms is not None:
        words.append(f"{figures.step_ms.mean:.1f} ms a step")
    return ", ".join(words)
