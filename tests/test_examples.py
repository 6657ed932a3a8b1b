"""Every example in the documents and in docstrings does what it shows: run where that is cheap,
read by the real parser where it is not. tests/api/test_docs_examples.py has those of a server,
tests/client/test_local.py the one that starts its own."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from specdebug.client import cli
from specdebug.client.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CASES = ROOT / "tests" / "data" / "cases"
# A benchmark or a module of ours, as a line calls it.
PROGRAM = re.compile(r"(?:python|-m) (benchmarks[/.]\w+(?:\.py)?|(?:specdebug|workers)[.\w]+)")
# Every kind of block there is, and what looks after it.
LOOKED_AFTER = {
    ("README.md", ""): "here: scripts exist, commands are run",
    ("docs/api.md", "sh"): "tests/api/test_docs_examples.py",
    ("docs/api.md", "python"): "tests/api/test_docs_examples.py",
    ("docs/client.md", "python"): "tests/api/test_docs_examples.py and tests/client/test_local.py",
    ("docs/cli.md", "sh"): "here: parsed; the build step in tests/api/test_docs_examples.py",
    ("docs/check-json.md", "json"): "here",
    ("docs/operations.md", ""): "tests/test_compose.py; here: management commands exist",
    ("docs/pages.md", ""): "here: options exist",
    ("docs/reference-engine.md", ""): "here: run, and parsed",
    ("docs/reports.md", ""): "a drawing of who calls whom",
}


def blocks(path: Path) -> Iterator[tuple[str, str]]:
    """(language, text) of the fenced blocks of a page."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(), re.M | re.S)


