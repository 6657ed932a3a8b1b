"""The replay is planned once, with everything registered before the first run."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from experiments import lifecycle
from experiments.models import Investigation, Run
from experiments.story import replay

pytestmark = pytest.mark.django_db


@pytest.fixture
def planned(data_dir: Path) -> Investigation:
    return replay.start_replay()


def test_four_runs_are_queued_in_order(planned: Investigation) -> None:
    runs = list(planned.runs.order_by("number"))
    assert [r.state for r in runs] == ["queued"] * 4
    times = [r.queued_at for r in runs]
    assert times == sorted(times, key=str)
    assert planned.baseline == runs[0]


def test_starting_twice_changes_nothing(planned: Investigation) -> None:
    call_command("replay", stdout=StringIO())
    assert Investigation.objects.count() == 1
    assert planned.runs.count() == 4


def test_runs_that_are_still_drafts_are_queued_by_the_second_start(
    planned: Investigation,
) -> None:
    Run.objects.filter(number__in=(2, 3)).update(state=Run.State.DRAFT)
    Run.objects.filter(number=1).update(state=Run.State.CANCELLED)
    replay.start_replay()
    states = list(planned.runs.order_by("number").values_list("state", flat=True))
    assert states == ["queued", "cancelled", "queued", "queued"]


def test_the_runs_ask_for_the_storys_arguments(planned: Investigation) -> None:
    asked = [
        {e.key: e.requested for e in run.config.all() if e.was_requested}
        for run in planned.runs.order_by("number")
    ]
    assert "speculative_algorithm" not in asked[0]
    assert [a.get("speculative_num_steps") for a in asked] == [None, 1, 15, 15]
    assert [a.get("speculative_num_draft_tokens") for a in asked] == [None, 16, 16, 16]
    drafts = [a.get("speculative_draft_model_path") for a in asked]
    assert drafts[1] == drafts[2] != drafts[3]


def test_the_drafts_differ_in_their_layer_ids_alone(planned: Investigation, data_dir: Path) -> None:
    wrong, right = (
        json.loads((data_dir / "models" / name / "config.json").read_text())
        for name in ("draft-wrong-layers", "draft-right-layers")
    )
    key = "eagle_aux_hidden_state_layer_ids"
    assert wrong["eagle_config"].pop(key) == [1, 5, 9]
    assert right["eagle_config"].pop(key) == [-1, 1, 5]
    assert wrong == right


def test_predictions_and_checks_are_registered_before_the_runs(planned: Investigation) -> None:
    for hypothesis in planned.hypotheses.all():
        run = hypothesis.runs.get()
        prediction = hypothesis.predictions.get()
        assert hypothesis.checks.exists()
        assert prediction.frozen_at is None
        assert prediction.registered_at <= run.created_at
        claimed = lifecycle.claim_run(run.pk, token="t", worker="w")
        assert claimed is not None
        assert claimed.prediction == prediction
        assert all(c.registered_at <= claimed.claimed_at for c in hypothesis.checks.all())


def test_the_workload_is_small_when_asked(data_dir: Path) -> None:
    out = StringIO()
    call_command("replay", "--repeats", "2", "--prompts", "2", "--tokens", "32", stdout=out)
    work = {
        (w["repeats"], w["prompts_per_repeat"], w["max_new_tokens"])
        for w in (r.plan["workload"] for r in Run.objects.all())
    }
    assert work == {(2, 2, 32)}
