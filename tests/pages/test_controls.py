"""Watched series: one configuration over time, alerts once for a cause, and their pages."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from experiments import checkup, lifecycle
from experiments.checkup.alarm import look_at
from experiments.lifecycle import controls
from experiments.models import Alert, Investigation, Repeat, Run, WatchedSeries
from experiments.refusal import Refused
from tests.pages.conftest import Story

PLAIN = ["--model-path", "target"]


def again(row: Investigation, tok_s: float, number: int, host: str = "box", key: str = "") -> Run:
    """One more measured run of the same configuration; a given key saves looking at all runs."""
    run = lifecycle.add_run(investigation=row, title="control", server_args=PLAIN)
    ended = timezone.now() - timedelta(days=100 - number)
    Run.objects.filter(pk=run.pk).update(state="done", host=host, ended_at=ended, series_key=key)
    for index, factor in enumerate((0.99, 1.0, 1.01)):
        Repeat.objects.create(run=run, index=index, tok_s=factor * tok_s)
    run.refresh_from_db()
    if not key:
        checkup.recheck(run)
        run.refresh_from_db()
    return run


@pytest.fixture
def rig(db: None, data_dir: object) -> Investigation:
    return lifecycle.create_investigation(title="The rig", question="Does it hold still?")


def steady(row: Investigation, count: int, level: float = 100.0, start: int = 0) -> Iterator[Run]:
    """Runs one after another, each there when it is asked for."""
    draw = random.Random(start + 1)
    first = row.runs.order_by("number").first()
    key = first.series_key if first else ""
    for n in range(count):
        run = again(row, level * math.exp(draw.gauss(0, 0.01)), start + n, key=key)
        key = run.series_key
        yield run


def test_runs_of_one_configuration_and_host_are_one_series(rig: Investigation) -> None:
    one, two = again(rig, 100, 1), again(rig, 101, 2)
    elsewhere = again(rig, 100, 3, host="other")
    assert one.series_key == two.series_key != ""
    assert elsewhere.series_key != one.series_key


def test_a_steady_rig_alarms_nobody_and_a_loss_alarms_once(rig: Investigation) -> None:
    runs = list(steady(rig, 10))
    watched = controls.watch(run=runs[0], title="plain")
    for run in steady(rig, 3, start=10):
        assert checkup.alarms(run) == []
    opened = [alert for run in steady(rig, 6, 88.0, start=20) for alert in checkup.alarms(run)]
    assert [a.kind for a in opened] == ["regression"]
    assert Alert.objects.count() == 1, "two slow runs, and the shift seen later, are one cause"
    assert opened[0].series == watched
    assert "recent runs" in opened[0].sentence


def test_looking_again_opens_nothing_new(rig: Investigation) -> None:
    runs = list(steady(rig, 10))
    watched = controls.watch(run=runs[0], title="plain")
    for run in steady(rig, 5, 85.0, start=20):
        checkup.alarms(run)
    assert look_at(watched) == []
    controls.close_alert(alert=Alert.objects.get(), by="ada", reason="A fan was broken.")
    assert look_at(watched) == []


def test_what_happened_before_the_watching_is_no_alarm_of_today(rig: Investigation) -> None:
    runs = [*steady(rig, 10), *steady(rig, 6, 80.0, start=20)]
    controls.watch(run=runs[0], title="plain")
    assert not Alert.objects.filter(closed_at=None).exists()
    assert Alert.objects.get().reason == "before the series was watched"


def test_a_run_without_a_host_or_figures_starts_no_series(story: Story) -> None:
    with pytest.raises(Refused, match="host is not known"):
        controls.watch(run=story.baseline, title="plain")
    assert not WatchedSeries.objects.exists()


def test_watching_twice_is_one_series_and_its_page_shows_runs_and_alerts(
    browser: Client, rig: Investigation
) -> None:
    runs = list(steady(rig, 10))
    address = reverse("run-watch", args=[rig.slug, runs[0].number])
    for _ in range(2):
        assert browser.post(address, {"title": "plain control"}).status_code == 302
    row = WatchedSeries.objects.get()
    for run in steady(rig, 4, 85.0, start=20):
        checkup.alarms(run)
    page = browser.get(row.get_absolute_url()).content.decode()
    assert "plain control" in page
    assert page.count('class="fill-0 dot') == 14
    assert "regression" in page
    listed = browser.get(reverse("controls")).content.decode()
    assert "1 open" in listed
    alert = Alert.objects.get()
    close = reverse("alert-close", args=[alert.pk])
    assert "reason is empty" in browser.post(close, {"reason": " "}, follow=True).content.decode()
    browser.post(close, {"reason": "The driver was updated."})
    assert "The driver was updated." in browser.get(row.get_absolute_url()).content.decode()
    browser.post(reverse("control-end", args=[row.pk]))
    assert not WatchedSeries.objects.exists()
    assert Run.objects.count() == 14


def test_an_empty_list_says_how_to_begin(browser: Client) -> None:
    assert "Watch this configuration" in browser.get(reverse("controls")).content.decode()


def test_the_course_of_a_series_has_its_table_and_files(
    rig: Investigation, browser: Client
) -> None:
    runs = list(steady(rig, 5))
    series = controls.watch(run=runs[-1], title="the control")
    page = browser.get(series.get_absolute_url()).content.decode()
    assert "As a table" in page
    assert page.count("fill-0 dot") == 5
    csv = browser.get(reverse("control-plot", args=[series.pk, "csv"])).content.decode()
    assert len(csv.splitlines()) == 6
    assert "mean, tok/s" in csv
    svg = browser.get(reverse("control-plot", args=[series.pk, "svg"]))
    assert svg["Content-Type"] == "image/svg+xml"
    assert browser.get(reverse("control-plot", args=[series.pk, "exe"])).status_code == 404
