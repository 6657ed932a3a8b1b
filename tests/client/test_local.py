"""`Client.local`: one private server for the clients of a folder, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.reports.render import pdf_problem
from specdebug.client import Client, Investigation, Run

ROOT = Path(__file__).resolve().parents[2]
# A second program that logs a row and then waits to be told to go, or to be killed.
OTHER = """
import sys
from specdebug.client import Client
sd = Client.local(sys.argv[1])
inv = sd.investigation("Shared", question="Do two programs share a folder?")
run = inv.run("from the other")
run.log(0, {"tok_s": 41.0})
run.finish()
print(run.label, flush=True)
sys.stdin.read()
"""


def until(what: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.1)
    return False


def server_of(folder: Path) -> int:
    """The process that serves the folder; 0 where none does."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"specdebug.up.local" in words and os.fsencode(folder) in words:
                return int(path.name)
    return 0


def other_program(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OTHER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )


def check_frames(inv: Investigation, run: Run) -> None:
    pandas = pytest.importorskip("pandas")
    points = run.frame("tok_s")
    assert isinstance(points, pandas.DataFrame)
    assert list(points.columns) == ["step", "time", "value"]
    assert points["value"].tolist() == [50.0 + step for step in range(50)]
    runs = inv.frame().set_index("label")
    assert runs.loc[run.label, "tok_s"] == 99.0
    assert runs.loc[run.label, "params.topk"] == 1


def check_pdf(inv: Investigation, to: Path) -> None:
    """A private server has no worker beside it and makes it all the same."""
    if pdf_problem():
        return
    steps: list[str] = []
    inv.report_pdf(to, timeout=120, progress=lambda now: steps.append(now["state"]))
    assert to.read_bytes().startswith(b"%PDF-")
    assert set(steps) <= {"queued", "running"}


def example() -> str:
    """The code of docs/client.md that starts a server of its own."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "client.md").read_text(), re.S)
    (code,) = (block for block in blocks if 'Client.local("record")' in block)
    return code


def test_two_programs_share_a_folder_and_a_killed_one_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "record"
    about = folder / "run" / "local.json"
    log = tmp_path / "server.log"
    with Client.local(folder) as sd, other_program(folder) as other:
        private = json.loads(about.read_text())
        assert about.stat().st_mode & 0o077 == 0
        assert Path(private["socket"]).stat().st_mode & 0o077 == 0
        inv = sd.investigation("Shared", question="Do two programs share a folder?")
        with inv.run("mine", config={"topk": 1}) as run:
            log.write_text("first\n")
            run.watch_log(log)
            for step in range(50):
                run.log(step, {"tok_s": 50.0 + step})
            with log.open("a") as more:
                more.write("second\n")
        assert other.stdout is not None
        assert {other.stdout.readline().strip(), run.label} == {"R0", "R1"}
        assert json.loads(about.read_text()) == private
        assert sorted(r.label for r in inv.runs()) == ["R0", "R1"]
        assert sd.connection.http.get(f"{run.path}/log").content == b"first\nsecond\n"
        check_frames(inv, run)
        check_pdf(inv, tmp_path / "report.pdf")
        # The page's own example has a folder of this name: it finds the server running.
        monkeypatch.chdir(tmp_path)
        exec(example(), {})  # noqa: S102 (our own page)
        sd.close()
        # Ours has closed; the other still holds the server.
        assert server_of(folder) > 0
        other.send_signal(signal.SIGKILL)
    assert until(lambda: server_of(folder) == 0)
    assert not about.exists()
    assert not Path(private["socket"]).exists()


def test_a_folder_that_cannot_be_is_refused_in_a_sentence(tmp_path: Path) -> None:
    from specdebug.client import Unreachable

    (tmp_path / "file").write_text("")
    with pytest.raises(Unreachable, match="file cannot be used"):
        Client.local(tmp_path / "file")
