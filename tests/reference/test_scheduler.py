"""First in, first out; counts, log lines and averages under the release's definitions."""

import itertools
import logging
import queue
import re
from collections.abc import Iterator

import pytest

from specdebug.reference import server_args, variants
from specdebug.reference.engine import Engine
from specdebug.reference.scheduler import Closed, Job, Progress, Scheduler, Ticket

LOG = "specdebug.reference"


def engine(*flags: str) -> Engine:
    base = ["--model-path", str(variants.TARGET), "--speculative-algorithm", "EAGLE3"]
    draft = ["--speculative-draft-model-path", str(variants.DRAFT)]
    window = ["--speculative-num-steps", "3", "--speculative-eagle-topk", "1"]
    return Engine(server_args.resolve([*base, *draft, *window, *flags]))


@pytest.fixture(scope="module")
def speculative() -> Engine:
    return engine()


@pytest.fixture(scope="module")
def plain() -> Engine:
    return Engine(server_args.resolve(["--model-path", str(variants.TARGET)]))


@pytest.fixture
def scheduler(speculative: Engine) -> Iterator[Scheduler]:
    running = Scheduler(speculative, decode_log_interval=5, max_queued=None)
    running.thread.start()
    yield running
    running.close(5)
    assert not running.thread.is_alive()


def last(ticket: Ticket) -> Progress:
    while True:
        progress = ticket.progress.get(timeout=30)
        assert progress is not None
        if progress.meta is not None:
            return progress


def job(
    engine: Engine, length: int, text: str = "def heappush(heap, item):", **more: object
) -> Job:
    return Job(tuple(engine.ids(text)), length, **more)  # type: ignore[arg-type]


def test_meta_info_of_a_speculative_request_adds_up(scheduler: Scheduler) -> None:
    done = last(scheduler.submit(job(scheduler.engine, 40)))
    meta = done.meta
    assert meta is not None
    assert len(done.ids) == meta["completion_tokens"] == 40
    assert meta["finish_reason"] == {"type": "length", "length": 40}
    histogram, verifies = meta["spec_accept_histogram"], meta["spec_verify_ct"]
    assert sum(histogram) == verifies
    assert meta["spec_accept_token_num"] == sum(k * n for k, n in enumerate(histogram))
    assert meta["spec_draft_token_num"] == 3 * verifies
    assert meta["spec_accept_length"] == pytest.approx(40 / verifies)
    assert meta["spec_accept_rate"] == pytest.approx(meta["spec_accept_token_num"] / (3 * verifies))
    assert meta["e2e_latency"] > 0


def test_without_speculation_there_are_no_spec_fields(plain: Engine) -> None:
    running = Scheduler(plain, decode_log_interval=5, max_queued=None)
    running.thread.start()
    meta = last(running.submit(job(plain, 8))).meta
    running.close(5)
    assert meta is not None
    assert not [key for key in meta if key.startswith("spec_")]
    assert running.totals.average_accept_length is None


@pytest.mark.parametrize(
    ("release", "names"),
    [
        ("0.5.10.post1", {"spec_accept_token_num", "spec_draft_token_num"}),
        ("0.5.11", {"spec_accepted_drafts", "spec_proposed_drafts"}),
        ("0.5.12", {"spec_num_correct_drafts", "spec_correct_drafts_histogram"}),
    ],
)
def test_each_release_has_its_own_names(release: str, names: set[str]) -> None:
    running = Scheduler(engine("--engine-release", release), decode_log_interval=5, max_queued=None)
    running.thread.start()
    meta = last(running.submit(job(running.engine, 6))).meta
    running.close(5)
    assert meta is not None
    assert names <= meta.keys()
    assert ("spec_accept_token_num" in meta) == (release == "0.5.10.post1")


def test_requests_run_in_the_order_they_came(scheduler: Scheduler) -> None:
    tickets = [scheduler.submit(job(scheduler.engine, 12)) for _ in range(3)]
    metas = [last(ticket).meta for ticket in tickets]
    waits = [meta["queue_time"] for meta in metas if meta is not None]
    assert waits == sorted(waits)
    assert waits[2] > 0


