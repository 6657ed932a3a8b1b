"""What a speculative step costs and what it can win: arithmetic only, no engine and no statistics.

Times are milliseconds per step of one request, throughputs output tokens per second summed over the
requests that run at once (`running`). Accept lengths count the bonus token, so they are >= 1.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "CostLine",
    "CostPoint",
    "break_even_accept_len",
    "ceiling_tok_s",
    "cost_line",
    "missing_cost_run",
    "plain_step_ms",
    "step_ms",
]


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be a positive number, got {value!r}")


def step_ms(accept_len: float, tok_s: float, running: float = 1.0) -> float:
    """Time of one step in ms: each step gives every running request `accept_len` tokens."""
    _positive(accept_len=accept_len, tok_s=tok_s, running=running)
    return 1000.0 * accept_len * running / tok_s


def plain_step_ms(tok_s: float, running: float = 1.0) -> float:
    """Time of one step without speculation in ms: one token per request and step."""
    return step_ms(1.0, tok_s, running)


def break_even_accept_len(spec_step_ms: float, base_step_ms: float) -> float:
    """Accept length at which speculation is exactly as fast as the plain run."""
    _positive(spec_step_ms=spec_step_ms, base_step_ms=base_step_ms)
    return spec_step_ms / base_step_ms


def ceiling_tok_s(window: int, spec_step_ms: float, running: float = 1.0) -> float:
    """Throughput of a perfect draft: all `window` = num_steps + 1 tokens of each step accepted."""
    _positive(window=window, spec_step_ms=spec_step_ms, running=running)
    return 1000.0 * window * running / spec_step_ms


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One measured run: its num_steps and step time in ms."""

    num_steps: int
    step_ms: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class CostLine:
    """Step time as `fixed_ms + slope_ms * num_steps`.

    plain_ms is the step time without speculation, None when no baseline is known. residual_ms is
    the largest distance of a point from the line, 0 with two points (then nothing checks the line).
    """

    slope_ms: float
    fixed_ms: float
    points: tuple[CostPoint, ...]
    plain_ms: float | None = None
    residual_ms: float = 0.0

    def at(self, num_steps: float) -> float:
        """Predicted step time in ms."""
        return self.fixed_ms + self.slope_ms * num_steps

    @property
    def overhead_ms(self) -> float | None:
        """Fixed part above a plain step: what neither drafting nor the target's forward explains.

        Verifying a few tokens costs little more than a plain step at small batch, so a large value
        is a cost fault. None without a baseline.
        """
        return None if self.plain_ms is None else self.fixed_ms - self.plain_ms


def cost_line(points: Iterable[CostPoint], plain_ms: float | None = None) -> CostLine | None:
    """Least squares through the points; None unless two different num_steps are there.

    Use `missing_cost_run` to say which run would make the line possible.
    """
    pts = tuple(points)
    if len({p.num_steps for p in pts}) < 2:
        return None
    mean_n = sum(p.num_steps for p in pts) / len(pts)
    mean_t = sum(p.step_ms for p in pts) / len(pts)
    spread = sum((p.num_steps - mean_n) ** 2 for p in pts)
    slope = sum((p.num_steps - mean_n) * (p.step_ms - mean_t) for p in pts) / spread
    fixed = mean_t - slope * mean_n
    residual = max(abs(p.step_ms - fixed - slope * p.num_steps) for p in pts)
    return CostLine(slope, fixed, pts, plain_ms, 0.0 if len(pts) == 2 else residual)


def missing_cost_run(points: Sequence[CostPoint], plain_ms: float | None) -> str | None:
    """Which run would identify the missing term of the cost account; None when nothing misses."""
    steps = sorted({p.num_steps for p in points})
    if not steps:
        return "a speculative run with its accept length, running requests and throughput"
    if len(steps) == 1:
        other = 1 if steps[0] > 3 else steps[0] + 4
        return (
            f"a second run at another num_steps (for example {other}), everything else equal: "
            "one point cannot split the step into draft forwards and a fixed part"
        )
    if plain_ms is None:
        return "the same load without speculation: the plain step time is unknown"
    return None
