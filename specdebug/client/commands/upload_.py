"""Attach files to an investigation or a run; a content that the server has is not sent again."""

from __future__ import annotations

import argparse
import sys

from specdebug.client.api import Client
from specdebug.client.commands.console import OK, UNUSABLE, options, shown, with_client
from specdebug.client.files import upload

EXAMPLES = """examples:
  specdebug upload kimi-k2-5/R3 server.log
  specdebug upload kimi-k2-5 draft/config.json target/config.json
  specdebug upload --pending   # what scripts could not send while the server was away"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("target", nargs="?", metavar="INVESTIGATION[/R3]")
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--name", help="the name under which one file is kept")
    parser.add_argument("--pending", action="store_true", help="send what waits in the spool")


def run(args: argparse.Namespace) -> int:
    if args.pending == bool(args.target and args.files) or (args.name and len(args.files) != 1):
        print(
            "specdebug upload: name a target and files, or --pending; --name goes with one file",
            file=sys.stderr,
        )
        return UNUSABLE
    return with_client(args, lambda client: _upload(client, args))


def _upload(client: Client, args: argparse.Namespace) -> int:
    from pathlib import Path

    if args.pending:
        done = client.send_spooled()
        shown({"completed": done}, args.json, [f"completed {done} runs from {client.spool}"])
        return OK
    slug, slash, _ = args.target.partition("/")
    path = client.run(args.target).path if slash else client.investigation(slug).path
    kept = [upload(client.connection, path, Path(file), args.name) for file in args.files]
    lines = [f"{row['name']}: {row['problem'] or row['kind']}, {row['size']} bytes" for row in kept]
    shown(kept, args.json, lines)
    return OK
