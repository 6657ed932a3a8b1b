"""Whole runs against a fake engine that is a real process."""

from __future__ import annotations

import errno
import json
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workers.conftest import MakePlan, of_folder
from workers import runner
from workers.plan import Deadlines, Progress, RunOutcome, RunPlan


def measure(plan: RunPlan, should_stop: Callable[[], str] = lambda: "") -> RunOutcome:
    return runner.measure(plan, on_progress=lambda _: None, should_stop=should_stop)


def test_a_run_brings_home_repeats_counts_versions_and_the_exact_command(
    make_plan: MakePlan,
) -> None:
    seen: list[Progress] = []
    plan = make_plan("--model-path", "some/model", env={"SGLANG_LOG_MS": "1"})
    outcome = runner.measure(plan, on_progress=seen.append, should_stop=lambda: "")
    assert (outcome.state, outcome.phase, outcome.reason) == ("done", "finished", "")
    assert [len(repeat.requests) for repeat in outcome.repeats] == [4, 4]
    request = outcome.repeats[0].requests[0]
    assert (request.prompt, request.prompt_tokens, request.completion_tokens) == ("p0", 5, 16)
    assert (request.spec_verify_ct, request.accept_histogram) == (8, (1, 7))
    assert 0.008 <= request.seconds <= outcome.repeats[0].seconds < 10
    # The same prompt gives the same output, another prompt another.
    hashes = [[r.output_sha256 for r in repeat.requests] for repeat in outcome.repeats]
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0])) == 4
    assert outcome.argv[1:5] == ("-m", "fake_engine", "--model-path", "some/model")
    assert outcome.argv[5:8] == ("--host", "127.0.0.1", "--port")
    assert outcome.env["SGLANG_LOG_MS"] == "1"
    assert outcome.versions["httpx"]
    assert outcome.versions["server"] == "0.5.10.post1"
    assert "no-such-thing" not in outcome.versions
    assert outcome.server_info is not None
    # Warm-up and both repeats: 9 requests, asked after the last one. NaN became null.
    assert outcome.server_info["served"] == 9
    assert outcome.server_info["internal_states"] == [{"avg_spec_accept_length": None}]
    assert outcome.metrics_text == "sglang:gen_throughput 9.0\n"
    before = json.loads((Path(plan.folder) / "server_info_before.json").read_text())
    assert before["served"] == 1
    assert outcome.exit is not None
    assert (outcome.exit.code, outcome.exit.asked, outcome.exit.survivors) == (0, True, ())
    assert outcome.started_at < (outcome.ready_at or 0) < outcome.ended_at
    assert "fired up" in Path(outcome.log).read_text()
    assert stat.S_IMODE(Path(outcome.log).stat().st_mode) == 0o600
    phases = list(dict.fromkeys(progress.phase for progress in seen))
    assert phases == [*("preparing", "launching", "loading", "warming up", "measuring", "stopping")]
    fractions = [p.fraction for p in seen if p.fraction is not None]
    assert fractions == sorted(fractions)
    assert seen[-2].detail == "repeat 2 of 2, prompt 4 of 4"


def test_a_run_without_speculation_has_no_verify_counts(make_plan: MakePlan) -> None:
    outcome = measure(make_plan("--plain", "--no-flush"))
    assert outcome.state == "done"
    request = outcome.repeats[0].requests[0]
    assert (request.spec_verify_ct, request.accept_histogram) == (None, None)


def test_health_alone_makes_ready_where_no_line_says_so(make_plan: MakePlan) -> None:
    assert measure(make_plan("--no-ready-line")).state == "done"


def test_unreadable_bytes_and_endless_lines_in_the_log_disturb_nothing(
    make_plan: MakePlan,
) -> None:
    assert measure(make_plan("--garbage")).state == "done"


