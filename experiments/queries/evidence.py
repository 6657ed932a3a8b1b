"""Files of an investigation by address or by the name that a finding cites."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.models import Evidence, Finding, Investigation, Run


def evidence_of(slug: str, pk: int) -> Evidence:
    """One file; raises Evidence.DoesNotExist outside the investigation."""
    return Evidence.objects.select_related("investigation", "run", "blob").get(
        investigation__slug=slug, pk=pk
    )


def cited(finding: Finding, among: Iterable[Evidence] | None = None) -> dict[str, Evidence]:
    """The files that a finding's evidence names, by name; those of the run that showed it win.

    `among`: rows already read; without them it is one query.
    """
    names = {item.get("source") for item in finding.evidence if isinstance(item, dict)}
    if not names:
        return {}
    if among is None:
        among = Evidence.objects.filter(investigation=finding.investigation_id, name__in=names)
    found: dict[str, Evidence] = {}
    for row in sorted(among, key=lambda row: row.run_id == finding.seen_in_id):
        if row.name in names:
            found[row.name] = row
    return found


@dataclass(frozen=True, slots=True)
class Mark:
    """A finding that rests on a line. pk: its row, None where the finding was withdrawn."""

    code: str
    severity: str
    statement: str
    pk: int | None


def line_marks(run: Run | None, investigation: Investigation, name: str) -> dict[int, list[Mark]]:
    """Which findings rest on which lines of a file, by 1-based line: one query."""
    shown = run.shown if run is not None else investigation.shown
    found: dict[int, list[Mark]] = {}
    rows = dict(Finding.objects.filter(investigation=investigation).values_list("code", "pk"))
    for finding in shown:
        for item in finding.get("evidence", ()):
            line = item.get("line")
            if item.get("source") != name or not line:
                continue
            mark = Mark(
                finding["code"],
                finding.get("severity", "info"),
                finding.get("statement", ""),
                rows.get(finding["code"]),
            )
            if mark not in found.setdefault(line, []):
                found[line].append(mark)
    return found
