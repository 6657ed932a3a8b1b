"""The heartbeat and the reasons to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from workers.heart import CANCELLED, LOST, Beat, Heart
from workers.plan import Progress


@dataclass(frozen=True)
class Answer:
    alive: bool = True
    cancel: bool = False


def heart(beat: Callable[[Progress], Beat | None], leaving: Callable[[], str] = str) -> Heart:
    return Heart(beat, every=0.01, done=lambda: None, leaving=leaving)


def wait(done: Callable[[], object]) -> None:
    until = time.monotonic() + 5
    while not done():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_the_newest_progress_goes_out_from_a_thread_of_its_own() -> None:
    said: list[tuple[str, int]] = []

    def beat(progress: Progress) -> Beat:
        said.append((progress.detail, threading.get_ident()))
        return Answer()

    with heart(beat) as beating:
        beating.tell(Progress("loading", "1/3"))
        beating.tell(Progress("loading", "2/3"))
        wait(lambda: said and said[-1][0] == "2/3")
        assert beating.should_stop() == ""
    count = len(said)
    time.sleep(0.05)
    assert len(said) == count
    assert threading.get_ident() not in {thread for _, thread in said}


def test_a_cancel_and_a_lost_claim_stop_the_run_for_good() -> None:
    answers: list[Beat] = [Answer(), Answer(cancel=True), Answer(), Answer(alive=False)]

    def beat(_: Progress) -> Beat:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    with heart(beat) as beating:
        wait(lambda: beating.should_stop() == CANCELLED)
        wait(lambda: beating.should_stop() == LOST)
        assert beating.lost


def test_a_record_that_cannot_be_reached_stops_nothing() -> None:
    tries: list[int] = []

    def beat(_: Progress) -> None:
        tries.append(1)

    with heart(beat) as beating:
        wait(lambda: len(tries) > 3)
        assert beating.should_stop() == ""
        assert not beating.lost


def test_a_worker_that_must_leave_stops_the_run() -> None:
    with heart(lambda _: Answer(), leaving=lambda: "Going.") as beating:
        assert beating.should_stop() == "Going."


def test_the_end_is_called_once_and_in_the_thread() -> None:
    ends: list[int] = []
    beating = Heart(
        lambda _: Answer(),
        every=0.01,
        done=lambda: ends.append(threading.get_ident()),
        leaving=str,
    )
    with beating:
        pass
    assert len(ends) == 1
    assert ends[0] != threading.get_ident()
