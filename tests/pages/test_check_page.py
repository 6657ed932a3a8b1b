"""The check as a page: what it finds, what it refuses, and who may use it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from experiments.models import Evidence
from experiments.views import check

COMMAND = (
    "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path d --speculative-num-steps 1 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 16"
)
pytestmark = pytest.mark.django_db


def test_a_pasted_command_is_read_and_its_fault_named(browser: Client) -> None:
    page = browser.post("/check/", {"text": COMMAND})
    assert page.status_code == 200
    text = page.content.decode()
    assert "draft-tokens-overridden" in text
    assert "<h1>1 fault found</h1>" in text or "faults found</h1>" in text


def test_a_command_without_a_fault_is_not_accused(browser: Client) -> None:
    fair = COMMAND.replace("--speculative-num-draft-tokens 16", "--speculative-num-draft-tokens 2")
    text = browser.post("/check/", {"text": fair}).content.decode()
    assert "draft-tokens-overridden" not in text
    assert "No fault found" in text


def test_files_are_read_together_and_nothing_is_kept(browser: Client) -> None:
    files = [
        SimpleUploadedFile("run.sh", COMMAND.encode()),
        SimpleUploadedFile("broken.bin", b"\x00\x01\x02" * 200),
    ]
    text = browser.post("/check/", {"files": files}).content.decode()
    assert "run.sh" in text
    assert "broken.bin</b> could not be used" in text
    assert "draft-tokens-overridden" in text
    assert not Evidence.objects.exists()


def test_markup_in_a_paste_stays_text(browser: Client) -> None:
    evil = COMMAND + " --served-model-name '<script>alert(1)</script>'"
    page = browser.post("/check/", {"text": evil}).content
    assert b"<script>alert" not in page


def test_nothing_sent_is_said_beside_the_form(browser: Client) -> None:
    page = browser.post("/check/", {"text": "  "})
    assert page.status_code == 200
    assert b"Paste something or choose a file" in page.content


def test_what_is_too_large_is_refused_before_it_is_read(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "MOST_BYTES", 1000)
    page = browser.post("/check/", {"text": "x" * 2000})
    assert page.status_code == 413
    assert b"send less" in page.content


def test_a_paste_beyond_what_forms_may_hold_is_sent_to_the_files(
    browser: Client, settings: Any
) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    page = browser.post("/check/", {"text": "x" * 5000})
    assert page.status_code == 413
    assert b"send it as a file" in page.content


def test_a_reader_without_an_account_is_let_in_only_where_the_operator_says_so(
    settings: Any,
) -> None:
    assert Client().get("/check/")["Location"] == "/login/?next=/check/"
    settings.PUBLIC_CHECK = True
    page = Client().post("/check/", {"text": COMMAND})
    assert b"draft-tokens-overridden" in page.content
    assert b"Search everything" not in page.content


def test_somebody_unknown_sends_nothing_packed(settings: Any, browser: Client) -> None:
    settings.PUBLIC_CHECK = True
    import gzip

    packed = SimpleUploadedFile("server.log.gz", gzip.compress(COMMAND.encode()))
    assert b"Send compressed files unpacked" in Client().post("/check/", {"files": packed}).content
    packed.seek(0)
    assert b"Send compressed files unpacked" not in (
        browser.post("/check/", {"files": packed}).content
    )


def test_a_form_without_its_token_is_refused() -> None:
    strict = Client(enforce_csrf_checks=True)
    with pytest.MonkeyPatch.context() as patch:
        from django.conf import settings

        patch.setattr(settings, "PUBLIC_CHECK", True)
        assert strict.post("/check/", {"text": COMMAND}).status_code == 403


def test_a_third_check_at_once_waits(browser: Client) -> None:
    assert check._ROOM.acquire(blocking=False)
    assert check._ROOM.acquire(blocking=False)
    try:
        assert browser.post("/check/", {"text": COMMAND}).status_code == 503
    finally:
        check._ROOM.release()
        check._ROOM.release()
    assert browser.post("/check/", {"text": COMMAND}).status_code == 200
