"""Shared by all tests: a data folder of their own, chosen before Django reads its settings."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from specdebug.sglang import logs

_DATA = Path(tempfile.mkdtemp(prefix="specdebug-tests-"))
# Set here and not in a fixture: the settings module reads the environment when it is imported.
os.environ["SPECDEBUG_DATA"] = str(_DATA)
# Never a database that somebody works with; TEST_DATABASE_URL runs the tests on another server.
os.environ.pop("DATABASE_URL", None)
if _OTHER := os.environ.get("TEST_DATABASE_URL"):
    os.environ["DATABASE_URL"] = _OTHER
os.environ.pop("CELERY_BROKER_URL", None)


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(_DATA, ignore_errors=True)


@pytest.fixture
def data_dir(settings: object, tmp_path: Path) -> Path:
    """A data folder of this one test, known to the settings."""
    settings.DATA_DIR = tmp_path  # type: ignore[attr-defined]
    settings.BLOB_DIR = tmp_path / "blobs"  # type: ignore[attr-defined]
    settings.RUN_DIR = tmp_path / "runs"  # type: ignore[attr-defined]
    return tmp_path


@pytest.fixture(params=["line by line", "in blocks"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are read line by line, and once more in blocks, as long ones are."""
    monkeypatch.setattr(logs, "_FEW", 1 << 40 if request.param == "line by line" else -1)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The project's shared facts and samples; tests that compare with them skip without."""
    named = os.environ.get("SPECDEBUG_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip(f"no shared folder at {folder}; set SPECDEBUG_SHARED")
    return folder


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Tests with two connections need a real file: one in memory locks whole tables. On a server
    each process of a parallel run has a database of its own."""
    from django.conf import settings

    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        settings.DATABASES["default"].setdefault("TEST", {})["NAME"] = str(_DATA / "test.sqlite3")
