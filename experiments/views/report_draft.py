"""The next version of a report in the making: choices, remarks, and the button that publishes.

One form: every button of it takes along what was chosen and written, so that none loses a tick.
"""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from experiments import dispatch, queries
from experiments.lifecycle import Refused, renderings
from experiments.lifecycle import reports as lifecycle
from experiments.models import Investigation, Report
from experiments.queries import reports as reads
from experiments.reports import document as documents
from experiments.reports.differences import differences
from experiments.reports.document import Document
from experiments.reports.sections import ALWAYS, SECTIONS, shown
from experiments.views.found import found
from experiments.views.reports import draft_now

CHANGED_SINCE = (
    "The record or the choices have changed since that page was shown. "
    "Look at what stands here now, and publish then."
)
TAKEN_ALONG = (
    "What you chose is kept, and not published yet: the report is another one with it. "
    "Look at what stands here now, and publish then."
)


@require_http_methods(["GET", "HEAD", "POST"])
def draft(request: HttpRequest, slug: str) -> HttpResponse:
    """What the draft shows, what was taken out of it, remarks, and the button that publishes."""
    if request.method == "POST":
        try:
            _take(request, _investigation(slug))
            messages.success(request, "Kept.")
        except Refused as no:
            messages.error(request, str(no))
        return redirect("report-draft", slug)
    page, row, document = draft_now(slug)
    last = reads.last_version(page.investigation)
    paper = row.report.page if row.report else Report.Page.A4
    context = {
        "investigation": page.investigation,
        "draft": row.report,
        "document": document,
        "template": document.body["template"],
        "paper": paper,
        "sections": [
            (key, SECTIONS[key], key in document.body["sections"], key == ALWAYS)
            for key in shown(document.body["template"])
        ],
        "remarks": [(r, SECTIONS.get(r.section, r.section)) for r in row.remarks],
        "last": last,
        "same": last is not None and _same(last, document, paper),
        "changes": differences(last.post_mortem, document.body) if last else (),
        "number": row.report.number if row.report else (last.number + 1 if last else 1),
    }
    return render(request, "reports/draft.html", context)


def _investigation(slug: str) -> Investigation:
    return found(queries.investigation_page, slug).investigation


def _same(last: Report, document: Document, paper: str) -> bool:
    """Whether the last version is this document, on this paper, but for its stamp."""
    return last.page == paper and {**last.post_mortem, "stamp": None} == document.body


def _take(request: HttpRequest, row: Investigation) -> None:
    """Keep what the form holds: choices where it has any, and a remark where one was written."""
    text = request.POST.get("text", "").strip()
    if "template" not in request.POST and not text:
        return
    by = request.user.get_username()
    made = lifecycle.draft_of(investigation=row, by=by)
    if "template" in request.POST:
        _choose(request, made)
    if text:
        section = request.POST.get("beside", "")
        if section not in SECTIONS:
            raise Refused(f"{section[:40]!r} is no section of a report")
        lifecycle.add_remark(draft=made, section=section, text=text, author=by)


def _choose(request: HttpRequest, made: Report) -> None:
    template = request.POST["template"]
    gone = set(made.left_out)
    if template == made.template:  # else the boxes were those of another template
        offered = set(shown(template))
        gone = (gone - offered) | (offered - set(request.POST.getlist("section")))
    lifecycle.choose(
        draft=made,
        template=template,
        page=request.POST.get("page", Report.Page.A4),
        left_out=gone - {ALWAYS},
        kept=request.POST.getlist("kept"),
    )


@require_POST
def add_remark(request: HttpRequest, slug: str) -> HttpResponse:
    """A person's words beside a section."""
    row = _investigation(slug)
    try:
        _take(request, row)
        if not request.POST.get("text", "").strip():
            raise Refused("write the remark first")
        messages.success(request, "The remark stands in the draft.")
    except Refused as no:
        messages.error(request, str(no))
    return redirect("report-draft", slug)


@require_POST
def remove_remark(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Take a remark out of the draft."""
    row = _investigation(slug)
    try:
        made = lifecycle.draft_of(investigation=row, by=request.user.get_username())
        lifecycle.remove_remark(draft=made, remark=pk)
        _take(request, row)
    except Refused as no:
        messages.error(request, str(no))
    return redirect("report-draft", slug)


@require_POST
def publish(request: HttpRequest, slug: str) -> HttpResponse:
    """Freeze what was reviewed as a version; refused where it has changed since, or not at all."""
    page, row, document = draft_now(slug)
    reviewed = request.POST.get("reviewed")
    was_reviewed = document.digest == reviewed
    try:
        _take(request, page.investigation)
        page, row, document = draft_now(slug)
        if document.digest != reviewed:
            raise Refused(TAKEN_ALONG if was_reviewed else CHANGED_SINCE)
    except Refused as no:
        messages.error(request, str(no))
        return redirect("report-draft", slug)
    return _published(request, slug, page, row, document)


def _published(
    request: HttpRequest,
    slug: str,
    page: queries.InvestigationPage,
    row: reads.Draft,
    document: Document,
) -> HttpResponse:
    by = request.user.get_username()
    last = reads.last_version(page.investigation)
    try:
        made = lifecycle.draft_of(investigation=page.investigation, by=by)
        if last is not None and _same(last, document, made.page):
            messages.info(
                request,
                f"Nothing has changed since version {last.number}; no other was published.",
            )
            return redirect("report-versions", slug)
        now = timezone.now()
        stamp = {"number": made.number, "published_by": by, "published_at": now.isoformat()}
        choices = documents.choices_of(row.report, row.remarks)
        final = documents.document(page, choices, stamp)
        version = lifecycle.publish(
            draft=made, body=final.body, sha256=final.digest, by=by, now=now
        )
    except Refused as no:
        messages.error(request, str(no))
        return redirect("report-draft", slug)
    _begin_pdf(final, version.page)
    messages.success(request, f"Version {version.number} is published. Its PDF is being made.")
    return redirect("report-versions", slug)


def _begin_pdf(document: Document, page: str) -> None:
    """Have the PDF made before somebody asks for it; whoever asks is told if that fails."""
    try:
        row = renderings.ask(document=documents.canonical(document.body), page=page)
    except Refused:
        return
    dispatch.send_rendering(row)
