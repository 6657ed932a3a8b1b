"""The whole story, measured: four runs of the reference engine through the worker."""

import time

import httpx
import pytest

from tests.stories.conftest import Running

pytestmark = [pytest.mark.story, pytest.mark.timeout(900)]


def test_the_replay_tells_the_story_from_its_own_figures(
    running: Running, browser: httpx.Client
) -> None:
    running.manage("replay")
    running.manage("replay")  # twice changes nothing
    assert len(running.runs()) == 4

    def ended() -> bool:
        # What a run shows is drawn after its figures are saved.
        return all(run["checked_at"] for run in running.runs())

    running.wait(ended, 420, "the end of the replay")
    runs = running.runs()
    assert [run["state"] for run in runs] == ["done"] * 4, [run["reason"] for run in runs]

    def mean(number: int, column: str) -> float:
        rows = running.rows(
            "select tok_s, accept_len from experiments_repeat where run_id = ?",
            runs[number]["id"],
        )
        assert len(rows) == 3
        return sum(float(row[column]) for row in rows) / len(rows)

    # The draft fed with the right layers is accepted longer than with the wrong ones, and with 15
    # steps it is slower than no draft all the same.
    wrong, right = mean(2, "accept_len"), mean(3, "accept_len")
    assert 1.6 < wrong < 2.2
    assert right > 2.3
    assert mean(3, "tok_s") < mean(0, "tok_s")
    assert mean(2, "tok_s") < mean(0, "tok_s")

    # Speculation changed no output.
    outputs = running.rows(
        "select distinct output_sha256 from experiments_repeat r join experiments_run x "
        "on r.run_id = x.id where x.recorded = 0"
    )
    assert len(outputs) == 1

    # The override was found from requested against effective arguments.
    config = running.rows(
        "select requested, effective, origin from experiments_configentry "
        "where run_id = ? and key = 'speculative_num_draft_tokens'",
        runs[1]["id"],
    )[0]
    assert (config["requested"], config["effective"]) == ("16", "2")
    assert config["origin"] == "override"
    findings = {
        row["code"]: row
        for row in running.rows(
            "select f.* from experiments_finding f where f.investigation_id = ?",
            runs[0]["investigation_id"],
        )
    }
    assert findings["draft-tokens-overridden"]["state"] == "fixed"
    assert findings["aux-layer-mismatch"]["state"] == "fixed"
    assert findings["slower-than-baseline"]["state"] == "open"

    verdicts = running.rows(
        "select h.number, v.applied, v.outcome from experiments_verdict v "
        "join experiments_hypothesis h on v.hypothesis_id = h.id "
        "where v.in_force = 1 and h.investigation_id = ? order by h.number",
        runs[0]["investigation_id"],
    )
    assert {"refuted"} <= {row["outcome"] for row in verdicts}
    assert {"yes"} <= {row["applied"] for row in verdicts}

    slug = running.replay_slug()
    page = browser.get(f"/i/{slug}/").text
    assert "reference engine" in page
    assert "draft-tokens-overridden" in page
    deadline = time.monotonic() + 120
    while (pdf := browser.get(f"/i/{slug}/report.pdf")).status_code == 202:
        assert time.monotonic() < deadline, pdf.text
        time.sleep(1)
    assert pdf.status_code == 200, pdf.text
    assert pdf.content.startswith(b"%PDF-")
