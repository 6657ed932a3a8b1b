"""The files behind the figures: a log with an anchor for every line, any file to take away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from experiments import intake, queries, secrets, store
from experiments.models import Evidence, Finding, Run
from experiments.queries.evidence import cited, evidence_of, line_marks
from experiments.refusal import Refused
from experiments.views.forms import FileForm
from experiments.views.found import found
from experiments.views.lines import live_log, window


@dataclass(frozen=True, slots=True)
class Cited:
    """One place that a finding rests on; url is "" where the file is not kept."""

    source: str
    line: int | None
    text: str
    url: str


def with_links(finding: Finding, among: Iterable[Evidence] | None = None) -> list[Cited]:
    """A finding's evidence with links to the very lines."""
    files = cited(finding, among)
    items = []
    for item in finding.evidence:
        source, line = str(item.get("source", "")), item.get("line")
        row, url = files.get(source), ""
        if row is not None:
            url = reverse("evidence", args=[finding.investigation.slug, row.pk])
            url += f"?line={line}#L{line}" if line else ""
        items.append(Cited(source, line, str(item.get("text", "")), url))
    return items


def _line(request: HttpRequest) -> int:
    """The line asked for; anything that is no number means the first."""
    asked = request.GET.get("line", "")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 12 else 1


@require_safe
def run_log(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """The run's log: the kept one, or what the worker has written so far."""
    page = found(queries.run_page, slug, number)
    if page.log is not None:
        path, name = store.path_of(page.log.blob_id), page.log.name
    else:
        path, name = live_log(page.run), "server.log"
    return _shown(request, path, name, page.log, page.run)


@require_safe
def text(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A kept file as numbered lines."""
    row = found(evidence_of, slug, pk)
    return _shown(request, store.path_of(row.blob_id), row.name, row, row.run)


def _shown(
    request: HttpRequest, path: Path, name: str, row: Evidence | None, run: Run | None
) -> HttpResponse:
    line = _line(request)
    try:
        lines = window(path, line, hide=() if run is None else secrets.values_of(run.plan))
    except (OSError, EOFError) as no:
        raise Http404(f"{name} cannot be read: {getattr(no, 'strerror', None) or no}.") from None
    investigation = run.investigation if run is not None else row.investigation  # type: ignore[union-attr]
    marks = line_marks(run, investigation, name)
    context = {
        "rows": [(shown, marks.get(shown.number or 0, ())) for shown in lines.lines],
        "marks": sorted(marks.items()),
        "window": lines,
        "line": line,
        "name": name,
        "evidence": row,
        "run": run,
        "investigation": investigation,
    }
    return render(request, "lines.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest, slug: str, number: int | None = None) -> HttpResponse:
    """Add a file to a run, or to the investigation, and look again with it."""
    run = None if number is None else found(queries.run_live, slug, number).run
    row = run.investigation if run else found(queries.investigation_page, slug).investigation
    form = FileForm(request.POST or None, request.FILES or None)
    if form.is_valid():
        name, stream = form.given()
        try:
            kept = intake.take_file(
                investigation=row,
                run=run,
                name=name,
                stream=stream,
                by=request.user.get_username(),
            )
        except Refused as no:
            form.add_error(None, str(no))
        else:
            what = f"{kept.name}: {kept.problem}" if kept.problem else f"{kept.name}: {kept.kind}"
            messages.add_message(
                request, messages.WARNING if kept.problem else messages.SUCCESS, what
            )
            return redirect(run or row)
    heading = f"Add a file to {run}" if run else "Add a file"
    context = {"form": form, "heading": heading, "investigation": row, "files": True}
    return render(request, "form.html", context)


@require_safe
def download(request: HttpRequest, slug: str, pk: int) -> FileResponse:
    """A kept file, byte for byte, never shown by the browser."""
    row = found(evidence_of, slug, pk)
    try:
        file = store.path_of(row.blob_id).open("rb")
    except OSError:
        raise Http404(f"{row.name} is no longer in the data folder.") from None
    return FileResponse(
        file, as_attachment=True, filename=row.name, content_type="application/octet-stream"
    )
