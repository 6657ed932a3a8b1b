"""The charts: figures in, Altair out, as a Vega-Lite spec for the page or as SVG for the report.

Colours come from the configuration, not from the specs: the page fills it from its own tokens
(light or dark), the report from `PRINT`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from experiments.reports.terms import term

if TYPE_CHECKING:
    import pandas as pd

# A browser draws this many points at once without a pause; longer series are averaged in bins.
MOST_POINTS = 1200

PRINT: dict[str, Any] = {
    "background": "white",
    "font": "DejaVu Sans",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "#333333",
        "titleColor": "#333333",
        "gridColor": "#e2e5df",
        "domainColor": "#9aa59f",
        "tickColor": "#9aa59f",
        "labelFontSize": 10,
        "titleFontSize": 10,
        "titleFontWeight": "normal",
    },
    "legend": {"labelFontSize": 10, "titleFontSize": 10, "orient": "top", "title": None},
    # Okabe and Ito: deed, critical, good, thought, high.
    "mark": {"color": "#1a5c9a"},
    "rule": {"color": "#a8320a"},
    "text": {"color": "#18222b"},
    "range": {"category": ["#1a5c9a", "#a8320a", "#0a6b50", "#7a3f86", "#8a5200"]},
}


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run in a chart: its label and the figures of its repeats, in the order measured."""

    label: str
    values: tuple[float, ...]


def series(
    samples: pd.DataFrame, metric: str, *, reference: float | None = None, says: str = ""
) -> Any:
    """A figure over the seconds of a run, from decode lines.

    `samples`: as `frames.samples` gives them. `reference` draws a rule
    that `says` names, e.g. the baseline. Rows without the metric are left out.
    """
    import altair as alt

    known = term(metric)
    rows, words = _thinned(samples, metric)
    # Throughput from zero, so that a gap looks as large as it is; an accept length starts at one.
    floor = 1.0 if metric == "accept_len" else 0.0
    x = alt.X("second:Q", title=words)
    y = alt.Y(
        f"{metric}:Q",
        title=f"{known.name}, {known.unit}",
        scale=alt.Scale(domainMin=floor, zero=False),
    )
    tip = [
        alt.Tooltip("second:Q", format=".1f", title="second"),
        alt.Tooltip(f"{metric}:Q", format=f".{known.digits}f", title=known.unit or known.name),
    ]
    if "line" in rows:
        tip.append(alt.Tooltip("line:Q", title="log line", format="d"))
    faded = alt.Opacity(
        "stretch:O",
        sort=["measured", "warm-up or idle"],
        scale=alt.Scale(domain=["measured", "warm-up or idle"], range=[0.9, 0.3]),
        legend=alt.Legend(title=None, orient="top"),
    )
    base = alt.Chart(rows).encode(x=x, y=y, opacity=faded)
    layers = [
        base.mark_line(strokeWidth=1).encode(detail=["stretch:N", "rank:N"]),
        base.mark_circle(size=18).encode(tooltip=tip),
    ]
    if reference is not None:
        layers += _rule(reference, says, "y")
    return alt.layer(*layers).properties(width="container", height=180)


