"""What the name of a run tells: on which side it stands, and with which draft arguments."""

import pytest

from specdebug.sglang.run_names import (
    bare_side,
    is_baseline,
    side_of,
    speaks_of_drafts,
    told_by_label,
)


@pytest.mark.parametrize(
    "name",
    [
        *("output tok/s without MTP", "throughput w/o MTP", "no MTP", "MTP off", "non-MTP tok/s"),
        *("plain server", "Without EAGLE-3", "before enabling MTP", "tok/s before NextN"),
        *("EAGLE3 disabled", "spec=false", "after turning off EAGLE", "w/o spec. decoding"),
        *("baseline (no spec)", "normal decoding", "target only", "MTP not used", "pre-MTP"),
        *("不开投机", "无 MTP", "基线吞吐", "关闭投机解码", "MTP 关闭", "未启用 EAGLE3"),
    ],
)
def test_a_name_of_a_run_without_a_draft(name: str) -> None:
    assert side_of(name) == "plain"
    assert is_baseline(name)
    assert told_by_label(name) == {}


@pytest.mark.parametrize(
    "name",
    [
        *("output tok/s with MTP", "throughput w/ MTP", "MTP on", "EAGLE-3, num_steps 8", "spec"),
        *("after enabling MTP", "with speculation", "NextN tok/s", "before the EAGLE3 fix"),
        *("开启 MTP", "投机吞吐", "n-gram drafts"),
    ],
)
def test_a_name_of_a_run_with_a_draft(name: str) -> None:
    assert side_of(name) == "drafting"
    assert not is_baseline(name)


@pytest.mark.parametrize(
    "name",
    [
        *("with and without MTP", "w/ and w/o MTP", "with/without EAGLE", "MTP on/off"),
        *("EAGLE3 vs baseline", "slower than without speculation", "before/after enabling MTP"),
        *("our EAGLE3 draft is worse without speculation", "server A", "TP8", "specific prompts"),
        *("no specific prompts", "基准测试", "off", "explained", ""),
    ],
)
def test_a_name_of_both_sides_or_of_none_is_of_neither(name: str) -> None:
    assert side_of(name) is None


def test_off_and_on_are_sides_only_where_it_is_known_what_was_switched() -> None:
    assert [bare_side(w) for w in ("off", "With", "before", "关", "A")] == [
        *("plain", "drafting", "plain", "plain"),
        None,
    ]
    assert speaks_of_drafts("MTP off vs on, H20:")
    assert not speaks_of_drafts("CUDA graphs off vs on:")


def test_the_number_of_a_method_is_no_number_of_steps() -> None:
    assert told_by_label("EAGLE-3 steps=5 topk=8 draft=32") == {
        "is_baseline": False,
        "num_steps": 5,
        "topk": 8,
        "requested_draft_tokens": 32,
    }
    assert "num_steps" not in told_by_label("EAGLE-3 steps")
    assert told_by_label("MTP, 3 steps")["num_steps"] == 3
