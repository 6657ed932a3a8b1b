"""What is taken out of a report, and what must stay."""

from __future__ import annotations

import time

import pytest

from experiments.reports.redaction import Redactor


def clean(text: str) -> str:
    return Redactor().text(text)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("pull with hf_AbCdEfGhIjKlMnOpQr now", "hf_AbCdEfGhIjKlMnOpQr"),
        ("OPENAI_API_KEY=sk-proj-abcdefghij0123456789", "sk-proj-abcdefghij0123456789"),
        ("python serve.py --api-key s3cr3tvalue --tp 8", "s3cr3tvalue"),
        ("python serve.py --api-key=s3cr3tvalue", "s3cr3tvalue"),
        ("--admin-api-key 'two words'", "two words"),
        ("Authorization: Bearer abcdefghijklmnop1234", "abcdefghijklmnop1234"),
        ("HF_TOKEN: verysecretthing", "verysecretthing"),
        ('{"password": "hunter22"}', "hunter22"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
        ("AKIAIOSFODNN7EXAMPLE in the log", "AKIAIOSFODNN7EXAMPLE"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ", "ghp_0123456789abcdefghijABCDEFGHIJ"),
        ("https://ada:pw1234@host.example/x", "ada:pw1234"),
        ("at eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSM", "eyJhbGciOiJIUzI1"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE, the rest cut off", "MIIE"),
        ("-----BEGIN PRIVATE KEY-----" * 400 + "MIIE", "MIIE"),
        ("/home/ada/models/x", "ada"),
        ("/Users/Ada.Lovelace/x", "Ada.Lovelace"),
        (r"C:\Users\ada\x", "ada"),
        ("listening on 10.11.12.13:30000", "10.11.12.13"),
        ("peer fe80::1ff:fe23:4567:890a is up", "fe80::1ff:fe23:4567:890a"),
        ("ask ada@example.org", "ada@example.org"),
    ],
)
def test_what_must_not_leave_is_taken_out(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in clean(text)


@pytest.mark.parametrize(
    "text",
    [
        "speculative_num_draft_tokens=16 and max_new_tokens: 128",
        "the bonus token: included, 1.6 tokens a step, tokenizer=fast",
        "--tokenizer-path moonshotai/Kimi-K2.5 --skip-tokenizer-init",
        "SGLang 0.5.10.1, torch==2.13.0.1, version 12.8.1.1",
        "http://127.0.0.1:30000/generate and http://0.0.0.0:8000",
        "accept len: 1.60, accept rate: 0.80, step 12:34:56",
        "std::vector and a::b() and ::1",
        "a secret is no word to fear, nor is a password policy",
        "the api key was rejected by the server",
        "API_KEY=${API_KEY} HF_TOKEN=<yours> password=None",
        "task-sk-learn and risk-free-and-long-enough-words",
        "/root/models and /data/models and /homework/x",
        "sha256 0a6b500a6b500a6b500a6b500a6b500a6b500a6b500a6b500a6b500a6b500a6b",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert clean(text) == text


def test_one_thing_has_one_name_throughout() -> None:
    redactor = Redactor()
    body = redactor.document({"runs": ["/home/ada/a", "/home/eve/b"], "files": ["/home/ada/c"]})
    assert body["runs"] == ["/home/[user 1]/a", "/home/[user 2]/b"]
    assert body["files"] == ["/home/[user 1]/c"]
    ada = redactor.found[0]
    assert (ada.count, ada.where, ada.name) == (2, ["runs", "files"], "user name in a path")


def test_a_secret_name_hides_its_value_in_a_mapping() -> None:
    body = Redactor().document({"env": {"HF_TOKEN": "plainwords", "NUM_TOKENS": "plainwords"}})
    assert body["env"] == {"HF_TOKEN": "[token 1]", "NUM_TOKENS": "plainwords"}


def test_a_secret_is_shown_for_review_without_giving_it_away() -> None:
    redactor = Redactor()
    redactor.text("hf_AbCdEfGhIjKlMnOpQr")
    shown = redactor.found[0].shown
    assert "21 characters" in shown
    assert "EfGhIj" not in shown


def test_only_what_a_person_let_through_stays() -> None:
    first = Redactor()
    first.text("10.1.2.3 and 10.1.2.4")
    kept = frozenset({first.found[0].key})
    again = Redactor(kept)
    assert again.text("10.1.2.3 and 10.1.2.4") == "10.1.2.3 and [address 2]"
    assert [r.kept for r in again.found] == [True, False]


def test_what_is_clean_stays_as_it_is_when_cleaned_again() -> None:
    once = clean("--api-key abcdef0123 from 10.1.2.3 in /home/ada/x, mail a@b.org")
    assert clean(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "a-" * 150_000,
        "1." * 150_000,
        ":" * 200_000,
        "x@" * 100_000,
        "/home/" * 50_000,
        "api_key=" * 30_000,
        "-----BEGIN PRIVATE KEY-----" * 10_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    begun = time.process_time()
    clean(text)
    assert time.process_time() - begun < 10
