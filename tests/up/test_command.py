"""bin/start's own decisions: options, the lock, the port."""

import socket
from pathlib import Path

import pytest

from specdebug.paths import LONGEST_SOCKET_PATH, broker_socket, data_dir
from specdebug.up.command import CannotStart, Up, _only_one, main


def up(tmp_path: Path, port: int) -> Up:
    return Up(tmp_path, port, replay=False, lock=tmp_path / "lock")


def test_help_explains_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for option in ("--port", "--data DIR", "--no-replay"):
        assert option in text


@pytest.mark.parametrize("port", ["0", "70000", "http", "-1"])
def test_a_port_that_is_none_is_refused_by_name(
    port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--port={port}"])
    assert ended.value.code == 2
    assert "is not a port number" in capsys.readouterr().err


def test_a_taken_port_gives_the_next_free_one_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with up(tmp_path, port)._listen() as listener:
            assert listener.getsockname()[1] > port
    assert f"port {port} is taken" in capsys.readouterr().out


def test_a_free_port_is_taken_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with up(tmp_path, port)._listen() as listener:
        assert listener.getsockname()[1] == port
    assert "taken" not in capsys.readouterr().out


def test_a_second_start_on_one_data_folder_is_refused_and_names_the_first(tmp_path: Path) -> None:
    with _only_one(tmp_path) as lock:
        lock.write_text("http://127.0.0.1:8000/, pid 1")
        with (
            pytest.raises(CannotStart, match=r"already running .*8000/, pid 1"),
            _only_one(tmp_path),
        ):
            pass
    with _only_one(tmp_path):
        pass


def test_a_data_folder_that_cannot_be_made_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["--data", str(tmp_path / "file" / "data")]) == 1
    assert "the data folder cannot be used" in capsys.readouterr().err


def test_the_broker_socket_stays_short_enough_to_be_bound(tmp_path: Path) -> None:
    assert broker_socket(Path("/d")) == Path("/d/run/valkey.sock")
    deep = tmp_path / ("x" * 150)
    assert len(str(broker_socket(deep))) <= LONGEST_SOCKET_PATH
    assert broker_socket(deep) != broker_socket(tmp_path / ("y" * 150))


def test_the_data_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDEBUG_DATA", str(tmp_path))
    assert data_dir() == tmp_path
    monkeypatch.delenv("SPECDEBUG_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert data_dir() == tmp_path / "share" / "specdebug"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_dir() == tmp_path / "home" / ".local" / "share" / "specdebug"
