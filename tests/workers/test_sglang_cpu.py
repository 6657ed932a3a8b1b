"""The shim that lets the real SGLang run without a GPU: its tree kernels by themselves, and with
SGLang installed the real server beside the reference engine."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from benchmarks import crosscheck
from specdebug.reference import variants
from workers import runner

torch = pytest.importorskip("torch")
SHIM = Path(runner.__file__).parent / "sglang_cpu"


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
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["wrong-3", "right-15"])
def test_the_real_server_and_the_reference_engine_accept_the_same_drafts(
    name: str, tmp_path: Path
) -> None:
    """Same checkpoints, same prompts: same tokens, verify passes and histograms, request by
    request. Two of the configurations; `python benchmarks/crosscheck.py` compares all."""
    if not os.environ.get(crosscheck.INTERPRETER):
        pytest.fail(
            "the real SGLang is missing: bin/setup-sglang-cpu installs it; set "
            f"{crosscheck.INTERPRETER} to what it prints"
        )
    found = crosscheck.compare(crosscheck.BY_NAME[name], tmp_path)
    assert found.requests == 8
    assert (found.equal_tokens, found.equal_verifies, found.equal_histograms) == (8, 8, 8)
    # The comparison sees a draft position that is off by one: it is no empty one.
    assert found.equal_with_other_position is not None
    assert found.equal_with_other_position < 8


def test_swapped_norms_are_another_checkpoint_and_the_shipped_one_is_left_alone(
    tmp_path: Path,
) -> None:
    file = variants.DRAFT / "model.safetensors"
    before = file.read_bytes()
    made = crosscheck.BY_NAME["norms-swapped-3"].draft(tmp_path / "draft")
    assert (made / "model.safetensors").read_bytes() != before
    assert file.read_bytes() == before


def test_every_configuration_asks_both_engines_for_the_same(tmp_path: Path) -> None:
    names = {configuration.name for configuration in crosscheck.CONFIGURATIONS}
    assert {f"{layers}-{n}" for layers in ("right", "wrong") for n in (1, 3, 15)} < names
    right = crosscheck.BY_NAME["right-3"]
    assert right.environment() == {"CAPTURE_EMBEDDING": "1"}
    assert crosscheck.BY_NAME["wrong-3"].environment() == {}
    arguments = right.arguments(tmp_path)
    assert arguments[arguments.index("--speculative-num-draft-tokens") + 1] == "4"


def patched(name: str, old: str, new: str) -> Any:
    """A class whose method was patched as the shim does it."""
    spec = importlib.util.spec_from_file_location("shim", SHIM / "sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.meta_path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.meta_path[:] = before  # the hooks are for SGLang's own processes
    module._patch(types.SimpleNamespace(), Layer, name, old, new)
    return Layer


class Layer:
    def capture(self, state: int, residual: int | None) -> int:
        return state + residual  # type: ignore[operator]


def test_a_patch_changes_one_place_and_refuses_where_it_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ImportError, match=r"Layer.capture is not the one"):
        patched("capture", "nothing like it", "x")
    with pytest.raises(ImportError, match="is not the one"):
        patched("capture", "state", "x")  # there more than once
    assert Layer().capture(1, 2) == 3
    with pytest.raises(TypeError):
        Layer().capture(1, None)
    monkeypatch.setattr(Layer, "capture", Layer.capture)  # put back in the end
    patched("capture", "state + residual", "state if residual is None else state + residual")
    assert (Layer().capture(1, None), Layer().capture(1, 2)) == (1, 3)
