"""Find the hidden states that an EAGLE-3 draft was trained on, and whether they are served.

Scores sets of layers by how well the draft then foretells the target, on a few hundred tokens.
Needs torch, and a Llama-type pair that the reference engine can load; no server, no GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys

from specdebug.client.commands.console import UNUSABLE

EXAMPLES = """examples:
  specdebug probe models/target models/draft
  specdebug probe models/target models/draft --engine-version 0.5.10
  specdebug probe models/target models/draft --served 2,6,10 --text corpus.txt --json

exit code: 0 what is served fits, 1 it does not, 2 unusable input"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="checkpoint folder of the target")
    parser.add_argument("draft", metavar="DRAFT", help="checkpoint folder of the draft")
    parser.add_argument("--text", metavar="FILE", help="varied text (Python's own library)")
    parser.add_argument("--tokens", metavar="N", help="how many tokens to use (1024)")
    parser.add_argument("--served", metavar="K,K,K", help="hidden states served, 0: the embedding")
    parser.add_argument("--engine-version", metavar="V", help="SGLang's release that will serve it")
    parser.add_argument("--exhaustive", action="store_true", help="score every set of layers")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def run(args: argparse.Namespace) -> int:
    missing = [n for n in ("torch", "safetensors", "tokenizers") if not importlib.util.find_spec(n)]
    if missing:
        print(
            f"specdebug probe: needs {', '.join(missing)}: bin/setup, or pip install "
            "'specdebug[engine]' with a CPU build of torch",
            file=sys.stderr,
        )
        return UNUSABLE
    # A process of its own: the command line imports no torch.
    command = [sys.executable, "-m", "specdebug.reference.probing"]
    for name in ("text", "tokens", "served", "engine_version"):
        value = getattr(args, name)
        command += [] if value is None else [f"--{name.replace('_', '-')}={value}"]
    command += ["--exhaustive"] if args.exhaustive else []
    command += ["--json"] if args.json else []
    sys.stdout.flush()
    return subprocess.run([*command, "--", args.target, args.draft], check=False).returncode
