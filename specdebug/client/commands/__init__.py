"""The commands that talk to a server, a file each, loaded when they are asked for; `cli` has those
that need none."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

# name, what it does, in the order of a day's work.
COMMANDS = (
    ("probe", "find the hidden states that a draft was trained on"),
    ("login", "keep a server's address and a token on this machine"),
    ("investigate", "open an investigation, show how one stands, or list them"),
    ("run", "queue a run for a worker and follow it to its end"),
    ("sweep", "measure several settings one after another"),
    ("attach", "stream a live server's figures or a growing log into a run"),
    ("upload", "attach files to an investigation or a run"),
    ("compare", "put runs beside a baseline, with intervals and sample sizes"),
    ("verdict", "show what became of hypotheses"),
    ("gate", "fail a build on a regression, and on nothing less"),
    ("report", "write the post-mortem as PDF or JSON"),
    ("export", "write an investigation as one archive"),
    ("import", "take in an archive, or runs of another tracker"),
    ("up", "start the pages, the broker and the workers on this machine"),
    ("doctor", "say what is missing on this machine, and how to get it"),
    ("completion", "print a completion script for bash or zsh"),
)


def add(commands: Any, chosen: str | None) -> None:
    """Add all of them to the parser; only the chosen one is loaded."""
    for name, what in COMMANDS:
        if name != chosen:
            commands.add_parser(name, help=what, add_help=False)
            continue
        module = import_module(f"specdebug.client.commands.{name}_")
        parser = commands.add_parser(
            name,
            help=what,
            description=(module.__doc__ or what).split("\n\n")[0],
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.arguments(parser)
        parser.set_defaults(run=module.run)
