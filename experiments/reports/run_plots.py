"""The drawings of one run's page: its course, its acceptance by position, where its time goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from experiments.models import DecodeSample, Run
from experiments.queries import Dossier, RunFacts, RunPage
from experiments.reports import plots
from experiments.reports.comparing import acceptance
from experiments.reports.families import gaps_by_run
from experiments.reports.terms import term
from specdebug.diagnosis.account import Gap
from specdebug.eagle.speedup import break_even_accept_len, plain_step_ms
from specdebug.sglang.logs import classify_line


def run_plots(page: RunPage, found: Dossier | None) -> tuple[plots.Plot, ...]:
    """What can be drawn of a run; `found`: its investigation, where the account needs it."""
    drawn = [plot for name in ("tok_s", "accept_len", "step_ms") if (plot := course(page, name))]
    curves = [
        curve
        for facts in (page.facts, page.baseline)
        if facts is not None and (curve := acceptance(facts, plots.hue(facts.run.number)))
    ]
    if curves and page.facts.figures.histogram:
        drawn.append(
            plots.curves(
                "acceptance",
                "Acceptance by draft position",
                curves,
                across="position; share accepted where the one before was, 95 % interval",
            )
        )
    account = gap(page.facts, found) if found is not None else None
    if account is not None:
        drawn.append(waterfall(account))
    return tuple(drawn)


def course(page: RunPage, metric: str) -> plots.Plot | None:
    """A figure over the seconds of the run, from the log's decode lines; None where it has none."""
    points, across = _points(page, metric)
    if len(points) < 2:
        return None
    known, base = term(metric), page.baseline
    level = None if base is None else base.figures.metric(metric)
    return plots.series(
        metric,
        known.name,
        known.unit,
        points,
        across=across,
        hue=plots.hue(page.run.number),
        digits=known.digits,
        # An accept length starts at one; what starts at zero shows a gap as large as it is.
        floor=1.0 if metric == "accept_len" else 0.0,
        reference=level,
        says="" if base is None or level is None else f"{base.run.label} {level:.4g}",
    )


def _points(page: RunPage, metric: str) -> tuple[list[plots.Point], str]:
    rows = [(s, v) for s in page.samples if (v := _value(s, metric, page.facts)) is not None]
    timed = bool(rows) and all(s.t is not None for s, _ in rows)
    across = "seconds since the first decode line" if timed else "decode lines, in order"
    places = _seconds([s for s, _ in rows]) if timed else [float(i) for i in range(len(rows))]
    return [
        plots.Point(at, value, s.line, s.in_repeat, s.rank)
        for at, (s, value) in zip(places, rows, strict=True)
    ], across


def _value(sample: DecodeSample, metric: str, facts: RunFacts) -> float | None:
    if metric != "step_ms":
        value: float | None = getattr(sample, metric)
        return value
    length = 1.0 if facts.speculative is False else sample.accept_len
    if length is None or not sample.tok_s or not sample.running:
        return None
    return 1000.0 * length * sample.running / sample.tok_s


def _seconds(rows: Sequence[DecodeSample]) -> list[float]:
    """Seconds since the first line; the lines of one printed second are spread over it."""
    first = min(s.t for s in rows if s.t is not None)
    same = Counter((s.t, s.rank) for s in rows)
    seen: Counter[tuple[float | None, str]] = Counter()
    found = []
    for s in rows:
        key = (s.t, s.rank)
        found.append((s.t or 0.0) - first + seen[key] / same[key])
        seen[key] += 1
    return found


def gap(facts: RunFacts, found: Dossier) -> Gap | None:
    """From the baseline to this run, as report and API have it; None where a figure is missing."""
    return next((g for g in gaps_by_run(found) if g.run == facts.run.label), None)


def waterfall(account: Gap) -> plots.Plot:
    """The account as a waterfall from the baseline to the measured figure."""
    falls = [
        plots.Fall("baseline", 0.0, account.baseline_tok_s, total=True),
        *(
            plots.Fall(
                p.name,
                p.reached - p.tok_s.value,
                p.reached,
                low=p.tok_s.low,
                high=p.tok_s.high,
            )
            for p in account.parts
        ),
        plots.Fall(f"measured, {account.run}", 0.0, account.measured_tok_s, total=True),
    ]
    moves = ", ".join(
        f"{p.name} {p.tok_s.value:+.1f} ({p.tok_s.low:+.1f} to {p.tok_s.high:+.1f})"
        for p in account.parts
    )
    reading = (
        f"from {account.baseline_tok_s:.1f} to {account.measured_tok_s:.1f} tok/s: {moves}; "
        f"95 % ranges from {account.spread}"
    )
    reading += f". Not shared out further: {account.note}." if account.note else "."
    return plots.waterfall(
        "gap", "Where the throughput goes", "tok/s", falls, reading.replace(" -", " −")
    )


def live_plots(run: Run, lines: Iterable[tuple[int | None, str]]) -> tuple[plots.Plot, ...]:
    """The last decode lines of a log that is being written, by 1-based line number and text.

    What is warm-up and what is measured is not told before the end: all of it is drawn alike.
    """
    found = [d for number, text in lines if (d := classify_line(text, number or 1).decode)]
    drawn = []
    for name, key in (("tok_s", "throughput"), ("accept_len", "accept_len")):
        values = [(d, value) for d in found if (value := getattr(d, key)) is not None]
        if len(values) > 1:
            known = term(name)
            plot = plots.series(
                name,
                known.name,
                known.unit,
                [plots.Point(float(i), v, d.line, True) for i, (d, v) in enumerate(values)],
                across=f"the last {len(values)} decode lines, in order",
                hue=plots.hue(run.number),
                digits=known.digits,
                floor=1.0 if name == "accept_len" else 0.0,
            )
            mean = sum(v for _, v in values) / len(values)
            plot.drawing.says = (
                f"{known.name} of the last {len(values)} decode lines: "
                f"{mean:.{known.digits}f} {known.unit} on average, warm-up not told apart yet."
            )
            drawn.append(
                replace(plot, head=plot.head[:-1], rows=tuple(row[:-1] for row in plot.rows))
            )
    return tuple(drawn)


def break_even(page: RunPage) -> float | None:
    """Accept length at which this run's steps would draw level with its baseline; None where a
    side is not known or the run has no draft."""
    facts, base = page.facts, page.baseline
    if base is None or not facts.speculative or base.speculative or not base.measured:
        return None
    if facts.figures.step_ms is None or base.figures.tok_s is None:
        return None
    plain = plain_step_ms(base.figures.tok_s.mean, base.concurrency)
    return break_even_accept_len(facts.figures.step_ms.mean, plain)


def wants_account(page: RunPage) -> bool:
    """Whether a gap account could be drawn, which needs the whole investigation read."""
    facts = page.facts
    return bool(facts.measured and facts.speculative and facts.figures.accept_len)


def named(drawn: Iterable[plots.Plot], name: str) -> plots.Plot | None:
    return next((plot for plot in drawn if plot.name == name), None)
