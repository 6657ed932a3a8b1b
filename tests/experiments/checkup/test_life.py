"""A finding's life: opened, seen again, fixed only by a run that would have shown it, reopened."""

from __future__ import annotations

from typing import Any

from experiments.checkup.life import Sight, fold

CODE = "draft-tokens-overridden"


def sight(run: int, *codes: str, **values: Any) -> Sight:
    shown = {code: {"code": code, "statement": f"{code} in {run}"} for code in codes}
    return Sight(run, shown, **({"proves": True, "speculative": True} | values))


def kinds(*sights: Sight, code: str = CODE, **values: Any) -> list[tuple[str, int | None]]:
    life = fold(sights, **values).get(code)
    return [] if life is None else [(t.kind, t.run) for t in life.turns]


def test_a_run_that_would_have_shown_it_and_does_not_fixes_it() -> None:
    lives = fold([sight(1, CODE), sight(2)])
    life = lives[CODE]
    assert kinds(sight(1, CODE), sight(2)) == [("opened", 1), ("fixed", 2)]
    assert (life.state, life.opened_in, life.seen_in, life.fixed_in) == ("fixed", 1, 1, 2)


def test_what_is_seen_again_stays_open_with_the_newest_words() -> None:
    life = fold([sight(1, CODE), sight(2, CODE)])[CODE]
    assert (life.state, life.opened_in, life.seen_in) == ("open", 1, 2)
    assert life.latest["statement"] == f"{CODE} in 2"


def test_a_fault_that_comes_back_is_reopened() -> None:
    turns = kinds(sight(1, CODE), sight(2), sight(3, CODE), sight(4))
    assert turns == [("opened", 1), ("fixed", 2), ("reopened", 3), ("fixed", 4)]


def test_a_run_that_lacked_the_input_fixes_nothing() -> None:
    assert kinds(sight(1, CODE), sight(2, untried=frozenset({CODE}))) == [("opened", 1)]


def test_a_run_that_was_not_measured_to_the_end_fixes_nothing() -> None:
    assert kinds(sight(1, CODE), sight(2, proves=False)) == [("opened", 1)]


def test_a_run_without_a_draft_fixes_no_fault_of_the_draft() -> None:
    assert kinds(sight(1, CODE), sight(2, speculative=False)) == [("opened", 1)]


def test_a_run_without_a_draft_fixes_a_fault_of_the_server() -> None:
    code = "out-of-memory"
    turns = kinds(sight(1, code), sight(2, speculative=False), code=code)
    assert turns == [("opened", 1), ("fixed", 2)]


def test_runs_before_the_first_sight_fix_nothing() -> None:
    assert kinds(sight(1), sight(2, CODE)) == [("opened", 2)]


def test_a_fix_that_a_person_took_back_stays_taken_back() -> None:
    turns = kinds(sight(1, CODE), sight(2), sight(3), disbelieved={CODE: frozenset({2})})
    assert turns == [("opened", 1), ("fixed", 3)]


def test_loose_files_open_what_a_later_run_can_fix() -> None:
    files = Sight(None, {CODE: {"code": CODE}})
    assert kinds(files, sight(1)) == [("opened", None), ("fixed", 1)]


def test_what_no_run_shows_has_no_life() -> None:
    assert fold([sight(1), sight(2)]) == {}
