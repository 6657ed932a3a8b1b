"""Every page that the address book knows: visited, or said to be none; none is forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse, HttpResponseBase
from django.test import RequestFactory
from django.urls import URLPattern, resolve, reverse
from django.utils import timezone

from experiments import groups, lifecycle, queries
from experiments.lifecycle import controls
from experiments.lifecycle import reports as kept
from experiments.models import RunGroup
from experiments.reports import document
from experiments.views.urls import urlpatterns
from tests.pages.conftest import Story, pages_of

# What answers GET and is no page, by name.
NO_PAGE = {
    **dict.fromkeys(("running", "run-live", "run-foresee"), "a piece of a page"),
    **dict.fromkeys(("healthz", "explore-spec"), "JSON"),
    **dict.fromkeys(
        (
            *("compare-plot", "map-file", "sweep-plot", "run-plot", "run-gpus", "control-plot"),
            *("explore-file", "sweep-map", "evidence-file", "account-plot"),
            *("report-figure", "report-version-figure", "shared-figure"),
            *("report-pdf", "report-markdown", "report-json"),
            *("report-version-pdf", "report-version-markdown", "report-version-json"),
            *("shared-pdf", "shared-markdown"),
        ),
        "a file",
    ),
}
_DUMMIES = {"slug": "x", "token": "x", "form": "csv", "name": "x", "key": "x"}


def all_pages(story: Story, user: User) -> dict[str, str]:
    """The addresses of `pages_of` and of every page that needs more rows than those have."""
    slug, row = story.investigation.slug, story.investigation
    group = _sweep(story)
    series = controls.watch(run=story.slow, title="The control", by=user)
    token = _published(slug, row, 1)
    _published(slug, row, 2)
    named = {
        "account": ("account", slug),
        "sweeps": ("sweeps", slug),
        "sweep": ("sweep", slug, group.number),
        "sweep, new": ("sweep-new", slug, 1),
        "turns, new": ("turns-new", slug, 1),
        "series": ("controls",),
        "series, one": ("control", series.pk),
        "workers": ("workers",),
        "worker of a run": ("run-bind", story.draft.pk),
        "settings": ("settings",),
        "tokens": ("tokens",),
        "password": ("password",),
        "people": ("people",),
        "reports": ("reports",),
        "prediction": ("prediction", slug, 1),
        "applied check": ("applied-check", slug, 1),
        "hypothesis link": ("hypothesis-link", slug, 1),
        "overrule": ("overrule", slug, 1, 1),
        "version": ("report-version", slug, 1),
        "changes": ("report-changes", slug, 2, 1),
        "shared": ("shared", token),
        "login": ("login",),
        "login link": ("login-link", lifecycle.make_login_link(user=user)),
    }
    more = {name: reverse(where[0], args=where[1:]) for name, where in named.items()}
    return pages_of(story) | more


def _sweep(story: Story) -> RunGroup:
    plan = lifecycle.plan_of(story.slow)
    common = groups.Common(
        engine=plan.engine,
        server_args=("--model-path", "m", *plan.server_args[:2]),
        workload=replace(plan.workload, repeats=1),
        env={},
        engine_release="",
        strict=False,
    )
    settings = [{"concurrency": 1}, {"concurrency": 2}]
    return groups.add_sweep(
        investigation=story.investigation, title="load", common=common, settings=settings
    )


def _published(slug: str, row: Any, number: int) -> str:
    now = timezone.now()
    stamp = {"number": number, "published_by": "ada", "published_at": now.isoformat()}
    found = document.document(queries.investigation_page(slug), stamp=stamp)
    report = kept.publish(
        draft=kept.draft_of(investigation=row, by="ada"),
        body=found.body,
        sha256=found.digest,
        by="ada",
        now=now,
    )
    return kept.share(report=report, by="ada", days=7, label="the vendor")[1]


def forgotten(addresses: dict[str, str]) -> list[str]:
    """Names in the address book that are visited by none of `addresses`, are not said to be no
    page, and do not refuse to be read."""
    visited = {resolve(address.split("?")[0]).url_name for address in addresses.values()}
    unknown = [p for p in urlpatterns if p.name not in visited and p.name not in NO_PAGE]
    return [p.name for p in unknown if p.name and _answer(p).status_code != 405]


def _answer(pattern: URLPattern) -> HttpResponseBase:
    """What a view answers to GET; one that takes POST alone refuses before it looks at anything."""
    values = {name: _DUMMIES.get(name, 1) for name in pattern.pattern.regex.groupindex}
    try:
        return pattern.callback(RequestFactory().get("/"), **values)
    except Exception:  # a page that was about to look for its rows
        return HttpResponse(status=200)
