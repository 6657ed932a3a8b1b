"""What a user can set, run or see is described: settings, commands, finding codes."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
VARIABLE = re.compile(r"\b(SPECDEBUG_[A-Z_]+|DATABASE_URL|CELERY_BROKER_URL)\b")


def sources(*patterns: str) -> list[Path]:
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    assert found
    return found


def test_every_environment_variable_is_described() -> None:
    used = set()
    for path in sources("specdebug/**/*.py", "experiments/**/*.py", "workers/**/*.py", "bin/*"):
        used |= set(VARIABLE.findall(path.read_text()))
    described = set(VARIABLE.findall((DOCS / "operations.md").read_text()))
    assert used - described == set()
    in_tests = {
        name for path in sources("tests/**/*.py") for name in VARIABLE.findall(path.read_text())
    }
    assert described - used - in_tests == set()


def test_every_finding_code_is_described() -> None:
    from specdebug.diagnosis.findings import CATALOGUE

    text = (DOCS / "findings.md").read_text()
    missing = [code for code in CATALOGUE if f"`{code}`" not in text]
    assert missing == []


def test_every_management_command_is_described() -> None:
    text = (DOCS / "operations.md").read_text()
    commands = [
        path.stem
        for path in sources("experiments/management/commands/*.py")
        if path.stem != "__init__"
    ]
    assert [name for name in commands if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", ["start", "test", "setup", "lock", "setup-sglang-cpu"])
def test_every_script_is_executable_and_parses(name: str) -> None:
    script = ROOT / "bin" / name
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)} -> {target}"
        for path in [*ROOT.glob("*.md"), *DOCS.glob("*.md")]
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text())
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert broken == []