def test_decode_lines_follow_the_interval_and_the_definitions(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger(LOG).propagate = True
    caplog.set_level(logging.INFO, LOG)
    meta = last(scheduler.submit(job(scheduler.engine, 60))).meta
    assert meta is not None
    lines = [r.getMessage() for r in caplog.records if "Decode batch" in r.getMessage()]
    assert len(lines) == meta["spec_verify_ct"] // 5
    form = re.compile(
        r"Decode batch, #running-req: 1, #token: \d+, token usage: \d\.\d\d, "
        r"accept len: (\d\.\d\d), accept rate: (\d\.\d\d), cpu graph: False, "
        r"gen throughput \(token/s\): \d+\.\d\d, #queue-req: 0"
    )
    found = [form.fullmatch(line) for line in lines]
    assert all(found)
    for match in filter(None, found):
        length, rate = float(match[1]), float(match[2])
        assert rate == pytest.approx(length / 4, abs=0.006)  # window 4: three drafts and the bonus
    lengths = [float(match[1]) for match in found if match]
    average = scheduler.totals.average_accept_length
    assert average == pytest.approx(sum(lengths) / len(lengths), abs=0.01)


def test_the_average_moves_with_decode_lines_only_and_a_flush_resets_it(
    scheduler: Scheduler,
) -> None:
    last(scheduler.submit(job(scheduler.engine, 3)))
    assert scheduler.totals.average_accept_length is None  # fewer steps than the interval
    last(scheduler.submit(job(scheduler.engine, 40)))
    assert scheduler.totals.average_accept_length is not None
    while scheduler.totals.running:
        pass
    assert scheduler.flush()
    assert scheduler.totals.average_accept_length is None


def test_a_flush_is_refused_while_a_request_runs(scheduler: Scheduler) -> None:
    tickets = [scheduler.submit(job(scheduler.engine, 100)) for _ in range(2)]
    assert not scheduler.flush()
    for ticket in tickets:
        ticket.cancelled.set()


def test_a_stop_text_ends_the_output_before_it(scheduler: Scheduler) -> None:
    whole = last(scheduler.submit(job(scheduler.engine, 40)))
    stop = whole.text[10:14]
    done = last(scheduler.submit(job(scheduler.engine, 40, stop_texts=(stop,))))
    assert done.finish == {"type": "stop", "matched": stop}
    assert done.text == whole.text[: whole.text.index(stop)]
    assert done.ids == whole.ids[: len(done.ids)]
    assert len(done.ids) < 40


def test_a_stop_id_ends_the_output_with_it(scheduler: Scheduler) -> None:
    whole = last(scheduler.submit(job(scheduler.engine, 40)))
    stop = whole.ids[7]
    done = last(scheduler.submit(job(scheduler.engine, 40, stop_ids=frozenset({stop}))))
    assert done.finish == {"type": "stop", "matched": stop}
    assert done.ids == whole.ids[: whole.ids.index(stop) + 1]


def test_a_stream_grows_to_the_whole_output(scheduler: Scheduler) -> None:
    whole = last(scheduler.submit(job(scheduler.engine, 30)))
    ticket = scheduler.submit(job(scheduler.engine, 30, streaming=True))
    steps: list[Progress] = []
    while not steps or steps[-1].meta is None:
        progress = ticket.progress.get(timeout=30)
        assert progress is not None
        steps.append(progress)
    assert len(steps) > 5
    assert all(a.ids == b.ids[: len(a.ids)] for a, b in itertools.pairwise(steps))
    assert steps[-1].ids == whole.ids


def test_a_cancelled_request_makes_room_for_the_next(scheduler: Scheduler) -> None:
    gone = scheduler.submit(job(scheduler.engine, 900))
    waiting = scheduler.submit(job(scheduler.engine, 900))
    kept = scheduler.submit(job(scheduler.engine, 5))
    gone.cancelled.set()
    waiting.cancelled.set()
    assert len(last(kept).ids) == 5
    assert gone.progress.get(timeout=5) is None
    assert waiting.progress.get(timeout=5) is None
    assert scheduler.totals.aborted == 2


def test_a_full_queue_and_a_closing_scheduler_take_nothing(speculative: Engine) -> None:
    idle = Scheduler(speculative, decode_log_interval=5, max_queued=1)
    idle.submit(job(speculative, 1))  # its thread was never started: this one stays in the queue
    with pytest.raises(queue.Full):
        idle.submit(job(speculative, 1))
    idle.thread.start()
    idle.close(5)
    with pytest.raises(Closed):
        idle.submit(job(speculative, 1))


def test_closing_lets_a_short_request_finish_and_drops_a_long_one(speculative: Engine) -> None:
    short = Scheduler(speculative, decode_log_interval=40, max_queued=None)
    ticket = short.submit(job(speculative, 4))
    short.thread.start()
    short.close(20)
    assert len(last(ticket).ids) == 4
    long = Scheduler(speculative, decode_log_interval=40, max_queued=None)
    ticket = long.submit(job(speculative, 900))
    long.thread.start()
    long.close(0.05)
    assert ticket.progress.get(timeout=5) is None
