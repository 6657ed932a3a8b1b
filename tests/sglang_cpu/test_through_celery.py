"""The real SGLang by the whole way: queued in the record, sent through a real broker, launched and
measured by a real worker, taken in, and judged. Four starts of the real server."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments import dispatch, lifecycle, store
from experiments.models import Finding, Investigation, Run
from specdebug.reference import variants
from tests.house import House, opened, wait
from workers.plan import Workload

pytestmark = [
    pytest.mark.sglang_cpu,
    pytest.mark.timeout(1200),
    pytest.mark.django_db(transaction=True),
]
CPU = shlex.split(
    "--device cpu --dtype float32 --attention-backend torch_native --disable-cuda-graph "
    "--sleep-on-idle --max-total-tokens 2048 --max-running-requests 4 --random-seed 1 "
    "--decode-log-interval 5"
)
# The line that the people of the story never saw.
OWN_WORDS = "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1"
WORK = Workload(repeats=1, warm_up_prompts=1, prompts_per_repeat=4, max_new_tokens=48)


@pytest.fixture
def house(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> Iterator[House]:
    if not os.environ.get("SPECDEBUG_SGLANG_CPU_PYTHON"):
        pytest.fail(
            "the real SGLang is missing: bin/setup-sglang-cpu installs it; set "
            "SPECDEBUG_SGLANG_CPU_PYTHON to what it prints"
        )
    with opened(data_dir, tmp_path_factory.mktemp("b"), monkeypatch) as here:
        yield here


def plan(
    investigation: Investigation, title: str, *arguments: str, env: dict[str, str] | None = None
) -> Run:
    run = lifecycle.add_run(
        investigation=investigation,
        title=title,
        engine="sglang-cpu",
        server_args=["--model-path", str(variants.TARGET), *CPU, *arguments],
        env=env,
        workload=WORK,
        baseline=investigation.baseline,
    )
    dispatch.queue_run(run)
    return run


def drafting(draft: Path, steps: int, tokens: int) -> list[str]:
    return [
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(draft)),
        *("--speculative-num-steps", str(steps), "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", str(tokens)),
    ]


def ended(run: Run) -> bool:
    run.refresh_from_db()
    # What a run shows is drawn after its figures are saved.
    return run.state in Run.ENDED and (run.checked_at is not None or bool(run.check_problem))


def test_the_override_is_found_in_the_real_servers_own_words(house: House, tmp_path: Path) -> None:
    draft = variants.write_draft(tmp_path / "draft", variants.WRONG_IDS)
    investigation = lifecycle.create_investigation(title="Slow draft", question="Why?")
    plain = plan(investigation, "no draft")
    investigation.baseline = plain
    investigation.save()
    asked = plan(investigation, "16 draft tokens", *drafting(draft, 1, 16))
    deep = plan(investigation, "15 steps", *drafting(draft, 15, 16))
    threads = {"SGLANG_CPU_OMP_THREADS_BIND": "0|1"}
    two = plan(investigation, "two ranks", *drafting(draft, 3, 4), "--tp-size", "2", env=threads)
    house.start_worker()
    for run in (plain, asked, deep, two):
        wait(lambda run=run: ended(run), 300)
        assert (run.state, run.reason, run.check_problem) == ("done", "", "")
        assert run.engine_release == "0.5.10.post1"
        assert run.attempt == 1
    assert house.engines() == []

    # Asked for 16, in force 2: foreseen by rule, seen in the server's arguments, said in its log.
    assert asked.preflight["release"] == "0.5.10.post1"
    (change,) = asked.preflight["changes"]
    assert (change["key"], change["asked"], change["effective"]) == (
        "speculative_num_draft_tokens",
        16,
        2,
    )
    entry = asked.config.get(key="speculative_num_draft_tokens")
    assert (entry.requested, entry.effective, entry.origin) == (16, 2, "override")
    shown = {finding["code"]: finding for finding in asked.shown}
    found = shown["draft-tokens-overridden"]
    assert found["confidence"] == "certain"
    words = [e for e in found["evidence"] if OWN_WORDS in e["text"]]
    assert words
    log = asked.evidence.get(name="server.log")
    assert log.kind == "server-log"
    lines = store.path_of(log.blob_id).read_text().split("\n")
    assert OWN_WORDS in lines[words[0]["line"] - 1]

    # With 15 steps it is as asked, which is what fixes the finding.
    assert deep.config.get(key="speculative_num_draft_tokens").effective == 16
    assert deep.preflight["changes"] == []
    assert "draft-tokens-overridden" not in {finding["code"] for finding in deep.shown}
    life = Finding.objects.get(investigation=investigation, code="draft-tokens-overridden")
    assert (life.state, life.opened_in, life.fixed_in) == ("fixed", asked, deep)

    # Speculation changes no token; a deeper chain is accepted longer.
    outputs = {run.repeats.get().output_sha256 for run in (plain, asked, deep)}
    assert len(outputs) == 1
    shallow, deeper = asked.repeats.get(), deep.repeats.get()
    assert 1.0 < (shallow.accept_len or 0) <= 2.0
    assert (shallow.accept_len or 0) < (deeper.accept_len or 0) <= 16.0
    assert plain.repeats.get().accept_len is None
    assert plain.samples.exists()

    # Two ranks of one server: both were there, and both are gone.
    assert (two.server_info or {})["tp_size"] == 2
    said = store.path_of(two.evidence.get(name="server.log").blob_id).read_text()
    assert "TP0" in said
    assert "TP1" in said
    assert two.repeats.get().tokens == 4 * 48
