"""Every example of docs/api.md, docs/client.md and docs/cli.md, run as it stands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from specdebug.client import cli
from specdebug.client.commands import COMMANDS
from tests.api.conftest import Caller

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text(), re.S)


def curl(api: Caller, line: str) -> tuple[int, Any]:
    """What a curl command of the page would get."""
    words = shlex.split(line.replace("\\\n", " "))
    assert words[0] == "curl"
    method, url, headers, data, query = "GET", "", {}, None, []
    at = 1
    while at < len(words):
        word, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        step = 2
        if word == "-X":
            method = value
        elif word == "-H":
            name, _, text = value.partition(": ")
            headers[name] = text.replace("$SPECDEBUG_TOKEN", api.token)
        elif (word == "-d" and "-G" in words) or word == "--data-urlencode":
            query.append(tuple(value.split("=", 1)))
        elif word == "-d":
            data = value
        elif word.startswith("$SPECDEBUG_URL"):
            url, step = word.removeprefix("$SPECDEBUG_URL"), 1
        else:
            step = 1
        at += step
    kind = headers.pop("Content-Type", "")
    answer = api.http.generic(
        method, url, data or "", content_type=kind, headers=headers, query_params=dict(query)
    )
    return answer.status_code, answer.json()


def test_the_shell_examples_of_the_api_page_work(api: Caller) -> None:
    commands = [
        line for block in blocks("api.md", "sh") for line in re.split(r"\n(?=curl)", block.strip())
    ]
    assert len(commands) >= 7
    answers = [curl(api, command) for command in commands]
    assert [code for code, _ in answers if code >= 300] == []
    assert answers[-1][1]["items"][0]["metrics"]["tok_s"]["count"] == 3


def test_the_signature_example_takes_what_we_sign_and_nothing_else() -> None:
    from experiments.webhooks import signature

    scope: dict[str, Any] = {}
    exec(blocks("api.md", "python")[0], scope)  # noqa: S102 (our own page)
    header = signature("whsec_x", 1_780_000_000, '{"event": "ping"}')
    assert scope["genuine"]("whsec_x", header, b'{"event": "ping"}')
    assert not scope["genuine"]("whsec_x", header, b'{"event": "pong"}')
    assert not scope["genuine"]("whsec_y", header, b'{"event": "ping"}')


def test_the_python_examples_of_the_client_page_work(
    served: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = [code for code in blocks("client.md", "python") if "Client.local" not in code]
    assert len(examples) == 2
    for code in examples:
        exec(compile(code, "client.md", "exec"), {})  # noqa: S102 (our own page)
    told = capsys.readouterr().out
    assert "Goal not met" in told
    assert "H1 refuted" in told
    assert "'speculative_num_steps': 3" in told


def test_the_query_examples_of_the_api_page_are_queries(api: Caller) -> None:
    from experiments.queries.language import parse
    from experiments.queries.search import KINDS

    page = (DOCS / "api.md").read_text()
    table = page[page.index("## The query language") : page.index("A value needs quotes")]
    for code in re.findall(r"^\| `(.+?)`", table, re.M):
        if re.search(r"[A-Za-z]+ (?:=|~|IN|BETWEEN)", code):
            assert parse(code) is not None
    fields = page[page.index("| rows | fields |") : page.index("`params.NAME` is the value")]
    names = ("investigation", "run", "hypothesis", "finding", "event", "evidence")
    for line, name in zip(fields.strip().splitlines()[2:], names, strict=True):
        kind = KINDS[name]
        known = [*kind.fields, *(f"{prefix}.NAME" for prefix in kind.prefixes)]
        assert re.findall(r"`([\w.]+)`", line) == known


def test_every_problem_and_exit_code_is_described() -> None:
    from experiments.api import problems

    page = (DOCS / "api.md").read_text()
    for code, kind in problems.KINDS.items():
        assert f"| {code} | `{kind}` |" in page
    commands = (DOCS / "cli.md").read_text()
    for name in ("check", "preflight", "explain", *(name for name, _ in COMMANDS)):
        assert f"| `{name}` |" in commands


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_command_has_help_with_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([name, "--help"])
    assert end.value.code == 0
    told = capsys.readouterr().out
    assert f"specdebug {name}" in told[told.index("examples:") :]


def test_a_build_step_as_on_the_command_page(
    served: Any, api: Caller, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = tmp_path / "bench.jsonl"
    api.post("investigations", {"title": "Nightly", "question": "?"})
    for title, speeds in (("plain", (90.0, 90.5, 89.5)), ("draft", (56.0, 56.4, 56.2))):
        rows = [
            {
                "backend": "sglang",
                "output_throughput": s,
                "duration": 10.0,
                "completed": 8,
                "total_output_tokens": 100,
                "tag": title,
            }
            for s in speeds
        ]
        bench.write_text("\n".join(map(json.dumps, rows)))
        assert cli.main(["import", str(bench), "--from", "bench", "--into", "nightly"]) == 0
    assert "no new run" not in capsys.readouterr().out
    assert cli.main(["import", str(bench), "--from", "bench", "--into", "nightly"]) == 0
    assert "1 were there already" in capsys.readouterr().out
    assert cli.main(["gate", "nightly/R1", "--baseline", "nightly/R0"]) == 1
    assert "regression" in capsys.readouterr().out
    assert cli.main(["gate", "nightly/R0", "--baseline", "nightly/R1"]) == 0
    assert cli.main(["gate", "nightly/R1"]) == 2
    assert cli.main(["gate", "nightly/R9", "--baseline", "nightly/R0"]) == 4
    capsys.readouterr()
    assert cli.main(["investigate", "nightly", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [run["label"] for run in told["runs"]] == ["R0", "R1"]