def _thinned(samples: pd.DataFrame, metric: str) -> tuple[pd.DataFrame, str]:
    """Rows with second, metric, stretch and rank, averaged in bins where there are too many; and
    the words for the axis."""
    rows = samples.dropna(subset=[metric]).copy()
    timed = bool(rows["t"].notna().all())
    # A log without times still has an order.
    rows["second"] = rows["t"] - rows["t"].min() if timed else range(len(rows))
    words = "seconds since the first decode line" if timed else "decode line, in order"
    if timed and rows["t"].duplicated().any():
        # Engines print whole seconds: lines of one second are spread over it, in their order.
        same = rows.groupby(["t", "rank"])["second"]
        rows["second"] += same.cumcount() / same.transform("size")
    rows["stretch"] = rows["in_repeat"].map({True: "measured", False: "warm-up or idle"})
    kept = ["second", metric, "stretch", "rank", "line"]
    if len(rows) <= MOST_POINTS:
        return rows[kept].round(4), words
    width = -(-len(rows) // MOST_POINTS)
    bins = [i // width for i in range(len(rows))]
    means = rows.groupby([bins, "stretch", "rank"])[["second", metric]].mean().reset_index()
    return means[kept[:4]].round(4), f"{words} (mean of {width} lines a point)"


def _rule(value: float, says: str, channel: str) -> list[Any]:
    """A dashed rule across the chart with its words at the edge."""
    import altair as alt

    where = {channel: alt.datum(value)}
    mark = alt.Chart(alt.InlineData(values=[{}])).encode(**where)
    text = mark.mark_text(
        align="left" if channel == "y" else "center",
        baseline="bottom",
        dy=-3,
        dx=4 if channel == "y" else 0,
        text=says,
        fontSize=10,
    )
    place = {"x": alt.value(0)} if channel == "y" else {"y": alt.value(0)}
    return [mark.mark_rule(strokeDash=[5, 3]), text.encode(**place)]


def runs_against(
    runs: Sequence[RunFigures], metric: str, *, reference: float | None = None, says: str = ""
) -> Any:
    """Every run's repeats as points and their mean as a bar; a rule for the baseline or goal."""
    import altair as alt

    known = term(metric)
    points = [{"run": run.label, metric: value} for run in runs for value in run.values]
    base = alt.Chart(alt.InlineData(values=points)).encode(
        y=alt.Y("run:N", sort=[run.label for run in runs], title=None),
    )
    bars = base.mark_bar(height=12, opacity=0.45).encode(
        x=alt.X(
            f"mean({metric}):Q",
            title=f"{known.name}, {known.unit}",
            scale=alt.Scale(zero=True, nice=True),
        )
    )
    dots = base.mark_point(size=28, filled=True, opacity=0.9).encode(x=alt.X(f"{metric}:Q"))
    words = base.mark_text(align="left", dx=8, fontSize=10).encode(
        x=alt.X(f"max({metric}):Q"), text=alt.Text(f"mean({metric}):Q", format=f".{known.digits}f")
    )
    layers = [bars, dots, words]
    if reference is not None:
        layers += _rule(reference, says, "x")
    return alt.layer(*layers).properties(width=520, height=alt.Step(26))


@dataclass(frozen=True, slots=True)
class Reach:
    """A run's accept length beside what it needs to draw level and what it can reach at most."""

    label: str
    measured: float
    needed: float | None
    most: float | None


def reaches(rows: Sequence[Reach]) -> Any:
    """Accept lengths: a bar for the measured one, a tick where it draws level, one at the most."""
    import altair as alt

    # A deep chain's perfect draft would squeeze everything else into a corner.
    edge = 1.5 * max(max(row.measured, row.needed or 0.0) for row in rows)
    marks = [
        {"run": row.label, "value": value, "mark": name}
        for row in rows
        for name, value in (
            ("measured", row.measured),
            ("draws level with the baseline", row.needed),
            ("a perfect draft", row.most),
        )
        if value is not None and value <= edge
    ]
    names = ["measured", "draws level with the baseline", "a perfect draft"]
    colour = alt.Color(
        "mark:N", scale=alt.Scale(domain=names), legend=alt.Legend(title=None, orient="top")
    )
    base = alt.Chart(alt.InlineData(values=marks)).encode(
        y=alt.Y("run:N", sort=[row.label for row in rows], title=None),
        x=alt.X("value:Q", title="Accept length, tok/step", scale=alt.Scale(zero=True)),
        color=colour,
    )
    bars = base.transform_filter("datum.mark === 'measured'").mark_bar(height=12)
    ticks = base.transform_filter("datum.mark !== 'measured'").mark_tick(thickness=3, size=20)
    words = base.mark_text(align="left", dx=5, dy=-13, fontSize=9).encode(
        text=alt.Text("value:Q", format=".2f")
    )
    return alt.layer(bars, ticks, words).properties(width=520, height=alt.Step(34))


@dataclass(frozen=True, slots=True)
class Fall:
    """One bar of a gap account, from and to in tok/s."""

    name: str
    start: float
    end: float


def waterfall(rows: Sequence[Fall]) -> Any:
    """From the baseline to the measured figure, part by part, in tok/s."""
    import altair as alt

    data = [
        {
            "part": row.name,
            "start": row.start,
            "end": row.end,
            "low": min(row.start, row.end),
            "high": max(row.start, row.end),
            "change": row.end - row.start,
            "says": f"{row.end:.1f}" if row.start == 0 else f"{row.end - row.start:+.1f}",
            "tone": "figure" if row.start == 0 else "lost" if row.end < row.start else "won",
        }
        for row in rows
    ]
    base = alt.Chart(alt.InlineData(values=data)).encode(
        y=alt.Y(
            "part:N", sort=[row.name for row in rows], title=None, axis=alt.Axis(labelLimit=240)
        )
    )
    bars = base.mark_bar(height=14).encode(
        x=alt.X("low:Q", title="Throughput, tok/s", scale=alt.Scale(zero=True)),
        x2="high:Q",
        color=alt.Color("tone:N", scale=alt.Scale(domain=["figure", "lost", "won"]), legend=None),
    )
    words = base.mark_text(align="left", dx=5, fontSize=10).encode(x="high:Q", text="says:N")
    return alt.layer(bars, words).properties(width=420, height=alt.Step(24))


def spec(chart: Any) -> dict[str, Any]:
    """The chart as a Vega-Lite specification, without any configuration of its own."""
    import altair as alt

    with alt.theme.enable("none"):
        found: dict[str, Any] = chart.to_dict()
    found.pop("config", None)
    return found


def svg(chart: Any) -> str:
    """The chart as SVG for the report; the same bytes for the same figures."""
    found = spec(chart)
    if found.get("width") == "container":
        found["width"] = 520
    return _drawn(json.dumps(found, sort_keys=True))


# Drawing takes half a second a chart, and a report is opened more often than it changes.
@lru_cache(maxsize=128)
def _drawn(found: str) -> str:
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(found, config=PRINT)
    return drawn
