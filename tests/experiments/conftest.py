"""Rows that the record's tests start from."""

from __future__ import annotations

import pytest

from experiments import lifecycle
from experiments.models import Investigation, Run

PLAIN = ["--model-path", "target"]


@pytest.fixture
def investigation(db: None) -> Investigation:
    return lifecycle.create_investigation(title="Slow draft", question="Is the draft worth it?")


@pytest.fixture
def baseline(investigation: Investigation) -> Run:
    run = lifecycle.record_run(
        investigation=investigation,
        title="no speculation",
        repeats=[lifecycle.RecordedRepeat(90.0)],
        server_args=PLAIN,
    )
    lifecycle.edit_investigation(investigation, baseline=run)
    return run