def test_concurrent_requests_overlap(make_plan: MakePlan) -> None:
    plan = make_plan(
        "--token-seconds", "0.02", workload={"concurrency": 4, "repeats": 1, "warm_up_prompts": 0}
    )
    outcome = measure(plan)
    (repeat,) = outcome.repeats
    assert [request.prompt for request in repeat.requests] == ["p0", "p1", "p2", "p3"]
    assert repeat.seconds < 0.75 * sum(request.seconds for request in repeat.requests)


def test_a_crash_while_loading_is_an_outcome_that_quotes_the_cause(make_plan: MakePlan) -> None:
    outcome = measure(make_plan("--crash-at-load"))
    assert (outcome.state, outcome.phase) == ("failed", "loading")
    assert outcome.reason == (
        "The server ended with exit code 3 before it was ready: FileNotFoundError: no weights in m"
    )
    assert outcome.ready_at is None
    assert outcome.exit is not None
    assert (outcome.exit.code, outcome.exit.asked) == (3, False)
    assert "sigquit" in Path(outcome.log).read_text()


def test_a_server_that_failed_and_hangs_is_ended(
    make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.server.AFTER_FATAL", 0.5)
    outcome = measure(make_plan("--crash-at-load", "--hang-after-crash"))
    assert outcome.state == "failed"
    assert "failed but did not end: FileNotFoundError: no weights" in outcome.reason


def test_a_crash_while_measuring_keeps_the_whole_repeats_and_names_the_cause(
    make_plan: MakePlan,
) -> None:
    outcome = measure(make_plan("--crash-after", "6"))  # 1 to warm up, 4 of the first repeat
    assert (outcome.state, outcome.phase) == ("failed", "measuring")
    assert outcome.reason == (
        "The server was ended by SIGKILL while measuring: "
        "RuntimeError: CUDA error: an illegal memory access was encountered"
    )
    assert [repeat.index for repeat in outcome.repeats] == [0]
    assert outcome.server_info is not None
    assert outcome.server_info["served"] == 1


def test_a_wrong_flag_is_answered_with_the_servers_own_words(make_plan: MakePlan) -> None:
    outcome = measure(make_plan("--speculative-nums"))
    assert outcome.state == "failed"
    assert "unrecognized arguments: --speculative-nums" in outcome.reason
    assert "exit code 2" in outcome.reason


def test_a_silent_server_is_given_up_after_the_launch_deadline(make_plan: MakePlan) -> None:
    plan = make_plan("--silent", deadlines=Deadlines(launch=1, ready=30, request=5, stop=2))
    outcome = measure(plan)
    assert outcome.state == "failed"
    assert outcome.reason == (
        "The server has printed nothing for 1 s while starting; it printed nothing."
    )


def test_a_server_that_never_gets_ready_is_given_up_with_its_last_line(
    make_plan: MakePlan,
) -> None:
    plan = make_plan("--never-ready", deadlines=Deadlines(launch=30, ready=2, request=5, stop=2))
    outcome = measure(plan)
    assert outcome.reason.startswith("The server was not ready after 2 s; its last line: ")
    assert "Load weight end" in outcome.reason


def test_log_lines_put_the_launch_deadline_off(make_plan: MakePlan) -> None:
    """Three shards a second apart: longer than the deadline in all, never so in silence."""
    plan = make_plan(
        *("--load-seconds", "4.5"), deadlines=Deadlines(launch=3, ready=30, request=5, stop=2)
    )
    assert measure(plan).state == "done"


def test_a_request_that_takes_too_long_fails_the_run(make_plan: MakePlan) -> None:
    plan = make_plan(
        *("--token-seconds", "1"), deadlines=Deadlines(launch=20, ready=30, request=1, stop=2)
    )
    outcome = measure(plan)
    assert (outcome.state, outcome.phase) == ("failed", "warming up")
    assert outcome.reason == "Prompt p3: no answer within 1 s."


def test_a_refused_request_fails_the_run_with_the_servers_sentence(make_plan: MakePlan) -> None:
    outcome = measure(make_plan("--refuse", "400"))
    assert outcome.reason == "Prompt p3: the server answered 400: The input is too long."


@pytest.mark.parametrize("phase", ["loading", "measuring"])
def test_a_cancel_stops_the_run_in_every_phase(make_plan: MakePlan, phase: str) -> None:
    wanted = threading.Event()

    def on_progress(progress: Progress) -> None:
        if progress.phase == phase:
            wanted.set()

    plan = make_plan("--grandchild", "--load-seconds", "0.3", "--token-seconds", "0.01")
    outcome = runner.measure(
        plan, on_progress=on_progress, should_stop=lambda: "Asked to." if wanted.is_set() else ""
    )
    assert (outcome.state, outcome.phase, outcome.reason) == ("cancelled", phase, "Asked to.")
    assert outcome.exit is not None
    assert outcome.exit.survivors == ()
    assert not of_folder(Path(plan.folder))


def test_a_cancel_does_not_wait_for_a_request_in_flight(make_plan: MakePlan) -> None:
    begin = time.monotonic()
    plan = make_plan("--token-seconds", "1", "--ignore-sigterm")
    plan = make_plan(
        *plan.server_args, deadlines=Deadlines(launch=20, ready=30, request=60, stop=0.5)
    )
    ready: list[float] = []

    def on_progress(progress: Progress) -> None:
        if progress.phase == "warming up":
            ready.append(time.monotonic())

    outcome = runner.measure(
        plan,
        on_progress=on_progress,
        should_stop=lambda: "Enough." if ready and time.monotonic() > ready[0] + 0.3 else "",
    )
    assert outcome.state == "cancelled"
    assert time.monotonic() - begin < 12  # the request alone would have taken 16


def test_a_server_deaf_to_sigterm_is_killed_with_its_grandchildren(make_plan: MakePlan) -> None:
    plan = make_plan(
        *("--ignore-sigterm", "--grandchild"),
        deadlines=Deadlines(launch=20, ready=30, request=20, stop=0.5),
    )
    outcome = measure(plan)
    assert outcome.state == "done"
    assert outcome.exit is not None
    assert outcome.exit.code == -signal.SIGKILL
    assert outcome.exit.asked
    assert outcome.exit.survivors == ()
    assert not of_folder(Path(plan.folder))


def test_a_port_in_use_is_said_before_anything_starts(make_plan: MakePlan) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        outcome = measure(make_plan("--port", str(port)))
    assert outcome.state == "failed"
    assert outcome.reason.startswith(f"Port {port} is in use on this machine")
    assert not outcome.log


def test_a_port_taken_at_the_last_moment_is_the_servers_own_message(
    make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(runner, "free_port", lambda _: taken.getsockname()[1])
        outcome = measure(make_plan())
    assert outcome.state == "failed"
    assert "address already in use" in outcome.reason


def test_another_server_on_our_port_is_not_taken_for_ours(
    make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its /health answers 200 while ours still loads; ours then cannot bind and says so."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Healthy) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        monkeypatch.setattr(runner, "free_port", lambda _: other.server_port)
        outcome = measure(make_plan("--load-seconds", "2.5"))
        other.shutdown()
    assert outcome.state == "failed"
    assert "address already in use" in outcome.reason


def test_keys_and_tokens_are_in_no_record_and_no_log(make_plan: MakePlan) -> None:
    plan = make_plan(
        *("--api-key", "sk-very-secret", "--print-environment"), env={"HF_TOKEN": "hf_abcdefgh"}
    )
    outcome = measure(plan)
    assert outcome.state == "done"  # the key was used for the requests
    everything = json.dumps(outcome.as_json()) + Path(outcome.log).read_text()
    for path in Path(plan.folder).iterdir():
        everything += path.read_text()
    assert "sk-very-secret" not in everything
    assert "hf_abcdefgh" not in everything
    assert outcome.env["HF_TOKEN"] == "[removed]"
    assert "[removed]" in outcome.argv


def test_the_engine_sees_nothing_of_the_workers_secrets(
    make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me:pw@db/x")
    monkeypatch.setenv("SPECDEBUG_SECRET_KEY", "django-secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    outcome = measure(make_plan("--print-environment"))
    log = Path(outcome.log).read_text()
    assert "DATABASE_URL" not in log
    assert "django-secret" not in log
    assert '"CUDA_VISIBLE_DEVICES": "3"' in log


def test_a_plan_that_cannot_be_carried_out_says_what_is_wrong(make_plan: MakePlan) -> None:
    def reason(plan: RunPlan) -> str:
        outcome = measure(plan)
        assert (outcome.state, outcome.phase) == ("failed", "preparing")
        return outcome.reason

    assert "workload.repeats is 0" in reason(make_plan(workload={"repeats": 0}))
    assert "There is no engine 'tgi'" in reason(make_plan(engine="tgi"))
    assert "is not there" in reason(make_plan(folder="/no/such/folder"))
    assert "SPECDEBUG_SGLANG_PYTHON" in reason(make_plan(engine="sglang"))
    assert "neither a shipped set" in reason(make_plan(workload={"prompts": "/etc/passwd"}))
    assert "LD_PRELOAD is the worker's" in reason(make_plan(env={"LD_PRELOAD": "x.so"}))
    assert "a port is a number" in reason(make_plan("--port", "http"))


def test_an_attached_server_is_measured_and_left_alone(make_plan: MakePlan) -> None:
    import subprocess
    import sys

    from tests.workers.conftest import DATA

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    nobody = measure(make_plan("--url", url, engine="attached"))
    assert nobody.state == "failed"
    assert nobody.reason.startswith(f"The server at {url} does not answer:")
    with subprocess.Popen(
        [sys.executable, str(DATA / "fake_engine.py"), "--port", str(port)],
        stderr=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stderr is not None
        while "fired up" not in other.stderr.readline():
            pass
        outcome = measure(make_plan("--url", url, engine="attached"))
        assert outcome.state == "done"
        assert len(outcome.repeats) == 2
        assert outcome.exit is None
        assert outcome.log == ""
        assert other.poll() is None
        other.kill()


def test_our_own_bug_is_an_exception_and_still_ends_the_server(make_plan: MakePlan) -> None:
    plan = make_plan()

    def broken(progress: Progress) -> None:
        if progress.phase in {"measuring", "stopping"}:
            raise LookupError("ours")

    with pytest.raises(LookupError):
        runner.measure(plan, on_progress=broken, should_stop=lambda: "")
    assert not of_folder(Path(plan.folder))


def test_an_outcome_survives_its_way_through_json(make_plan: MakePlan) -> None:
    outcome = measure(make_plan())
    again = RunOutcome.from_json(json.loads(json.dumps(outcome.as_json())))
    assert again == outcome


def test_a_plan_survives_its_way_through_json(make_plan: MakePlan) -> None:
    plan = make_plan("--a", "b", env={"X": "1"})
    assert RunPlan.from_json(json.loads(json.dumps(plan.as_json()))) == plan


def test_a_full_disk_under_the_log_costs_the_log_alone(make_plan: MakePlan) -> None:
    outcome = measure(make_plan("--full-disk", "--no-ready-line"))
    assert outcome.state == "done"
    assert Path(outcome.log).read_text() == ""


def test_a_full_disk_under_the_side_files_costs_those_alone(
    make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(runner, "write_whole", full)
    outcome = measure(make_plan())
    assert outcome.state == "done"
    assert outcome.server_info is not None


def test_a_server_that_cannot_be_recorded_is_not_left_running(
    make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without server.json a successor would not know what to end."""

    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("workers.server.write_whole", full)
    plan = make_plan("--grandchild")
    outcome = measure(plan)
    assert outcome.state == "failed"
    assert "could not be launched: [Errno 28] No space left on device" in outcome.reason
    assert not of_folder(Path(plan.folder))
