"""Our rules and readers beside the shared facts and captures, where those are at hand."""

import os
from pathlib import Path

import pytest
import yaml

from specdebug.sglang.logs import read_log
from specdebug.sglang.recognise import recognise
from specdebug.sglang.releases import KNOWN, Release
from specdebug.sglang.rules import table

SHARED = Path(os.environ.get("SPECDEBUG_SHARED") or Path(__file__).parents[3] / "shared")
pytestmark = pytest.mark.skipif(
    not (SHARED / "facts").is_dir(),
    reason="the shared facts are not here: set SPECDEBUG_SHARED to their folder",
)


def facts() -> dict[str, dict[str, object]]:
    data = yaml.safe_load((SHARED / "facts" / "sglang_rules.yaml").read_text())
    assert [str(release) for release in KNOWN] == data["versions_read"]
    return {rule["id"]: rule for rule in data["rules"]}


def test_every_shared_rule_is_in_the_table_with_its_releases() -> None:
    ours = {rule.id: rule for rule in table().rules}
    assert facts().keys() - ours.keys() == set()
    # Up to 0.4.6 the rule for every architecture says the same.
    narrowed = {"defaults_fallback_548"}
    for name, rule in facts().items():
        if "since" not in rule or name in narrowed:
            continue
        assert ours[name].since == Release.parse(str(rule["since"])), name
        until = rule["until"]
        assert ours[name].until == (Release.parse(str(until)) if until else None), name


def test_every_capture_is_recognised_and_read_without_one_unread_decode_line() -> None:
    logs = sorted((SHARED / "samples").glob("*/*.log"))
    assert logs
    for path in logs:
        raw = path.read_bytes()
        assert recognise(path.name, raw).kind == "server-log", path.name
        log = read_log(path)
        assert log.unread_decode_lines == 0, path.name
        found = sum(boot.decode_count for boot in log.boots)
        assert found == raw.count(b"Decode batch"), path.name
        assert len(log.boots) == 1, path.name


def test_every_case_is_recognised_by_content() -> None:
    kinds = {
        "command.txt": {"command"},
        "server.log": {"server-log", "vllm-log"},
        "bench.txt": {"bench"},
        "bench.jsonl": {"bench"},
        "draft_config.json": {"draft-config"},
        "target_config.json": {"target-config"},
        "header.json": {"safetensors-header"},
        "notes.json": {"notes"},
        "server_info.json": {"server-info"},
    }
    for path in sorted((SHARED / "cases").glob("*/*")):
        if path.name in kinds:
            assert recognise("x", path.read_bytes()).kind in kinds[path.name], path
