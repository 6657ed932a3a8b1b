"""Looks at an ended run again: what the library finds in it, and what becomes of its hypothesis.

Rows and files in, findings and verdicts out; safe to call as often as one likes. People's triage
is kept: a finding set aside stays aside, a verdict overruled by a person stands.
"""

from __future__ import annotations

from django.utils import timezone

from experiments.checkup import cases, register
from experiments.checkup.alarm import alarms
from experiments.checkup.identity import series_key
from experiments.checkup.judge import judge
from experiments.checkup.look import capture_patched, look
from experiments.models import Investigation, Run
from experiments.queries import Dossier, RunFacts, dossier
from specdebug.diagnosis.case import case_from_rows

__all__ = ["alarms", "preflight", "recheck", "recheck_files"]


def preflight(run: Run, *, release: str = "") -> None:
    """What the plan alone gives away before anything is started: kept in the run's `shown`.

    It opens no finding of the investigation; only a run that was measured does.
    """
    asked = {e.key: e.requested for e in run.config.all() if e.was_requested}
    case = case_from_rows(
        requested=asked,
        env=run.plan.get("env", {}),
        engine_version=release or run.engine_release or None,
    )
    run.shown = [finding.as_dict() for finding in look(cases.Cases(case), None).findings]
    run.save(update_fields=["shown"])


def recheck(run: Run) -> None:
    """Findings and verdicts after `run`, and again for the runs that are compared with it."""
    found = dossier(run.investigation)
    for facts in found.runs:
        if facts.run.pk == run.pk or _compares_with(found, facts, run):
            _conclude(found, facts)
    _fold(run.investigation)


def recheck_files(investigation: Investigation) -> None:
    """Findings in the files that belong to no run, and in the runs that such files tell more of."""
    found = dossier(investigation)
    case = cases.files_case(found)
    seen = look(cases.Cases(case), None) if case is not None else None
    investigation.shown = [] if seen is None else [f.as_dict() for f in seen.findings]
    investigation.save(update_fields=["shown"])
    for facts in found.runs:
        _conclude(found, facts)
    _fold(investigation)


def _compares_with(found: Dossier, facts: RunFacts, run: Run) -> bool:
    """Whether the figures of `run` stand beside those of `facts` in its conclusions."""
    predicted = facts.run.prediction.baseline_id if facts.run.prediction else None
    baseline = facts.run.baseline_id or found.investigation.baseline_id
    return run.pk in (predicted, baseline)


def _conclude(found: Dossier, facts: RunFacts) -> None:
    run = facts.run
    if run.state not in (Run.State.DONE, Run.State.FAILED):
        return
    known = cases.cases_of(found, facts)
    seen = look(known, facts, patched=capture_patched(found, facts))
    run.shown = [finding.as_dict() for finding in seen.findings]
    run.untried = [{"code": code, "missing": what} for code, what in sorted(seen.untried.items())]
    run.checked_at, run.check_problem = timezone.now(), ""
    run.series_key = series_key(found, facts)
    run.save(update_fields=["shown", "untried", "checked_at", "check_problem", "series_key"])
    judge(found, facts, known.log)


def _fold(investigation: Investigation) -> None:
    register.save_lives(dossier(investigation))
