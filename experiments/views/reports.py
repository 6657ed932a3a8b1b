"""The report of an investigation: the draft as it stands, and the versions published from it."""

from __future__ import annotations

from secrets import token_urlsafe
from typing import Any

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments import queries, store
from experiments.lifecycle import Refused
from experiments.lifecycle import reports as lifecycle
from experiments.models import Rendering, Report
from experiments.queries import reports as reads
from experiments.reports import document as documents
from experiments.reports import making, pull_request
from experiments.reports import render as rendering
from experiments.reports.differences import differences
from experiments.reports.document import Document
from experiments.reports.render import Link
from experiments.views.compare import drawing_file
from experiments.views.found import found


def draft_now(slug: str) -> tuple[queries.InvestigationPage, reads.Draft, Document]:
    """The investigation, its draft's row if there is one, and the document as it stands now."""
    page = found(queries.investigation_page, slug)
    draft = reads.report_draft(page.investigation)
    choices = documents.choices_of(draft.report, draft.remarks)
    return page, draft, documents.document(page, choices)


def _version(slug: str, number: int) -> tuple[Report, Document]:
    report = found(reads.report_version, slug, number)
    return report, documents.read(report.post_mortem)


# ---- forms of one document -----------------------------------------------------------------------


def _kept(request: HttpRequest, document: Document, make: Any) -> HttpResponseBase:
    """An answer that a browser may keep, asking each time whether it still holds."""
    etag = f'"{document.digest}"'
    if unchanged := get_conditional_response(request, etag=etag):
        return unchanged
    answer: HttpResponse = make()
    answer["ETag"] = etag
    answer["Cache-Control"] = "private, no-cache"
    return answer


def _text(text: str, kind: str, name: str) -> HttpResponse:
    answer = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    answer["Content-Disposition"] = f'inline; filename="{name}"'
    return answer


def pdf_of(
    request: HttpRequest,
    document: Document,
    *,
    name: str,
    page: str,
    back: str,
    again: bool = False,
) -> HttpResponseBase:
    """The PDF where it is made; else it is asked for, and the answer is a page that waits."""
    if page not in Report.Page.values:
        page = Report.Page.A4
    try:
        row = making.ordered(document, page, again=again)
    except (rendering.PdfUnavailable, Refused) as no:
        return render(request, "503.html", {"reason": str(no)}, status=503)
    if row.state == Rendering.State.DONE and row.pdf_id:
        file = store.path_of(row.pdf_id).open("rb")
        sent = FileResponse(file, content_type="application/pdf", filename=f"{name}.pdf")
        sent["Cache-Control"] = "private, no-cache"
        sent["ETag"] = f'"{row.pdf_id}"'
        return sent
    failed = row.state == Rendering.State.FAILED
    context = {"row": row, "failed": failed, "back": back, "percent": round(100 * row.fraction)}
    context["shared"] = not hasattr(request, "user") or not request.user.is_authenticated
    answer = render(request, "reports/making.html", context, status=500 if failed else 202)
    answer["Cache-Control"] = "no-store"
    if not failed:
        answer["Retry-After"] = "2"
    return answer


# ---- the draft -----------------------------------------------------------------------------------


