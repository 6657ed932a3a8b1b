"""The API against its own OpenAPI document: as committed, and as called with made-up input."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from experiments.api import urls
from experiments.models import Investigation, Run
from tests.api.conftest import Caller

ROOT = Path(__file__).resolve().parents[2]
# Made-up requests per operation and caller; more finds more, and takes longer (docs/operations.md).
EXAMPLES = int(os.environ.get("SPECDEBUG_TEST_EXAMPLES") or 1)


def document() -> dict[str, Any]:
    found = SchemaGenerator(urlconf="experiments.api.urls").get_schema(request=None, public=True)
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain


def test_the_committed_document_is_the_one_that_is_served() -> None:
    """`python manage.py openapi` writes it anew."""
    import yaml

    committed = yaml.safe_load((ROOT / "openapi.yaml").read_text())
    assert committed == document()
    validate_schema(committed)
    assert committed["openapi"].startswith("3.1")


def test_every_address_is_in_the_document() -> None:
    paths = document()["paths"]
    assert len(paths) == len(urls.v1)
    ids = [op["operationId"] for path in paths.values() for op in path.values()]
    assert len(ids) == len(set(ids)) > 70


@pytest.fixture(scope="module")
def schema() -> Any:
    """Operations with the strategy that makes up their requests; made once, for it takes long."""
    whole = schemathesis.openapi.from_dict(document())
    return [(op, op.as_strategy()) for op in (found.ok() for found in whole.get_all_operations())]


def _answers(schema: Any, program: Caller, places: dict[str, Any], examples: int) -> list[str]:
    """What is wrong with the answers to made-up requests, one line each."""
    wrong: list[str] = []
    for operation, strategy in schema:
        _try(program, operation, strategy, places, examples, wrong)
    return sorted(set(wrong))


def _try(
    program: Caller,
    operation: Any,
    strategy: Any,
    places: dict[str, Any],
    examples: int,
    wrong: list[str],
) -> None:
    """Made-up requests to one operation; what is wrong with the answers goes into `wrong`."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy, known=st.integers(0, 3))
    def ask(case: Any, known: int) -> None:
        # Three times in four the path leads somewhere.
        if known:
            for name in case.path_parameters or {}:
                case.path_parameters[name] = places.get(name, case.path_parameters[name])
        problem = _asked(program, case)
        if problem:
            wrong.append(f"{operation.method.upper()} {operation.path}: {problem}")

    ask()


def _asked(program: Caller, case: Any) -> str:
    """One request; what its answer breaks of the document, empty where nothing."""
    headers = {k: str(v) for k, v in (case.headers or {}).items() if k.lower() != "authorization"}
    headers = {k: v for k, v in headers.items() if v.isprintable() and v.isascii()}
    if program.token:
        headers["Authorization"] = f"Bearer {program.token}"
    media = case.media_type or "application/json"
    body = case.body
    if isinstance(body, schemathesis.core.NotSet):
        data: Any = b""
    elif media == "application/json":
        data = json.dumps(body).encode()
    else:
        data = body if isinstance(body, bytes) else str(body).encode("utf-8", "replace")
    from urllib.parse import quote

    path = case.path
    for name, value in (case.path_parameters or {}).items():
        path = path.replace("{" + name + "}", quote(str(value), safe=""))
    answer = program.http.generic(
        case.method,
        path,
        data,
        content_type=media,
        query_params={k: _text(v) for k, v in (case.query or {}).items()},
        headers=headers,
    )
    status = answer.status_code
    for close in answer._resource_closers:  # close() would end our transaction too
        close()
    if status >= 500 and status != 503:
        return f"{status}: {data[:200]!r} {case.query!r}"
    documented = case.operation.definition.raw["responses"]
    if str(status) not in documented:
        return (
            f"{status} is not documented: {answer.content[:150]!r}"
            if not answer.streaming
            else f"{status}"
        )
    content = documented[str(status)].get("content", {})
    kind = answer["Content-Type"].split(";")[0] if answer.has_header("Content-Type") else ""
    if content and kind not in content:
        return f"{status} comes as {kind}, not as {list(content)}"
    if status >= 400 and b"Traceback" in answer.content:
        return f"{status} tells of our insides"
    if kind == "application/json" and not answer.streaming:
        shape = content[kind]["schema"]
        return _misshapen(answer.json(), shape, case.operation)
    return ""


def _text(value: Any) -> Any:
    return [str(v) for v in value] if isinstance(value, list) else str(value)


def _misshapen(data: Any, shape: dict[str, Any], operation: Any) -> str:
    import jsonschema

    whole = {**shape, "components": operation.schema.raw_schema["components"]}
    errors = jsonschema.Draft202012Validator(whole).iter_errors(data)
    return "; ".join(f"{list(e.path)}: {e.message[:120]}" for e in list(errors)[:2])


@pytest.mark.parametrize(
    ("role", "scope"),
    [("", ""), ("viewer", "read"), ("member", "worker"), ("member", "write"), ("admin", "write")],
)
def test_made_up_requests_get_documented_answers(
    role: str,
    scope: str,
    caller: Callable[..., Caller],
    schema: Any,
    inv: Investigation,
    base: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("experiments.api.rates.WRONG_TOKENS", 10_000_000)
    places = {"slug": "slow-draft", "number": 0, "code": "too-few-samples", "pk": 1}
    program = caller(role, scope)
    wrong = _answers(schema, program, places, EXAMPLES)
    assert not wrong, "\n".join(wrong)


def test_the_document_is_served_without_a_login(db: None) -> None:
    answer = Client().get("/api/v1/openapi", headers={"Accept": "application/json"})
    assert answer.status_code == 200
    assert b"/api/v1/investigations" in answer.content
