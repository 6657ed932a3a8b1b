"""What becomes of a run's hypothesis: was its change applied, and did its prediction hold."""

from __future__ import annotations

from experiments.queries import Dossier, RunFacts
from specdebug.diagnosis.case import Case


def judge(found: Dossier, facts: RunFacts, own: Case) -> None:
    """Write the verdict of the run's hypothesis."""
    raise NotImplementedError
