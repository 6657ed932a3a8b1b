"""What is known of the arguments of a run that was entered by hand: as asked, and by rule."""

from __future__ import annotations

from experiments import arguments, bulk
from experiments.models import Run


def enter_arguments(run: Run) -> None:
    """Keep what was asked and what the release makes of it; nothing where none is stated."""
    asked = arguments.requested_of(run.argv)
    if not asked or run.config.exists():
        return
    release = arguments.release_of(run.engine_release)
    bulk.insert(arguments.entries(run, asked, None, release=release, env=run.env))
