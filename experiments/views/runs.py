"""One run: its page, its live state, its charts, and what a person may do with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, get_args
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments import dispatch, lifecycle, queries, secrets
from experiments.lifecycle.runs import workload_from
from experiments.models import ConfigEntry, Investigation, Run
from experiments.queries.comparison import name_of
from experiments.queries.workers import why_it_waits, worker_names
from experiments.reports import build, run_plots
from experiments.reports.plots import Plot
from experiments.views import preflight
from experiments.views.compare import plot_file
from experiments.views.evidence import with_links
from experiments.views.forms import RunForm
from experiments.views.found import found
from experiments.views.gpus import gpu_context
from experiments.views.lines import live_log, tail
from specdebug.reference import variants
from workers.plan import Phase, Workload

PHASES: tuple[str, ...] = get_args(Phase)
TAIL_LINES = 200


def _live(run: Run) -> dict[str, Any]:
    """The phases with how far each is, and the end of the log."""
    now = PHASES.index(run.phase) if run.phase in PHASES else -1
    steps = [
        (name, "done" if i < now else "now" if i == now else "todo")
        for i, name in enumerate(PHASES)
        if name != "finished"
    ]
    lines = tail(live_log(run), TAIL_LINES, hide=secrets.values_of(run.plan))
    return {
        "phases": steps,
        "tail": lines,
        "live_plots": run_plots.live_plots(run, [(line.number, line.text) for line in lines]),
        "waits": why_it_waits(run),
    }


@require_safe
def run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Verdict first, then figures, charts, arguments, findings, and the exact command."""
    page = found(queries.run_page, slug, number)
    context: dict[str, Any] = {
        "page": page,
        "run": page.run,
        "facts": page.facts,
        "investigation": page.investigation,
        "live": page.live,
        "findings": [
            (f, with_links(f.finding, page.evidence)) for f in build.by_severity(page.findings)
        ],
        "command": shlex.join(page.run.argv),
        **gpu_context(page.run),
        "plots": _plots(page),
        "compare_with": _comparison(page),
        "break_even": run_plots.break_even(page),
        "unknown": _unknown(page.facts.config),
        **_arguments(page.facts.config.values()),
    }
    if not page.live.ended:
        context |= _live(page.run)
    return render(request, "run.html", context)


def _arguments(entries: Iterable[ConfigEntry]) -> dict[str, list[ConfigEntry]]:
    """Arguments that are not as asked, those that are, and those that nobody asked for."""
    found: dict[str, list[ConfigEntry]] = {"differing": [], "asked": [], "chosen": []}
    for entry in entries:
        if entry.differs or entry.origin == ConfigEntry.Origin.OVERRIDE:
            found["differing"].append(entry)
        else:
            found["asked" if entry.was_requested else "chosen"].append(entry)
    return found


def _unknown(config: Mapping[str, ConfigEntry]) -> bool:
    """Whether nothing tells what is in force of that which was asked for."""
    asked = [entry for entry in config.values() if entry.was_requested]
    return bool(asked) and not any(entry.effective_known for entry in asked)


def _plots(page: queries.RunPage) -> tuple[Plot, ...]:
    """The drawings of an ended run; one that is under way has too little to draw."""
    if not page.live.ended:
        return ()
    whole = queries.dossier(page.investigation) if run_plots.wants_account(page) else None
    return run_plots.run_plots(page, whole)


def _comparison(page: queries.RunPage) -> str:
    """The address that sets this run beside its baseline, or offers others."""
    names = [name_of(f.run) for f in (page.baseline, page.facts) if f is not None]
    return f"{reverse('compare')}?{urlencode([('run', name) for name in names], safe='/')}"


@require_safe
def plot(request: HttpRequest, slug: str, number: int, name: str, form: str) -> HttpResponse:
    """One of the run's drawings as a file."""
    page = found(queries.run_page, slug, number)
    drawn = _plots(page) if page.live.ended else _live(page.run)["live_plots"]
    return plot_file(run_plots.named(drawn, name), form, f"{slug}-r{number}")


