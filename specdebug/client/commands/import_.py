"""Take in an archive, or runs of another tracker.

An archive of `specdebug export` becomes a new investigation. Runs of MLflow (its folder of files,
its SQLite database or its server), of W&B and of TensorBoard, and results of SGLang's and vLLM's
benchmarks, AIPerf and GuideLLM come into an investigation that is named. All of it is read before
any of it is sent; what was taken in before is not taken twice.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specdebug.client.api import Client
from specdebug.client.commands.console import OK, UNUSABLE, options, shown, with_client
from specdebug.client.neighbours import SOURCES, read, send

EXAMPLES = """examples:
  specdebug import kimi-k2-5.zip
  specdebug import ./mlruns --from mlflow --into kimi-k2-5
  specdebug import mlflow.db --from mlflow --experiment nightly --into nightly
  specdebug import http://mlflow:5000 --from mlflow --experiment nightly --into nightly
  specdebug import wandb/latest-run/history.jsonl --from wandb --into kimi-k2-5
  specdebug import logs --from tensorboard --into kimi-k2-5
  specdebug import bench.jsonl --from bench --into kimi-k2-5
  specdebug import artifacts/profile_export_aiperf.json --from aiperf --into kimi-k2-5
  specdebug import benchmarks.json --from guidellm --into kimi-k2-5"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="or a URL of MLflow")
    parser.add_argument(
        "--from",
        dest="source",
        choices=("archive", *SOURCES),
        default="archive",
    )
    parser.add_argument("--into", metavar="INVESTIGATION", help="needed for all but an archive")
    parser.add_argument("--experiment", help="MLflow: only this experiment, by name or id")


def run(args: argparse.Namespace) -> int:
    if (args.source == "archive") == bool(args.into):
        print(
            "specdebug import: --into goes with --from, and an archive with neither",
            file=sys.stderr,
        )
        return UNUSABLE
    return with_client(args, lambda client: _import(client, args))


def _import(client: Client, args: argparse.Namespace) -> int:
    if args.source == "archive":
        made = [client.import_archive(Path(path)) for path in args.paths]
        shown([inv.data for inv in made], args.json, [inv.slug for inv in made])
        return OK
    inv = client.investigation(args.into)
    taken: list[str] = []
    skipped: list[str] = []
    # All is read before the first is sent: a bad file leaves nothing half done.
    pieces = [read(args.source, path, args.experiment) for path in args.paths]
    for found in pieces:
        for run in found.runs:
            sent = send(client, inv, run)
            (taken if sent.fresh else skipped).append(sent.name)
        for problem in found.problems:
            print(f"specdebug import: {problem}", file=sys.stderr)
    lines = [f"{len(taken)} runs taken in: {', '.join(taken)}"] if taken else ["no new run"]
    lines += [f"{len(skipped)} were there already"] if skipped else []
    shown({"taken": taken, "skipped": skipped}, args.json, lines)
    return OK
