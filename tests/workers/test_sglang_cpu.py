"""The shim that lets the real SGLang run without a GPU: its tree kernels by themselves, and with
SGLang installed the real server beside the reference engine."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

import specdebug.reference
from specdebug.reference import variants
from workers import runner
from workers.plan import RunOutcome, RunPlan, Workload

torch = pytest.importorskip("torch")
SHIM = Path(runner.__file__).parent / "sglang_cpu"
MODELS = Path(specdebug.reference.__file__).parent / "models"
PYTHON = "SPECDEBUG_SGLANG_CPU_PYTHON"


@pytest.fixture(scope="module")
def tree() -> Any:
    spec = importlib.util.spec_from_file_location("tree", SHIM / "specdebug_eagle_tree.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(tree: Any, chosen: list[int], expanded: list[int], topk: int, length: int) -> Any:
    """(mask without the verified part, positions, children, siblings) of one request's tree."""
    count = len(chosen) + 1
    mask = torch.zeros(count * (length + count), dtype=torch.bool)
    positions = torch.zeros(count, dtype=torch.long)
    index, children, siblings = (torch.full((1, count), -1) for _ in range(3))
    tree.build_tree(
        torch.tensor([expanded]),
        torch.tensor([chosen]),
        torch.tensor([length]),
        mask,
        positions,
        index,
        children,
        siblings,
        topk,
        0,
        count,
    )
    assert index.tolist() == [list(range(count))]
    mask = mask.view(count, length + count)
    assert mask[:, :length].all()
    return mask[:, length:].int().tolist(), positions.tolist(), children[0], siblings[0]


def test_a_chain_sees_all_before_it(tree: Any) -> None:
    mask, positions, children, siblings = build(tree, [0, 1, 2], [-1, 0, 1], topk=1, length=5)
    assert mask == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert positions == [5, 6, 7, 8]
    assert children.tolist() == [1, 2, 3, -1]
    assert siblings.tolist() == [-1] * 4


def test_a_tree_sees_its_own_branch_alone(tree: Any) -> None:
    """Two candidates under the root (0, 1), one under candidate 1 (numbered 4: group 2)."""
    mask, positions, children, siblings = build(tree, [0, 1, 4], [-1, 0, 1], topk=2, length=3)
    assert mask == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]
    assert positions == [3, 4, 4, 5]
    assert children.tolist() == [1, -1, 3, -1]
    assert siblings.tolist() == [-1, 2, -1, -1]


def verify(tree: Any, tokens: list[int], children: Any, siblings: Any, target: list[int]) -> Any:
    """(accepted drafts, places accepted, tokens predicted along them)."""
    count = len(tokens)
    predicts = torch.full((count,), -1)
    accepted, number = torch.full((1, count), -1), torch.zeros(1, dtype=torch.long)
    tree.verify_greedy(
        predicts,
        accepted,
        number,
        torch.tensor([tokens]),
        torch.arange(count).view(1, -1),
        children.view(1, -1),
        siblings.view(1, -1),
        torch.tensor([target]),
    )
    places = [place for place in accepted[0].tolist() if place != -1]
    return number.item(), places, [predicts[place].item() for place in places]


@pytest.mark.parametrize(
    ("target", "accepted"), [([8, 0, 0, 0], 0), ([11, 12, 8, 0], 2), ([11, 12, 13, 14], 3)]
)
def test_a_chain_is_accepted_up_to_the_first_difference(
    tree: Any, target: list[int], accepted: int
) -> None:
    _, _, children, siblings = build(tree, [0, 1, 2], [-1, 0, 1], topk=1, length=5)
    number, places, predicted = verify(tree, [10, 11, 12, 13], children, siblings, target)
    assert number == accepted
    assert places == list(range(accepted + 1))
    assert predicted == target[: accepted + 1]  # the accepted ones and the bonus


def test_in_a_tree_the_agreeing_sibling_is_followed(tree: Any) -> None:
    _, _, children, siblings = build(tree, [0, 1, 4], [-1, 0, 1], topk=2, length=3)
    number, places, predicted = verify(tree, [10, 11, 12, 13], children, siblings, [12, 0, 13, 99])
    assert (number, places, predicted) == (2, [0, 2, 3], [12, 13, 99])


@pytest.mark.sglang_cpu
@pytest.mark.skipif(not os.environ.get(PYTHON), reason=f"{PYTHON} names no interpreter")
@pytest.mark.timeout(900)
def test_the_real_server_and_the_reference_engine_accept_the_same_drafts(tmp_path: Path) -> None:
    """Same checkpoints, same prompts: same tokens, verify passes and histograms, request by
    request. The ids [1, 5, 9] are the wrong ones for this draft; both engines capture them."""
    draft = variants.write_draft(tmp_path / "draft", variants.WRONG_IDS)
    common = [
        *("--model-path", str(MODELS / "target"), "--random-seed", "1"),
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(draft)),
        *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", "4", "--decode-log-interval", "10"),
    ]
    cpu = [
        *("--device", "cpu", "--dtype", "float32", "--attention-backend", "torch_native"),
        *("--disable-cuda-graph", "--sleep-on-idle", "--max-total-tokens", "4096"),
        *("--max-running-requests", "4"),
    ]

    def measure(engine: str, *more: str) -> RunOutcome:
        folder = tmp_path / engine
        folder.mkdir()
        plan = RunPlan(
            run="crosscheck",
            engine=engine,
            server_args=(*common, *more),
            folder=str(folder),
            workload=Workload(repeats=1, warm_up_prompts=1),
        )
        outcome = runner.measure(plan, on_progress=lambda _: None, should_stop=lambda: "")
        assert (outcome.state, outcome.reason) == ("done", "")
        assert outcome.exit is not None
        assert outcome.exit.survivors == ()
        return outcome

    real, ours = measure("sglang-cpu", *cpu), measure("reference")
    assert real.versions["engine"] == "0.5.10.post1"
    pairs = list(zip(real.repeats[0].requests, ours.repeats[0].requests, strict=True))
    assert len(pairs) == 8
    for theirs, mine in pairs:
        assert theirs.prompt == mine.prompt
        assert theirs.output_sha256 == mine.output_sha256
        assert theirs.spec_verify_ct == mine.spec_verify_ct
        assert theirs.accept_histogram == mine.accept_histogram
