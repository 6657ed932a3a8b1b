"""Print a completion script for bash or zsh."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping

from specdebug.client.commands import COMMANDS
from specdebug.client.commands.console import OK

EXAMPLES = """examples:
  eval "$(specdebug completion bash)"
  eval "$(specdebug completion zsh)"                       after compinit
  specdebug completion zsh > ~/.zfunc/_specdebug           a folder of fpath"""
OWN = {
    "check": "named faults in logs, configs and results",
    "preflight": "what this release will make of a launch command",
    "explain": "what a finding means and what to do",
}


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
    return _bash(options) if shell == "bash" else _zsh(options)


def _bash(options: Mapping[str, str]) -> str:
    cases = "\n".join(f'    {name}) words="{words}" ;;' for name, words in options.items())
    return f"""_specdebug() {{
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


def _zsh(options: Mapping[str, str]) -> str:
    """In zsh's own words, so that commands come with what they do. The last lines: as a file of the
    function path it is the function itself at the first use; evaluated, it registers it."""
    said = {**OWN, **dict(COMMANDS)}
    commands = "\n".join(f"    {shlex.quote(f'{name}:{said[name]}')}" for name in options)
    cases = "\n".join(f"      {name}) offered=({words}) ;;" for name, words in options.items())
    return f"""#compdef specdebug
_specdebug() {{
  local -a commands offered
  commands=(
{commands}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
  elif [[ $words[2] == explain ]]; then
    offered=(${{(f)"$(specdebug explain 2>/dev/null | cut -d' ' -f1)"}})
    compadd -a offered
  elif [[ $PREFIX == -* ]]; then
    case $words[2] in
{cases}
    esac
    compadd -a offered
  else
    _files
  fi
}}
if [[ $funcstack[1] == _specdebug ]]; then
  _specdebug "$@"
else
  compdef _specdebug specdebug
fi
"""


def _options(name: str) -> str:
    from importlib import import_module

    parser = argparse.ArgumentParser(add_help=False)
    import_module(f"specdebug.client.commands.{name}_").arguments(parser)
    return " ".join(
        text for action in parser._actions for text in action.option_strings if text[:2] == "--"
    )
