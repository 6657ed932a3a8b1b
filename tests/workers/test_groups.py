"""A sweep goes on by itself when a worker has ended one of its runs, and after one that died."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments import dispatch, groups, lifecycle
from experiments.models import Run, RunGroup
from workers import tasks
from workers.plan import Workload

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("data_dir", "sglang"),
]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    ids: list[int] = []
    monkeypatch.setattr(dispatch, "_send", lambda pk, *_, **__: ids.append(pk) or True)
    monkeypatch.setattr(dispatch, "_messages_waiting", lambda *_, **__: 0)
    return ids


@pytest.fixture
def group(prompts: Path, sent: list[int], settings: Any) -> RunGroup:
    settings.RUN_HEARTBEAT_SECONDS = 0.1
    work = {"max_new_tokens": 8, "prompts_per_repeat": 2, "repeats": 1, "warm_up_prompts": 0}
    return groups.add_sweep(
        investigation=lifecycle.create_investigation(title="Slow", question="Why?"),
        title="two pages",
        common=groups.Common("sglang", ("--plain",), Workload(prompts=str(prompts), **work), {}),
        settings=[{"--token-seconds": 0.001}, {"--token-seconds": 0.002}],
    )


def test_the_next_run_is_sent_when_one_has_ended(group: RunGroup, sent: list[int]) -> None:
    tasks.measure(sent[0])
    assert len(sent) == 2
    tasks.measure(sent[1])
    group.refresh_from_db()
    assert (group.state, len(sent)) == ("done", 2)
    runs = list(group.runs.order_by("group_place"))
    assert [run.state for run in runs] == ["done", "done"]
    assert runs[1].plan["server_args"] == ["--plain", "--token-seconds", "0.002"]
    tasks.measure(sent[0])  # a redelivery starts nothing and makes nothing
    assert len(sent) == 2


def test_a_worker_that_died_before_going_on_is_made_good_by_the_housekeeping(
    group: RunGroup, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr(tasks, "_go_on", lambda _: None)
        tasks.measure(sent[0])
    assert len(sent) == 1
    tasks.reap()
    assert len(sent) == 2
    assert Run.objects.get(pk=sent[1]).group_place == 1
    tasks.reap()
    assert group.runs.count() == 2
