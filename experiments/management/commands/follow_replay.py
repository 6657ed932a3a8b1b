"""Prints the replay's progress, a line whenever something changes, and ends with its table."""

import time
from typing import Any

from django.core.management.base import BaseCommand

from experiments import queries
from experiments.models import Run
from experiments.story import replay

POLL_SECONDS = 1.0


class Command(BaseCommand):
    help = "Follow the replay of the example on the reference engine until its last run has ended."

    def handle(self, *args: Any, **options: Any) -> None:
        told: dict[int, str] = {}
        while runs := list(Run.objects.filter(investigation__source=replay.SOURCE)):
            for run in runs:
                line = self._line(run)
                if told.get(run.pk) != line:
                    told[run.pk] = line
                    self.stdout.write(f"  replay: {line}")
                    self.stdout.flush()
            if all(run.state in Run.ENDED for run in runs):
                break
            time.sleep(POLL_SECONDS)

    @staticmethod
    def _line(run: Run) -> str:
        """One run in one line; the figures are those of the record."""
        if run.state == Run.State.DONE:
            return f"{run.label} {run.title}: {queries.figures_in_words(run)}"
        if run.state == Run.State.RUNNING:
            return f"{run.label} {run.title}: {run.phase or 'starting'}"
        return f"{run.label} {run.title}: {run.get_state_display()}. {run.reason}".rstrip(". ")