@require_safe
def page(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The post-mortem as it stands now; the same template as the PDF's."""
    _, _, document = draft_now(slug)
    links = [
        Link(reverse("investigation", args=[slug]), "Back to the investigation"),
        Link(reverse("report-draft", args=[slug]), "Choose, annotate, publish"),
        Link(reverse("report-versions", args=[slug]), "Published versions"),
        Link(reverse("report-pdf", args=[slug]), "PDF"),
        Link(reverse("report-markdown", args=[slug]), "Markdown"),
        Link(reverse("report-json", args=[slug]), "JSON"),
    ]
    return _kept(request, document, lambda: HttpResponse(rendering.html(document, links=links)))


@require_http_methods(["GET", "HEAD", "POST"])
def pdf(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The draft as PDF; POST asks again for one that failed."""
    _, draft, document = draft_now(slug)
    chosen = draft.report.page if draft.report else Report.Page.A4
    return pdf_of(
        request,
        document,
        name=slug,
        page=request.GET.get("page", chosen),
        back=reverse("report-page", args=[slug]),
        again=request.method == "POST",
    )


@require_safe
def markdown(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The draft as Markdown for a pull request."""
    _, _, document = draft_now(slug)
    return _kept(
        request,
        document,
        lambda: _text(pull_request.markdown(document), "text/markdown", f"{slug}.md"),
    )


@require_safe
def as_json(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The draft's document itself."""
    _, _, document = draft_now(slug)
    return _kept(request, document, lambda: _json(document, slug))


def _json(document: Document, name: str) -> HttpResponse:
    text = documents.canonical(document.body).decode()
    return _text(text, "application/json", f"{name}.json")


def figure_of(document: Document, name: str, form: str, of: str) -> HttpResponse:
    """A drawing of a report as CSV, SVG or PNG; 404 where the report shows none of that name."""
    drawn = rendering.figure(document, name)
    if drawn is None:
        raise Http404("There is no such drawing.")
    return drawing_file(drawn, drawn.head, drawn.rows, form, f"{of}-{name}")


@require_safe
def figure(request: HttpRequest, slug: str, name: str, form: str) -> HttpResponse:
    """A drawing of the draft to keep."""
    _, _, document = draft_now(slug)
    return figure_of(document, name, form, slug)


# ---- versions ------------------------------------------------------------------------------------


@require_safe
def versions(request: HttpRequest, slug: str) -> HttpResponse:
    """All published versions with their hashes, differences and share links."""
    return _versions(request, slug)


def _versions(request: HttpRequest, slug: str, *, status: int = 200, **more: Any) -> HttpResponse:
    page = found(reads.reports_page, slug)
    context = {"page": page, "investigation": page.investigation, "once": token_urlsafe(16)}
    return render(request, "reports/versions.html", context | more, status=status)


@require_safe
def version(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """One published version, as it was."""
    _, document = _version(slug, number)
    links = [
        Link(reverse("investigation", args=[slug]), "Back to the investigation"),
        Link(reverse("report-versions", args=[slug]), "All versions"),
        Link(reverse("report-version-pdf", args=[slug, number]), "PDF"),
        Link(reverse("report-version-markdown", args=[slug, number]), "Markdown"),
        Link(reverse("report-version-json", args=[slug, number]), "JSON"),
    ]
    return _kept(request, document, lambda: HttpResponse(rendering.html(document, links=links)))


@require_http_methods(["GET", "HEAD", "POST"])
def version_pdf(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """A version's PDF: made once, the same bytes ever after."""
    report, document = _version(slug, number)
    return pdf_of(
        request,
        document,
        name=f"{slug}-v{number}",
        page=request.GET.get("page", report.page),
        back=reverse("report-versions", args=[slug]),
        again=request.method == "POST",
    )


@require_safe
def version_markdown(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """A version as Markdown."""
    _, document = _version(slug, number)
    return _text(pull_request.markdown(document), "text/markdown", f"{slug}-v{number}.md")


@require_safe
def version_json(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """A version's document: its SHA-256 is that of these bytes."""
    _, document = _version(slug, number)
    return _json(document, f"{slug}-v{number}")


@require_safe
def version_figure(
    request: HttpRequest, slug: str, number: int, name: str, form: str
) -> HttpResponse:
    """A drawing of a version to keep."""
    _, document = _version(slug, number)
    return figure_of(document, name, form, f"{slug}-v{number}")


@require_safe
def changes(request: HttpRequest, slug: str, number: int, since: int) -> HttpResponse:
    """What changed between two versions."""
    after, new = _version(slug, number)
    before, old = _version(slug, since)
    context = {
        "investigation": after.investigation,
        "before": before,
        "after": after,
        "changes": differences(old.body, new.body),
    }
    return render(request, "reports/changes.html", context)


@require_POST
@never_cache
@sensitive_variables("token", "address")
def share(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Make a link to one version. Its address stands in this answer alone and is not kept; a form
    that is sent again makes no second link."""
    report = found(reads.report_version, slug, number)
    days = request.POST.get("days", "")
    try:
        if not days.isascii() or not days.isdigit() or len(days) > 4:
            raise Refused("say for how many days the link is to work")
        link, token = lifecycle.share(
            report=report,
            by=request.user.get_username(),
            days=int(days),
            label=request.POST.get("label", ""),
            once=request.POST.get("once", "")[:64],
        )
    except Refused as no:
        messages.error(request, str(no))
        return redirect("report-versions", slug)
    address = request.build_absolute_uri(reverse("shared", args=[token]))
    return _versions(request, slug, status=201, address=address, link=link)


@require_POST
def revoke(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Make a link show nothing any more."""
    link = found(reads.share_link, slug, pk)
    lifecycle.revoke(link=link, by=request.user.get_username())
    messages.success(request, "The link shows nothing any more.")
    return redirect("report-versions", slug)
