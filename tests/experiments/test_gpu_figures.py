"""A run's GPU samples: from the worker's file to the row, the finding, the page and its drawing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments import intake
from experiments.models import Evidence, Finding, Run
from experiments.queries.gpus import gpu_course, gpu_part, gpu_summaries
from experiments.reports import gpu_plots
from specdebug.measure.gpu_samples import FIELDS, FILE, KIND, GpuColumn, GpuSamples

ARRIVED = 1_780_000_020.0  # before the first repeat of the sample runs, which ends at + 54


def samples(hot: int | None = None, count: int = 8) -> GpuSamples:
    """Forty seconds of eight GPUs; `hot` is held back by heat from the tenth second on."""
    times = [ARRIVED + n for n in range(40)]

    def column(index: int) -> GpuColumn:
        values: dict[str, list[int | None]] = {
            name: [value] * len(times)
            for name, value in zip(
                FIELDS, (95, 90_000, 590, 2_400, 12_481, 70, 0x4, 0), strict=True
            )
        }
        if index == hot:
            values["reasons"] = [0] * 10 + [0x40] * 30
            values["sm_mhz"] = [2_400] * 10 + [900] * 30
            values["temp_c"] = [70] * 10 + [92] * 30
        return GpuColumn(index, f"GPU-{index}", "A GPU", values)

    return GpuSamples(times, [column(n) for n in range(count)])


@pytest.fixture
def measured(
    claimed: Callable[..., Run], sample: Callable[[str], Any], tmp_path: Path
) -> Callable[..., Run]:
    def make(content: bytes | None) -> Run:
        run = claimed("steps1")
        if content is not None:
            (tmp_path / FILE).write_bytes(content)
        outcome = replace(
            sample("steps1").outcome(tmp_path), files=((FILE, KIND),), folder=str(tmp_path)
        )
        return intake.take_outcome(run.pk, token="t", outcome=outcome).run

    return make


def test_a_summary_of_the_repeats_is_kept_with_the_run_and_the_file_as_evidence(
    measured: Callable[..., Run],
) -> None:
    run = measured(samples().packed())
    assert [gpu.index for gpu in gpu_summaries(run)] == list(range(8))
    first = gpu_summaries(run)[0]
    # Repeats at 30..34, 40..44.01 and 50..54.02 seconds: 5 moments each.
    assert (first.samples, first.power_w_mean, first.power_capped_samples) == (15, 590.0, 15)
    assert Evidence.objects.get(run=run, kind=KIND).name == FILE


def test_a_throttled_run_is_flagged_with_its_figures(measured: Callable[..., Run]) -> None:
    run = measured(samples(hot=3).packed())
    finding = Finding.objects.get(investigation=run.investigation, code="gpu-throttled")
    assert finding.severity == "high"
    assert finding.statement.startswith(
        "GPU 3 was held back in 15 of 15 samples (100%) of the measured repeats by hardware "
        "thermal slowdown, up to 92 °C, 900 MHz on average against 2,400 MHz"
    )


def test_a_power_cap_alone_is_a_note(measured: Callable[..., Run]) -> None:
    run = measured(samples().packed())
    finding = Finding.objects.get(investigation=run.investigation, code="gpu-throttled")
    assert finding.severity == "info"


@pytest.mark.parametrize("content", [None, b"torn", b""])
def test_a_file_that_is_missing_or_broken_costs_the_samples_and_nothing_else(
    measured: Callable[..., Run], content: bytes | None
) -> None:
    run = measured(content)
    assert run.state == "done"
    assert run.gpus is None
    assert run.repeats.count() == 3
    assert gpu_part(run).summaries == ()
    assert "gpu-throttled" in {row["code"] for row in run.untried}


def test_a_summary_of_an_unknown_form_is_not_shown(measured: Callable[..., Run]) -> None:
    run = measured(samples().packed())
    run.gpus = [{"something": "else"}]
    assert gpu_summaries(run) == []


def test_the_drawing_tells_in_words_who_was_held_back(measured: Callable[..., Run]) -> None:
    run = measured(samples(hot=3).packed())
    plot = gpu_plots.gpus(gpu_course(run.investigation.slug, run.number))
    assert plot is not None
    assert plot.drawing.says == (
        "8 GPUs over the run: sm clock 900 to 2,400 MHz, power 590 to 590 W, temperature 70 to "
        "92 °C; held back at times: GPU 3."
    )
    assert plot.drawing.inline.count('class="held"') == 3  # clock, power, temperature
    assert plot.rows[0] == (0.0, 2400, 2400, 590, 590, 70, 70, "")
    assert plot.rows[-1] == (39.0, 900, 2400, 590, 590, 70, 92, "3")


def test_a_gap_in_the_samples_is_a_gap_in_the_line() -> None:
    found = samples(count=1)
    column = dict(found.gpus[0].columns)
    column["sm_mhz"] = [2400] * 10 + [None] * 5 + [2400] * 25
    gpu = GpuColumn(0, "GPU-0", "A GPU", column)
    pieces = gpu_plots._stretches(found.times, gpu, "sm_mhz")
    assert [len(points) for _, points in pieces] == [10, 25]


def test_the_page_shows_table_and_drawing_and_gives_the_files(
    measured: Callable[..., Run], client: Client, db: None
) -> None:
    run = measured(samples(hot=3).packed())
    client.force_login(User.objects.create_user("ann"))
    page = client.get(run.get_absolute_url()).content.decode()
    assert "hardware thermal slowdown" in page
    assert "8 GPUs over the run" in page
    address = [run.investigation.slug, run.number]
    csv = client.get(reverse("run-gpus", args=[*address, "csv"])).content.decode()
    assert csv.splitlines()[0].startswith("second,")
    assert len(csv.splitlines()) == 41
    assert client.get(reverse("run-gpus", args=[*address, "svg"])).status_code == 200
    assert client.get(reverse("run-gpus", args=[*address, "exe"])).status_code == 404


def test_a_run_without_samples_has_no_such_part_and_no_query_for_it(
    measured: Callable[..., Run], client: Client, django_assert_num_queries: Any
) -> None:
    run = measured(None)
    with django_assert_num_queries(0):
        assert gpu_part(run).course is None
    client.force_login(User.objects.create_user("ann"))
    assert 'id="gpus"' not in client.get(run.get_absolute_url()).content.decode()
    address = [run.investigation.slug, run.number]
    assert client.get(reverse("run-gpus", args=[*address, "csv"])).status_code == 404
