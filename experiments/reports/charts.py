"""The charts: figures in, Altair out, as a Vega-Lite spec for the page or as SVG for the report.

Colours come from the configuration, not from the specs: the page fills it from its own tokens
(light or dark), the report from `PRINT`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        "stretch:N",
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
    mark = alt.Chart(alt.Data(values=[{}])).encode(**where)
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
    order = [run.label for run in runs]
    base = alt.Chart(alt.Data(values=points)).encode(
        y=alt.Y("run:N", sort=order, title=None),
    )
    x_title = f"{known.name}, {known.unit}"
    bars = base.mark_bar(height=12, opacity=0.45).encode(
        x=alt.X(f"mean({metric}):Q", title=x_title, scale=alt.Scale(zero=True))
    )
    dots = base.mark_point(size=28, filled=True, opacity=0.9).encode(x=alt.X(f"{metric}:Q"))
    words = base.mark_text(align="left", dx=8, fontSize=10).encode(
        x=alt.X(f"max({metric}):Q"), text=alt.Text(f"mean({metric}):Q", format=f".{known.digits}f")
    )
    layers = [bars, dots, words]
    if reference is not None:
        layers += _rule(reference, says, "x")
    return alt.layer(*layers).properties(width=520, height=alt.Step(26))


def parts(rows: Sequence[Mapping[str, Any]], *, unit: str, order: Sequence[str]) -> Any:
    """Stacked bars: rows of {"run", "part", "value"}, in the order of `order`."""
    import altair as alt

    labels = list(dict.fromkeys(row["run"] for row in rows))
    data = [{**row, "rank": order.index(row["part"])} for row in rows]
    return (
        alt.Chart(alt.Data(values=data))
        .mark_bar(height=16)
        .encode(
            y=alt.Y("run:N", sort=labels, title=None),
            x=alt.X("value:Q", title=unit, stack="zero"),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=list(order)),
                legend=alt.Legend(title=None, orient="top"),
            ),
            order=alt.Order("rank:Q"),
        )
        .properties(width=520, height=alt.Step(26))
    )


def spec(chart: Any) -> dict[str, Any]:
    """The chart as a Vega-Lite specification, without any configuration of its own."""
    import altair as alt

    with alt.theme.enable("none"):
        found: dict[str, Any] = chart.to_dict()
    found.pop("config", None)
    return found


def svg(chart: Any) -> str:
    """The chart as SVG for the report; the same bytes for the same figures."""
    import vl_convert

    found = spec(chart)
    if found.get("width") == "container":
        found["width"] = 520
    drawn: str = vl_convert.vegalite_to_svg(json.dumps(found, sort_keys=True), config=PRINT)
    return drawn
