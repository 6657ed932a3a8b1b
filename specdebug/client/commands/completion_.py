"""Print a completion script for bash or zsh."""

from __future__ import annotations

import argparse

from specdebug.client.commands import COMMANDS
from specdebug.client.commands.console import OK

EXAMPLES = """examples:
  eval "$(specdebug completion bash)"
  specdebug completion zsh > ~/.zfunc/_specdebug"""
OWN = ("check", "preflight", "explain")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh"))


def run(args: argparse.Namespace) -> int:
    print(script(args.shell), end="")
    return OK


def script(shell: str) -> str:
    """Completes commands, their options, finding codes after explain, and files elsewhere."""
    options = {name: _options(name) for name, _ in COMMANDS}
    options |= {
        "check": "--engine-version --baseline --json --quiet",
        "preflight": "--engine-version --baseline --json --quiet",
        "explain": "--json",
    }
    cases = "\n".join(f'    {name}) words="{words}" ;;' for name, words in options.items())
    body = f"""_specdebug() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(options)}" -- "$cur")); return
  fi
  if [ "${{COMP_WORDS[1]}}" = explain ]; then
    COMPREPLY=($(compgen -W "$(specdebug explain 2>/dev/null | cut -d' ' -f1)" -- "$cur")); return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -f -- "$cur")) ;;
  esac
}}
complete -F _specdebug specdebug
"""
    if shell == "bash":
        return body
    return "#compdef specdebug\nautoload -U +X bashcompinit && bashcompinit\n" + body


def _options(name: str) -> str:
    from importlib import import_module

    parser = argparse.ArgumentParser(add_help=False)
    import_module(f"specdebug.client.commands.{name}_").arguments(parser)
    return " ".join(
        text for action in parser._actions for text in action.option_strings if text[:2] == "--"
    )
