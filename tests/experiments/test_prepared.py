"""Questions whose SQL is written once: they find what the queryset itself would find."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from experiments import lifecycle
from experiments.lifecycle import access
from experiments.models import ApiToken, ConfigEntry, Investigation, Role, Run
from experiments.queries.prepared import Prepared

RUN = Prepared(
    lambda slug, number: Run.objects.select_related("investigation", "hypothesis").filter(
        investigation__slug=slug, number=number
    ),
)
TOKEN = Prepared(
    lambda name: ApiToken.objects.select_related("user", "user__role").filter(name=name)
)
OPENED = Prepared(lambda slug: Investigation.objects.only("slug").filter(slug=slug))


def columns(row: Any) -> dict[str, Any]:
    return {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields}


@pytest.mark.django_db
def test_a_row_and_its_relations_are_those_of_the_orm(
    baseline: Run, django_assert_num_queries: Any
) -> None:
    wanted = Run.objects.select_related("investigation").get(pk=baseline.pk)
    with django_assert_num_queries(1):
        found = RUN.get(baseline.investigation.slug, 0)
        assert columns(found) == columns(wanted)
        assert columns(found.investigation) == columns(wanted.investigation)
        assert found.hypothesis is None
    found.title = "renamed"
    found.save()
    assert Run.objects.get(pk=baseline.pk).title == "renamed"


@pytest.mark.django_db
def test_each_question_has_its_own_values(investigation: Investigation) -> None:
    other = lifecycle.create_investigation(title="Other", question="?")
    for row in (investigation, other, investigation):
        assert OPENED.get(row.slug).pk == row.pk


@pytest.mark.django_db
def test_a_row_that_is_not_there_is_said_to_be_missing(investigation: Investigation) -> None:
    for slug, number in ((investigation.slug, 9), ("none", 0), ("' OR 1=1 --", 0)):
        with pytest.raises(Run.DoesNotExist):
            RUN.get(slug, number)


@pytest.mark.django_db
def test_columns_that_were_left_out_are_asked_for_when_used(investigation: Investigation) -> None:
    with CaptureQueriesContext(connection) as asked:
        found = OPENED.get(investigation.slug)
    assert "question" not in asked.captured_queries[0]["sql"]
    assert found.question == investigation.question


@pytest.mark.django_db
def test_lists_and_times_are_values_too(baseline: Run) -> None:
    other = lifecycle.record_run(
        investigation=baseline.investigation,
        title="other",
        repeats=[lifecycle.RecordedRepeat(1.0)],
        server_args=["--model-path", "x"],
    )
    by_key = Prepared(lambda *keys: Run.objects.filter(pk__in=keys).order_by("pk"))
    for keys in ((baseline.pk,), (baseline.pk, other.pk), (other.pk, other.pk, 0)):
        assert by_key.all(*keys) == list(Run.objects.filter(pk__in=keys).order_by("pk"))
    since = Prepared(lambda moment: Run.objects.filter(created_at__gte=moment).order_by("pk"))
    assert since.all(other.created_at) == [other]
    assert since.all(baseline.created_at) == [baseline, other]


@pytest.mark.django_db
@pytest.mark.parametrize("value", [None, True, 1, 1.0, "a", "", "[", "a" * 200, [1], {"a": None}])
def test_json_is_read_as_the_orm_reads_it(baseline: Run, value: Any) -> None:
    entry = ConfigEntry.objects.create(run=baseline, key="k", requested=value, was_requested=True)
    found = Prepared(lambda pk: ConfigEntry.objects.filter(pk=pk)).get(entry.pk)
    assert columns(found) == columns(ConfigEntry.objects.get(pk=entry.pk))
    assert type(found.requested) is type(value)
    assert found.was_requested is True


@pytest.mark.django_db
def test_a_relation_is_there_where_it_is_and_none_where_not() -> None:
    user = User.objects.create_user("a")
    access.make_token(user=user, name="t")
    assert access.role_of(TOKEN.get("t").user) == Role.Name.MEMBER
    Role.objects.create(user=user, name=Role.Name.VIEWER)
    found = TOKEN.get("t")
    assert access.role_of(found.user) == Role.Name.VIEWER
    assert found.expires_at.tzinfo is not None
    assert columns(found) == columns(ApiToken.objects.get(name="t"))


@pytest.mark.django_db(transaction=True)
def test_each_thread_asks_through_its_own_connection(investigation: Investigation) -> None:
    found: list[int] = []

    def ask() -> None:
        try:
            found.append(OPENED.get(investigation.slug).pk)
        finally:
            connection.close()

    OPENED.get(investigation.slug)
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [investigation.pk] * 3
