"""Which settings of a sweep are worth a run."""

from collections.abc import Sequence

import pytest

from specdebug.diagnosis.sweep import MOST_POINTS, grid, plan_sweep, with_flags
from specdebug.sglang.releases import Release

RELEASE = Release.parse("0.5.10.post1")
BASE = (
    *("--model-path", "m", "--speculative-algorithm", "EAGLE3"),
    *("--speculative-draft-model-path", "d", "--speculative-eagle-topk", "1"),
    *("--speculative-num-steps", "3", "--speculative-num-draft-tokens=4"),
)


def test_a_grid_is_every_combination() -> None:
    found = grid({"steps": [1, 3], "draft_tokens": [2, 4]})
    assert found == [
        {"steps": 1, "draft_tokens": 2},
        {"steps": 1, "draft_tokens": 4},
        {"steps": 3, "draft_tokens": 2},
        {"steps": 3, "draft_tokens": 4},
    ]


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({}, "0 settings"),
        ({"steps": []}, "no values"),
        ({"depth": [1]}, "'depth' is no axis: steps, topk"),
        ({"steps": list(range(MOST_POINTS + 1))}, f"1 to {MOST_POINTS}"),
    ],
)
def test_a_grid_that_is_none_is_refused(axes: dict[str, list[int]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        grid(axes)  # type: ignore[arg-type]


def test_topk_one_makes_draft_tokens_no_axis_at_all() -> None:
    settings = grid({"steps": [1, 3], "draft_tokens": [2, 4, 16]})
    found = plan_sweep(BASE, settings, release=RELEASE, concurrency=1)
    # Named by what tells them apart: the axis that came to nothing is no name.
    assert [point.name for point in found.points] == ["steps 1", "steps 3"]
    assert [point.steps for point in found.points] == [1, 3]
    assert len(found.dropped) == 4
    first = found.dropped[0]
    assert (first.name, first.same_as) == ("steps 1, draft tokens 4", "steps 1")
    assert first.why.startswith("the engine runs it as steps 1: ")
    assert "With topk 1 the draft is one chain" in first.why


def test_with_a_tree_draft_tokens_are_an_axis() -> None:
    settings = grid({"topk": [4], "steps": [3], "draft_tokens": [4, 8]})
    found = plan_sweep(BASE, settings, release=RELEASE)
    assert len(found.points) == 2
    assert found.dropped == ()
    assert [point.steps for point in found.points] == [None, None]


def test_what_the_release_refuses_is_left_out_with_its_reason() -> None:
    base = ("--model-path", "m", "--speculative-algorithm", "EAGLE3")
    found = plan_sweep(base, [{"steps": 3}], release=RELEASE)
    assert found.points == ()
    assert "SGLang 0.5.10.post1 refuses it: Steps without topk" in found.dropped[0].why
    # Of a release that was not read, only a start can tell.
    unknown = plan_sweep(base, [{"steps": 3}], release=Release.parse("0.6.1"))
    assert len(unknown.points) == 1


def test_chains_of_one_backend_and_load_are_a_family() -> None:
    settings = [
        {"steps": 1},
        {"steps": 5},
        {"steps": 1, "backend": "triton"},
        {"steps": 1, "concurrency": 4},
    ]
    points = plan_sweep(BASE, settings, release=RELEASE, concurrency=1).points
    assert points[0].family == points[1].family
    assert len({point.family for point in points}) == 3
    assert [point.concurrency for point in points] == [1, 1, 1, 4]


def test_the_same_setting_twice_is_one() -> None:
    found = plan_sweep(BASE, [{"steps": 2}, {"steps": 2}], release=RELEASE)
    assert len(found.points) == 1
    assert found.dropped[0].why == "it is in the list already"


def test_flags_are_set_whatever_name_and_form_they_had() -> None:
    base = ("--tp", "4", "--speculative-num-steps=3", "--disable-cuda-graph", "--page-size", "1")
    made = with_flags(base, {"--speculative-num-steps": 5, "--tp-size": 8})
    assert made == (
        *("--disable-cuda-graph", "--page-size", "1"),
        *("--speculative-num-steps", "5", "--tp-size", "8"),
    )
    assert with_flags(base, {}) == base


def test_what_the_engine_itself_does_not_run_is_left_out_with_its_reason() -> None:
    def own(args: Sequence[str]) -> str:
        topk = args[args.index("--speculative-eagle-topk") + 1]
        return "" if topk == "1" else "drafts chains only"

    settings = grid({"topk": [1, 4]})
    found = plan_sweep(BASE[:-1], settings, release=RELEASE, own=own)
    assert [point.values["topk"] for point in found.points] == [1]
    assert [one.why for one in found.dropped] == ["drafts chains only"]
    assert len(plan_sweep(BASE[:-1], settings, release=RELEASE).points) == 2
