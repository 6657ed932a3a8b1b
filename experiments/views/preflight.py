"""What a plan would become, said while it is written; nothing is kept and nothing is started."""

from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from experiments import arguments
from experiments.checkup import cases
from experiments.checkup.look import look
from experiments.lifecycle.runs import ENGINES, last_run_of
from specdebug.diagnosis.case import case_from_rows
from specdebug.reference.release import DEFAULT as REFERENCE_RELEASE
from specdebug.sglang import preflight as rules

LONGEST = 20_000


@require_POST
def foresee(request: HttpRequest, slug: str) -> HttpResponse:
    """The piece of the form that is asked for as the arguments are typed."""
    engine = request.POST.get("engine") or request.GET.get("engine", "")
    strict = bool(request.POST.get("strict"))
    return render(
        request, "_foreseen_live.html", ahead(request.POST.get("server_args", ""), engine, strict)
    )


def ahead(text: str, engine: str, strict: bool = False) -> dict[str, Any]:
    """Context for _foreseen_live.html: `problem`, or `run` and `page` as a run's page has them."""
    if engine not in ENGINES or engine == "attached" or not text.strip():
        return {}
    if len(text) > LONGEST:
        return {"problem": f"More than {LONGEST} characters are not read as arguments."}
    try:
        words = shlex.split(text.replace("\\\r\n", " ").replace("\\\n", " "))
    except ValueError as no:
        return {"problem": f"Not a command line yet: {no}."}
    asked = arguments.requested_of(words)
    release, source = str(asked.get("engine_release") or ""), "as stated in the arguments"
    if engine == "reference" and not release:
        release, source = REFERENCE_RELEASE, "the release that the reference engine follows"
    elif not release and (last := last_run_of(engine)) is not None:
        release, source = last.engine_release, f"as in {last}, the last run of this engine"
    told = rules.foresee(
        words,
        release=arguments.release_of(release),
        source=source,
        own=arguments.own_refusal(engine, words),
    )
    case = case_from_rows(requested=asked, engine_version=release or None)
    found = [finding.as_dict() for finding in look(cases.Cases(case), None).findings]
    return {
        "run": SimpleNamespace(preflight=told.as_dict() | {"strict": strict}),
        "page": SimpleNamespace(foreseen=found),
    }
