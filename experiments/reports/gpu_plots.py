"""A run's GPUs over its time: throughput, clock, power and temperature, a panel each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.models import DecodeSample
from experiments.queries.gpus import GpuCourse
from experiments.reports.drawing import Drawing
from experiments.reports.plots import Plot, hue, ticks
from specdebug.measure.gpu_samples import THROTTLING, GpuColumn

# A panel's height, the line of words above it, and the room at the left for its axis.
PANEL, WORDS, LEFT = 68.0, 22.0, 7.0
MOST_POINTS = 240  # a screen shows no more of a line


@dataclass(frozen=True, slots=True)
class Figure:
    """A column of the samples as it is drawn. floor: where its axis begins, None: at the data."""

    words: str
    unit: str
    floor: float | None


FIGURES: dict[str, Figure] = {
    "sm_mhz": Figure("SM clock", "MHz", 0.0),
    "power_w": Figure("Power", "W", 0.0),
    "temp_c": Figure("Temperature", "°C", None),
}


def gpus(found: GpuCourse) -> Plot | None:
    """One grey line per GPU, red where it was held back; the measured repeats are marked at the
    top. None where there are fewer than two moments to draw."""
    samples = found.samples
    if len(samples.times) < 2:
        return None
    start, span = samples.times[0], samples.times[-1] - samples.times[0] or 1.0
    panels = [name for name in FIGURES if any(_known(gpu, name) for gpu in samples.gpus)]
    count = len(panels) + bool(found.decode)
    drawing = Drawing(count * (PANEL + WORDS) + 44, _says(found, panels))

    def x(at: float) -> float:
        return LEFT + (100 - LEFT) * min(max((at - start) / span, 0.0), 1.0)

    for a, b in found.spans:
        drawing.rect(x(a), 0, max(x(b) - x(a), 0.2), 4, f"fill-{hue(found.run.number)}", "repeat")
    top = 6.0
    if found.decode:
        lines = [(line.t or 0.0, line.tok_s or 0.0) for line in _some(found.decode)]
        y = _panel(drawing, top, "Throughput, tok/s", 0.0, [value for _, value in lines])
        for at, value in lines:
            tone = f"fill-{hue(found.run.number)}"
            drawing.dot(x(at), y(value), 2.2, tone, f"{value:.1f} tok/s")
        top += PANEL + WORDS
    for name in panels:
        figure = FIGURES[name]
        values = [v for gpu in samples.gpus for v in _known(gpu, name)]
        words = f"{figure.words}, {figure.unit}"
        y = _panel(drawing, top, words, figure.floor, values)
        for gpu in samples.gpus:
            for held, some in _stretches(samples.times, gpu, name):
                tone = "held" if held else "line-idle thin"
                drawing.path([(x(at), y(value)) for at, value in some], tone)
        top += PANEL + WORDS
    for value in ticks(0, span, 6):
        at = x(start + value)
        drawing.text(at, top + 12, f"{value:g}", "tick", "middle" if at < 97 else "end")
    drawing.text(LEFT, top + 28, "seconds since the GPUs were leased; a line for each GPU", "tick")
    return Plot("gpus", "GPUs over the run", "", drawing, *_table(found))


def _panel(
    drawing: Drawing, top: float, words: str, floor: float | None, values: Sequence[float]
) -> _Scale:
    """A heading, an axis and its grid; what places a value in it."""
    low = min(values, default=0.0) if floor is None else floor
    high = max([*values, low + 1e-9])
    room = 0.06 * (high - low) or 1.0
    scale = _Scale(low if floor is not None else low - room, high + room, top + WORDS + PANEL - 6)
    drawing.text(0, top + 14, words, "name")
    for value in ticks(scale.low, scale.high, 3):
        drawing.line(LEFT, scale(value), 100, scale(value), "grid")
        drawing.text(0, scale(value) + 4, f"{value:,.0f}", "tick")
    return scale


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    bottom: float

    def __call__(self, value: float) -> float:
        return self.bottom - (PANEL - 10) * (value - self.low) / (self.high - self.low)


def _known(gpu: GpuColumn, name: str) -> list[int]:
    return [value for value in gpu.columns[name] if value is not None]


def _stretches(
    times: Sequence[float], gpu: GpuColumn, name: str
) -> list[tuple[bool, list[tuple[float, float]]]]:
    """A GPU's line in pieces that were held back or not, gaps left out; each begins where the one
    before it ended."""
    width = max(1, -(-len(times) // MOST_POINTS))
    found: list[tuple[bool, list[tuple[float, float]]]] = []
    last: tuple[float, float] | None = None
    for n in range(0, len(times), width):
        part = [v for v in gpu.columns[name][n : n + width] if v is not None]
        if not part:
            last = None
            continue
        reasons = [v for v in gpu.columns["reasons"][n : n + width] if v is not None]
        held = any(value & THROTTLING for value in reasons)
        point = (times[n], sum(part) / len(part))
        if last is None or found[-1][0] != held:
            found.append((held, [last] if last is not None else []))
        found[-1][1].append(point)
        last = point
    return found


def _some(rows: Sequence[DecodeSample]) -> Sequence[DecodeSample]:
    return rows[:: max(1, -(-len(rows) // (2 * MOST_POINTS)))]


def _says(found: GpuCourse, panels: Sequence[str]) -> str:
    said = []
    for name in panels:
        figure = FIGURES[name]
        values = [v for gpu in found.samples.gpus for v in _known(gpu, name)]
        said.append(f"{figure.words.lower()} {min(values):,} to {max(values):,} {figure.unit}")
    held = [
        str(gpu.index)
        for gpu in found.samples.gpus
        if any((value or 0) & THROTTLING for value in gpu.columns["reasons"])
    ]
    after = f"; held back at times: GPU {', '.join(held)}" if held else "; none was held back"
    return f"{len(found.samples.gpus)} GPUs over the run: {', '.join(said)}{after}."


def _table(
    found: GpuCourse,
) -> tuple[tuple[str, ...], tuple[tuple[str | float | int | None, ...], ...]]:
    """A row a moment: the lowest and highest over the GPUs, and who was held back."""
    head = ["second"]
    for figure in FIGURES.values():
        head += [f"{figure.words}, lowest, {figure.unit}", f"highest, {figure.unit}"]
    rows = []
    samples = found.samples
    for n, at in enumerate(samples.times):
        row: list[str | float | int | None] = [round(at - samples.times[0], 1)]
        for name in FIGURES:
            values = [v for gpu in samples.gpus if (v := gpu.columns[name][n]) is not None]
            row += [min(values, default=None), max(values, default=None)]
        held = [g for g in samples.gpus if (g.columns["reasons"][n] or 0) & THROTTLING]
        row.append(" ".join(str(gpu.index) for gpu in held))
        rows.append(tuple(row))
    return (*head, "GPUs held back"), tuple(rows)
