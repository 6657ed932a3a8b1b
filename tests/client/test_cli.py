import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specdebug.client.cli import main
from specdebug.diagnosis.catalogue import CATALOGUE

CASES = Path(__file__).parents[1] / "data" / "cases"
FAULTY, HEALTHY = CASES / "01-more-draft-tokens-than-steps", CASES / "13-healthy"


def files(folder: Path) -> list[str]:
    return [str(p) for p in sorted(folder.iterdir()) if p.name != "expect.json"]


def test_a_healthy_server_exits_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *files(HEALTHY)]) == 0
    assert "No fault found" in capsys.readouterr().out


def test_a_fault_exits_with_one_and_shows_line_and_fix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *files(FAULTY)]) == 1
    out = capsys.readouterr().out
    assert "HIGH draft-tokens-overridden" in out
    assert "server.log:3" in out
    assert "Fix:" in out
    assert "\x1b[" not in out


def test_an_unusable_input_exits_with_two_and_the_rest_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missing = str(tmp_path / "gone.log")
    assert main(["check", missing, *files(FAULTY)]) == 2
    out = capsys.readouterr().out
    assert f"{missing}: cannot be used" in out
    assert "draft-tokens-overridden" in out


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 500, b"hello world\n", b"{", b"[1, 2]"])
def test_what_says_nothing_is_named_as_unusable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    assert main(["check", str(path)]) == 2
    out = capsys.readouterr().out
    assert "cannot be used" in out
    assert "Traceback" not in out


def test_a_folder_is_no_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert "folder" in capsys.readouterr().out


def test_json_has_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json", *files(FAULTY)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"inputs", "values", "findings", "missing", "untried"}
    assert found["values"]["effective_draft_tokens"] == 5
    assert set(found["findings"][0]) == {
        "code",
        "severity",
        "confidence",
        "statement",
        "evidence",
        "fix",
        "settled_by",
    }
    ranks = ["critical", "high", "medium", "info"]
    order = [ranks.index(f["severity"]) for f in found["findings"]]
    assert order == sorted(order)


def test_every_value_is_described() -> None:
    from specdebug.diagnosis.case import Input, build_case
    from specdebug.diagnosis.diagnose import diagnose

    text = (Path(__file__).parents[2] / "docs" / "check-json.md").read_text()
    names: set[str] = set()
    for folder in CASES.iterdir():
        paths = [Path(f) for f in files(folder)]
        names |= set(diagnose(build_case([Input(p.name, p) for p in paths])).values)
    odd = {
        n
        for n in names
        if f"`{n}`" not in text
        and not n.startswith("captured_layers_")
        and not (n.startswith("requested_") and f"`{n.removeprefix('requested_')}`" in text)
    }
    assert odd == set()


def test_quiet_prints_faults_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--quiet", *files(FAULTY)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["draft-tokens-overridden:"]
    assert main(["check", "--quiet", *files(HEALTHY)]) == 0
    assert capsys.readouterr().out == ""


def test_the_release_and_the_baseline_may_come_from_the_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = str(CASES / "09-kimi-k25-story" / "server.log")
    main(["check", "--json", "--engine-version", "0.5.9", "--baseline", "90", log])
    found = json.loads(capsys.readouterr().out)
    assert found["values"]["release"] == "0.5.9"
    assert "speculation-cannot-win" in {f["code"] for f in found["findings"]}


def test_a_release_that_is_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--engine-version", "latest", *files(HEALTHY)]) == 2
    assert "'latest' is no release" in capsys.readouterr().out


@pytest.mark.parametrize("bad", ["fast", "-3", "0", "nan", "inf"])
def test_a_baseline_that_is_no_positive_number_is_refused(
    capsys: pytest.CaptureFixture[str], bad: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["check", "--baseline", bad, *files(HEALTHY)])
    assert stopped.value.code == 2
    assert "not a positive number" in capsys.readouterr().err


def test_preflight_predicts_the_override_without_running_anything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = (
        "python -m sglang.launch_server --model-path x/y --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path d --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 16"
    )
    assert main(["preflight", "--engine-version", "0.5.9", "--", *command.split()]) == 1
    assert "16 draft tokens were asked for and 2 are in force" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["preflight", "--", command]) == 1
    good = command.replace("16", "2")
    assert main(["preflight", "--engine-version", "0.5.9", "--", *good.split()]) == 0


def test_preflight_without_a_command_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preflight"]) == 2
    assert "after --" in capsys.readouterr().err


