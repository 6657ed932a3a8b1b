"""The completion scripts, in a real shell where there is one."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from specdebug.client.commands import COMMANDS
from specdebug.client.commands.completion_ import OWN, script


def completed(*words: str) -> list[str]:
    """What bash offers for the last word of a line."""
    at = len(words) - 1
    line = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({line}); COMP_CWORD={at}; _specdebug; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "-c", script("bash") + ask], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_commands_and_options() -> None:
    assert set(completed("specdebug", "")) == {*OWN, *(name for name, _ in COMMANDS)}
    assert completed("specdebug", "pro") == ["probe"]
    assert completed("specdebug", "gate", "--inc") == ["--inconclusive-passes"]
    assert "--engine-version" in completed("specdebug", "probe", "--")
    assert completed("specdebug", "nonsense", "--") == []


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_takes_the_script() -> None:
    subprocess.run(["zsh", "-n"], input=script("zsh"), text=True, check=True)


def test_the_script_of_zsh_is_that_of_bash_in_its_own_frame() -> None:
    assert script("zsh").startswith("#compdef specdebug\n")
    assert script("zsh").endswith(script("bash"))
