"""Prompt files of three kinds, and what bad ones are told."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from workers import prompt_files
from workers.plan import RunEnded
from workers.prompt_files import Prompt, read_prompts


def test_the_shipped_prompts_are_found_by_name() -> None:
    prompts = read_prompts("stdlib").prompts
    assert len(prompts) == 16
    assert len({prompt.id for prompt in prompts}) == 16
    assert all(len(prompt.body["text"]) > 50 for prompt in prompts)


def test_texts_prompts_and_token_ids_are_prompts(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"text": "a"}\n\n{"id": 7, "prompt": "b"}\n{"id": "c", "input_ids": [1, 2]}\n')
    found = read_prompts(str(path))
    assert found.prompts == (
        Prompt("1-ca978112", {"text": "a"}),
        Prompt("7", {"text": "b"}),
        Prompt("c", {"input_ids": [1, 2]}),
    )
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_entries_without_an_id_are_told_apart_by_their_content(tmp_path: Path) -> None:
    one, other = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_text('{"text": "a"}')
    other.write_text('{"text": "b"}')
    names = [read_prompts(str(path)).prompts[0].id for path in (one, other)]
    assert names[0] != names[1]


SHAREGPT = [
    {
        "id": "a",
        "conversations": [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So"}],
    },
    {"id": "b", "conversations": [{"from": "gpt", "value": "Hello"}]},
    {"id": "c", "conversations": []},
    {"conversations": [{"role": "user", "content": "And how?"}]},
]


def test_of_sharegpt_conversations_the_first_question_is_asked(tmp_path: Path) -> None:
    """As one list, and as lines; who begins without a question is left out of a list."""
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps(SHAREGPT))
    found = read_prompts(str(path)).prompts
    assert [prompt.body["text"] for prompt in found] == ["Why?", "And how?"]
    assert found[0].id == "a"
    lines = tmp_path / "sharegpt.jsonl"
    lines.write_text("\n".join(json.dumps(entry) for entry in (SHAREGPT[0], SHAREGPT[3])))
    assert [prompt.body for prompt in read_prompts(str(lines)).prompts] == [p.body for p in found]


def test_an_uploaded_file_is_read_by_its_hash_and_no_other_file_without_a_suffix(
    tmp_path: Path,
) -> None:
    kept = tmp_path / ("0f" * 32)
    kept.write_text('{"text": "a"}')
    assert len(read_prompts(str(kept)).prompts) == 1
    other = tmp_path / "secret_key"
    other.write_text('{"text": "a"}')
    with pytest.raises(RunEnded, match="neither a shipped set"):
        read_prompts(str(other))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "p.jsonl:1: not JSON"),
        ('{"text": "a"}\n{"id": "x"}', 'p.jsonl:2: needs "text"'),
        ('{"text": ""}', 'p.jsonl:1: needs "text"'),
        ('{"input_ids": [true]}', 'p.jsonl:1: needs "text"'),
        ("[]", "there is none in it"),
        ('[{"text": "a"}, 3]', 'p.jsonl, entry 2: needs "text"'),
        ("[" * 100_000, "not JSON"),
        ('{"conversations": [{"from": "gpt", "value": "x"}]}', 'p.jsonl:1: needs "text"'),
        ("\n\n", "there is none in it"),
    ],
)
def test_a_bad_prompt_file_is_refused_with_file_and_line(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(RunEnded) as caught:
        read_prompts(str(path))
    assert reason in caught.value.reason


@pytest.mark.parametrize("name", ["", "no-such-set", "/etc/passwd", "../prompts/stdlib", "."])
def test_what_is_no_prompt_set_is_refused(name: str) -> None:
    with pytest.raises(
        RunEnded, match=r"neither a shipped set \(.*stdlib.*\) nor a .jsonl or .json file"
    ):
        read_prompts(name)


def test_unreadable_and_huge_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"text": "\xff"}')
    with pytest.raises(RunEnded, match="cannot be read"):
        read_prompts(str(path))
    monkeypatch.setattr(prompt_files, "LARGEST_FILE", 3)
    with pytest.raises(RunEnded, match="larger than"):
        read_prompts(str(path))
