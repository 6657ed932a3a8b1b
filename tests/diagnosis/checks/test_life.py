from collections.abc import Callable
from typing import Any

import pytest

from specdebug.diagnosis.checks import life
from specdebug.diagnosis.findings import Finding

TRACEBACK = """Scheduler hit an exception: Traceback (most recent call last):
  File "x.py", line 1, in run
    boom()
"""

ROWS: list[tuple[Callable[[Any], Finding | None], str, str]] = [
    (life.out_of_memory, "out-of-memory", "torch.OutOfMemoryError: CUDA out of memory."),
    (life.out_of_memory, "exception", TRACEBACK + "torch.OutOfMemoryError: CUDA out of memory."),
    (life.server_died, "exception", TRACEBACK + "AssertionError: no"),
    (life.server_died, "child-died", "Received sigquit from a child process."),
    (life.watchdog, "watchdog", "scheduler watchdog timeout (self.watchdog_timeout=300)"),
    (life.requests_retracted, "retracted", "KV cache pool is full. Retract requests."),
    (life.port_in_use, "port-in-use", "[Errno 98] address already in use"),
    (life.missing_model, "missing-model", "OSError: drafts/x is not a local folder"),
    (
        life.gpu_busy,
        "exception",
        TRACEBACK + "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by "
        "other processes.",
    ),
    (life.start_timeout, "error-message", "Server did not become ready within 600 s"),
]


@pytest.mark.parametrize(("check", "kind", "text"), ROWS)
def test_a_line_that_says_so_is_reported_with_its_line_number(
    make: Any, check: Callable[[Any], Finding | None], kind: str, text: str
) -> None:
    boot = make.boot(args=make.args(), notices=[(kind, text)], ready=False)
    found = check(make.case(boots=[boot]))
    assert found is not None
    assert found.evidence[0].line == 50
    assert text.splitlines()[-1][:60] in found.statement


@pytest.mark.parametrize("check", list(dict.fromkeys(row[0] for row in ROWS)))
def test_a_healthy_start_is_quiet(make: Any, check: Callable[[Any], Finding | None]) -> None:
    notices = [
        ("ready", "The server is fired up and ready to roll!"),
        ("argument-warning", "Not enough memory is only a word in a warning"),
        ("capture-end", "Capture cuda graph end"),
    ]
    boot = make.boot(make.stretch([2.0] * 5), args=make.args(), notices=notices)
    assert check(make.case(boots=[boot])) is None


HELD = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total "
    "capacity of 79.11 GiB of which 1.02 GiB is free. Process 48213 has {} memory in use."
)
OWN = " Including non-PyTorch memory, this process has 2.10 GiB memory in use."


@pytest.mark.parametrize(
    ("text", "busy"),
    [
        (HELD.format("75.90 GiB") + OWN, True),
        (HELD.format("310.00 MiB") + OWN, False),
        (HELD.format("0.52 GiB") + OWN, False),
        # Within a container a process does not find itself in the list: this may be the server.
        (HELD.format("75.90 GiB"), False),
    ],
)
def test_another_process_that_holds_memory_is_told_from_the_server(
    make: Any, text: str, busy: bool
) -> None:
    boot = make.boot(args=make.args(), notices=[("out-of-memory", text)], ready=False)
    assert (life.gpu_busy(make.case(boots=[boot])) is not None) == busy


def test_an_exit_code_of_minus_nine_alone_is_no_death(make: Any) -> None:
    case = make.case(boots=[make.boot(args=make.args())], exit_code=-9)
    assert life.server_died(case) is None


DIED = ("child-died", "Received sigquit from a child process.")
HUNG = ("watchdog", "scheduler watchdog timeout (self.watchdog_timeout=300)")
FAILED = ("exception", TRACEBACK + "AssertionError: no")


@pytest.mark.parametrize(
    ("notices", "advice"),
    [
        ([HUNG, DIED], "It followed the watchdog at server.log:50"),
        ([DIED, HUNG], "holds no exception"),
        ([DIED], "holds no exception"),
        ([HUNG, FAILED, DIED], "first exception"),
    ],
)
def test_where_to_look_after_a_death_depends_on_what_the_log_holds(
    make: Any, notices: list[tuple[str, str]], advice: str
) -> None:
    found = life.server_died(make.case(boots=[make.boot(notices=notices)]))
    assert found is not None
    assert advice in found.fix


@pytest.mark.parametrize(
    ("code", "dies"), [(0, False), (-15, False), (137, False), (1, True), (2, True)]
)
def test_another_exit_code_than_that_of_a_stop_is_a_death(make: Any, code: int, dies: bool) -> None:
    found = life.server_died(make.case(requested=make.asked(), exit_code=code))
    assert (found is not None) == dies


@pytest.mark.parametrize(
    ("minutes", "ready", "late"), [(27, False, True), (9, False, False), (27, True, False)]
)
def test_a_long_start_without_a_ready_line_may_have_timed_out(
    make: Any, minutes: int, ready: bool, late: bool
) -> None:
    notices = [
        ("model-load", "[2026-02-11 09:10:00 TP0] Load weight end. type=LlamaForCausalLM"),
        ("capture-begin", f"[2026-02-11 09:{10 + minutes}:00 TP0] Capture cuda graph begin."),
    ]
    boot = make.boot(args=make.args(), notices=notices, ready=ready)
    found = life.start_timeout(make.case(boots=[boot]))
    assert (found is not None) == late
    if found is not None:
        assert found.confidence == "possible"
        assert "27 minutes" in found.statement
