"""Points, repeats and logs in numbered pieces: sent twice, out of order, broken, too much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from experiments import streams
from experiments.models import Investigation, PointChunk, Run
from tests.api.conftest import Caller

RUN = "investigations/slow-draft/runs/0"
NOW = 1_780_000_000.0


@pytest.fixture
def run(api: Caller, inv: Investigation) -> str:
    """A run that a script measures."""
    api.post("investigations/slow-draft/script-runs", {"title": "x", "config": {"a": 1}})
    return RUN


def rows(first: int, count: int) -> list[Any]:
    return [[i, NOW + i, {"tok_s": 50.0 + i, "x": -i}] for i in range(first, first + count)]


def send(api: Caller, first: int, count: int, writer: str = "w") -> Any:
    body = {"writer": writer, "first_row": first, "rows": rows(first, count)}
    return api.post(f"{RUN}/points", body)


def test_a_thousand_points_arrive_once_however_often_they_are_sent(api: Caller, run: str) -> None:
    assert send(api, 0, 500) == {"next_row": 500, "points": 1000}
    assert send(api, 0, 500) == {"next_row": 500, "points": 0}
    assert send(api, 400, 300) == {"next_row": 700, "points": 400}
    assert api.get(f"{RUN}/progress?writer=w")["next_row"] == 700
    found = api.get(f"{RUN}/points?metric=tok_s")
    assert found["steps"] == list(range(700))
    assert found["values"] == [50.0 + i for i in range(700)]
    told = api.get(RUN)["run"]["metrics"]["x"]
    assert (told["value"], told["count"], told["low"], told["high"]) == (-699, 700, -699, 0)


def test_a_gap_is_refused_with_the_row_that_is_expected(api: Caller, run: str) -> None:
    send(api, 0, 5)
    body = {"writer": "w", "first_row": 9, "rows": rows(9, 1)}
    assert api.refused(409, "POST", f"{RUN}/points", body)["expected"] == 5


def test_two_senders_do_not_disturb_each_other(api: Caller, run: str) -> None:
    send(api, 0, 3, "a")
    send(api, 0, 3, "b")
    assert api.get(f"{RUN}/points?metric=x")["total"] == 6


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([1, NOW], "row 1 is not"),
        ([1.5, NOW, {}], "row 1 is not"),
        ([1, "now", {}], "row 1 is not"),
        ([1, NOW, {"a b": 1}], "no name of a metric"),
        ([1, NOW, {"a": "1"}], "no finite number"),
        ([1, NOW, {"a": True}], "no finite number"),
        ([1, NOW, {"a": 10**400}], "no finite number"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_not_kept(
    api: Caller, run: str, row: Any, reason: str
) -> None:
    body = {"writer": "w", "first_row": 0, "rows": [[0, NOW, {"x": 1}], row]}
    assert reason in api.refused(409, "POST", f"{RUN}/points", body)["detail"]
    assert not PointChunk.objects.exists()


def test_points_are_packed_and_thinned_where_fewer_are_asked_for(api: Caller, run: str) -> None:
    for first in range(0, 3000, 1000):
        send(api, first, 1000)
    chunks = PointChunk.objects.filter(name="x")
    assert [c.count for c in chunks] == [2048, 952]
    assert sum(len(c.data) for c in chunks) == 3000 * streams.POINT.size
    found = api.get(f"{RUN}/points?metric=x&most=100")
    assert (len(found["steps"]), found["total"]) == (100, 3000)
    assert [p[0] for p in streams.points(Run.objects.get(number=0), "x")] == list(range(3000))


def test_rows_that_hold_more_than_a_chunk_are_kept_in_order(api: Caller, run: str) -> None:
    send(api, 0, 5000)
    send(api, 5000, 2000)
    assert [c.count for c in PointChunk.objects.filter(name="x")] == [2048, 2048, 2048, 856]
    assert [p[0] for p in streams.points(Run.objects.get(number=0), "x")] == list(range(7000))


def test_a_long_history_costs_a_new_row_no_more_questions(api: Caller, run: str) -> None:
    send(api, 0, 100)
    with CaptureQueriesContext(connection) as early:
        send(api, 100, 1)
    for first in range(101, 20_101, 4000):
        send(api, first, 4000)
    with CaptureQueriesContext(connection) as late:
        send(api, 20_101, 1)
    assert len(late) == len(early)
    rooms = [q["sql"] for q in late.captured_queries if '"count" <' in q["sql"]]
    assert len(rooms) == 1
    assert '"data"' not in rooms[0]


def test_repeats_are_numbered_and_a_taken_figure_stays(api: Caller, run: str) -> None:
    body = {"first": 0, "repeats": [{"tok_s": 50.0, "accept_len": 2.0}, {"tok_s": 60.0}]}
    told = api.post(f"{RUN}/repeats", body)
    assert told["metrics"]["tok_s"] == {
        "value": 55.0,
        "count": 2,
        "measured": True,
        "low": 50.0,
        "high": 60.0,
        "last_step": None,
    }
    assert told["metrics"]["step_ms"]["value"] == 40.0
    assert api.post(f"{RUN}/repeats", body) == told
    other = {"first": 1, "repeats": [{"tok_s": 99.0}]}
    assert "stays" in api.refused(409, "POST", f"{RUN}/repeats", other)["detail"]
    gap = {"first": 5, "repeats": [{"tok_s": 1.0}]}
    assert "repeat 2 is expected" in api.refused(409, "POST", f"{RUN}/repeats", gap)["detail"]


def test_logged_points_do_not_take_the_place_of_measured_figures(api: Caller, run: str) -> None:
    api.post(f"{RUN}/repeats", {"first": 0, "repeats": [{"tok_s": 50.0}]})
    send(api, 0, 3)
    assert api.get(RUN)["run"]["metrics"]["tok_s"]["value"] == 50.0


def append(api: Caller, offset: int, data: bytes) -> Any:
    return api.call("POST", f"{RUN}/log", data, **{"Upload-Offset": str(offset)})


def test_a_log_is_appended_in_pieces_and_resumed(api: Caller, run: str, data_dir: Path) -> None:
    assert append(api, 0, b"one\ntw").json() == {"offset": 6}
    assert append(api, 0, b"one\ntw").json() == {"offset": 6}
    assert append(api, 4, b"two\n").json() == {"offset": 8}
    gap = append(api, 20, b"x")
    assert (gap.status_code, gap.json()["expected"]) == (409, 8)
    differs = append(api, 0, b"ONE\n")
    assert differs.status_code == 409
    assert "differ" in differs.json()["detail"]
    assert append(api, -1, b"x").status_code == 400
    assert api.get(f"{RUN}/log/offset")["offset"] == 8
    whole = b"".join(api.call("GET", f"{RUN}/log").streaming_content)
    assert whole == b"one\ntwo\n"


def test_a_piece_that_the_disk_does_not_take_leaves_the_log_as_it_was(
    api: Caller, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(api, 0, b"whole\n")

    def full(handle: int, data: Any) -> None:
        import errno
        import os

        os.write(handle, bytes(data[:2]))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(streams, "_write_all", full)
    assert "No space left" in append(api, 6, b"lost\n").json()["detail"]
    monkeypatch.undo()
    assert append(api, 6, b"kept\n").json() == {"offset": 11}


def test_the_log_becomes_evidence_and_its_arguments_are_read(
    api: Caller, inv: Investigation, data_dir: Path
) -> None:
    log = Path(__file__).parents[1] / "data" / "record" / "eagle3_steps1_draft16.log"
    api.post("investigations/slow-draft/script-runs", {"title": "x", "engine": "sglang"})
    append(api, 0, log.read_bytes())
    api.post(f"{RUN}/repeats", {"first": 0, "repeats": [{"tok_s": 50.0, "accept_len": 1.6}]})
    done = api.post(f"{RUN}/finish", {"versions": {"python": "3.11"}})
    assert done["state"] == "done"
    assert done["params"]["speculative_num_draft_tokens"] == 2
    assert api.post(f"{RUN}/finish", {})["state"] == "done"
    assert api.refused(409, "POST", f"{RUN}/finish", {"state": "failed", "reason": "x"})
    files = api.get("investigations/slow-draft/evidence")["items"]
    assert [f["kind"] for f in files if f["run"] == "R0"] == ["server-log"]
    late = {"writer": "w", "first_row": 0, "rows": rows(0, 1)}
    assert "takes nothing more" in api.refused(409, "POST", f"{RUN}/points", late)["detail"]


def test_a_failure_needs_a_reason(api: Caller, run: str) -> None:
    assert api.refused(409, "POST", f"{RUN}/finish", {"state": "failed"})
    told = api.post(f"{RUN}/finish", {"state": "failed", "reason": "out of memory"})
    assert (told["state"], told["reason"]) == ("failed", "out of memory")


def test_a_run_of_a_worker_takes_no_points_from_a_script(api: Caller, inv: Investigation) -> None:
    api.post("investigations/slow-draft/runs", {"title": "x", "server_args": []})
    body = {"writer": "w", "first_row": 0, "rows": rows(0, 1)}
    assert "measured by a worker" in api.refused(409, "POST", f"{RUN}/points", body)["detail"]


def test_files_are_kept_once_and_named_by_hash(api: Caller, run: str) -> None:
    import hashlib

    data = b'{"num_hidden_layers": 61}'
    digest = hashlib.sha256(data).hexdigest()
    known = {"sha256": digest, "name": "config.json"}
    assert api.refused(404, "POST", f"{RUN}/files/known", known)
    answer = api.call("PUT", f"{RUN}/files?name=config.json", data)
    assert (answer.status_code, answer.json()["sha256"]) == (201, digest)
    assert api.post(f"{RUN}/files/known", known)["id"] == answer.json()["id"]
    assert api.get(f"blobs/{digest}") == {"sha256": digest, "size": len(data)}
    content = api.call("GET", f"blobs/{digest}/content")
    assert b"".join(content.streaming_content) == data
    assert content["Content-Disposition"].startswith("attachment")
