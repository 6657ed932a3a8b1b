"""The completion scripts, in a real shell where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

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


# A zsh at a terminal of its own that completes a line; what it offers goes to a file.
ZSH = r"""
zmodload zsh/zpty || exit 3
zpty z zsh -f -i
zpty -w z 'stty -echo; PS1= PS2= RPS1=; unsetopt beep; cd $FOLDER; fpath=($FOLDER $fpath)'
zpty -w z 'autoload -Uz compinit && compinit -u -d $FOLDER/dump'
zpty -w z '[[ $WAY == eval ]] && source $FOLDER/script'
zpty -w z 'compadd() {
  local -a hits
  if [[ " $* " != *" -"[ADO]" "* ]]; then
    builtin compadd -A hits "$@"
    print -rl -- $hits >> $FOLDER/out
  fi
  builtin compadd "$@"
}'
zpty -w z 'done-now() { print -r -- END >> $FOLDER/out }; comppostfuncs=(done-now)'
zpty -w z 'print ready > $FOLDER/ready'
repeat 200 { [[ -e $FOLDER/ready ]] && break; zpty -t z; zpty -rt z _; sleep 0.05 }
zpty -wn z "$LINE"$'\t'
repeat 200 { grep -q END $FOLDER/out 2>/dev/null && break; zpty -rt z _; sleep 0.05 }
zpty -d z
"""


@pytest.fixture(params=["eval", "fpath"])
def in_zsh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], set[str]]:
    """What zsh offers at the end of a line; the script evaluated, or found as a function."""
    name = "script" if request.param == "eval" else "_specdebug"
    (tmp_path / name).write_text(script("zsh"))
    # The command itself, which explain asks for the codes.
    command = tmp_path / "specdebug"
    command.write_text("#!/bin/sh\nprintf 'one-code  x\\nother-code  y\\n'\n")
    command.chmod(0o755)

    def offered(line: str) -> set[str]:
        (tmp_path / "out").unlink(missing_ok=True)
        (tmp_path / "ready").unlink(missing_ok=True)
        env = {**os.environ, "FOLDER": str(tmp_path), "WAY": request.param, "LINE": line}
        env["PATH"] = f"{tmp_path}:{env['PATH']}"
        env["TERM"] = "dumb"
        subprocess.run(["zsh", "-f", "-c", ZSH], env=env, check=True, timeout=60)
        lines = (tmp_path / "out").read_text().split("\n")
        assert "END" in lines
        return {word for word in lines if word not in ("", "END")}

    return offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_completes_commands_options_codes_and_files(
    in_zsh: Callable[[str], set[str]], tmp_path: Path
) -> None:
    assert in_zsh("specdebug ") == {*OWN, *(name for name, _ in COMMANDS)}
    assert in_zsh("specdebug pro") == {"probe"}
    assert in_zsh("specdebug gate --inc") == {"--inconclusive-passes"}
    assert in_zsh("specdebug explain o") == {"one-code", "other-code"}
    (tmp_path / "server.log").touch()
    assert in_zsh("specdebug check ser") == {"server.log"}
    assert in_zsh("specdebug nonsense --") == set()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_is_of_the_shell_alone(shell: str) -> None:
    """One that asks Python nothing when it is read: a shell starts often."""
    assert "python" not in script(shell)
    assert script(shell).startswith("#compdef specdebug\n") is (shell == "zsh")
    for name, _ in COMMANDS:
        assert f"{name})" in script(shell)
