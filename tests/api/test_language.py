"""The query language: what is read, what is refused and where, and what it finds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.models import ConfigEntry, Investigation, MetricSummary, Run
from experiments.queries.language import And, BadQuery, Not, Or, Term, Words, parse
from experiments.queries.search import KINDS, narrowed, search


def test_and_binds_closer_than_or_and_terms_side_by_side_are_joined() -> None:
    found = parse("a = 1 OR b = 2 c = 3 AND NOT d")
    assert isinstance(found, Or)
    assert isinstance(found.parts[1], And)
    assert found.parts[1].parts[-1] == Not(Words("d"))


@pytest.mark.parametrize(
    ("text", "operator", "values"),
    [
        ("a = 1.5", "=", (1.5,)),
        ("a: x", "=", ("x",)),
        ('a ~ "two words"', "~", ("two words",)),
        ("a BETWEEN 1 AND 2", "between", (1, 2)),
        ("a = 1..2.5", "between", (1.0, 2.5)),
        ("a IN (1, 'x', true)", "in", (1, "x", True)),
        ("a NOT IN (1)", "!=", (1,)),
        ("a IS NULL", "unknown", ()),
        ("a != null", "known", ()),
        ("metrics.tok_s >= 1e3", ">=", (1000.0,)),
        ("a = 1.2.3", "=", ("1.2.3",)),
    ],
)
def test_a_term_is_read(text: str, operator: str, values: tuple[object, ...]) -> None:
    found = parse(text)
    assert isinstance(found, Term)
    assert (found.operator, found.values) == (operator, values)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a >", 3),
        ("( a", 3),
        ("a ) b", 2),
        ("AND b", 0),
        ('x "open', 2),
        ("a IN (1 2)", 8),
        ("a BETWEEN 1 2", 12),
        ("a = 1e999", 4),
        ("9a = 1", 0),
        ("a\0", 1),
    ],
)
def test_a_fault_is_named_with_its_place(text: str, place: int) -> None:
    with pytest.raises(BadQuery) as no:
        parse(text)
    assert no.value.place == place


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab1.() =<>!~:,\"'ANDORTI \n", max_size=60))
def test_any_text_is_a_query_or_refused_within_it(text: str) -> None:
    place = 0
    try:
        parse(text)
    except BadQuery as no:
        place = no.place
    assert 0 <= place <= len(text)


def test_a_query_has_bounds() -> None:
    for text in ("(" * 100 + "a" + ")" * 100, "NOT " * 100 + "a", "a " * 200, "x" * 3000):
        with pytest.raises(BadQuery):
            parse(text)


@pytest.fixture
def runs(inv: Investigation) -> list[Run]:
    found = [
        Run.objects.create(
            investigation=inv, number=n, title=f"run {n}", position=n, state="done", engine="SGLang"
        )
        for n in range(4)
    ]
    for run, value in zip(found, (10.0, 60.0, 80.0), strict=False):
        MetricSummary.objects.create(run=run, name="tok_s", value=value, low=1, high=2)
    for run, asked, now in zip(found, (1, 3, "auto"), (2, None, None), strict=False):
        ConfigEntry.objects.create(
            run=run,
            key="steps",
            requested=asked,
            was_requested=True,
            effective=now,
            effective_known=now is not None,
        )
    return found


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("metrics.tok_s > 60", [2]),
        ("metrics.tok_s = 10..60", [0, 1]),
        ("metrics.tok_s != 60", [0, 2, 3]),
        ("metrics.tok_s IS NULL", [3]),
        ("NOT metrics.tok_s > 60", [0, 1, 3]),
        ("params.steps = 2", [0]),
        ("params.steps = 1", []),
        ("params.steps >= 2", [0, 1]),
        ("params.steps IN (3, AUTO)", [1, 2]),
        ("params.steps ~ ut", [2]),
        ("params.steps IS NOT NULL", [0, 1, 2]),
        ("engine = sglang AND label = R3", [3]),
        ("label IN (R1, 2)", [1, 2]),
        ("run 2", [2]),
        ("created = 2020-01-01", []),
        ("created > 2020-01-01 AND state = done", [0, 1, 2, 3]),
        ("recorded = true OR by_script = true", []),
        ("", [0, 1, 2, 3]),
    ],
)
def test_runs_are_found(query: str, numbers: list[int], runs: list[Run]) -> None:
    rows = narrowed(KINDS["run"], query).order_by("number")
    assert [run.number for run in rows] == numbers


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("nothing = 1", "known: title"),
        ("label = x", "written R1"),
        ("created > soon", "is a time"),
        ("metrics.a > b", "is a number"),
        ("recorded = 3", "true or false"),
        ("metrics. = 1", "known"),
    ],
)
def test_what_does_not_fit_a_field_is_said(query: str, words: str, runs: list[Run]) -> None:
    with pytest.raises(BadQuery, match=words):
        list(narrowed(KINDS["run"], query))


def test_a_search_takes_the_kinds_that_know_its_fields(runs: list[Run]) -> None:
    found = search("metrics.tok_s > 0", limit=2)
    assert set(found.rows) == {"run"}
    assert found.more == {"run"}
    assert search("draft").rows["investigation"][0].slug == "slow-draft"
    with pytest.raises(BadQuery, match="no field"):
        search("nothing = 1")
