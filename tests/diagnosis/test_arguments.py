from typing import Any

import pytest

from specdebug.diagnosis.arguments import as_int, contradictions, release_knowledge, setups
from specdebug.diagnosis.facts import Fact, Launch
from specdebug.diagnosis.figures import baseline, cost_points, primary, runs


def launch(make: Any, **asked: Any) -> Launch:
    launches = make.case(requested=make.asked(**asked)).launches
    assert len(launches) == 1
    found: Launch = launches[0]
    return found


def with_launches(make: Any, launches: list[Launch], boots: list[Any]) -> Any:
    from dataclasses import replace

    return replace(make.case(boots=boots), launches=tuple(launches))


def test_commands_pair_with_the_starts_they_can_have_led_to(make: Any) -> None:
    shallow, deep = launch(make, steps=1, tokens=2), launch(make, steps=7, tokens=8)
    boots = [make.boot(args=make.args(7), line=9), make.boot(args=make.args(1), line=90)]
    found = setups(with_launches(make, [shallow, deep], boots))
    pairs = {(s.boot.line, s.asked_number("speculative_num_steps")) for s in found if s.boot}
    assert pairs == {(9, 7), (90, 1)}


def test_a_command_that_fits_no_start_stands_alone(make: Any) -> None:
    case = with_launches(make, [launch(make, steps=5)], [make.boot(args=make.args(3))])
    found = setups(case)
    assert len(found) == 2
    assert not any(s.launch and s.boot for s in found)


def test_an_override_does_not_keep_command_and_start_apart(make: Any) -> None:
    case = with_launches(make, [launch(make, steps=1, tokens=16)], [make.boot(args=make.args(1))])
    assert [bool(s.launch and s.boot) for s in setups(case)] == [True]


def test_a_plain_start_is_not_given_a_speculative_command(make: Any) -> None:
    plain = make.boot(args=make.args(None))
    found = setups(with_launches(make, [launch(make)], [plain]))
    assert not any(s.launch and s.boot for s in found)


def test_the_person_knows_the_release_better_than_the_log(make: Any) -> None:
    from dataclasses import replace

    boot = replace(make.boot(args=make.args()), release="0.5.9", release_from="0.5.8")
    assert str(release_knowledge(setups(make.case(boots=[boot]))[0])) == "release 0.5.9"
    told = make.case(boots=[boot], engine_version="0.5.10")
    assert str(release_knowledge(setups(told)[0])) == "release 0.5.10"


def test_bounds_decide_what_they_can(make: Any) -> None:
    from dataclasses import replace

    boot = replace(make.boot(args=make.args()), release_from="0.5.11")
    known = release_knowledge(setups(make.case(boots=[boot]))[0])
    assert known.surely_from("0.5.11")
    assert not known.surely_from("0.5.12")
    assert not known.surely_before("0.5.13")
    assert str(known) == "a release from 0.5.11"
    assert all(r >= known.possible[0] for r in known.possible)


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3), ("4", 4), (5.0, 5), (True, None), ("x", None), (1.5, None), (None, None)],
)
def test_whole_numbers_are_read_from_what_engines_print(value: Any, number: int | None) -> None:
    assert as_int(value) == number


def test_a_baseline_a_person_names_wins_over_rows(make: Any) -> None:
    case = make.case(runs=make.story_rows(), baseline_tok_s=95.0)
    found = baseline(case)
    assert found is not None
    assert found.tok_s == 95.0


def test_a_plain_log_is_a_baseline_for_a_speculative_one(make: Any) -> None:
    plain = make.boot(
        make.stretch([None] * 10, step_ms=11.1), args=make.args(None), source="plain.log"
    )
    spec = make.boot(make.stretch([2.0] * 10), args=make.args(3), source="spec.log")
    case = make.case(boots=[plain, spec])
    base, main = baseline(case), primary(case)
    assert base is not None
    assert main is not None
    assert base.tok_s == pytest.approx(90.1, abs=0.1)
    assert main.label == "spec.log"


def test_rows_at_another_load_stay_off_the_cost_line(make: Any) -> None:
    from specdebug.diagnosis.facts import Measured

    def row(steps: int, running: float) -> Measured:
        return Measured(
            "r",
            "t",
            speculative=True,
            num_steps=steps,
            topk=1,
            tok_s=(50 * running,),
            accept_len=2.0,
            running=running,
        )

    case = make.case(runs=[row(1, 1), row(3, 1), row(7, 64)])
    assert [p.num_steps for p in cost_points(case)] == [1, 3]
    assert len(runs(case)) == 3


@pytest.mark.parametrize(
    ("asked", "listed", "same"),
    [
        ("~/.cache/drafts/kimi", "/home/u/.cache/drafts/kimi", True),
        ("$HOME/.cache/drafts/kimi", "/root/.cache/drafts/kimi", True),
        ("${MODELS}/kimi", "/srv/models/kimi", True),
        ("./drafts/x/", "drafts/x", True),
        ("moonshotai/Kimi-K2.5", "/mnt/models/Kimi-K2.5", True),
        ("moonshotai/Kimi-K2.5", "/data/moonshotai/Kimi-K2___5", True),
        ("Qwen/Qwen3-8B", "/hub/models--Qwen--Qwen3-8B/snapshots/9c925d64", True),
        ("~/.cache/drafts/kimi", "/home/u/.cache/drafts/other", False),
        ("moonshotai/Kimi-K2.5", "/mnt/models/Kimi-K2", False),
        ("/mnt/a/epoch_4", "/mnt/b/epoch_4", False),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-14B", False),
    ],
)
def test_one_model_may_be_written_in_several_ways(asked: str, listed: str, same: bool) -> None:
    key = "speculative_draft_model_path"
    found = contradictions({key: Fact(asked, "c", 1, "")}, {key: Fact(listed, "l", 1, "")})
    assert (found == ()) == same
