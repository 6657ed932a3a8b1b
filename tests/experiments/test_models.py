"""The rows' shape: migrations in step with the models, rules that the database itself keeps."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from experiments.models import (
    Blob,
    Evidence,
    Finding,
    Hypothesis,
    Investigation,
    Repeat,
    Run,
    Verdict,
)

pytestmark = pytest.mark.django_db


def test_the_migrations_are_in_step_with_the_models() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.fixture
def run(investigation: Investigation) -> Run:
    return Run.objects.create(investigation=investigation, number=0, title="r", position=1)


def test_a_number_is_given_once(investigation: Investigation, run: Run) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.create(investigation=investigation, number=0, title="again", position=2)


def test_a_repeat_is_counted_once(run: Run) -> None:
    Repeat.objects.create(run=run, index=0, tok_s=1.0)
    with pytest.raises(IntegrityError), transaction.atomic():
        Repeat.objects.create(run=run, index=0, tok_s=2.0)


def test_one_fault_has_one_life(investigation: Investigation) -> None:
    values = {"investigation": investigation, "code": "dead-draft", "severity": "high"}
    Finding.objects.create(**values, confidence="certain", statement="s")
    with pytest.raises(IntegrityError), transaction.atomic():
        Finding.objects.create(**values, confidence="likely", statement="t")


def test_one_verdict_is_in_force_and_any_number_are_history(
    investigation: Investigation, run: Run
) -> None:
    hypothesis = Hypothesis.objects.create(
        investigation=investigation, number=1, claim="c", position=2
    )
    values = {"hypothesis": hypothesis, "run": run, "applied": "yes", "outcome": "refuted"}
    for _ in range(3):
        Verdict.objects.create(**values, in_force=False)
    Verdict.objects.create(**values)
    with pytest.raises(IntegrityError), transaction.atomic():
        Verdict.objects.create(**values)


def test_a_loose_file_is_kept_once_although_it_belongs_to_no_run(
    investigation: Investigation,
) -> None:
    blob = Blob.objects.create(sha256="0" * 64, size=1)
    values = {"investigation": investigation, "blob": blob, "name": "a", "kind": "text"}
    Evidence.objects.create(**values)
    with pytest.raises(IntegrityError), transaction.atomic():
        Evidence.objects.create(**values)


def test_the_examples_are_there_once_and_others_need_no_source() -> None:
    for slug in ("a", "b"):
        Investigation.objects.create(slug=slug, title=slug, question="q")
    Investigation.objects.create(slug="c", title="c", question="q", source="story:x")
    with pytest.raises(IntegrityError), transaction.atomic():
        Investigation.objects.create(slug="d", title="d", question="q", source="story:x")
