"""What is told of a plan before it starts, and what stops it."""

from specdebug.sglang.preflight import differing, foresee
from specdebug.sglang.releases import Release

RELEASE = Release.parse("0.5.10.post1")
NEWER = Release.parse("0.6.1")
DRAFT = ("--model-path", "m", "--speculative-algorithm", "EAGLE3", "--speculative-draft-model", "d")
CHAIN = (*DRAFT, "--speculative-eagle-topk", "1")
STORY = (*CHAIN, "--speculative-num-steps", "1", "--speculative-num-draft-tokens", "16")
RIGHT = (*CHAIN, "--speculative-num-steps", "15", "--speculative-num-draft-tokens", "16")
HALF = (*DRAFT, "--speculative-num-steps", "3")


def test_an_override_is_foreseen_with_its_rule_and_stops_a_strict_plan_only() -> None:
    told = foresee(STORY, release=RELEASE, source="as stated")
    (change,) = told.changes
    assert (change.key, change.asked, change.effective) == ("speculative_num_draft_tokens", 16, 2)
    assert change.rule == "topk1_forces_draft_tokens"
    assert (told.release, told.release_known, told.source) == ("0.5.10.post1", True, "as stated")
    assert told.objection(strict=False) == ""
    assert "speculative_num_draft_tokens 16 becomes 2" in told.objection(strict=True)
    assert told.in_short() == "speculative_num_draft_tokens 16 becomes 2"


def test_a_plan_that_comes_out_as_asked_may_start_strictly() -> None:
    told = foresee(RIGHT, release=RELEASE)
    assert told.changes == ()
    assert told.objection(strict=True) == ""
    assert told.in_short() == ""


def test_what_the_release_refuses_is_not_started() -> None:
    told = foresee(HALF, release=RELEASE)
    assert told.refusals[0].error == "TypeError"
    said = told.objection(strict=False)
    assert said.startswith("SGLang 0.5.10.post1 refuses these arguments: Steps without topk")
    assert "--speculative-eagle-topk" in said


def test_a_release_that_was_not_read_has_the_last_word_itself() -> None:
    for release in (NEWER, None):
        told = foresee(HALF, release=release)
        assert told.refusals
        assert not told.release_known
        assert told.objection(strict=False) == ""
        assert told.objection(strict=True)


def test_what_is_kept_is_json() -> None:
    kept = foresee(STORY, release=RELEASE).as_dict()
    assert kept["changes"][0]["key"] == "speculative_num_draft_tokens"
    assert isinstance(kept["notes"], list)


def test_what_the_running_server_reports_is_held_against_what_was_asked() -> None:
    effective = {"speculative_num_draft_tokens": 2, "speculative_num_steps": 1, "port": 4}
    found = differing((*STORY, "--port", "3"), effective)
    assert [str(change) for change in found] == ["speculative_num_draft_tokens 16 becomes 2"]
    assert differing(STORY, {**effective, "speculative_num_draft_tokens": 16}) == ()
    assert differing(STORY, {}) == ()


def test_an_engine_s_own_refusal_needs_no_release() -> None:
    why = "topk 4: the reference engine drafts chains only"
    for release in (RELEASE, NEWER, None):
        told = foresee(RIGHT, release=release, own=why)
        assert told.refusals[0].own
        assert told.objection(strict=False) == f"The engine refuses these arguments: {why}."
        assert foresee(RIGHT, release=release).objection(strict=False) == ""
    # Where the release stops already, its own words are the better ones.
    told = foresee(HALF, release=RELEASE, own=why)
    assert [no.own for no in told.refusals] == [False]
