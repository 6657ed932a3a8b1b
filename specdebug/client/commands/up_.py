"""Start the pages, the broker and the workers on this machine, as bin/start does.

Needs the web part of the package; Ctrl-C stops everything and loses nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

from specdebug.client.commands.console import UNUSABLE

EXAMPLES = """examples:
  specdebug up
  specdebug up --port 9000 --data ~/specdebug --no-replay"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", help="of the pages (8000, else the next free one)")
    parser.add_argument("--data", metavar="DIR", help="the folder that holds all state")
    parser.add_argument("--no-replay", action="store_true", help="measure nothing at the start")


def run(args: argparse.Namespace) -> int:  # noqa: RET503 (execv does not return)
    if importlib.util.find_spec("django") is None:
        print("specdebug up: needs the web part: pip install 'specdebug[web]'", file=sys.stderr)
        return UNUSABLE
    command = [sys.executable, "-m", "specdebug.up"]
    command += ["--port", args.port] if args.port else []
    command += ["--data", args.data] if args.data else []
    command += ["--no-replay"] if args.no_replay else []
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606 (a list, and no shell)
