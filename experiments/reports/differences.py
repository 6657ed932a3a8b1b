"""What a reader sees change between two versions of a report: two documents in, differences out.

Rows are matched by their names (R1, H2, a finding's code), so that an inserted one does not make
all that follow look changed. Decides nothing about what a change means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from experiments.reports.sections import SECTIONS

Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One change. part: of the report; name: of the row; before, after: in words, "" for none."""

    part: str
    what: Literal["added", "removed", "changed"]
    name: str
    before: str = ""
    after: str = ""


def _figure(value: float | None, digits: int = 1) -> str:
    return "not known" if value is None else f"{value:.{digits}f}"


def _run(row: Told) -> str:
    spread = f" ± {row['sd']:.1f}" if row["sd"] is not None else ""
    figures = f"{_figure(row['tok_s'])}{spread} tok/s (n = {row['n']})"
    change = "" if row["change_percent"] is None else f", {row['change_percent']:+.1f} %"
    return (
        f"{row['title']}: {row['state']}, {figures}, accept length "
        f"{_figure(row['accept_len'], 2)}{change} {row['verdict']}".rstrip()
    )


def _hypothesis(row: Told) -> str:
    said = f"{row['claim']} Predicted: {row['prediction'] or 'nothing'}"
    if row["applied"]:
        said += f"; applied: {row['applied']['applied']}"
    if row["outcome"]:
        said += f"; prediction {row['outcome']['outcome']}"
    return said


def _bug(row: Told) -> str:
    life = f" ({', '.join(row['life'])})" if row["life"] else ""
    return f"{row['severity']}, {row['state']}{life}: {row['statement']}"


def _gap(row: Told) -> str:
    parts = "; ".join(f"{p['name']} {p['tok_s']:+.1f}" for p in row["account"]["parts"])
    return (
        f"{row['account']['baseline_tok_s']:.1f} to {row['account']['measured_tok_s']:.1f}: {parts}"
    )


# part of the report, its rows in the post-mortem, a row's name, a row in words
_ROWS: tuple[tuple[str, str, Callable[[Told], str], Callable[[Told], str]], ...] = (
    ("Summary", "summary", lambda r: r["lead"], lambda r: r["text"]),
    ("Findings", "bugs", lambda r: r["code"], _bug),
    ("Runs", "runs", lambda r: r["label"], _run),
    (
        "Comparisons",
        "regressions",
        lambda r: f"{r['run']} against {r['against']}",
        lambda r: f"{r['change_percent']:+.1f} %, {r['verdict']}",
    ),
    ("Hypotheses", "hypotheses", lambda r: r["label"], _hypothesis),
    ("Gap accounts", "gaps", lambda r: r["run"], _gap),
    ("What the figures say", "insights", lambda r: r["heading"], lambda r: r["text"]),
    ("What to do next", "advice", lambda r: r["action"], lambda r: f"settles {r['settles']}"),
    ("Timeline", "steps", lambda r: f"{r['kind']}: {r['happened']}", lambda r: r["showed"]),
    (
        "Patches",
        "patches",
        lambda r: f"{r['run']} {r['file']}",
        lambda r: f"{r['change']} {r['note']}".strip(),
    ),
)
_HEAD = ("title", "question", "state", "exception", "context", "metric", "baseline", "best")


def differences(before: Told, after: Told) -> tuple[Difference, ...]:
    """Changes from one document's body to another's, part by part; empty for equal contents."""
    old, new = before["post_mortem"], after["post_mortem"]
    found = [
        Difference("Investigation", "changed", name, str(old[name] or ""), str(new[name] or ""))
        for name in _HEAD
        if old.get(name) != new.get(name)
    ]
    for part, key, name, words in _ROWS:
        found += _between(
            part, _named(old.get(key, ()), name, words), _named(new.get(key, ()), name, words)
        )
    remarks = (
        _named(body["remarks"], lambda r: f"{r['section']}, by {r['author']}", lambda r: r["text"])
        for body in (before, after)
    )
    found += _between("Remarks", *remarks)
    if before["template"] != after["template"]:
        found.append(
            Difference("Choices", "changed", "template", before["template"], after["template"])
        )
    found += _between("Sections", *(_sections(body) for body in (before, after)))
    return tuple(found)


def _sections(body: Told) -> dict[str, str]:
    """The names of the sections shown; each stands for itself."""
    return {SECTIONS.get(key, key): "" for key in body["sections"]}


def _named(
    rows: Iterable[Told], name: Callable[[Told], str], words: Callable[[Told], str]
) -> dict[str, str]:
    """Rows in words by name; a name that comes again is numbered."""
    found: dict[str, str] = {}
    for row in rows:
        key, number = name(row), 2
        while key in found:
            key, number = f"{name(row)} ({number})", number + 1
        found[key] = words(row)
    return found


def _between(part: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[Difference]:
    changed = [
        Difference(part, "changed", name, old[name], words)
        if name in old
        else Difference(part, "added", name, "", words)
        for name, words in new.items()
        if old.get(name) != words
    ]
    gone = [Difference(part, "removed", name, was) for name, was in old.items() if name not in new]
    return [*changed, *gone]
