"""What ran, by hash and commit: checkpoints, checkouts, and what must not be taken for one."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from workers import engines, provenance

ENGINE = engines.Engine("mine", module="mine.launch", packages=())


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@x")
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An engine's package in a checkout with one commit."""
    folder = tmp_path / "checkout" / "mine"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "model.py").write_text("capture = 'after'\n")
    git(folder.parent, "init", "-q")
    git(folder.parent, "add", ".")
    git(folder.parent, "commit", "-qm", "first")
    return folder


def test_a_clean_checkout_is_its_commit(package: Path) -> None:
    facts, diff = provenance.checkout(package)
    assert facts["commit"] == git(package, "rev-parse", "HEAD")
    assert (facts["changed"], facts["untracked"], diff) == (0, 0, "")
    assert "diff_sha256" not in facts


def test_a_patched_checkout_is_its_commit_and_the_patch(package: Path) -> None:
    (package / "model.py").write_text("capture = 'before'\n")
    (package / "new.py").write_text("password = 1\n")
    facts, diff = provenance.checkout(package)
    assert (facts["changed"], facts["untracked"], facts["diff_cut"]) == (1, 1, False)
    assert "-capture = 'after'\n+capture = 'before'" in diff
    assert "password" not in diff
    assert facts["diff_sha256"] == hashlib.sha256(diff.encode()).hexdigest()


def test_a_long_patch_is_cut_and_says_so(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "MOST_DIFF", 100)
    (package / "model.py").write_text("x = 1\n" * 100)
    facts, diff = provenance.checkout(package)
    assert facts["diff_cut"] is True
    assert len(diff) == 100


def test_an_environment_inside_somebodys_checkout_is_no_checkout_of_the_engine(
    package: Path,
) -> None:
    installed = package.parent / ".venv" / "mine"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert provenance.checkout(installed) == ({"folder": str(installed)}, "")


def test_a_folder_without_git_is_a_folder(tmp_path: Path) -> None:
    assert provenance.checkout(tmp_path) == ({"folder": str(tmp_path)}, "")


def test_the_engines_own_interpreter_says_where_its_source_is(package: Path) -> None:
    env = {"PYTHONPATH": str(package.parent), "PATH": "/usr/bin:/bin"}
    found = provenance.gather(ENGINE, ["--model-path", "org/model"], env)
    assert found.facts["source"]["commit"] == git(package, "rev-parse", "HEAD")
    assert found.facts["target"] == {"path": "org/model"}
    assert found.facts["machine"]["kernel"]


def test_an_engine_that_is_not_there_leaves_the_rest(tmp_path: Path) -> None:
    broken = engines.Engine("mine", module="mine.launch", interpreter="NO_SUCH_VARIABLE")
    found = provenance.gather(broken, [], {})
    assert "source" not in found.facts
    assert found.facts["machine"]


def safetensors(path: Path, header: dict[str, object], data: bytes = b"") -> str:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return hashlib.sha256(text).hexdigest()


def test_a_checkpoint_is_its_config_and_its_headers(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    one = safetensors(tmp_path / "a.safetensors", {"w": {"shape": [1]}}, b"weights")
    facts = provenance.checkpoint(str(tmp_path), {})
    assert facts["config_sha256"] == hashlib.sha256(b"{}").hexdigest()
    assert facts["headers_sha256"] == {"a.safetensors": one}
    # Other numbers in the same shapes leave the header; another shape does not.
    safetensors(tmp_path / "a.safetensors", {"w": {"shape": [1]}}, b"others!")
    assert provenance.checkpoint(str(tmp_path), {})["headers_sha256"] == {"a.safetensors": one}
    other = safetensors(tmp_path / "a.safetensors", {"w": {"shape": [2]}}, b"weights")
    assert other != one
    assert provenance.checkpoint(str(tmp_path), {})["headers_sha256"] == {"a.safetensors": other}


@pytest.mark.parametrize(
    "data", [b"", b"short", b"\xff" * 16, (50).to_bytes(8, "little") + b"{}", b"\x02" + b"\0" * 9]
)
def test_what_is_no_safetensors_file_has_no_hash(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(data)
    assert provenance.header_sha256(file) is None


def test_a_hub_name_is_looked_up_in_the_cache_and_nowhere_else(tmp_path: Path) -> None:
    model = tmp_path / "hub" / "models--org--draft"
    commit = "0123abcd" * 5
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text(commit)
    folder = model / "snapshots" / commit
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    env = {"HF_HOME": str(tmp_path)}
    assert provenance.checkpoint("org/draft", env)["folder"] == str(folder)
    assert provenance.checkpoint("org/other", env) == {"path": "org/other"}
    (model / "refs" / "main").write_text("../../../../etc")
    assert provenance.checkpoint("org/draft", env) == {"path": "org/draft"}


def test_the_topology_is_kept_without_the_styles_of_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As driver 580 prints it, into a pipe too.
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        "#!/bin/sh\nprintf '\\t\\033[4mGPU0\\tCPU Affinity\\033[0m\\nGPU0\\t X \\t0-15\\n'\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert provenance.machine()["gpu_topology"].split() == [
        "GPU0",
        "CPU",
        "Affinity",
        "GPU0",
        "X",
        "0-15",
    ]