def shell_lines(text: str) -> Iterator[list[str]]:
    """The commands of a block, continuation lines joined and remarks left out."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def docstrings() -> Iterator[tuple[Path, str]]:
    """Those of all modules that are ours."""
    for folder in ("specdebug", "experiments", "workers", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, ast.get_docstring(ast.parse(path.read_text())) or ""


def test_every_block_of_every_page_is_looked_after() -> None:
    found = {
        (str(path.relative_to(ROOT)), language) for path in PAGES for language, _ in blocks(path)
    }
    assert found == set(LOOKED_AFTER)


def commands() -> Iterator[list[str]]:
    """Every `specdebug ...` that a page or a help text shows."""
    for path in PAGES:
        for _, text in blocks(path):
            for words in shell_lines(text):
                if words[0] in ("specdebug", ".venv/bin/specdebug"):
                    yield words[1:]
    for name, _ in COMMANDS:
        examples: str = import_module(f"specdebug.client.commands.{name}_").EXAMPLES
        lines = examples.partition("\nexit code:")[0].removeprefix("examples:\n")
        for words in shell_lines(lines):
            if words[0] == "specdebug":
                yield words[1:]


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_that_is_shown_is_one(words: list[str]) -> None:
    if words[0] in ("run", "sweep") and "--" in words:
        words = words[: words.index("--")]
    for end in (">", "||"):
        words = words[: words.index(end)] if end in words else words
    args = cli._parser(words[0]).parse_args(words)
    assert callable(args.run)


def test_the_commands_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    story = CASES / "01-more-draft-tokens-than-steps"
    (tmp_path / "draft").mkdir()
    shutil.copy(story / "server.log", tmp_path / "server.log")
    configs = sorted(CASES.glob("*/draft/config.json")) or sorted(CASES.glob("*/*config*.json"))
    shutil.copy(configs[0], tmp_path / "draft" / "config.json")
    monkeypatch.chdir(tmp_path)
    (text,) = (t for _, t in blocks(ROOT / "README.md") if "specdebug check" in t)
    check, preflight, explain = (words[1:] for words in shell_lines(text))
    assert cli.main(check) in (0, 1)
    assert "server.log" in capsys.readouterr().out
    full = [*preflight[: preflight.index("...")], "--model-path", "target"]
    assert cli.main(full) == 0
    capsys.readouterr()
    assert cli.main(explain) == 0
    assert capsys.readouterr().out.startswith("draft-tokens-overridden:")


def test_the_scripts_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text()
    for script in re.findall(r"^bin/(\w+)", text, re.M):
        assert (ROOT / "bin" / script).is_file()


def test_the_json_of_the_page_has_the_keys_that_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ((_, text),) = blocks(ROOT / "docs" / "check-json.md")
    shown = json.loads(text)
    folder = CASES / "01-more-draft-tokens-than-steps"
    files = [str(p) for p in folder.iterdir() if p.name != "expect.json"]
    cli.main(["check", "--json", *files])
    printed = json.loads(capsys.readouterr().out)
    assert shown.keys() == printed.keys()
    assert shown["findings"][0].keys() == printed["findings"][0].keys()
    assert shown["inputs"][0].keys() == printed["inputs"][0].keys()
    assert shown["untried"][0].keys() == printed["untried"][0].keys()
    assert set(shown["values"]) - {"accept_len"} <= set(printed["values"])


def test_the_variants_of_the_reference_page_are_written(tmp_path: Path) -> None:
    from specdebug.reference import variants

    (text,) = (t for _, t in blocks(ROOT / "docs" / "reference-engine.md") if "variants" in t)
    for place, words in enumerate(shell_lines(text)):
        assert words[:3] == ["python", "-m", "specdebug.reference.variants"]
        folder = tmp_path / str(place)
        assert variants.main([str(folder) if w == "DIR" else w for w in words[3:]]) == 0
        assert (folder / "config.json").is_file()


def test_the_server_of_the_reference_page_would_start(capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = (t for _, t in blocks(ROOT / "docs" / "reference-engine.md") if "serve" in t)
    (words,) = shell_lines(text)
    module, flags = words[2], words[3:]
    assert module == "specdebug.reference.serve"
    for flag, value in zip(flags[::2], flags[1::2], strict=True):
        assert flag.startswith("--")
        assert not flag.endswith("-path") or (ROOT / value).is_dir()
    assert cli.main(["preflight", "--", "sglang", "serve", *flags]) == 0
    assert "are in force" not in capsys.readouterr().out


def programs() -> Iterator[tuple[str, str]]:
    """(file, option) of every call of a benchmark or module that a page or a docstring shows."""
    texts = [text for path in PAGES for _, text in blocks(path)]
    texts += [doc for _, doc in docstrings()]
    for text in texts:
        for line in text.replace("\\\n", " ").splitlines():
            called = PROGRAM.search(line)
            if called is None or not re.match(r"\s*(\.venv/bin/)?python", line):
                continue
            module = called[1].removesuffix(".py").replace("/", ".")
            for option in re.findall(r"--[a-z][a-z-]+", line[called.end() :]) or [""]:
                yield module, option


@pytest.mark.parametrize(("module", "option"), sorted(set(programs())))
def test_every_program_that_is_shown_has_the_options_that_are_shown(
    module: str, option: str
) -> None:
    path = ROOT / Path(*module.split("."))
    file = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__main__.py"
    assert file.is_file(), module
    if module == "specdebug.reference.serve":
        from specdebug.reference import server_args

        assert not option or option in server_args.parser()._option_string_actions
    elif option:
        assert f'"{option}"' in file.read_text(), f"{module} has no {option}"


def test_no_docstring_has_an_example_that_nothing_runs() -> None:
    """Examples with prompts would need doctest; all of ours are programs or names to import."""
    prompts = [str(path) for path, doc in docstrings() if ">>> " in doc]
    assert prompts == []
    for path, doc in docstrings():
        for line in re.findall(r"^    (from specdebug\S* import .+)$", doc, re.M):
            try:
                exec(line, {})  # noqa: S102 (our own docstrings)
            except ImportError as error:
                pytest.fail(f"{path}: {error}")
