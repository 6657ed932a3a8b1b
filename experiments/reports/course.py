"""The course of an investigation as one drawing: figures, what was believed and done, and how long
each grave bug lived; all on one axis of order, since times are not always known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.reports.diagrams import WIDTH, Diagram, Told, ticks
from experiments.reports.svg import Svg, cut

LEFT, RIGHT = 250.0, 26.0
PLOT_TOP, PLOT_HEIGHT = 16.0, 120.0
LANE, BAR = 20.0, 17.0
MOST_BUGS = 16
TITLE = "Figures, beliefs, observations and changes in order, and how long each grave bug lived"
HEAD = ("kind", "what happened", "throughput, tok/s", "n")
LANES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("believed", "thought", ("hypothesis", "belief")),
    ("observed, read", "result", ("observation", "source", "note")),
    ("changed", "good", ("fix",)),
)


def course(told: Told) -> Diagram | None:
    """None where nothing has happened."""
    steps = [s for s in told["steps"] if s["kind"] not in ("finding", "fixed")]
    if not steps:
        return None
    bugs = [b for b in told["bugs"] if b["severity"] in ("critical", "high")][:MOST_BUGS]
    height = PLOT_TOP + PLOT_HEIGHT + 22 + LANE * len(LANES) + BAR * len(bugs) + 30
    svg = Svg(WIDTH, height)
    slot = (WIDTH - LEFT - RIGHT) / len(steps)
    places = [LEFT + slot * (index + 0.5) for index in range(len(steps))]
    at = {s["ref"]: x for s, x in zip(steps, places, strict=True) if s["kind"] == "run"}
    bottom = PLOT_TOP + PLOT_HEIGHT
    _figures(svg, told, at, bottom)
    _lanes(svg, steps, places, bottom + 26)
    _lives(svg, bugs, at, bottom + 26 + LANE * len(LANES) + 8)
    says = _in_words(told, steps, bugs)
    return Diagram(TITLE, says, svg.drawn(says), "course", HEAD, _table(told, steps, bugs))


def _table(
    told: Told, steps: Sequence[Told], bugs: Sequence[Told]
) -> tuple[tuple[str | float | None, ...], ...]:
    """The steps in their order, then how long each grave bug lived."""
    figures = {r["label"]: (r["tok_s"], r["n"]) for r in told["runs"]}
    rows = [
        (s["kind"], s["happened"], *figures.get(s["ref"], (None, None)))
        if s["kind"] == "run"
        else (s["kind"], s["happened"], None, None)
        for s in steps
    ]
    lives = [(f"{b['severity']} bug", f"{b['code']}: {_life(b)}", None, None) for b in bugs]
    return (*rows, *lives)


def _life(bug: Told) -> str:
    return ", ".join(bug["life"]) or str(bug["state"])


def _figures(svg: Svg, told: Told, at: Mapping[str, float], bottom: float) -> None:
    runs = [r for r in told["runs"] if r["tok_s"] is not None and r["label"] in at]
    goal = told["goal"]["target"] if told["metric"] == "tok_s" else None
    high = 1.15 * max([*(r["tok_s"] for r in runs), goal or 0.0, 1e-9])

    def up(value: float) -> float:
        return float(bottom - PLOT_HEIGHT * value / high)

    svg.text(LEFT - 34, PLOT_TOP + 4, "throughput, tok/s", size=9, tint="ink-soft", anchor="end")
    for tick in ticks(high, 4) if runs else []:
        svg.line([(LEFT, up(tick)), (WIDTH - RIGHT, up(tick))], "rule", 0.7)
        svg.text(LEFT - 6, up(tick) + 3, f"{tick:g}", size=9, tint="ink-soft", anchor="end")
    if goal is not None and runs:
        svg.line([(LEFT, up(goal)), (WIDTH - RIGHT, up(goal))], "critical", 1.1, "5 3")
        words = f"goal {goal:.4g}"
        svg.text(WIDTH - RIGHT, up(goal) - 4, words, size=9, tint="critical", anchor="end")
    drafted = [r for r in runs if not r["baseline"]]
    if len(drafted) > 1:
        svg.line([(at[r["label"]], up(r["tok_s"])) for r in drafted], "deed", 1.2)
    crowded = len(runs) > 24
    lost = {c["run"] for c in told["regressions"] if c["flagged"]}
    for index, run in enumerate(runs):
        x, y = at[run["label"]], up(run["tok_s"])
        svg.dot(x, y, 2.4 if crowded else 4, "ink-soft" if run["baseline"] else "deed")
        if run["label"] in lost and not crowded:
            svg.shape([(x - 4, y + 8), (x + 4, y + 8), (x, y + 15)], "critical")
        if not crowded:
            svg.text(x, y - 8, f"{run['tok_s']:.1f}", size=10, anchor="middle", bold=True)
        if not crowded or index % (1 + len(runs) // 24) == 0:
            svg.text(x, bottom + 13, run["label"], size=9 if crowded else 10, anchor="middle")
    for label, x in at.items():
        if not any(r["label"] == label for r in runs) and not crowded:
            svg.text(x, bottom + 13, label, size=10, tint="ink-soft", anchor="middle")
    svg.line([(LEFT, bottom), (WIDTH - RIGHT, bottom)], "ink-soft", 0.8)


def _lanes(svg: Svg, steps: list[Told], places: list[float], top: float) -> None:
    crowded = len(steps) > 60
    for index, (name, tint, kinds) in enumerate(LANES):
        y = top + LANE * index + LANE / 2
        svg.text(LEFT - 8, y + 3.5, name, size=10, tint=tint, anchor="end")
        svg.line([(LEFT, y), (WIDTH - RIGHT, y)], "rule", 0.7)
        for step, x in zip(steps, places, strict=True):
            if step["kind"] not in kinds:
                continue
            svg.dot(x, y, 2.2 if crowded else 4.5, tint, hollow=step["kind"] == "belief")
            if step["kind"] == "hypothesis" and not crowded:
                svg.text(x + 7, y + 3.5, step["ref"], size=9, tint=tint, bold=True)


def _lives(svg: Svg, bugs: list[Told], at: Mapping[str, float], top: float) -> None:
    end = WIDTH - RIGHT
    order = list(at)
    for index, bug in enumerate(bugs):
        y = top + BAR * index
        tint = bug["severity"]
        svg.text(LEFT - 8, y + 11, cut(bug["title"], LEFT - 14, 9), size=9, anchor="end")
        start = at.get(bug["opened_in"] or "", LEFT)
        if bug["state"] == "fixed":
            stop = at.get(bug["fixed_in"] or "", end)
            svg.rect(start, y + 3, stop - start, 10, tint, 0.55)
            svg.dot(stop, y + 8, 5, "good")
            svg.line(
                [(stop - 2.4, y + 8), (stop - 0.6, y + 10), (stop + 2.6, y + 5.8)], "sheet", 1.4
            )
            continue
        known_until = end
        unjudged = [item.split(":", 1)[0] for item in bug["unjudged"]]
        if bug["state"] == "open" and unjudged and unjudged[0] in order:
            known_until = at[unjudged[0]]
            svg.line([(known_until, y + 8), (end, y + 8)], tint, 1.6, "3 3")
        svg.rect(
            start, y + 3, known_until - start, 10, tint, 0.55 if bug["state"] == "open" else 0.2
        )
        if bug["state"] == "open":
            svg.shape([(end, y + 3), (end, y + 13), (end + 7, y + 8)], tint)
    words = "bar: a bug while it lived · tick: fixed, verified · arrow: open · dashes: not judged"
    svg.text(
        WIDTH - RIGHT, top + BAR * len(bugs) + 12, words, size=9, tint="ink-soft", anchor="end"
    )


def _in_words(told: Told, steps: list[Told], bugs: list[Told]) -> str:
    count = {kind: sum(s["kind"] == kind for s in steps) for kind in ("run", "hypothesis", "fix")}
    said = [f"{count['run']} runs, {count['hypothesis']} hypotheses, {count['fix']} fixes in order"]
    runs = [r for r in told["runs"] if r["tok_s"] is not None]
    if runs:
        means = ", ".join(f"{r['label']} {r['tok_s']:.1f}" for r in runs[:40])
        more = f" and {len(runs) - 40} more" if len(runs) > 40 else ""
        said.append(f"throughput in tok/s: {means}{more}")
    for bug in bugs:
        since = f" since {bug['opened_in']}" if bug["opened_in"] else ""
        end = {
            "fixed": f"fixed, verified in {bug['fixed_in']}",
            "open": "still open",
            "set-aside": "set aside",
        }.get(bug["state"], bug["state"])
        said.append(f"{bug['title']} ({bug['severity']}){since}: {end}")
    return "; ".join(said) + "."
