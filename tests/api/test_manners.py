"""What all addresses share: repeated writes, entity tags, cursors, filters, rates, problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from experiments.lifecycle import access
from experiments.models import ApiToken, IdempotencyKey, Investigation, MetricSummary, Run
from tests.api.conftest import Caller

BODY = {"title": "Slow", "question": "Why?"}


def test_the_same_write_with_the_same_key_is_done_once(api: Caller) -> None:
    key = {"Idempotency-Key": "k1"}
    first = api.call("POST", "investigations", BODY, **key)
    again = api.call("POST", "investigations", BODY, **key)
    assert first.json() == again.json()
    assert again["Idempotent-Replayed"] == "true"
    assert Investigation.objects.count() == 1
    told = api.refused(422, "POST", "investigations", {**BODY, "title": "Other"}, **key)
    assert "another request" in told["detail"]


def test_a_refused_write_leaves_its_key_free(api: Caller) -> None:
    key = {"Idempotency-Key": "k1"}
    api.refused(400, "POST", "investigations", {"title": ""}, **key)
    assert not IdempotencyKey.objects.exists()
    api.post("investigations", BODY, **key)


def test_keys_of_two_people_do_not_meet(caller: Callable[..., Caller]) -> None:
    key = {"Idempotency-Key": "k1"}
    caller("member").post("investigations", BODY, **key)
    caller("admin").post("investigations", BODY, **key)
    assert Investigation.objects.count() == 2


def test_no_token_is_kept_for_a_repeated_answer(api: Caller) -> None:
    key = {"Idempotency-Key": "k1"}
    one = api.post("tokens", {"name": "a"}, **key)
    two = api.post("tokens", {"name": "a"}, **key)
    assert one["token"] != two["token"]
    assert not IdempotencyKey.objects.exists()


def test_an_edit_of_a_state_that_has_changed_is_refused(api: Caller, inv: Investigation) -> None:
    where = "investigations/slow-draft"
    tag = api.call("GET", where)["ETag"]
    assert api.call("GET", where, **{"If-None-Match": tag}).status_code == 304
    api.patch(where, {"context": "mine"}, **{"If-Match": tag})
    api.refused(412, "PATCH", where, {"context": "theirs"}, **{"If-Match": tag})
    assert api.get(where)["context"] == "mine"
    assert api.call("GET", where, **{"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize("tag", ["", "abc", '"abc', "abc, def", '"a" "b"'])
def test_what_is_no_entity_tag_is_said_to_be_none(
    api: Caller, inv: Investigation, tag: str
) -> None:
    told = api.refused(400, "PATCH", "investigations/slow-draft", {}, **{"If-Match": tag})
    assert told["errors"][0]["field"] == "If-Match"


@pytest.mark.parametrize("tag", ["*", 'W/{}, "other"', '"other" , {}'])
def test_a_list_of_entity_tags_and_any_are_understood(
    api: Caller, inv: Investigation, tag: str
) -> None:
    where = "investigations/slow-draft"
    mine = api.call("GET", where)["ETag"]
    edited = api.patch(where, {"context": "mine"}, **{"If-Match": tag.replace("{}", mine)})
    assert edited["context"] == "mine"


def test_the_tag_of_what_was_made_is_that_of_its_address(api: Caller, inv: Investigation) -> None:
    """Or it has none, as a run, whose address tells more than is answered here."""
    made = api.call("POST", "investigations", BODY)
    assert made["ETag"] == api.call("GET", "investigations/slow")["ETag"]
    made = api.call("POST", "investigations/slow-draft/hypotheses", {"claim": "c"})
    assert made["ETag"] == api.call("GET", "investigations/slow-draft/hypotheses/1")["ETag"]
    run = api.call("POST", "investigations/slow-draft/script-runs", {"title": "t"})
    assert not run.has_header("ETag")
    read = api.call("GET", "investigations/slow-draft/runs/0")["ETag"]
    api.patch("investigations/slow-draft/runs/0", {"note": "n"}, **{"If-Match": read})


def test_an_empty_key_does_not_pass_for_none(api: Caller) -> None:
    told = api.refused(400, "POST", "investigations", BODY, **{"Idempotency-Key": ""})
    assert told["errors"][0]["field"] == "Idempotency-Key"
    assert not Investigation.objects.exists()


def test_a_body_of_another_kind_is_told_what_is_read_here(api: Caller, inv: Investigation) -> None:
    answer = api.http.post(
        "/api/v1/investigations",
        "title=x",
        content_type="application/x-www-form-urlencoded",
        headers={"Authorization": f"Bearer {api.token}"},
    )
    assert answer.status_code == 415
    assert "'Content-Type: application/json'" in answer.json()["detail"]
    api.post("investigations/slow-draft/script-runs", {"title": "t"})
    log = {"Upload-Offset": "0"}
    told = api.refused(415, "POST", "investigations/slow-draft/runs/0/log", {}, **log)
    assert "'Content-Type: application/octet-stream'" in told["detail"]


def test_a_slash_too_many_is_named(api: Caller) -> None:
    assert "slash" in api.refused(404, "GET", "me/")["detail"]
    assert "slash" not in api.refused(404, "GET", "mee")["detail"]


@pytest.fixture
def many(inv: Investigation) -> list[Run]:
    """Seven runs; six have a metric, of which two have the same value."""
    runs = [
        Run.objects.create(
            investigation=inv, number=n, title=f"run {n}", position=n, engine="sglang", state="done"
        )
        for n in range(7)
    ]
    for run, value in zip(runs, [3.0, 1.0, 2.0, 2.0, 5.0, 4.0], strict=False):
        MetricSummary.objects.create(run=run, name="m", value=value, low=value, high=value)
    return runs


def walked(api: Caller, query: str) -> list[str]:
    """The labels of a list, two rows a call."""
    found: list[str] = []
    cursor = ""
    for _ in range(20):
        answer = api.get(f"runs?limit=2&{query}&cursor={cursor}")
        found += [row["label"] for row in answer["items"]]
        if answer["next"] is None:
            return found
        cursor = answer["next"]
    raise AssertionError("the list has no end")


def test_a_list_is_walked_whole_in_every_order(api: Caller, many: list[Run]) -> None:
    assert walked(api, "order=label") == [f"R{n}" for n in range(7)]
    assert walked(api, "order=-created") == [f"R{n}" for n in reversed(range(7))]
    # Equal values in a fixed order, and what lacks the metric at the end.
    assert walked(api, "order=-metrics.m") == ["R4", "R5", "R0", "R3", "R2", "R1", "R6"]
    assert walked(api, "order=metrics.m") == ["R1", "R2", "R3", "R0", "R5", "R4", "R6"]


def test_rows_that_come_meanwhile_do_not_shift_the_next_piece(
    api: Caller, many: list[Run], inv: Investigation
) -> None:
    first = api.get("runs?limit=3&order=-created")
    Run.objects.create(investigation=inv, number=7, title="new", position=9, state="done")
    second = api.get(f"runs?limit=3&order=-created&cursor={first['next']}")
    assert [r["label"] for r in second["items"]] == ["R3", "R2", "R1"]


@pytest.mark.parametrize(
    "query",
    [
        "cursor=x",
        "cursor=WyJhIl0",
        "limit=0",
        "limit=1001",
        "limit=a",
        "order=nothing",
        "filter=(",
        "filter=nothing = 1",
        "state=done",
        "cursor=WyItY3JlYXRlZCIsImEiLDFd",
    ],
)
def test_what_is_no_query_is_refused_with_the_field(api: Caller, query: str, db: None) -> None:
    told = api.refused(400, "GET", f"runs?{query}")
    assert told["errors"][0]["field"] == query.partition("=")[0]


def test_a_cursor_belongs_to_its_order(api: Caller, many: list[Run]) -> None:
    cursor = api.get("runs?limit=2&order=label")["next"]
    told = api.refused(400, "GET", f"runs?order=-label&cursor={cursor}")
    assert told["errors"][0]["field"] == "cursor"
    assert api.get(f"runs?limit=2&order=label&cursor={cursor}")["items"]


def test_rates_are_told_and_kept(api: Caller, settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE = 3
    left = [api.call("GET", "me")["RateLimit-Remaining"] for _ in range(3)]
    assert left == ["2", "1", "0"]
    answer = api.call("GET", "me")
    assert answer.status_code == 429
    assert 1 <= int(answer["Retry-After"]) <= 60
    assert (answer["RateLimit-Limit"], answer["RateLimit-Remaining"]) == ("3", "0")
    assert "more than 3 requests" in answer.json()["detail"]
    assert answer["Content-Type"] == "application/problem+json"


def test_guessing_tokens_is_slowed_down_and_a_right_one_still_works(api: Caller) -> None:
    wrong = Caller("sdb_" + "x" * 43, api.http)
    codes = [wrong.call("GET", "me").status_code for _ in range(32)]
    assert codes[:30] == [401] * 30
    assert codes[30:] == [429, 429]
    assert api.get("me")["user"] == "member"


def test_a_token_ends_by_time_by_hand_and_with_its_person(api: Caller) -> None:
    made = api.post("tokens", {"name": "ci", "scope": "read", "days": 1})
    other = Caller(made["token"], api.http)
    assert other.get("me")["may"] == ["read"]
    row = ApiToken.objects.get(pk=made["about"]["id"])
    assert made["token"] not in (row.sha256, row.hint)
    ApiToken.objects.filter(pk=row.pk).update(expires_at=timezone.now())
    other.refused(401, "GET", "me")
    again = api.post("tokens", {"name": "ci"})
    assert api.call("DELETE", f"tokens/{again['about']['id']}").json()["revoked_at"]
    Caller(again["token"], api.http).refused(401, "GET", "me")
    last = api.post("tokens", {"name": "ci"})
    row.user.is_active = False
    row.user.save()
    Caller(last["token"], api.http).refused(401, "GET", "me")


def test_a_token_makes_none_that_may_do_more(caller: Callable[..., Caller]) -> None:
    reader = caller("member", "read")
    told = reader.refused(403, "POST", "tokens", {"name": "x", "scope": "write"})
    assert "makes none" in told["detail"]
    assert reader.post("tokens", {"name": "x", "scope": "read"})["about"]["scope"] == "read"
    viewer = caller("viewer")
    viewer.refused(403, "POST", "tokens", {"name": "x", "scope": "worker"})


def test_nobody_revokes_the_token_of_another_but_an_admin(caller: Callable[..., Caller]) -> None:
    made = caller("member").post("tokens", {"name": "x"})["about"]["id"]
    caller("viewer").refused(404, "DELETE", f"tokens/{made}")
    assert caller("admin").call("DELETE", f"tokens/{made}").status_code == 200


def test_the_last_admin_stays_one(caller: Callable[..., Caller]) -> None:
    admin = caller("admin")
    caller("member")
    told = admin.refused(409, "PATCH", "people/admin", {"role": "viewer"})
    assert "last admin" in told["detail"]
    assert admin.patch("people/member", {"role": "viewer"})["role"] == "viewer"


def test_a_viewer_can_change_nothing_in_the_browser_either(
    caller: Callable[..., Caller], inv: Investigation
) -> None:
    from django.contrib.auth.models import User

    http = caller("viewer").http
    http.force_login(
        User.objects.get(username="viewer"), backend="django.contrib.auth.backends.ModelBackend"
    )
    answer = http.post("/new/", {"title": "x", "question": "y"})
    assert answer.status_code == 403
    assert b"viewer" in answer.content
    assert http.get("/i/slow-draft/").status_code == 200
    assert access.role_of(User.objects.get(username="viewer")) == "viewer"


def test_a_fault_of_ours_is_a_problem_without_our_insides(
    api: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret insides")

    monkeypatch.setattr("experiments.api.searching.search", broken)
    answer = api.call("GET", "search?q=x")
    assert answer.status_code == 500
    assert answer["Content-Type"] == "application/problem+json"
    assert b"secret" not in answer.content


def test_metrics_for_prometheus_ask_for_a_token(api: Caller, inv: Investigation) -> None:
    assert api.http.get("/metrics").status_code == 401
    headers = {"Authorization": f"Bearer {api.token}"}
    text = api.http.get("/metrics", headers=headers).content.decode()
    assert 'specdebug_investigations{state="open"} 1' in text
    assert text.count("# HELP") == text.count("# TYPE") >= 6
