"""Files of an investigation by address or by the name that a finding cites."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.models import Evidence, Finding


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