@require_safe
@never_cache
def live(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """The piece that a running run's page asks for every two seconds; it ends the asking itself."""
    state = found(queries.run_live, slug, number)
    if state.ended:
        # The whole page has news now: figures, findings, verdicts.
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    context = {"run": state.run, "live": state, "investigation": state.run.investigation}
    return render(request, "_live_answer.html", context | _live(state.run))


@require_POST
def cancel(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Ask for the run to stop; asking twice changes nothing."""
    row = found(queries.run_live, slug, number).run
    dispatch.cancel_run(row)
    return redirect(row)


@require_POST
def queue(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Send a draft to the workers."""
    row = found(queries.run_live, slug, number).run
    try:
        dispatch.queue_run(row)
    except lifecycle.Refused as no:
        messages.error(request, str(no))
    return redirect(row)


@require_POST
def repeat(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """The same plan once more, queued at once."""
    row = found(queries.run_page, slug, number).run
    try:
        made = lifecycle.repeat_run(row)
        dispatch.queue_run(made)
    except lifecycle.Refused as no:
        messages.error(request, str(no))
        return redirect(row)
    return redirect(made)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest, slug: str) -> HttpResponse:
    """Plan a run from nothing."""
    page = found(queries.investigation_page, slug)
    row = page.investigation
    form = _form(request, page, {"baseline": row.baseline_id, "engine": "reference"})
    if form.is_valid() and request.POST.get("then") != "look":
        values = form.cleaned_data
        try:
            made = lifecycle.add_run(
                investigation=row,
                title=values["title"],
                engine=values["engine"],
                server_args=values["server_args"],
                workload=workload_from(form.workload()),
                hypothesis=form.row("hypothesis"),
                baseline=form.row("baseline"),
                strict=values["strict"],
                worker=values["worker"],
            )
            return _sent(request, made)
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
    return _planning(request, form, "Plan a run", row, "reference")


@require_http_methods(["GET", "HEAD", "POST"])
def branch(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """A new run that follows this one and differs in what is changed here."""
    page = found(queries.investigation_page, slug)
    origin = next((f.run for f in page.dossier.runs if f.run.number == number), None)
    if origin is None:
        raise Http404
    try:
        plan = lifecycle.plan_of(origin)
    except lifecycle.Refused as no:
        messages.error(request, str(no))
        return redirect(origin)
    initial: dict[str, Any] = {"title": "", "engine": plan.engine}
    initial["server_args"] = shlex.join(plan.server_args)
    initial |= {name: getattr(plan.workload, name) for name in Workload.__dataclass_fields__}
    initial |= {"strict": plan.strict, "worker": origin.needs_worker}
    form = _form(request, page, initial | {"hypothesis": origin.hypothesis_id})
    # The branch keeps engine and baseline: what differs must be what is measured.
    del form.fields["engine"], form.fields["baseline"]
    if form.is_valid() and request.POST.get("then") != "look":
        values = form.cleaned_data
        try:
            made = lifecycle.branch_run(
                origin,
                title=values["title"],
                server_args=values["server_args"],
                workload=workload_from(form.workload(), plan.workload),
                hypothesis=form.row("hypothesis"),
                strict=values["strict"],
                worker=values["worker"],
            )
            return _sent(request, made)
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
    heading = f"Branch {origin.label}: {origin.title}"
    return _planning(request, form, heading, page.investigation, plan.engine)


def _form(
    request: HttpRequest, page: queries.InvestigationPage, initial: dict[str, Any]
) -> RunForm:
    return RunForm(
        request.POST or None,
        initial=initial,
        runs=[facts.run for facts in page.dossier.runs],
        hypotheses=[facts.hypothesis for facts in page.dossier.hypotheses],
        workers=worker_names(),
    )


LOAD = ("prompts_per_repeat", "max_new_tokens", "concurrency", "repeats")
MAIN = ("title", "engine", "server_args", "hypothesis", "baseline")


def _planning(
    request: HttpRequest, form: RunForm, heading: str, row: Investigation, engine: str
) -> HttpResponse:
    """The form with what the release will make of it; `engine`: where the form does not ask."""
    text = form["server_args"].value()
    chosen = str(form["engine"].value()) if "engine" in form.fields else engine
    rest = [name for name in form.fields if name not in LOAD + MAIN]
    context = {
        "form": form,
        "heading": heading,
        "investigation": row,
        "engine": chosen,
        "workload": LOAD,
        "rest": rest,
        "shipped": {"target": variants.TARGET, "draft": variants.DRAFT},
        "rest_open": any(name in form.errors for name in rest),
        **preflight.ahead(str(text or ""), chosen),
    }
    return render(request, "plan.html", context)


def _sent(request: HttpRequest, made: Run) -> HttpResponse:
    """Queue the new run unless it was to stay a draft, and open it."""
    if request.POST.get("then") != "draft":
        dispatch.queue_run(made)
    return redirect(made)
