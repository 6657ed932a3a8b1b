"""How a report's plain data look: times that are text, states in words. Formatting only."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import compress
from string import ascii_lowercase
from typing import Any

from django import template
from django.utils.dateformat import format as formatted

from experiments.templatetags.figures import signed

register = template.Library()

STATES = {
    "open": "open",
    "fixed": "fixed and verified",
    "set-aside": "set aside",
    "withdrawn": "withdrawn",
}
KINDS = {
    "finding": "found",
    "fixed": "fixed",
    "source": "source read",
}
MOST_COMPARISONS = 60
METRICS = {"tok_s": "throughput", "accept_len": "accept length", "step_ms": "step time"}
UNITS = {"tok_s": "tok/s", "accept_len": "tokens a step", "step_ms": "ms"}


@register.filter
def moment(value: str | None, how: str = "j F Y, H:i") -> str:
    """A time in ISO form as words; empty where there is none."""
    if not value:
        return ""
    try:
        return formatted(datetime.fromisoformat(value), how)
    except ValueError:
        return value


@register.filter
def life_state(value: str) -> str:
    """A finding's state in words."""
    return STATES.get(value, value)


@register.filter
def step_kind(value: str) -> str:
    """What kind of step an entry of the timeline is."""
    return KINDS.get(value, value)


@register.filter
def metric_name(value: str) -> str:
    return METRICS.get(value, value)


@register.filter
def metric_unit(value: str) -> str:
    return UNITS.get(value, "")


@register.filter
def bugs_shown(told: Any, which: str) -> list[Any]:
    """ "causes": critical and high causes, open or fixed; "open": all that is open; "aside": set
    aside by a person."""
    rows = told["bugs"]
    if which == "causes":
        grave = [b for b in rows if b["cause"] and b["severity"] in ("critical", "high")]
        return [b for b in grave if b["state"] in ("open", "fixed")]
    state = "set-aside" if which == "aside" else which
    return [b for b in rows if b["state"] == state]


@register.filter
def in_template(obstacles: list[str], which: str) -> list[str]:
    """The obstacles of a report; the short one names what is open, without each finding's words."""
    if which != "short":
        return obstacles
    named = [one.split(" is open", 1)[0] for one in obstacles if ") is open" in one]
    others = [one for one in obstacles if ") is open" not in one]
    return [*others, f"Open: {', '.join(named)}."] if named else others


@register.filter
def spread(sd: float | None) -> str:
    """The sample deviation behind a mean; empty where there is none."""
    return "" if not isinstance(sd, int | float) else f"± {sd:.1f}"


@register.filter
def runs_of(unjudged: list[str]) -> str:
    """The runs of "R3: what it lacked" items."""
    return ", ".join(item.split(":", 1)[0] for item in unjudged)


@register.filter
def next_number(versions: Any, counter: int) -> int:
    """The number of the version that follows the `counter`th of a list, newest first."""
    number: int = versions[counter].report.number
    return number


@register.filter
def all_well(told: Any, lead: str) -> bool:
    """Whether one of the five sentences has nothing left to worry about."""
    if lead == "Goal":
        return told["goal"]["met"] is True
    grave = ("critical", "high")
    return lead == "Open" and not [b for b in bugs_shown(told, "open") if b["severity"] in grave]


@register.filter
def in_table(value: object) -> str:
    """A cell of a drawing's data table: a dash for what is not known, two digits of a fraction."""
    if value is None or value == "":
        return "–"
    return f"{value:.2f}".replace("-", "−") if isinstance(value, float) else str(value)


@register.filter
def arguments_left_out(settings: Any) -> list[tuple[int, str]]:
    """How many arguments of which runs the table leaves out, the same number in one breath."""
    runs: dict[int, list[str]] = {}
    for one in settings:
        runs.setdefault(one["rest"], []).append(one["run"])
    return [(count, ", ".join(named)) for count, named in sorted(runs.items())]


@register.simple_tag
def compared(told: Any) -> dict[str, Any]:
    """The comparisons as a table: its rows, the letter of each thing they rest on, and by verdict
    how many are left out.

    Of many only the regressions and those with the baseline are rows; the timeline has the rest.
    """
    rows = told["regressions"]
    left: Counter[str] = Counter()
    if len(rows) > MOST_COMPARISONS:
        told_of = [c["flagged"] or c["against"] == told["baseline"] for c in rows]
        left = Counter(c["verdict"] for c, is_row in zip(rows, told_of, strict=True) if not is_row)
        rows = list(compress(rows, told_of))
    rests = dict.fromkeys(c["rests_on"] for c in rows if "rests_on" in c)
    return {
        "rows": rows,
        "bases": dict(zip(rests, ascii_lowercase, strict=False)),
        "left_out": left.most_common(),
    }


@register.filter
def interval(comparison: Any) -> str:
    """A comparison's interval in per cent, a dash where its figures give none."""
    low, high = comparison["low_percent"], comparison["high_percent"]
    return "–" if low is None or high is None else f"{signed(low)} to {signed(high)} %"


@register.filter
def lost_by(comparison: Any) -> str:
    """Which part of a regression lost; empty for what is none, and where it is not known."""
    lost = comparison["flagged"] and comparison["cause"] != "unknown"
    return f"by {comparison['cause']}" if lost else ""
