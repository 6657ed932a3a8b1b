"""The next experiments worth their time in an investigation, from its rows."""

from __future__ import annotations

from experiments.models import Finding
from experiments.queries import InvestigationPage
from experiments.reports.document import known_beside_runs
from experiments.reports.record import record_of
from specdebug.diagnosis.advice import Advice, advise
from specdebug.diagnosis.post_mortem import investigation_case


def next_steps(page: InvestigationPage) -> tuple[Advice, ...]:
    """Ranked advice; none for an investigation that is closed."""
    if page.investigation.state != page.investigation.State.OPEN:
        return ()
    case = investigation_case(record_of(page.dossier), known_beside_runs(page.dossier))
    codes = [
        facts.finding.code
        for facts in page.dossier.findings
        if facts.finding.state == Finding.State.OPEN
    ]
    return advise(case, codes)
