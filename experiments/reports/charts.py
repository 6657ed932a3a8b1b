"""The course of several runs on one chart to zoom into: frames in, a Vega-Lite spec out, by Altair.

Colours come from the configuration, not from the spec: the page fills it from its own tokens, light
or dark. What a page shows at once is drawn by `plots`; this is for looking closer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.reports.terms import term

if TYPE_CHECKING:
    import pandas as pd

# A browser moves this many points without a pause; longer courses are averaged in bins.
MOST_POINTS = 3000


def courses(
    samples: pd.DataFrame, metric: str, *, reference: float | None = None, says: str = ""
) -> dict[str, Any]:
    """A figure over the seconds of each run, from decode lines, as a Vega-Lite specification.

    `samples`: as `frames.samples` gives them. `reference` draws a rule that `says` names, e.g. the
    baseline. Lines without the metric are left out; the axis says when lines were averaged.
    """
    import altair as alt

    known = term(metric)
    rows, words = _thinned(samples, metric)
    order = [str(run) for run in rows["run"].unique()]
    # Throughput from zero, so that a gap looks as large as it is; an accept length starts at one.
    floor = 1.0 if metric == "accept_len" else 0.0
    base = alt.Chart(rows).encode(
        x=alt.X("second:Q", title=words),
        y=alt.Y(
            f"{metric}:Q",
            title=f"{known.name}, {known.unit}",
            scale=alt.Scale(domainMin=floor, zero=False),
        ),
        color=alt.Color("run:N", sort=order, legend=alt.Legend(title=None, orient="top")),
        opacity=alt.Opacity(
            "stretch:O",
            sort=["measured", "warm-up or idle"],
            scale=alt.Scale(domain=["measured", "warm-up or idle"], range=[0.9, 0.3]),
            legend=None,
        ),
    )
    tip = [
        alt.Tooltip("run:N"),
        alt.Tooltip("second:Q", format=".1f", title="second"),
        alt.Tooltip(f"{metric}:Q", format=f".{known.digits}f", title=known.unit or known.name),
        alt.Tooltip("stretch:N", title="part"),
        alt.Tooltip("line:Q", title="log line", format="d"),
    ]
    zoom = alt.selection_interval(bind="scales", name="zoom")
    layers = [
        base.mark_line(strokeWidth=1).encode(detail=["stretch:N", "rank:N"]),
        base.mark_circle(size=18).encode(tooltip=tip).add_params(zoom),
    ]
    if len(rows):
        layers.append(_names(rows, metric, order))
    if reference is not None:
        layers += _rule(reference, says)
    with alt.theme.enable("none"):
        found: dict[str, Any] = (
            alt.layer(*layers).properties(width="container", height=420).to_dict()
        )
    found.pop("config", None)
    return found


def _thinned(samples: pd.DataFrame, metric: str) -> tuple[pd.DataFrame, str]:
    """Rows with run, second, metric, stretch, rank and line, averaged in bins where there are too
    many; and the words for the axis."""
    rows = samples.dropna(subset=[metric]).copy()
    timed = bool(rows["t"].notna().all())
    by_run = rows.groupby("run")
    # A log without times still has an order. Runs are laid over each other from their first line.
    rows["second"] = rows["t"] - by_run["t"].transform("min") if timed else by_run.cumcount()
    words = "seconds since a run's first decode line" if timed else "decode line, in order"
    if timed and rows.duplicated(["run", "t", "rank"]).any():
        # Engines print whole seconds: lines of one second are spread over it, in their order.
        same = rows.groupby(["run", "t", "rank"])["second"]
        rows["second"] += same.cumcount() / same.transform("size")
    rows["stretch"] = rows["in_repeat"].map({True: "measured", False: "warm-up or idle"})
    kept = ["run", "second", metric, "stretch", "rank", "line"]
    if len(rows) <= MOST_POINTS:
        return rows[kept].round(4), words
    width = -(-len(rows) // MOST_POINTS)
    bins = by_run.cumcount() // width
    keys = ["run", "stretch", "rank"]
    means = rows.groupby([*keys, bins], sort=False)[["second", metric, "line"]].mean()
    return means.reset_index()[kept].round(4), f"{words} (mean of {width} lines a point)"


def _names(rows: pd.DataFrame, metric: str, order: list[str]) -> Any:
    """Each run's label at the end of its line, in its colour."""
    import altair as alt

    last = rows.loc[rows.groupby("run")["second"].idxmax(), ["run", "second", metric]]
    mark = alt.Chart(last).mark_text(align="right", dy=-9, fontSize=12, fontWeight="bold")
    return mark.encode(
        x="second:Q", y=f"{metric}:Q", text="run:N", color=alt.Color("run:N", sort=order)
    )


def _rule(value: float, says: str) -> list[Any]:
    """A dashed rule across with its words where it begins: lines are named at their ends."""
    import altair as alt

    mark = alt.Chart(alt.InlineData(values=[{}])).encode(y=alt.datum(value))
    text = mark.mark_text(align="left", baseline="bottom", dx=4, dy=-3, text=says, fontSize=11)
    return [mark.mark_rule(strokeDash=[5, 3]), text.encode(x=alt.value(0))]
