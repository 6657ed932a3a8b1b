"""The sections of a report: their order, their names, and which ones a template shows."""

from __future__ import annotations

from collections.abc import Iterable

SECTIONS: dict[str, str] = {
    "summary": "Summary",
    "next": "What to do next",
    "goal": "Goal and gap",
    "course": "Course of the investigation",
    "causes": "Root causes",
    "bugs": "Open bugs",
    "runs": "Runs",
    "regressions": "Regressions and other comparisons",
    "gap": "Where the throughput goes",
    "figures": "What the figures say",
    "hypotheses": "Hypotheses and their verdicts",
    "beliefs": "What was believed, and what turned out",
    "steps": "Timeline",
    "configuration": "Arguments and patches",
    "definitions": "What the figures mean",
    "rules": "Rules that fired, and rules without input",
    "commands": "Commands, environment, versions",
    "files": "Files",
}
# In another order: the table of runs fills what the drawing of the course leaves of a page.
SHORT = ("summary", "next", "goal", "runs", "course", "causes", "bugs")
# Without it there is no report.
ALWAYS = "summary"


def shown(template: str, left_out: Iterable[str] = ()) -> list[str]:
    """The sections of a template ("full" or "short") in their order, without those left out."""
    absent = set(left_out) - {ALWAYS}
    keys = SHORT if template == "short" else tuple(SECTIONS)
    return [key for key in keys if key not in absent]
