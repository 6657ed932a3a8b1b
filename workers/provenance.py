"""What exactly ran: the engine's source, the checkpoints by hash, the machine; it reads and changes
nothing, and what cannot be found out is left out."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers import engines
from workers.plan import RunEnded

PROBE_SECONDS = 30.0
GIT_SECONDS = 20.0
MOST_DIFF = 256 * 1024
# A header of a large model has some megabytes; safetensors itself refuses above 100 million bytes.
LONGEST_HEADER = 100_000_000
MOST_SHARDS = 2000
MODEL_FLAGS = {
    "target": ("--model-path", "--model"),
    "draft": ("--speculative-draft-model-path", "--speculative-draft-model"),
}
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
# Finds a package's folder without importing it, which would take a minute and a GPU.
_WHERE = """
import importlib.util as u, json, sys
found = {}
for name in sys.argv[1:]:
    spec = u.find_spec(name)
    if spec and spec.origin:
        found[name] = spec.origin
print(json.dumps(found))
"""
_TORCH_CUDA = re.compile(r"^(cuda|hip)\b[^=]*= *'([^']+)'", re.MULTILINE)


@dataclass(frozen=True)
class Provenance:
    """`facts` as JSON; `diff`: the checkout's changes against its commit, "" where there are none
    or the engine is no checkout."""

    facts: Mapping[str, Any]
    diff: str = ""


def gather(
    engine: engines.Engine, server_args: Sequence[str], env: Mapping[str, str]
) -> Provenance:
    """Everything that can be found out in some seconds about what is about to run."""
    facts: dict[str, Any] = {"machine": machine()}
    diff = ""
    if engine.launches:
        package = engine.module.partition(".")[0]
        where = _origins(engine, env, package, "torch")
        if package in where:
            source, diff = checkout(Path(where[package]).parent)
            facts["source"] = source
        if "torch" in where:
            facts |= _torch(Path(where["torch"]).parent)
    for role, names in MODEL_FLAGS.items():
        if given := engines.flag(server_args, *names):
            facts[role] = checkpoint(given, env)
    return Provenance(facts, diff)


def machine() -> dict[str, Any]:
    """Kernel, memory, and how its GPUs are connected where there are any."""
    facts: dict[str, Any] = {"kernel": os.uname().release}
    with contextlib.suppress(ValueError, OSError):
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        facts["memory_gib"] = round(pages / (1 << 30), 1)
    if shutil.which("nvidia-smi"):
        topology = _output(["nvidia-smi", "topo", "-m"], GIT_SECONDS)
        if topology:
            # It underlines its head even where nobody looks.
            facts["gpu_topology"] = _STYLE.sub("", topology)[:20_000]
    return facts


def _origins(engine: engines.Engine, env: Mapping[str, str], *names: str) -> dict[str, str]:
    """Where the engine's interpreter would import these packages from."""
    try:
        said = _output([engine.python(), "-c", _WHERE, *names], PROBE_SECONDS, env=dict(env))
        found = json.loads(said)
    except (ValueError, RunEnded):
        return {}
    return {str(name): str(path) for name, path in found.items()}


def _torch(folder: Path) -> dict[str, str]:
    """The CUDA or ROCm release that torch was built for, from its version file."""
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    return {f"torch_{name}": release for name, release in _TORCH_CUDA.findall(text)}


def checkout(folder: Path) -> tuple[dict[str, Any], str]:
    """A package's folder with its commit and changes, and the diff's text, cut at MOST_DIFF bytes.

    Files that git does not track are counted and not read: they may be anybody's.
    """
    facts: dict[str, Any] = {"folder": str(folder)}
    root = _git(folder, "rev-parse", "--show-toplevel").strip()
    # An environment inside somebody's checkout is no checkout of the engine.
    if not root or not _git(folder, "ls-files", "--", ".").strip():
        return facts, ""
    facts["commit"] = _git(folder, "rev-parse", "HEAD").strip()
    described = _git(folder, "describe", "--tags", "--always").strip()
    status = _git(folder, "status", "--porcelain", "--untracked-files=normal", "--", ".")
    changed = [line for line in status.splitlines() if line.strip()]
    facts |= {
        "described": described,
        "changed": sum(not line.startswith("??") for line in changed),
        "untracked": sum(line.startswith("??") for line in changed),
    }
    diff = _git(folder, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--", ".")
    if diff:
        data = diff.encode()
        facts["diff_sha256"] = hashlib.sha256(data).hexdigest()
        facts["diff_cut"] = len(data) > MOST_DIFF
        diff = data[:MOST_DIFF].decode(errors="replace")
    return facts, diff


def _git(folder: Path, *arguments: str) -> str:
    # A checkout's own configuration must not start programs of its choice.
    safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    return _output(["git", "-C", str(folder), *safe, *arguments], GIT_SECONDS)


def _output(argv: list[str], seconds: float, env: Mapping[str, str] | None = None) -> str:
    """What a program prints; "" where it fails, hangs or is not there."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            check=True,
            env=None if env is None else dict(env),
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace")


# ---- checkpoints ---------------------------------------------------------------------------------


def checkpoint(given: str, env: Mapping[str, str]) -> dict[str, Any]:
    """A model by hash: its config.json whole, of each safetensors file the header alone.

    A header names every tensor with shape, type and place, so that another architecture, layer
    count or quantisation changes it; other numbers in the same shapes do not.
    """
    facts: dict[str, Any] = {"path": given}
    folder = Path(given) if Path(given).is_dir() else _cached(given, env)
    if folder is None:
        return facts
    if str(folder) != given:
        facts["folder"] = str(folder)
    with contextlib.suppress(OSError):
        facts["config_sha256"] = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    headers = {}
    with contextlib.suppress(OSError):
        for file in sorted(folder.glob("*.safetensors"))[:MOST_SHARDS]:
            if (digest := header_sha256(file)) is not None:
                headers[file.name] = digest
    if headers:
        facts["headers_sha256"] = headers
    return facts


def header_sha256(file: Path) -> str | None:
    """Of the JSON header of a safetensors file; None for what is none."""
    try:
        with file.open("rb") as data:
            length = int.from_bytes(data.read(8), "little")
            if not 2 <= length <= LONGEST_HEADER:
                return None
            header = data.read(length)
    except OSError:
        return None
    whole = len(header) == length and header.startswith(b"{")
    return hashlib.sha256(header).hexdigest() if whole else None


def _cached(name: str, env: Mapping[str, str]) -> Path | None:
    """The folder in which the hub's cache keeps the main branch of a model."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return None
    home = Path(env.get("HF_HOME") or Path(env.get("HOME") or "/") / ".cache" / "huggingface")
    hub = Path(env["HF_HUB_CACHE"]) if env.get("HF_HUB_CACHE") else home / "hub"
    model = hub / f"models--{name.replace('/', '--')}"
    try:
        commit = (model / "refs" / "main").read_text().strip()
    except OSError:
        return None
    folder = model / "snapshots" / commit
    return folder if re.fullmatch(r"[0-9a-f]{6,64}", commit) and folder.is_dir() else None
