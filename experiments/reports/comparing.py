"""Two to eight runs beside a pinned one: what differs, by how much, and how sure that is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from experiments.checkup.cases import positions
from experiments.models import Run
from experiments.queries import RunFacts, outputs_equal
from experiments.queries.comparable import not_comparable
from experiments.queries.comparison import Compared, name_of
from experiments.reports import plots
from experiments.reports.terms import term
from specdebug.diagnosis.verdicts import ASSUMED_CV
from specdebug.measure.acceptance import position_interval
from specdebug.measure.compare import Comparison, compare, split_throughput

UP = {"tok_s": True, "accept_len": True, "step_ms": False}


@dataclass(frozen=True, slots=True)
class Delta:
    """One figure of a run against the pinned one's; comparison is None where a side lacks it."""

    metric: str
    value: float | None
    comparison: Comparison | None

    @property
    def words(self) -> str:
        """ "−36.9 % [−40.1, −33.4]"; empty where nothing can be compared."""
        c = self.comparison
        if c is None:
            return ""
        return f"{_percent(c.ratio)} %" + (
            "" if c.low is None or c.high is None else f" [{_percent(c.low)}, {_percent(c.high)}]"
        )


@dataclass(frozen=True, slots=True)
class Beside:
    """One run beside the pinned one. outputs: same answers to the same prompts, None: not known.

    why_not: why the two must not be compared, "" when nothing speaks against it.
    """

    facts: RunFacts
    hue: int
    label: str
    name: str
    deltas: tuple[Delta, ...]
    outputs: bool | None
    split: str
    why_not: str

    @property
    def throughput(self) -> Delta:
        return self.deltas[0]

    @property
    def verdict(self) -> str:
        c = self.throughput.comparison
        return "not comparable" if self.why_not else "no figure" if c is None else c.verdict


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of one run. asked: what was asked where another value is in force."""

    value: Any
    known: bool
    overridden: bool = False
    asked: Any = None
    as_baseline: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """One argument, or one thing of the set-up, over all runs."""

    group: str
    key: str
    cells: tuple[Cell, ...]
    differs: bool

    @property
    def alike(self) -> Cell | None:
        """The one value that all runs are known to have, None where that cannot be said."""
        first = self.cells[0]
        same = not first.overridden and all(
            c.known and not c.overridden and c.value == first.value for c in self.cells
        )
        return first if same else None


@dataclass(frozen=True, slots=True)
class Comparing:
    """What the page shows. rows: the runs in the order asked, the pinned one first."""

    rows: tuple[Beside, ...]
    lines: tuple[Line, ...]
    same: tuple[Line, ...]
    plots: tuple[plots.Plot, ...]
    noise: str


def comparing(found: Compared) -> Comparing:
    """The comparison of runs that were read; needs a baseline among them."""
    base = found.baseline
    assert base is not None  # noqa: S101 (a page without runs does not come here)
    order = [base, *(f for f in found.runs if f.run.pk != base.run.pk)]
    cv, freedom = _pooled(found, base.run.engine)
    rows = tuple(_beside(found, facts, base, cv, freedom) for facts in order)
    lines = _lines(order)
    noise = (
        "Runs with fewer than three repeats are judged with the run-to-run spread of this "
        f"engine's replicated runs here, {100 * cv:.1f} % ({freedom} degrees of freedom)."
        if cv is not None
        else "No run here is replicated: single figures are judged with an assumed run-to-run "
        f"spread of {100 * ASSUMED_CV:.0f} %."
    )
    return Comparing(
        rows=rows,
        lines=tuple(line for line in lines if line.differs),
        same=tuple(line for line in lines if not line.differs),
        plots=tuple(_plots(rows)),
        noise=noise,
    )


def _pooled(found: Compared, engine: str) -> tuple[float | None, int | None]:
    """Spread of the throughput over the engine's replicated runs, with its degrees of freedom."""
    total, freedom = 0.0, 0
    for name, values in found.spread:
        if name == engine:
            mean = sum(values) / len(values)
            total += sum((v / mean - 1) ** 2 for v in values)
            freedom += len(values) - 1
    return (sqrt(total / freedom), freedom) if freedom else (None, None)


def _beside(
    found: Compared, facts: RunFacts, base: RunFacts, cv: float | None, freedom: int | None
) -> Beside:
    itself = facts.run.pk == base.run.pk
    label = f"{facts.run.label} {facts.run.title}"
    why_not = "" if itself else not_comparable(facts, base) or ""
    deltas = tuple(
        Delta(
            metric,
            facts.figures.metric(metric),
            None if itself else _compare(metric, facts, base, cv, freedom, why_not),
        )
        for metric in UP
    )
    return Beside(
        facts=facts,
        hue=plots.hue(facts.run.number),
        label=f"{facts.run.investigation.title}: {label}" if found.several else label,
        name=name_of(facts.run),
        deltas=deltas,
        outputs=None if itself else outputs_equal(facts.figures, base.figures),
        split="" if itself or why_not else _split(facts, base, deltas[0].comparison),
        why_not=why_not,
    )


def _compare(
    metric: str,
    facts: RunFacts,
    base: RunFacts,
    cv: float | None,
    freedom: int | None,
    why_not: str,
) -> Comparison | None:
    before, after = (
        [v for v in f.figures.values(metric) if v > 0] if f.measured else [] for f in (base, facts)
    )
    if not before or not after:
        return None
    pooled = cv if metric == "tok_s" and cv is not None else ASSUMED_CV
    # Acceptance counts hardly vary between repeats; without repeats nothing is assumed of them.
    few = metric == "accept_len"
    return compare(
        before,
        after,
        pooled_cv=None if few else pooled,
        pooled_df=freedom if metric == "tok_s" and cv is not None else None,
        higher_is_better=UP[metric],
        invalid=why_not or None,
        what=term(metric).name.lower(),
        say_repeats=False,
    )


