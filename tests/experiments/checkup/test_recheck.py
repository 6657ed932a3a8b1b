"""Real captures through the whole way: outcome, rows, findings with a life."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments import checkup, intake, lifecycle, queries
from experiments.checkup import cases
from experiments.models import Finding, Investigation, Run
from workers import plan

Claimed = Callable[..., Run]
SampleOf = Callable[[str], Any]


@pytest.fixture
def measured(claimed: Claimed, sample: SampleOf, tmp_path: Path) -> Callable[..., Run]:
    """A run of a real capture, taken in; `values` replace fields of its outcome."""

    def make(name: str, *, links: dict[str, Any] | None = None, **values: Any) -> Run:
        run = claimed(name, **(links or {}))
        outcome = sample(name).outcome(tmp_path / str(run.pk), **values)
        taken = intake.take_outcome(run.pk, token="t", outcome=outcome)
        assert taken.run.check_problem == ""
        return taken.run

    return make


def life(code: str) -> list[tuple[str, str]]:
    return [
        (e.kind, e.run.label if e.run else "")
        for e in Finding.objects.get(code=code).events.order_by("run__number")
    ]


def codes(run: Run) -> set[str]:
    run.refresh_from_db()
    return {f["code"] for f in run.shown}


def test_the_override_lives_from_the_run_that_showed_it_to_the_one_that_did_not(
    investigation: Investigation, measured: Callable[..., Run]
) -> None:
    plain = measured("plain")
    lifecycle.edit_investigation(investigation, baseline=plain)
    measured("steps1", links={"follows": plain})
    measured("steps15")
    measured("steps1")
    assert life("draft-tokens-overridden") == [
        ("opened", "R1"),
        ("fixed", "R2"),
        ("reopened", "R3"),
    ]


def test_a_baseline_under_another_workload_is_no_baseline(
    investigation: Investigation, measured: Callable[..., Run]
) -> None:
    plain = measured("plain")
    lifecycle.edit_investigation(investigation, baseline=plain)
    request = plan.Request("p0", 8.0, 10, 64, spec_verify_ct=39)
    other = plan.Request("p1", 8.0, 10, 64, spec_verify_ct=39)
    slow = (plan.Repeat(0, 0.0, 16.0, (request, other)),)
    run = measured("steps1", repeats=slow)
    assert "slower-than-baseline" in codes(run)
    run.plan["workload"]["concurrency"] = 8
    run.save()
    checkup.recheck(run)
    assert "slower-than-baseline" not in codes(run)
    assert "slower-than-baseline" in {u["code"] for u in run.untried}


def test_a_runs_page_speaks_in_the_words_of_that_run(
    investigation: Investigation, measured: Callable[..., Run]
) -> None:
    plain = measured("plain")
    lifecycle.edit_investigation(investigation, baseline=plain)
    for seconds in (8.0, 16.0):
        requests = tuple(
            plan.Request(f"p{n}", seconds, 10, 64, spec_verify_ct=39) for n in range(2)
        )
        measured("steps1", repeats=(plan.Repeat(0, 0.0, 2 * seconds, requests),))

    def said(number: int) -> str:
        found = queries.run_page(investigation.slug, number).findings
        return next(f.finding.statement for f in found if f.finding.code == "slower-than-baseline")

    assert "R1" in said(1)
    assert "R2" in said(2)
    assert Finding.objects.get(code="slower-than-baseline").statement == said(2)


@pytest.mark.parametrize(
    ("seconds", "fixed"),
    [([1.6, 1.61, 1.62], True), ([2.0, 2.01, 1.99], True), ([1.4, 2.0, 2.9], False)],
)
def test_noise_does_not_pass_for_a_fix(
    investigation: Investigation,
    measured: Callable[..., Run],
    seconds: list[float],
    fixed: bool,
) -> None:
    def passes(*times: float) -> tuple[plan.Repeat, ...]:
        request = plan.Request("p", 1.0, 10, 64, spec_verify_ct=39)
        return tuple(plan.Repeat(n, 0.0, t, (request,)) for n, t in enumerate(times))

    bare = plan.Request("p", 1.0, 10, 64)
    plain = measured(
        "plain", repeats=tuple(plan.Repeat(n, 0.0, 2.0 + n / 100, (bare,)) for n in range(3))
    )
    lifecycle.edit_investigation(investigation, baseline=plain)
    measured("steps1", repeats=passes(3.0, 3.01, 3.02))
    assert Finding.objects.get(code="slower-than-baseline").state == "open"
    run = measured("steps1", repeats=passes(*seconds))
    state = Finding.objects.get(code="slower-than-baseline").state
    assert state == ("fixed" if fixed else "open")
    missing = {u["code"]: u["missing"] for u in run.untried}
    assert ("slower-than-baseline" in missing) is not fixed


def test_evidence_points_at_lines_of_the_runs_own_log(
    measured: Callable[..., Run], sample: SampleOf
) -> None:
    run = measured("steps1")
    found = next(f for f in run.shown if f["code"] == "draft-tokens-overridden")
    lines = (Path(__file__).parents[2] / "data/record/eagle3_steps1_draft16.log").read_text()
    logged = [e for e in found["evidence"] if e["source"] == "server.log" and e["line"]]
    assert logged
    for piece in logged:
        line = lines.splitlines()[piece["line"] - 1]
        assert "speculative_num_draft_tokens" in line


def test_the_order_in_which_runs_are_looked_at_does_not_matter(
    investigation: Investigation, measured: Callable[..., Run]
) -> None:
    runs = [measured("plain"), measured("steps1"), measured("steps15")]
    before = sorted((f.code, f.state, f.statement) for f in Finding.objects.all())
    for run in reversed(runs):
        checkup.recheck(run)
    assert sorted((f.code, f.state, f.statement) for f in Finding.objects.all()) == before


def test_a_baseline_does_not_fix_what_a_draft_showed(measured: Callable[..., Run]) -> None:
    measured("steps1")
    measured("plain")
    assert life("draft-tokens-overridden") == [("opened", "R0")]


def test_a_failed_run_fixes_nothing(measured: Callable[..., Run]) -> None:
    measured("steps1")
    measured("steps15", state="failed", reason="the server exited", repeats=())
    assert life("draft-tokens-overridden") == [("opened", "R0")]


def test_a_finding_that_no_run_shows_any_more_is_withdrawn_and_comes_back(
    measured: Callable[..., Run],
) -> None:
    run = measured("steps1")
    entry = run.config.get(key="speculative_num_draft_tokens")
    run.config.filter(pk=entry.pk).update(requested=2)
    checkup.recheck(run)
    finding = Finding.objects.get(code="draft-tokens-overridden")
    assert finding.state == "withdrawn"
    assert [e.kind for e in finding.events.all()] == ["opened", "withdrawn"]
    run.config.filter(pk=entry.pk).update(requested=16)
    checkup.recheck(run)
    finding.refresh_from_db()
    assert finding.state == "open"


def test_a_better_draft_config_given_later_is_used(measured: Callable[..., Run]) -> None:
    run = measured("steps1")
    assert "aux-layers-defaulted" not in codes(run)
    config = {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 64}
    intake.take_file(
        investigation=run.investigation,
        run=run,
        name="config.json",
        stream=io.BytesIO(json.dumps(config).encode()),
    )
    assert "aux-layers-defaulted" in codes(run)


def test_loose_files_open_findings_that_belong_to_no_run(
    investigation: Investigation, data_dir: Path, tmp_path: Path, sample: SampleOf
) -> None:
    outcome = sample("steps1").outcome(tmp_path)
    command = "python -m sglang.launch_server " + " ".join(sample("steps1").server_args)
    intake.take_file(
        investigation=investigation, name="start.sh", stream=io.BytesIO(command.encode())
    )
    with Path(outcome.log).open("rb") as stream:
        intake.take_file(investigation=investigation, name="server.log", stream=stream)
    finding = Finding.objects.get(code="draft-tokens-overridden")
    assert (finding.state, finding.opened_in) == ("open", None)


def test_runs_that_differ_in_depth_alone_are_a_family(
    investigation: Investigation, measured: Callable[..., Run]
) -> None:
    plain = measured("plain")
    lifecycle.edit_investigation(investigation, baseline=plain)
    one, deep = measured("steps1"), measured("steps15")
    found = queries.dossier(investigation)

    def family(run: Run) -> list[str]:
        facts = found.run(run.pk)
        assert facts is not None
        return [m.run.label for m in cases.family(found, facts)]

    assert (family(plain), family(one), family(deep)) == ([], [], ["R1"])


@pytest.mark.parametrize("change", ["env", "workload", "argument", "draft"])
def test_runs_that_differ_in_more_are_none(
    investigation: Investigation, measured: Callable[..., Run], change: str
) -> None:
    one, deep = measured("steps1"), measured("steps15")
    if change == "argument":
        deep.config.filter(key="attention_backend").update(effective="triton")
    elif change == "draft":
        intake.take_file(
            investigation=investigation,
            run=deep,
            name="config.json",
            stream=io.BytesIO(b'{"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64}'),
        )
    else:
        values = {"env": {"A": "1"}, "workload": {"concurrency": 8}}
        deep.plan = deep.plan | {change: values[change]}
        deep.save()
    found = queries.dossier(investigation)
    facts = found.run(deep.pk)
    assert facts is not None
    assert cases.family(found, facts) == []
    assert one.number == 0


def test_a_log_with_two_starts_or_cut_in_half_is_survived(
    measured: Callable[..., Run], claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path / "torn", server_info=None)
    log = Path(outcome.log)
    content = log.read_bytes()
    log.write_bytes(content + content[: len(content) // 2 + 7])
    taken = intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert taken.run.check_problem == ""
    assert "draft-tokens-overridden" in codes(taken.run)


def test_a_run_whose_files_are_gone_is_looked_at_with_what_is_left(
    measured: Callable[..., Run], data_dir: Path
) -> None:
    run = measured("steps1")
    shutil.rmtree(data_dir / "blobs")
    checkup.recheck(run)
    assert "draft-tokens-overridden" in codes(run)


def test_the_reference_engine_may_take_minus_one_for_the_embedding(
    investigation: Investigation, measured: Callable[..., Run]
) -> None:
    investigation.notes = {"training": {"features": ["embed", 2, 6]}}
    investigation.save()
    run = measured("steps15")
    Run.objects.filter(pk=run.pk).update(engine="reference")
    target = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    for name, config in (
        ("t.json", target | {"num_hidden_layers": 12, "hidden_size": 64, "vocab_size": 512}),
        ("d.json", _draft([-1, 1, 5])),
    ):
        intake.take_file(
            investigation=investigation,
            run=run,
            name=name,
            stream=io.BytesIO(json.dumps(config).encode()),
        )
        run.refresh_from_db()
    assert not {"aux-layer-mismatch", "aux-layer-not-capturable"} & codes(run)
    assert "aux-layer-mismatch" not in {u["code"] for u in run.untried}
    Run.objects.filter(pk=run.pk).update(engine="sglang-cpu")
    run.refresh_from_db()
    checkup.recheck(run)
    assert "aux-layer-not-capturable" in codes(run)


def _draft(ids: list[int]) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": 64,
        "eagle_config": {
            "use_aux_hidden_state": True,
            "eagle_aux_hidden_state_layer_ids": ids,
        },
    }


def test_requests_without_a_histogram_give_no_positions(
    investigation: Investigation, measured: Callable[..., Run]
) -> None:
    request = plan.Request("p", 1.0, 10, 100, spec_verify_ct=60)
    bare = measured("steps1", repeats=(plan.Repeat(0, 0.0, 2.0, (request,)),))
    full = measured("steps1")
    found = queries.dossier(investigation)
    one, two = found.run(bare.pk), found.run(full.pk)
    assert one is not None
    assert two is not None
    assert cases.positions(one) is None
    positions = cases.positions(two)
    assert positions is not None
    assert positions.conditional == pytest.approx((24 / 39,))
