"""Claims: of two who want a run, or of a worker and a reaper, exactly one wins."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import TypeVar

import pytest
from django.db import connection
from django.utils import timezone

from experiments import lifecycle
from experiments.models import Investigation, Run
from workers.plan import Progress

T = TypeVar("T")
DRAFTED = shlex.split(
    "--model-path target --speculative-algorithm EAGLE3 --speculative-draft-model-path draft"
    " --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16"
)


@pytest.fixture
def queued(investigation: Investigation, baseline: Run) -> Run:
    run = lifecycle.add_run(
        investigation=investigation, title="steps 1", server_args=DRAFTED, baseline=baseline
    )
    Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED, queued_at=timezone.now())
    run.refresh_from_db()
    return run


def claim(run: Run, holder: str = "t1") -> Run:
    claimed = lifecycle.claim_run(run.pk, token=holder, worker="host:1")
    assert claimed is not None
    return claimed


def silent(run: Run, seconds: float = 60) -> None:
    Run.objects.filter(pk=run.pk).update(heartbeat_at=timezone.now() - timedelta(seconds=seconds))


def test_a_claimed_run_belongs_to_its_token(queued: Run) -> None:
    run = claim(queued)
    assert (run.state, run.claim, run.worker, run.attempt) == ("running", "t1", "host:1", 1)
    assert run.heartbeat_at is not None


def test_a_redelivered_task_claims_nothing(queued: Run) -> None:
    claim(queued)
    assert lifecycle.claim_run(queued.pk, token="t1", worker="host:1") is None
    assert lifecycle.claim_run(queued.pk, token="t2", worker="host:2") is None
    queued.refresh_from_db()
    assert (queued.claim, queued.attempt) == ("t1", 1)


@pytest.mark.parametrize("state", ["draft", "running", "done", "failed", "cancelled", "lost"])
def test_only_a_queued_run_can_be_claimed(queued: Run, state: str) -> None:
    Run.objects.filter(pk=queued.pk).update(state=state)
    assert lifecycle.claim_run(queued.pk, token="t1", worker="w") is None


def test_a_run_that_does_not_exist_is_not_claimed(db: None) -> None:
    assert lifecycle.claim_run(424242, token="t1", worker="w") is None


def test_claiming_freezes_the_prediction_and_binds_that_version(
    investigation: Investigation, baseline: Run
) -> None:
    hypothesis = lifecycle.add_hypothesis(investigation=investigation, claim="more steps help")
    first = lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline)
    run = lifecycle.add_run(
        investigation=investigation, title="r", server_args=DRAFTED, hypothesis=hypothesis
    )
    Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED)
    claim(run)
    first.refresh_from_db()
    assert first.frozen_at is not None
    later = lifecycle.register_prediction(
        hypothesis=hypothesis, baseline=baseline, direction="down"
    )
    run.refresh_from_db()
    assert (first.version, later.version) == (1, 2)
    assert run.prediction == first
    assert later.frozen_at is None


def test_a_beat_keeps_the_claim_and_tells_where_the_run_stands(queued: Run) -> None:
    claim(queued)
    silent(queued, 10)
    answer = lifecycle.beat(
        queued.pk, token="t1", progress=Progress("measuring", "repeat 2 of 3", 0.5)
    )
    assert (answer.alive, answer.cancel) == (True, False)
    queued.refresh_from_db()
    assert (queued.phase, queued.phase_detail, queued.fraction) == (
        "measuring",
        "repeat 2 of 3",
        0.5,
    )
    assert queued.heartbeat_at is not None
    assert timezone.now() - queued.heartbeat_at < timedelta(seconds=5)


def test_a_beat_with_another_token_is_told_that_the_claim_is_lost(queued: Run) -> None:
    claim(queued)
    assert not lifecycle.beat(queued.pk, token="t2", progress=Progress("loading")).alive
    queued.refresh_from_db()
    assert queued.phase == "preparing"


def test_a_beat_tells_of_a_wish_to_cancel(queued: Run) -> None:
    claim(queued)
    assert lifecycle.request_cancel(queued) == "running"
    answer = lifecycle.beat(queued.pk, token="t1", progress=Progress("loading"))
    assert (answer.alive, answer.cancel) == (True, True)


def test_a_waiting_run_is_cancelled_at_once(queued: Run) -> None:
    assert lifecycle.request_cancel(queued) == "cancelled"
    assert queued.ended_at is not None
    assert lifecycle.claim_run(queued.pk, token="t1", worker="w") is None


def test_cancelling_an_ended_run_changes_nothing(queued: Run) -> None:
    claim(queued)
    assert lifecycle.finish_run(queued.pk, token="t1", state="done", values={})
    assert lifecycle.request_cancel(queued) == "done"
    assert queued.cancel_requested_at is None


def test_a_run_is_finished_by_its_holder_and_once(queued: Run) -> None:
    claim(queued)
    assert not lifecycle.finish_run(queued.pk, token="t2", state="done", values={})
    assert lifecycle.finish_run(queued.pk, token="t1", state="failed", values={"reason": "died"})
    assert not lifecycle.finish_run(queued.pk, token="t1", state="done", values={})
    queued.refresh_from_db()
    assert (queued.state, queued.reason) == ("failed", "died")


def test_a_state_that_is_no_end_does_not_finish_a_run(queued: Run) -> None:
    claim(queued)
    with pytest.raises(ValueError, match="no end"):
        lifecycle.finish_run(queued.pk, token="t1", state="queued", values={})


def test_a_run_that_beats_is_left_alone(queued: Run) -> None:
    claim(queued)
    assert lifecycle.reap_lost(now=timezone.now()) == []
    queued.refresh_from_db()
    assert queued.state == "running"


def test_a_silent_run_goes_back_to_the_queue_once_and_is_lost_the_second_time(queued: Run) -> None:
    claim(queued)
    silent(queued)
    assert lifecycle.reap_lost(now=timezone.now()) == [queued.pk]
    queued.refresh_from_db()
    assert (queued.state, queued.claim, queued.attempt) == ("queued", "", 1)
    assert "host:1" in queued.reason
    claim(queued, "t2")
    queued.refresh_from_db()
    assert (queued.reason, queued.attempt) == ("", 2)
    silent(queued)
    assert lifecycle.reap_lost(now=timezone.now()) == [queued.pk]
    queued.refresh_from_db()
    assert queued.state == "lost"
    assert "second time" in queued.reason
    assert queued.ended_at is not None


def test_a_silent_run_that_was_to_be_cancelled_is_cancelled(queued: Run) -> None:
    claim(queued)
    lifecycle.request_cancel(queued)
    silent(queued)
    lifecycle.reap_lost(now=timezone.now())
    queued.refresh_from_db()
    assert queued.state == "cancelled"


def test_reaping_one_host_leaves_the_others(queued: Run) -> None:
    claim(queued)
    silent(queued)
    assert lifecycle.reap_lost(now=timezone.now(), host="other") == []
    assert lifecycle.reap_lost(now=timezone.now(), host="host") == [queued.pk]


def test_the_old_holder_of_a_reaped_run_is_told_so(queued: Run) -> None:
    claim(queued)
    silent(queued)
    lifecycle.reap_lost(now=timezone.now())
    assert not lifecycle.beat(queued.pk, token="t1", progress=Progress("loading")).alive
    assert not lifecycle.finish_run(queued.pk, token="t1", state="done", values={})


def together(jobs: list[Callable[[], T]]) -> list[T]:
    """Run the jobs at the same moment, each on its own connection."""
    barrier = Barrier(len(jobs))

    def one(job: Callable[[], T]) -> T:
        try:
            barrier.wait(timeout=10)
            return job()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(one, jobs))


@pytest.mark.django_db(transaction=True)
def test_of_eight_workers_one_claims_the_run() -> None:
    investigation = lifecycle.create_investigation(title="t", question="q")
    run = lifecycle.add_run(investigation=investigation, title="r", server_args=DRAFTED)
    Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED)

    def job(n: int) -> Callable[[], Run | None]:
        return lambda: lifecycle.claim_run(run.pk, token=f"t{n}", worker=f"w{n}")

    won = [r for r in together([job(n) for n in range(8)]) if r is not None]
    assert len(won) == 1
    run.refresh_from_db()
    assert (run.claim, run.attempt) == (won[0].claim, 1)


@pytest.mark.django_db(transaction=True)
def test_runs_added_at_the_same_moment_get_different_numbers_and_places() -> None:
    investigation = lifecycle.create_investigation(title="t", question="q")

    def job(n: int) -> Callable[[], Run]:
        return lambda: lifecycle.add_run(
            investigation=investigation, title=f"r{n}", server_args=DRAFTED
        )

    runs = together([job(n) for n in range(8)])
    assert sorted(r.number for r in runs) == list(range(8))
    assert len({r.position for r in runs}) == 8


@pytest.mark.django_db(transaction=True)
def test_of_two_reapers_one_takes_the_run() -> None:
    investigation = lifecycle.create_investigation(title="t", question="q")
    run = lifecycle.add_run(investigation=investigation, title="r", server_args=DRAFTED)
    Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED)
    claim(run)
    silent(run)
    now = timezone.now()
    reaped = together([lambda: lifecycle.reap_lost(now=now)] * 2)
    assert sorted(map(len, reaped)) == [0, 1]