def test_preflight_of_no_server_is_unusable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preflight", "--", "rm", "-rf", "x"]) == 2


def test_explain_knows_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    for code in CATALOGUE:
        assert main(["explain", code]) == 0
        assert code in capsys.readouterr().out
    assert main(["explain"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(CATALOGUE)


def test_explain_prints_json_of_one_code_or_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json"]) == 0
    every = json.loads(capsys.readouterr().out)
    assert [entry["code"] for entry in every] == list(CATALOGUE)
    assert main(["explain", "draft-tokens-overridden", "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one in every
    assert one["explanation"]


def test_explain_suggests_the_nearest_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "draft-token-overriden"]) == 2
    assert "draft-tokens-overridden" in capsys.readouterr().err


def run(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "specdebug.client.cli", *words],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )


def test_text_can_be_piped_in() -> None:
    text = (CASES / "17-window-of-two-in-an-excerpt" / "pasted.txt").read_bytes()
    assert run("check", "-", stdin=text).returncode == 0
    text += (CASES / "17-window-of-two-in-an-excerpt" / "command.txt").read_bytes()
    done = run("check", stdin=text)
    assert done.returncode == 1
    assert b"draft-tokens-overridden" in done.stdout


def test_standard_input_can_be_named_once() -> None:
    assert run("check", "-", "-").returncode == 2


def test_control_characters_of_an_input_never_reach_the_terminal(tmp_path: Path) -> None:
    evil = tmp_path / "evil\x1b[31m.log"
    evil.write_text("\x1b]0;title\x07 Decode batch, #running-req: 1, accept len: 1.00\n" * 9)
    done = run("check", str(evil))
    assert b"\x1b" not in done.stdout
    assert b"\x07" not in done.stdout


def test_a_check_of_a_short_log_imports_nothing_heavy() -> None:
    code = (
        "import sys; from specdebug.client.cli import main; "
        f"main(['check', '--quiet', {str(FAULTY / 'server.log')!r}]); "
        "heavy = {'django', 'torch', 'scipy', 'statsmodels', 'pandas', 'celery', 'httpx'}; "
        "heavy |= {'numpy', 'statistics', 'tomllib', 'html', 'gzip', 'difflib'}; "
        "heavy |= {'specdebug.' + name for name in ('sglang.vllm', 'sglang.metrics', "
        "'eagle.account', 'eagle.checkpoint', 'measure.gpu_samples')}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_command_starts_quickly() -> None:
    def seconds(*words: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        return time.perf_counter() - begin

    bare = min(seconds("-c", "pass") for _ in range(3))
    ours = min(seconds("-m", "specdebug.client.cli", "--help") for _ in range(3))
    # 0.05 s here; the bound leaves room for a machine under load.
    assert ours < 5 * bare + 0.5


def test_nothing_usable_is_not_called_healthy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["check", str(tmp_path / "gone.log")]) == 2
    out = capsys.readouterr().out
    assert "Nothing was checked" in out
    assert "No fault found" not in out
    assert out.count("gone.log") == 1


def test_preflight_reads_a_file_that_holds_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preflight", str(FAULTY / "command.txt")]) == 1
    assert "24 draft tokens were asked for and 5 are in force" in capsys.readouterr().out


def test_what_the_newest_release_refuses_is_a_fault_without_naming_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--model-path", "a/b", "--speculative-algorithm", "EAGLE3"]
    start = ["preflight", "--", "sglang", "serve", *words, "--speculative-num-steps", "3"]
    assert main(start) == 1
    assert "Releases 0.5.2 to 0.5.23 refuse" in capsys.readouterr().out
    assert main([*start, "--speculative-eagle-topk", "1"]) == 0


def test_a_long_quotation_is_printed_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Short names, so that no line breaks within what is looked for.
    monkeypatch.chdir(CASES / "09-kimi-k25-story")
    main(["check", *(Path(name).name for name in files(Path.cwd()))])
    out = capsys.readouterr().out
    assert "server.log:29: (quoted above)" in out
    assert out.count("server.log:29: [2026") == 1


def test_the_answer_begins_with_how_many_findings_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["check", *files(FAULTY)])
    lines = capsys.readouterr().out.splitlines()
    first = lines[lines.index("") + 1]
    assert first == "1 fault found: 1 high, 3 info."
    main(["check", *files(HEALTHY)])
    assert "found:" not in capsys.readouterr().out
