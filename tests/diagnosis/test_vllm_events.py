"""A vLLM server's own words on its life, and a user's words that are none."""

from __future__ import annotations

import pytest

from specdebug.diagnosis.diagnose import diagnose
from specdebug.diagnosis.facts import Input
from specdebug.diagnosis.gather import build_case
from specdebug.diagnosis.vllm_events import life_of

SPEC = (
    "INFO 04-21 13:50:{:02d} [metrics.py:96] SpecDecoding metrics: Mean acceptance length: 2.69, "
    "Accepted throughput: 146.80 tokens/s, Drafted throughput: 260.70 tokens/s, Accepted: 1468 "
    "tokens, Drafted: 2607 tokens, Per-position acceptance rate: 0.780, 0.540, 0.370, Avg Draft "
    "acceptance rate: 56.3%\n"
)
LOG = "".join(SPEC.format(n) for n in range(6))
CORE = "(EngineCore_0 pid=9) ERROR 04-21 13:51:09 [core.py:700] "


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "out-of-memory",
        ),
        (CORE + "torch.OutOfMemoryError: CUDA out of memory.", "out-of-memory"),
        (CORE + "EngineCore encountered a fatal error.", "server-died"),
        (
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
            "server-died",
        ),
        ("RuntimeError: Engine core initialization failed. See root cause above.", "server-died"),
        ("OSError: [Errno 98] Address already in use", "port-in-use"),
        ("INFO 04-21 13:51:09 [core.py:1] init engine took 12.3 seconds, memory profiling 3 s", ""),
        ("INFO [logger.py:1] Received request c-1: prompt: 'CUDA out of memory, help', params", ""),
        ("INFO [api_server.py:9] Engine core started, Worker ready", ""),
    ],
)
def test_what_the_server_says_of_itself_is_a_finding(line: str, codes: str) -> None:
    found = diagnose(build_case([Input("server.log", (LOG + line + "\n").encode())]))
    life = {"out-of-memory", "server-died", "port-in-use", "missing-model", "watchdog"}
    assert life & {f.code for f in found.findings} == ({codes} if codes else set())
    if codes:
        (finding,) = [f for f in found.findings if f.code == codes]
        assert finding.evidence[0].line == 7


def test_a_server_that_fails_without_end_is_kept_in_part() -> None:
    assert len(life_of("EngineDeadError\n" * 5_000, "x")) == 200
