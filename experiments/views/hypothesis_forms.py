"""The forms of a hypothesis after it was stated (prediction, check, link, overruling, closing)."""

from __future__ import annotations

import json
from typing import Any, cast

from django import forms

from experiments.models import AppliedCheck, Hypothesis, HypothesisLink, Run, Verdict
from experiments.views.forms import Form, OfInvestigation, PredictionForm


class CheckForm(Form):
    kind = forms.ChoiceField(label="One will know by", choices=AppliedCheck.Kind.choices)
    key = forms.CharField(
        required=False,
        max_length=200,
        label="Argument or text of the line",
        help_text="e.g. speculative_num_draft_tokens",
    )
    expected = forms.CharField(
        required=False,
        max_length=400,
        label="Expected value",
        help_text='JSON, e.g. 16, or for captured layers ["embed", 3, 31]',
    )

    def clean_expected(self) -> Any:
        text = self.cleaned_data["expected"]
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError:
            # A bare word is meant as a text: EAGLE3, not "EAGLE3".
            return text


class LinkForm(OfInvestigation):
    kind = forms.ChoiceField(label="It", choices=HypothesisLink.Kind.choices)
    hypothesis = forms.ChoiceField(label="this one")


class OverruleForm(Form):
    """What a person holds instead of the rules; at least one of the two must differ."""

    applied = forms.ChoiceField(label="The change was", choices=Verdict.Applied.choices)
    outcome = forms.ChoiceField(label="The prediction is", choices=Verdict.Outcome.choices)
    reason = forms.CharField(
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Stands beside the verdict wherever it is shown, with your name.",
    )

    def __init__(self, *args: Any, verdict: Verdict, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verdict = verdict

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        same = (self.verdict.applied, self.verdict.outcome)
        if not self.errors and (values.get("applied"), values.get("outcome")) == same:
            raise forms.ValidationError("This is the verdict that stands already; change one.")
        return values


class ClosingForm(Form):
    """Resolve by the rules, resolve with a signed exception, or abandon."""

    outcome = forms.ChoiceField(
        choices=[("resolved", "resolved"), ("abandoned", "abandoned")], initial="resolved"
    )
    name = forms.CharField(
        required=False,
        max_length=150,
        label="Who signs",
        help_text="The name under an exception or an abandoning.",
    )
    reason = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Needed to abandon, or to resolve against the list. It stays in every report.",
    )


def prediction_form(data: Any, hypothesis: Hypothesis, runs: list[Run]) -> PredictionForm:
    """The form with the newest version filled in."""
    newest = hypothesis.predictions.order_by("-version").first()
    initial: dict[str, Any] = {"baseline": hypothesis.investigation.baseline_id}
    if newest is not None:
        names = ("metric", "direction", "low", "high", "margin")
        initial = {name: getattr(newest, name) for name in names}
        initial["baseline"] = newest.baseline_id
    form = PredictionForm(data, runs=runs, initial=initial)
    cast(forms.ChoiceField, form.fields["baseline"]).required = True
    return form
