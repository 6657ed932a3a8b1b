"""Every address of the API by every kind of caller and by nobody.

The table says what each needs; it is written down here and not taken from the code, so that a
change there without one here fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

from experiments.api import urls
from experiments.models import Investigation, Run
from tests.api.conftest import Caller

ONE = "investigations/<slug:slug>"
RUN = f"{ONE}/runs/<number:number>"
HYPOTHESIS = f"{ONE}/hypotheses/<number:number>"
FINDING = f"{ONE}/findings/<code:code>"
# What is needed: any (somebody known), read, write, worker, admin; or one of two.
NEEDS = {
    "GET me": "any",
    "GET tokens": "read",
    "POST tokens": "read",
    "DELETE tokens/<number:pk>": "read",
    "GET people": "admin",
    "PATCH people/<str:username>": "admin",
    "POST check": "read",
    "POST preflight": "read",
    "GET search": "read",
    "GET compare": "read",
    "GET workers": "read",
    "POST import": "write",
    "GET runs": "read",
    "GET findings": "read",
    "GET blobs/<str:sha256>": "read",
    "GET blobs/<str:sha256>/content": "read",
    "GET webhooks": "admin",
    "POST webhooks": "admin",
    "DELETE webhooks/<number:pk>": "admin",
    "POST webhooks/<number:pk>/ping": "admin",
    "GET webhooks/<number:pk>/deliveries": "admin",
    "GET investigations": "read",
    "POST investigations": "write",
    f"GET {ONE}": "read",
    f"PATCH {ONE}": "write",
    f"GET {ONE}/standing": "read",
    f"POST {ONE}/resolve": "write",
    f"POST {ONE}/abandon": "write",
    f"POST {ONE}/reopen": "write",
    f"GET {ONE}/hypotheses": "read",
    f"POST {ONE}/hypotheses": "write",
    f"GET {HYPOTHESIS}": "read",
    f"PATCH {HYPOTHESIS}": "write",
    f"POST {HYPOTHESIS}/predictions": "write",
    f"POST {HYPOTHESIS}/checks": "write",
    f"POST {HYPOTHESIS}/links": "write",
    f"POST {HYPOTHESIS}/overrule": "write",
    f"GET {ONE}/verdicts": "read",
    f"GET {ONE}/events": "read",
    f"POST {ONE}/events": "write",
    f"GET {ONE}/findings": "read",
    f"GET {FINDING}": "read",
    f"POST {FINDING}/set-aside": "write",
    f"POST {FINDING}/reopen": "write",
    f"GET {ONE}/evidence": "read",
    f"PUT {ONE}/files": "worker",
    f"POST {ONE}/files/known": "worker",
    f"GET {ONE}/timeline": "read",
    f"GET {ONE}/gap": "read",
    f"GET {ONE}/advice": "read",
    f"POST {ONE}/advice/<code:key>/take": "write",
    f"GET {ONE}/regressions": "read",
    f"GET {ONE}/report": "read",
    f"GET {ONE}/report.pdf": "read",
    f"GET {ONE}/archive": "read",
    f"GET {ONE}/runs.csv": "read",
    f"GET {ONE}/runs": "read",
    f"POST {ONE}/runs": "write",
    f"POST {ONE}/script-runs": "worker",
    f"POST {ONE}/recorded-runs": "write",
    f"GET {ONE}/sweeps": "read",
    f"POST {ONE}/sweeps": "write",
    f"GET {ONE}/sweeps/<number:number>": "read",
    f"POST {ONE}/sweeps/<number:number>/stop": "write",
    f"POST {ONE}/sweeps/<number:number>/resume": "write",
    f"GET {RUN}": "read",
    f"PATCH {RUN}": "write",
    f"GET {RUN}/standing": "read or worker",
    f"POST {RUN}/queue": "write",
    f"POST {RUN}/cancel": "write",
    f"POST {RUN}/repeat": "write",
    f"POST {RUN}/branch": "write",
    f"POST {RUN}/repeats": "worker",
    f"POST {RUN}/finish": "worker",
    f"GET {RUN}/points": "read",
    f"POST {RUN}/points": "worker",
    f"GET {RUN}/progress": "read or worker",
    f"GET {RUN}/log": "read",
    f"POST {RUN}/log": "worker",
    f"GET {RUN}/log/offset": "read or worker",
    f"PUT {RUN}/files": "worker",
    f"POST {RUN}/files/known": "worker",
}
# What each caller has.
CALLERS = {
    ("", ""): set(),
    ("viewer", "read"): {"any", "read"},
    ("member", "read"): {"any", "read"},
    ("member", "worker"): {"any", "worker"},
    ("member", "write"): {"any", "read", "write", "worker"},
    ("admin", "read"): {"any", "read"},
    ("admin", "worker"): {"any", "worker"},
    ("admin", "write"): {"any", "read", "write", "worker", "admin"},
}
PLACES = {
    "slug": "slow-draft",
    "number": "0",
    "code": "too-few-samples",
    "key": "second-depth",
    "pk": "1",
    "sha256": "0" * 64,
    "username": "member",
}


def served() -> set[str]:
    """Every method of every address, as the URL list has it."""
    found = set()
    for pattern in urls.v1:
        view = pattern.callback.view_class
        for name in ("get", "post", "put", "patch", "delete"):
            if hasattr(view, name):
                found.add(f"{name.upper()} {pattern.pattern}")
    return found


def test_the_table_has_every_address_and_no_other() -> None:
    assert served() == set(NEEDS)


@contextmanager
def undone() -> Iterator[None]:
    """What happens inside is taken back, so that the order of calls does not matter."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize(("role", "scope"), CALLERS)
def test_every_address_lets_in_whom_it_should_and_nobody_else(
    role: str,
    scope: str,
    caller: Callable[..., Caller],
    inv: Investigation,
    base: Run,
) -> None:
    program = caller(role, scope)
    wrong = []
    for call, needed in NEEDS.items():
        method, path = call.split(" ", 1)
        address = re.sub(r"<\w+:(\w+)>", lambda m: PLACES[m[1]], path)
        with undone():
            body: Any = b"" if path.endswith(("/log", "/files", "import")) else {}
            answer = program.call(method, address, None if method == "GET" else body)
            for close in answer._resource_closers:  # close() would end our transaction too
                close()
        lets_in = any(part in CALLERS[role, scope] for part in needed.split(" or "))
        expected = 401 if not role else None if lets_in else 403
        if expected is None:
            good = answer.status_code not in (401, 403, 500)
        else:
            good = answer.status_code == expected
        if not good:
            wrong.append(f"{call}: {answer.status_code}, {expected or 'let in'} expected")
    assert wrong == []


def test_the_browsers_session_counts_as_its_role(
    caller: Callable[..., Caller], inv: Investigation
) -> None:
    caller("viewer")
    http = Caller("", caller("").http)
    from django.contrib.auth.models import User

    viewer = User.objects.get(username="viewer")
    http.http.force_login(viewer, backend="django.contrib.auth.backends.ModelBackend")
    assert http.get("investigations")["items"]
    told = http.refused(403, "POST", "investigations", {"title": "x", "question": "y"})
    assert "viewer" in told["detail"]
