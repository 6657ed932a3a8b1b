"""Measure several settings one after another; those not worth a run are left out, with why."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from specdebug.client.api import Client
from specdebug.client.commands.console import FAILED, OK, UNUSABLE, options, shown, with_client
from specdebug.client.commands.run_ import _value, workload

EXAMPLES = """examples:
  specdebug sweep kimi-k2-5 --title depth --grid speculative_num_steps=1,3,5,15 --baseline R0 -- \\
      --model-path /models/k2 --tp 8 --speculative-algorithm EAGLE3
  specdebug sweep kimi-k2-5 --follow 2
  specdebug sweep kimi-k2-5 --stop 2 --reason "the box is needed"
  specdebug sweep kimi-k2-5 --resume 2"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("investigation", metavar="INVESTIGATION")
    parser.add_argument("--title", default="sweep from the command line")
    parser.add_argument(
        "--grid", action="append", default=[], metavar="NAME=V,V", help="all combinations"
    )
    parser.add_argument("--engine", help="reference, sglang, sglang-cpu or attached")
    parser.add_argument("--release", dest="engine_release", help="the engine's release")
    parser.add_argument("--baseline", metavar="R0", help="what is to be beaten")
    parser.add_argument("--hypothesis", metavar="H1")
    parser.add_argument("--workload", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--all", action="store_true", help="also what can no longer win")
    parser.add_argument("--no-wait", action="store_true", help="begin and return")
    parser.add_argument("--follow", type=int, metavar="N", help="follow a sweep that is there")
    parser.add_argument("--stop", type=int, metavar="N")
    parser.add_argument("--resume", type=int, metavar="N")
    parser.add_argument("--reason", default="stopped on the command line")


def run(args: argparse.Namespace) -> int:
    known = [n for n in (args.follow, args.stop, args.resume) if n is not None]
    if bool(known) == bool(args.grid) or len(known) > 1:
        print("specdebug sweep: give --grid, or one of --follow, --stop, --resume", file=sys.stderr)
        return UNUSABLE
    return with_client(args, lambda client: _sweep(client, args))


def _sweep(client: Client, args: argparse.Namespace) -> int:
    path = f"investigations/{args.investigation}/sweeps"
    if args.stop is not None:
        answer = client.connection.call("POST", f"{path}/{args.stop}/stop", {"reason": args.reason})
        shown(answer, args.json, [f"{answer['label']}: {answer['state']}, {answer['reason']}"])
        return OK
    if args.resume is not None:
        answer = client.connection.call("POST", f"{path}/{args.resume}/resume")
    elif args.follow is not None:
        answer = client.connection.call("GET", f"{path}/{args.follow}")
    else:
        answer = client.connection.call("POST", path, _body(args))
        for left in answer["dropped"]:
            print(f"left out: {left.get('values')}: {left.get('why')}", file=sys.stderr)
    if args.no_wait:
        shown(answer, args.json, [f"{answer['label']}: {len(answer['points'])} settings"])
        return OK
    return _followed(client, path, answer, args.json)


def _body(args: argparse.Namespace) -> dict[str, Any]:
    grid: dict[str, list[Any]] = {}
    for pair in args.grid:
        name, equals, texts = pair.partition("=")
        if not equals or not name or not texts:
            raise ValueError(f"--grid {pair!r}: write NAME=V,V, as speculative_num_steps=1,3")
        grid[name] = [_value(text) for text in texts.split(",")]
    names = ("engine", "engine_release", "baseline", "hypothesis")
    return {
        "title": args.title,
        "server_args": args.server_args,
        "grid": grid,
        "workload": workload(args.workload),
        "stop_early": not args.all,
        **{name: getattr(args, name) for name in names if getattr(args, name)},
    }


def _followed(client: Client, path: str, group: dict[str, Any], as_json: bool) -> int:
    """Follow a sweep to its end, a line for each run that begins."""
    known: set[str] = set()
    while True:
        for label in group["runs"]:
            if label not in known:
                print(f"{group['label']}: {label} begins", file=sys.stderr)
                known.add(label)
        if group["state"] != "running":
            break
        time.sleep(2.0)
        group = client.connection.call("GET", f"{path}/{group['number']}")
    line = f"{group['label']}: {group['state']}" + (
        f", {group['reason']}" if group["reason"] else ""
    )
    shown(group, as_json, [line])
    return OK if group["state"] == "done" else FAILED
