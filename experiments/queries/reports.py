"""Reads of reports: an investigation's versions, its draft, one version; writes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from experiments.models import Investigation, Report, ReportNote, ShareLink


@dataclass(frozen=True)
class Draft:
    """The draft's row, None before there is one, with the remarks in it."""

    report: Report | None
    remarks: tuple[ReportNote, ...]


@dataclass(frozen=True)
class Version:
    """A published version with its share links, the newest first."""

    report: Report
    links: tuple[ShareLink, ...]


@dataclass(frozen=True)
class ReportsPage:
    """An investigation's published versions, the newest first."""

    investigation: Investigation
    versions: tuple[Version, ...]


def report_draft(investigation: Investigation) -> Draft:
    """The draft of an investigation: at most 2 queries."""
    row = (
        Report.objects.filter(investigation=investigation, state=Report.State.DRAFT)
        .defer("post_mortem")
        .first()
    )
    if row is None:
        return Draft(None, ())
    row.investigation = investigation
    return Draft(row, tuple(ReportNote.objects.filter(report=row)))


def reports_page(slug: str) -> ReportsPage:
    """The versions of an investigation with their links: 3 queries."""
    investigation = Investigation.objects.get(slug=slug)
    rows = list(
        Report.objects.filter(investigation=investigation, state=Report.State.PUBLISHED)
        .defer("post_mortem")
        .order_by("-number")
    )
    now = timezone.now()
    links: dict[int, list[ShareLink]] = {}
    for link in ShareLink.objects.filter(report__in=[r.pk for r in rows]).order_by("-pk"):
        link.expired = link.expires_at <= now  # type: ignore[attr-defined]
        links.setdefault(link.report_id, []).append(link)
    for row in rows:
        row.investigation = investigation
    return ReportsPage(investigation, tuple(Version(r, tuple(links.get(r.pk, ()))) for r in rows))


def report_version(slug: str, number: int) -> Report:
    """One published version with its document; raises Report.DoesNotExist."""
    return Report.objects.select_related("investigation").get(
        investigation__slug=slug, number=number, state=Report.State.PUBLISHED
    )


def last_version(investigation: Investigation) -> Report | None:
    """The newest published version with its document."""
    return (
        Report.objects.filter(investigation=investigation, state=Report.State.PUBLISHED)
        .order_by("-number")
        .first()
    )


def share_link(slug: str, pk: int) -> ShareLink:
    """One link of an investigation's reports; raises ShareLink.DoesNotExist."""
    return ShareLink.objects.get(report__investigation__slug=slug, pk=pk)
