"""Commands, environments and versions of the engines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workers import engines
from workers.plan import RunEnded


def test_the_reference_engine_runs_with_our_own_interpreter() -> None:
    engine = engines.engine("reference")
    command = engine.command(["--model-path", "m"], host="127.0.0.1", port=4000)
    assert command == (
        *(sys.executable, "-m", "specdebug.reference.serve", "--model-path", "m"),
        *("--host", "127.0.0.1", "--port", "4000"),
    )


def test_host_and_port_of_the_plan_are_kept() -> None:
    engine = engines.engine("reference")
    asked = ["--port=5000", "--host", "0.0.0.0"]  # noqa: S104
    assert engine.command(asked, host="127.0.0.1", port=4000)[3:] == tuple(asked)


def test_sglang_runs_with_the_configured_interpreter(
    sglang: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines.engine("sglang")
    assert engine.command([], host="h", port=1)[:3] == (str(sglang), "-m", "sglang.launch_server")
    monkeypatch.setenv("SPECDEBUG_SGLANG_PYTHON", "/no/such/python")
    with pytest.raises(RunEnded, match="/no/such/python: there is no program"):
        engine.python()
    monkeypatch.delenv("SPECDEBUG_SGLANG_PYTHON")
    with pytest.raises(RunEnded, match="set SPECDEBUG_SGLANG_PYTHON to the python"):
        engine.python()


def test_an_unknown_engine_names_the_known_ones() -> None:
    with pytest.raises(RunEnded, match="there are attached, fake, reference, sglang, sglang-cpu"):
        engines.engine("vllm")


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ([], None),
        (["--port", "1"], "1"),
        (["--port=2"], "2"),
        (["--port", "1", "--port", "3"], "3"),
        (["--port"], ""),
        (["--portal", "4"], None),
    ],
)
def test_a_flag_is_found_as_the_engine_finds_it(arguments: list[str], value: str | None) -> None:
    assert engines.flag(arguments, "--port") == value


@pytest.mark.parametrize(
    ("arguments", "url"),
    [
        (["http://gpu1:30000/"], "http://gpu1:30000"),
        (["--url", "https://gpu1"], "https://gpu1"),
        (["--url=http://[::1]:30000"], "http://[::1]:30000"),
    ],
)
def test_the_address_of_an_attached_server(arguments: list[str], url: str) -> None:
    assert engines.attached_url(arguments) == url


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["gpu1:30000"],
        ["--url", "file:///etc/passwd"],
        ["http://"],
        ["http://h:99999"],
        ["a", "b"],
    ],
)
def test_what_is_no_address_is_refused(arguments: list[str]) -> None:
    with pytest.raises(RunEnded, match="needs the server's address"):
        engines.attached_url(arguments)


def test_an_address_with_a_password_is_refused_without_quoting_it() -> None:
    with pytest.raises(RunEnded) as caught:
        engines.attached_url(["http://me:hunter2@gpu1"])
    assert "hunter2" not in caught.value.reason


OWN = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C",
    "CUDA_VISIBLE_DEVICES": "0",
    "DATABASE_URL": "postgres://x",
    "SPECDEBUG_SECRET_KEY": "k",
    "HF_TOKEN": "hf_x",
    "CUDA_API_TOKEN": "x",
    "CELERY_BROKER_URL": "redis://x",
    "PYTHONPATH": "/mine",
    "LD_PRELOAD": "x.so",
}


def test_of_the_workers_environment_only_named_things_are_handed_down() -> None:
    child = engines.environment(engines.Engine("x", module="x"), {}, OWN)
    assert child == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C",
        "CUDA_VISIBLE_DEVICES": "0",
        "PYTHONUNBUFFERED": "1",
    }


def test_the_plan_adds_to_the_environment_and_wins() -> None:
    engine = engines.Engine("x", module="x", env={"OMP_NUM_THREADS": "1", "PYTHONPATH": "/shim"})
    asked = {"SGLANG_LOG_MS": "1", "OMP_NUM_THREADS": "4", "PYTHONPATH": "/patched"}
    child = engines.environment(engine, asked, OWN)
    assert child["SGLANG_LOG_MS"] == "1"
    assert child["OMP_NUM_THREADS"] == "4"
    assert child["PYTHONPATH"] == "/patched:/shim"


@pytest.mark.parametrize(
    "name", ["PATH", "LD_PRELOAD", "PYTHONSTARTUP", "DATABASE_URL", "SPECDEBUG_DATA", "BASH_ENV"]
)
def test_names_that_are_not_the_plans_are_refused(name: str) -> None:
    with pytest.raises(RunEnded, match=f"{name} is the worker's to set"):
        engines.environment(engines.Engine("x"), {name: "x"}, OWN)


@pytest.mark.parametrize("name", ["", "A=B", "1A", "A B", "Ä"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(RunEnded, match="is no variable's name"):
        engines.environment(engines.Engine("x"), {name: "x"}, OWN)


@pytest.mark.parametrize(
    ("name", "value", "recorded"),
    [
        ("HF_TOKEN", "hf_x", "[removed]"),
        ("AWS_SECRET_ACCESS_KEY", "x", "[removed]"),
        ("OPENAI_API_KEY", "x", "[removed]"),
        ("HTTPS_PROXY", "http://me:pw@proxy:1", "http://proxy:1"),
        ("TOKENIZERS_PARALLELISM", "false", "false"),
        ("SGLANG_MAX_TOKENS", "5", "5"),
        ("HF_TOKEN", "", ""),
    ],
)
def test_secrets_are_not_recorded_and_ordinary_values_are(
    name: str, value: str, recorded: str
) -> None:
    assert engines.without_secrets({name: value}) == {name: recorded}


def test_keys_on_the_command_line_are_not_recorded() -> None:
    argv = ["python", "--api-key", "sk-1", "--admin-api-key=sk-2", "--port", "1"]
    assert engines.argv_without_secrets(argv) == (
        *("python", "--api-key", "[removed]", "--admin-api-key=[removed]", "--port", "1"),
    )
    assert engines.secret_values(argv, {"HF_TOKEN": "hf_abcdef"}) == {"hf_abcdef"}  # others short


def test_versions_name_what_is_installed_and_why_a_probe_failed(sglang: Path) -> None:
    engine = engines.Engine("x", module="x", packages=("httpx", "no-such-thing"))
    found = engines.versions(engine, {"PATH": "/bin"})
    assert found["httpx"].count(".") == 2
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "no-such-thing" not in found
    assert "cores" in found["cpu"]
    sglang.write_text("#!/bin/sh\nexit 1\n")
    assert "not known" in engines.versions(engines.engine("sglang"), {})["probe"]