def _split(facts: RunFacts, base: RunFacts, moved: Comparison | None) -> str:
    """How much of the change is acceptance and how much step time, "" where it cannot be said."""
    before, after = (1.0 if f.speculative is False else f.figures.accept_len for f in (base, facts))
    if before is None or after is None or moved is None:
        return ""
    return split_throughput(1.0, moved.ratio, before, after).sentence.replace(" -", " −")


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}".replace("-", "−")


def _lines(order: Sequence[RunFacts]) -> list[Line]:
    """Arguments, workload, environment, versions and place, one line each."""
    found = [
        _line("argument", key, [_argument(facts, key) for facts in order])
        for key in sorted({key for facts in order for key in facts.config})
    ]
    readers: tuple[tuple[str, Callable[[Run], Mapping[str, Any]]], ...] = (
        ("workload", lambda run: run.plan.get("workload") or {}),
        ("environment", lambda run: run.env or {}),
        ("version", lambda run: run.versions or {}),
    )
    for group, of in readers:
        for key in sorted({key for facts in order for key in of(facts.run)}):
            cells = [Cell(of(f.run).get(key), key in of(f.run)) for f in order]
            found.append(_line(group, key, cells))
    for key, read in (
        ("engine", lambda run: f"{run.engine} {run.engine_release}".strip()),
        ("host", lambda run: run.host),
    ):
        found.append(_line("place", key, [Cell(read(f.run), bool(read(f.run))) for f in order]))
    patches = [
        [str(c.key) for c in f.changes if c.kind in ("patch", "draft-config")] for f in order
    ]
    if any(patches):
        cells = [Cell(", ".join(some) or "none", True) for some in patches]
        found.append(_line("change", "patches and draft config of its own", cells))
    return found


def _argument(facts: RunFacts, key: str) -> Cell:
    entry = facts.config.get(key)
    if entry is None:
        # Where it is known what was asked, an argument that is not among it was left alone.
        return Cell(None, any(other.was_requested for other in facts.config.values()))
    known = entry.effective_known or entry.was_requested or entry.predicted
    value = entry.effective if entry.effective_known or entry.predicted else entry.requested
    return Cell(value, known, overridden=entry.differs, asked=entry.requested)


def _line(group: str, key: str, cells: Sequence[Cell]) -> Line:
    shown = [_same(cell) for cell in cells]
    known = {text for text, cell in zip(shown, cells, strict=True) if cell.known}
    marked = tuple(
        Cell(c.value, c.known, c.overridden, c.asked, text == shown[0])
        for text, c in zip(shown, cells, strict=True)
    )
    return Line(group, key, marked, len(known) > 1 or any(c.overridden for c in cells))


def _same(cell: Cell) -> str:
    return json.dumps(cell.value, sort_keys=True, default=str) if cell.known else "?"


def _plots(rows: Sequence[Beside]) -> Iterable[plots.Plot]:
    base = rows[0]
    moved = [
        plots.Bar(
            row.label,
            row.hue,
            (),
            100 * (c.ratio - 1),
            f"{row.throughput.words}, {c.verdict}",
            None if c.low is None else 100 * (c.low - 1),
            None if c.high is None else 100 * (c.high - 1),
        )
        for row in rows
        if not row.why_not and (c := row.throughput.comparison) is not None
    ]
    pinned = base.facts.run.label
    if moved:
        yield plots.changes("change", f"Throughput against {pinned}", moved, against=pinned)
    for metric in UP:
        bars = _bars(rows, metric)
        if len(bars) > (1 if metric == "tok_s" else 0):
            known = term(metric)
            yield plots.bars(
                metric,
                known.name,
                known.unit,
                bars,
                digits=known.digits,
                reference=base.facts.figures.metric(metric),
            )
    curves = [curve for row in rows if (curve := acceptance(row.facts, row.hue)) is not None]
    if curves:
        yield plots.curves(
            "acceptance",
            "Acceptance by draft position",
            curves,
            across="position; share accepted where the one before was, 95 % interval",
        )


def _bars(rows: Sequence[Beside], metric: str) -> list[plots.Bar]:
    known = term(metric)
    found = []
    for row in rows:
        value = row.facts.figures.metric(metric)
        if value is None:
            continue
        values = row.facts.figures.values(metric)
        says = f"{value:.{known.digits}f} {known.unit}, n = {len(values)}"
        found.append(plots.Bar(row.label, row.hue, values, value, says))
    return found


def acceptance(facts: RunFacts, hue: int) -> plots.Curve | None:
    """Acceptance by position from the run's own histogram; None where it has none."""
    found = positions(facts)
    histogram = facts.figures.histogram
    if found is None or not histogram or not found.conditional:
        return None
    reached = [sum(histogram[k:]) for k in range(len(found.conditional))]
    ends = tuple(
        position_interval(share, n) for share, n in zip(found.conditional, reached, strict=True)
    )
    # Positions that were never reached say nothing.
    last = max((i + 1 for i, n in enumerate(reached) if n), default=0)
    if not last:
        return None
    return plots.Curve(
        facts.run.label,
        hue,
        tuple(found.conditional[:last]),
        tuple(reached[:last]),
        ends[:last],
    )
