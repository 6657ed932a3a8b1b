"""The containers' description names what is there: commands, settings, queues, files, targets."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from experiments import dispatch
from specdebug.celery import app

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: s for name, s in SERVICES.items() if "build" in s}


def described() -> str:
    return (ROOT / "docs" / "operations.md").read_text()


def test_the_services_of_the_issue_are_there_and_gpus_are_a_profile() -> None:
    assert set(SERVICES) == {
        *("web", "house", "worker", "gpu-worker", "database", "broker", "migrate"),
    }
    assert SERVICES["gpu-worker"]["profiles"] == ["gpu"]
    (device,) = SERVICES["gpu-worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}


def test_every_service_that_stays_is_watched_and_started_again() -> None:
    for name, service in SERVICES.items():
        if name != "migrate":
            assert service["healthcheck"]["test"], name
            assert service["restart"] == "unless-stopped", name


def test_what_a_service_waits_for_is_there_and_tells_its_health() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], (name, other)
            else:
                assert other == "migrate"


def test_every_setting_given_is_described() -> None:
    text = described()
    for service in OURS.values():
        for name in service["environment"]:
            assert f"`{name}`" in text or name == "HF_HOME", name


def test_every_variable_asked_of_the_operator_is_described() -> None:
    asked = set(re.findall(r"\$\{(\w+)", (ROOT / "docker-compose.yml").read_text()))
    assert {name for name in asked if f"`{name}`" not in described()} == set()


def test_no_secret_is_written_down_and_none_has_a_default() -> None:
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name or "SECRET" in name:
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), name
            assert not re.search(r"://\w+:(?!\$\{\w+:\?)[^/@]*@", str(value)), name
    assert ".env" in (ROOT / ".dockerignore").read_text().split()


def test_every_command_exists() -> None:
    for name, service in OURS.items():
        command = service.get("command") or ["gunicorn", "specdebug.wsgi"]
        program = Path(command[0]).name
        if program == "python":
            assert command[1] == "manage.py"
            assert command[2] in get_commands()
        else:
            assert program in {"celery", "gunicorn"}, name
            assert importlib.util.find_spec(program)
            module = command[command.index("-A") + 1] if program == "celery" else command[1]
            assert importlib.util.find_spec(module)


def test_each_queue_has_a_worker_and_measuring_ones_have_one_slot() -> None:
    taken: dict[str, list[list[str]]] = {}
    for service in OURS.values():
        command = service.get("command", [])
        if "-Q" in command:
            taken.setdefault(command[command.index("-Q") + 1], []).append(command)
    assert set(taken) == {dispatch.QUEUE, app.conf.task_default_queue}
    for command in taken[dispatch.QUEUE]:
        assert command[command.index("--concurrency") + 1] == "1"
    assert sum("--beat" in command for commands in taken.values() for command in commands) == 1


def test_health_checks_ask_the_node_that_the_command_names() -> None:
    for name, service in OURS.items():
        command = service.get("command", [])
        if "-n" in command:
            node = command[command.index("-n") + 1].replace("%h", "$$HOSTNAME")
            assert service["healthcheck"]["test"][-1].endswith(f"-d {node}"), name


def test_every_volume_is_declared() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            if isinstance(volume, str) and not volume.startswith((".", "/", "$")):
                assert volume.split(":")[0] in COMPOSE["volumes"]


def test_every_image_target_exists_runs_as_no_root_and_copies_what_is_there() -> None:
    targets = re.split(r"^FROM .* AS ([\w-]+)$", DOCKERFILE, flags=re.MULTILINE)
    stages = dict(zip(targets[1::2], targets[2::2], strict=True))
    for service in OURS.values():
        assert service["build"]["target"] in stages
        for argument in service["build"]["args"]:
            assert f"ARG {argument}" in DOCKERFILE
    for name in ("web", "gpu-worker"):
        assert re.findall(r"^USER (\w+)$", stages[name], flags=re.MULTILINE)[-1] == "specdebug"
    for source in re.findall(r"^COPY (?!--from)(\S+) ", DOCKERFILE, flags=re.MULTILINE):
        assert (ROOT / source).exists()
    for stage in re.findall(r"--from=(\w+)", DOCKERFILE):
        assert stage in stages
    assert "libpango-1.0-0" in stages["web"]


def test_torch_is_the_release_that_is_pinned() -> None:
    (release,) = set(re.findall(r"torch==([\d.]+)", DOCKERFILE))
    assert f"torch=={release}" in (ROOT / "requirements-torch.lock").read_text()


@pytest.mark.parametrize("name", ["Dockerfile", "docker-compose.yml"])
def test_no_file_of_the_containers_names_a_path_of_this_machine(name: str) -> None:
    text = (ROOT / name).read_text()
    assert str(ROOT) not in text
