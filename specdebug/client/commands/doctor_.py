"""Say what is missing on this machine, and how to get it; changes nothing."""

from __future__ import annotations

import argparse
import ctypes.util
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from specdebug.client.api import Client
from specdebug.client.commands.console import OK, WORSE, options, shown, table
from specdebug.client.http import ApiError, Unreachable
from specdebug.client.settings import spool_folder

EXAMPLES = """examples:
  specdebug doctor
  specdebug doctor --json

exit code: 0 nothing needed is missing, 1 something is"""
LEAST_BYTES = 1 << 30


@dataclass(frozen=True)
class Sign:
    """One thing looked at. needed: the command line itself cannot do without it."""

    what: str
    good: bool
    says: str
    needed: bool = False


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)


def run(args: argparse.Namespace) -> int:
    signs = [*_machine(), *_gpu(), *_server(args.url, args.token), *_spool()]
    rows = [["ok" if s.good else "missing" if s.needed else "-", s.what, s.says] for s in signs]
    shown([asdict(sign) for sign in signs], args.json, table(rows))
    return OK if all(sign.good for sign in signs if sign.needed) else WORSE


def _machine() -> Iterator[Sign]:
    version = ".".join(map(str, sys.version_info[:3]))
    fits = (3, 11) <= sys.version_info[:2] < (3, 14)
    yield Sign("Python", fits, version + ("" if fits else "; 3.11, 3.12 or 3.13 is needed"), True)
    web = importlib.util.find_spec("django") is not None
    yield Sign(
        "pages (web)", web, "" if web else "pip install 'specdebug[web]', for `specdebug up`"
    )
    torch = importlib.util.find_spec("torch") is not None
    yield Sign(
        "reference engine (torch)",
        torch,
        "" if torch else "bin/setup, or pip install 'specdebug[engine]' with a CPU build of torch",
    )
    pango = ctypes.util.find_library("pango-1.0") is not None
    yield Sign(
        "PDF (Pango)",
        pango,
        "" if pango else "as root: apt-get install libpango-1.0-0 libpangoft2-1.0-0",
    )
    free = shutil.disk_usage(os.path.expanduser("~")).free  # noqa: PTH111 (a plain string)
    yield Sign("disk", free > LEAST_BYTES, f"{free >> 30} GiB free in the home folder")


def _gpu() -> Iterator[Sign]:
    nvml = ctypes.util.find_library("nvidia-ml")
    yield Sign(
        "NVIDIA driver",
        nvml is not None,
        nvml or "no GPU here, or no driver; the reference engine needs none",
    )
    for name, what in (
        ("SPECDEBUG_SGLANG_PYTHON", "SGLang"),
        ("SPECDEBUG_SGLANG_CPU_PYTHON", "SGLang on CPU"),
    ):
        path = os.environ.get(name, "")
        found = bool(path) and shutil.which(path) is not None
        says = path if found else f"set {name} to the interpreter of an environment that has it"
        yield Sign(what, found, f"{path!r} cannot be run" if path and not found else says)


def _server(url: str | None, token: str | None) -> Iterator[Sign]:
    try:
        with Client(url, token, timeout=5.0) as client:
            client.connection.tries = 1
            where = client.connection.url
            me = client.me()
            yield Sign("server", True, f"{where}, as {me['user']} ({', '.join(me['may'])})")
    except ApiError as no:
        yield Sign("server", False, f"it answers, but: {no}; `specdebug login` keeps a token")
    except Unreachable as no:
        yield Sign("server", False, f"{no}; `specdebug up` starts one")


def _spool() -> Iterator[Sign]:
    try:
        waiting = sum(1 for path in spool_folder().iterdir() if path.is_dir())
    except OSError:
        waiting = 0
    says = f"{waiting} runs wait in {spool_folder()}; `specdebug upload --pending` sends them"
    yield Sign("unsent rows", waiting == 0, says if waiting else "none")
