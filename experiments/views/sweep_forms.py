"""What a person enters for a sweep or a comparison; what is worth a run is decided elsewhere."""

from __future__ import annotations

import shlex
from typing import Any, cast

from django import forms

from experiments.models import Run
from experiments.views.forms import OfInvestigation
from specdebug.diagnosis.sweep import MOST_POINTS, grid

AXES = ("steps", "topk", "draft_tokens", "backend", "concurrency")
Value = int | float | str


def _value(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _values(text: str) -> list[Value]:
    return [_value(part.strip()) for part in text.split(",") if part.strip()]


class ValuesField(forms.CharField):
    """Values with commas, 1, 2, 3; nothing: the axis stays as the run has it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=2000, **kwargs)


class SweepForm(OfInvestigation):
    title = forms.CharField(max_length=200, initial="Sweep")
    steps = ValuesField(label="Draft steps", help_text="Values with commas, as 1, 2, 3, 5, 15.")
    topk = ValuesField(label="Top-k", help_text="Left empty, it stays as the run has it.")
    draft_tokens = ValuesField(
        label="Draft tokens", help_text="With top-k 1 the engine sets them itself: steps + 1."
    )
    backend = ValuesField(label="Attention backend")
    concurrency = ValuesField(label="Requests at once")
    more = forms.CharField(
        required=False,
        label="Other flags",
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
        help_text="One a line, as --page-size: 1, 16.",
    )
    listed = forms.CharField(
        required=False,
        label="Or a list",
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
        help_text="One setting a line, as steps=3 draft_tokens=4; then the axes above stay empty.",
    )
    repeats = forms.IntegerField(initial=3, min_value=1, max_value=100)
    stop_early = forms.BooleanField(
        required=False,
        initial=True,
        label="Leave out what cannot win",
        help_text="By the cost account of what has been measured so far.",
    )
    hypothesis = forms.ChoiceField(required=False, help_text="Which hypothesis it tests.")

    def clean_more(self) -> dict[str, list[Value]]:
        found = {}
        for line in self.cleaned_data["more"].splitlines():
            flag, _, values = line.partition(":")
            if line.strip():
                if not flag.strip().startswith("--") or not _values(values):
                    raise forms.ValidationError(f"{line.strip()!r}: write it as --flag: 1, 2.")
                found[flag.strip()] = _values(values)
        return found

    def clean_listed(self) -> list[dict[str, Value]]:
        found = []
        for number, line in enumerate(self.cleaned_data["listed"].splitlines(), 1):
            try:
                pairs = [word.partition("=") for word in shlex.split(line)]
            except ValueError as no:
                raise forms.ValidationError(f"Line {number}: {no}.") from None
            if pairs and not all(name and equals and value for name, equals, value in pairs):
                raise forms.ValidationError(f"Line {number}: write it as steps=3 draft_tokens=4.")
            if pairs:
                found.append({name: _value(value) for name, _, value in pairs})
        if len(found) > MOST_POINTS:
            raise forms.ValidationError(f"At most {MOST_POINTS} settings.")
        return found

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if self.errors:
            return values
        axes = {name: _values(values[name]) for name in AXES if values[name].strip()}
        axes |= values["more"]
        if bool(axes) == bool(values["listed"]):
            raise forms.ValidationError("Give values for one axis or more, or a list: one of both.")
        try:
            values["settings"] = values["listed"] or grid(axes)
        except ValueError as no:
            raise forms.ValidationError(f"{str(no).capitalize()}.") from None
        return values


class TurnsForm(OfInvestigation):
    title = forms.CharField(max_length=200, initial="In turns")
    variants = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        help_text="Whose arguments are measured beside this run's, under this run's workload.",
    )
    rounds = forms.IntegerField(
        initial=3,
        min_value=1,
        max_value=20,
        help_text="Each round starts every engine afresh; the control comes once more at the end.",
    )
    hypothesis = forms.ChoiceField(required=False, help_text="Which hypothesis it tests.")

    def __init__(self, *args: Any, offered: list[Run], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offered = {str(run.pk): run for run in offered}
        field = cast(forms.MultipleChoiceField, self.fields["variants"])
        field.choices = [(pk, str(run)) for pk, run in self.offered.items()]

    def chosen(self) -> dict[str, list[str]]:
        """Name -> arguments of each variant."""
        rows = [self.offered[pk] for pk in self.cleaned_data["variants"]]
        return {f"as {run.label}": list(run.plan["server_args"]) for run in rows}
