"""The pages' forms: what a person may enter. The record's rules are kept by `lifecycle`."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Sequence
from typing import IO, Any, cast

from django import forms

from experiments.lifecycle.hypotheses import METRICS
from experiments.lifecycle.runs import CLIENTS, ENGINES
from experiments.models import AppliedCheck, Event, Hypothesis, Investigation, Prediction, Run
from experiments.reports.terms import term

METRIC_CHOICES = [(key, f"{term(key).name}, {term(key).unit}") for key in METRICS]


class Form(forms.Form):
    """A form whose fields are shown by templates/_field.html, without colons and without ids."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""


class MarkdownField(forms.CharField):
    """An optional text in Markdown; templates/_field.html shows under it how it will stand."""

    previewed = True

    def __init__(self, *, rows: int = 3, help_text: str = "Markdown.") -> None:
        widget = forms.Textarea(attrs={"rows": rows})
        super().__init__(required=False, widget=widget, help_text=help_text)


class ReasonForm(Form):
    reason = forms.CharField(widget=forms.Textarea(attrs={"rows": 2}), max_length=2000)


class InvestigationForm(Form):
    title = forms.CharField(max_length=200)
    question = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What is to be found out, in one or two sentences.",
    )
    context = MarkdownField(rows=5, help_text="Markdown: target, draft, hardware, who and where.")
    goal_metric = forms.ChoiceField(label="Goal: figure", choices=METRIC_CHOICES)
    goal_kind = forms.ChoiceField(label="Goal: must be", choices=Investigation.Goal.choices)
    goal_value = forms.FloatField(
        label="Goal: factor or figure",
        initial=1.0,
        min_value=0.0,
        help_text="1.0 means: at least as fast as the baseline.",
    )


class OfInvestigation(Form):
    """A form with choices among the runs or hypotheses of one investigation."""

    def __init__(
        self,
        *args: Any,
        runs: list[Run] | None = None,
        hypotheses: list[Hypothesis] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.rows: dict[str, dict[str, Any]] = {
            "run": {str(row.pk): row for row in runs or []},
            "hypothesis": {str(row.pk): row for row in hypotheses or []},
        }
        for name, kind in (("baseline", "run"), ("run", "run"), ("hypothesis", "hypothesis")):
            if name in self.fields:
                field = cast(forms.ChoiceField, self.fields[name])
                rows = [(pk, str(row)) for pk, row in self.rows[kind].items()]
                field.choices = rows if field.required else [("", "none"), *rows]

    def row(self, name: str) -> Any:
        """The chosen row, None where none was chosen."""
        kind = "hypothesis" if name == "hypothesis" else "run"
        return self.rows[kind].get(self.cleaned_data.get(name) or "")


class EditForm(InvestigationForm, OfInvestigation):
    baseline = forms.ChoiceField(
        required=False, help_text="The run without speculation that the goal compares with."
    )


class EventForm(OfInvestigation):
    kind = forms.ChoiceField(choices=Event.Kind.choices)
    title = forms.CharField(max_length=200, label="What happened")
    text = MarkdownField()
    after = forms.ChoiceField(
        required=False, label="Place", help_text="Where on the timeline it belongs."
    )
    run = forms.ChoiceField(required=False)
    hypothesis = forms.ChoiceField(required=False)

    def __init__(self, *args: Any, places: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(forms.ChoiceField, self.fields["after"])
        field.choices = [("", "at the end"), *places]


class PredictionForm(OfInvestigation):
    metric = forms.ChoiceField(label="Figure", choices=METRIC_CHOICES)
    direction = forms.ChoiceField(label="will", choices=Prediction.Direction.choices)
    baseline = forms.ChoiceField(label="compared with")
    low = forms.FloatField(
        required=False, label="from, × that run", help_text="Only for an interval."
    )
    high = forms.FloatField(required=False, label="to, × that run")
    margin = forms.FloatField(
        initial=0.02,
        min_value=0.0,
        max_value=0.99,
        help_text="Smallest change that matters; 0.02 is 2 %.",
    )


class HypothesisForm(PredictionForm):
    metric = forms.ChoiceField(label="Prediction: figure", choices=METRIC_CHOICES)
    field_order = ("claim", "mechanism")  # before the prediction
    claim = forms.CharField(max_length=400, help_text="One sentence that can turn out wrong.")
    mechanism = MarkdownField(help_text="Why it would be so. Markdown.")
    check_kind = forms.ChoiceField(
        required=False,
        label="How one will know it was applied",
        choices=[("", "no check"), *AppliedCheck.Kind.choices],
    )
    check_key = forms.CharField(
        required=False,
        max_length=200,
        label="Argument or text",
        help_text="e.g. speculative_num_draft_tokens",
    )
    check_expected = forms.CharField(
        required=False, max_length=400, label="Expected value", help_text="JSON, e.g. 16"
    )

    def clean_check_expected(self) -> Any:
        text = self.cleaned_data["check_expected"]
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError:
            # A bare word is meant as a text: EAGLE3, not "EAGLE3".
            return text


class FileForm(Form):
    """A file, or the same as pasted text."""

    file = forms.FileField(
        required=False,
        allow_empty_file=False,
        help_text="A server log, a config.json, benchmark output, a /server_info answer: its kind "
        "is told from its content.",
    )
    text = forms.CharField(
        required=False,
        strip=False,
        label="Or pasted text",
        widget=forms.Textarea(attrs={"rows": 5, "class": "mono", "spellcheck": "false"}),
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors and bool(values.get("file")) == bool(values.get("text", "").strip()):
            raise forms.ValidationError("Choose a file or paste text: one of the two.")
        return values

    def given(self) -> tuple[str, IO[bytes]]:
        """The name and the bytes that came."""
        file = self.cleaned_data["file"]
        if file:
            return file.name, file
        return "pasted.txt", io.BytesIO(self.cleaned_data["text"].encode())


class RunForm(OfInvestigation):
    title = forms.CharField(max_length=200, help_text="What this run changes.")
    engine = forms.ChoiceField(choices=[(name, name) for name in ENGINES])
    server_args = forms.CharField(
        required=False,
        label="Server arguments",
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
        help_text="The engine's own flags, as on a command line; host and port are chosen here.",
    )
    hypothesis = forms.ChoiceField(required=False, help_text="Which hypothesis it tests.")
    baseline = forms.ChoiceField(required=False, help_text="The run it is compared with.")
    prompts_per_repeat = forms.IntegerField(initial=8, min_value=1, max_value=10000)
    max_new_tokens = forms.IntegerField(initial=96, min_value=1, max_value=65536)
    concurrency = forms.IntegerField(initial=1, min_value=1, max_value=4096)
    repeats = forms.IntegerField(initial=3, min_value=1, max_value=100)
    prompts = forms.CharField(
        required=False,
        initial="stdlib",
        max_length=500,
        help_text="The shipped set, file: and the SHA-256 of an uploaded JSONL or ShareGPT file, "
        "or a file where the operator allows it.",
    )
    request_rate = forms.FloatField(
        required=False,
        min_value=0.001,
        label="Requests per second",
        help_text="Poisson arrivals; empty: as fast as the requests at once allow.",
    )
    client = forms.ChoiceField(
        required=False,
        choices=[(name, name) for name in CLIENTS],
        help_text="bench-serving is SGLang's own: no verify counts per request.",
    )
    strict = forms.BooleanField(
        required=False,
        help_text="Measure nothing unless every argument is in force as asked.",
    )
    worker = forms.ChoiceField(
        required=False,
        label="Worker",
        help_text="The one that alone may measure it; what is compared belongs on one machine.",
    )

    def __init__(self, *args: Any, workers: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(forms.ChoiceField, self.fields["worker"])
        field.choices = [("", "any that can"), *((name, name) for name in workers)]

    def clean_server_args(self) -> list[str]:
        text = self.cleaned_data["server_args"]
        try:
            return shlex.split(text.replace("\\\n", " ").replace("\\\r\n", " "))
        except ValueError as no:
            raise forms.ValidationError(f"Not a command line: {no}.") from None

    def workload(self) -> dict[str, Any]:
        """What the form asks of the workload."""
        names = ("prompts_per_repeat", "max_new_tokens", "concurrency", "repeats")
        given = {name: self.cleaned_data[name] for name in names}
        given["request_rate"] = self.cleaned_data["request_rate"]
        optional = ("prompts", "client")
        return given | {
            name: self.cleaned_data[name] for name in optional if self.cleaned_data[name]
        }


class RecordForm(OfInvestigation):
    """A run that was measured elsewhere, entered from notes or a write-up."""

    title = forms.CharField(max_length=200, help_text="What this run changed.")
    tok_s = forms.CharField(
        label="Throughput, tok/s",
        max_length=2000,
        help_text="Output tokens per second of each repeat, with spaces: 56.8 57.1 56.2.",
    )
    accept_len = forms.CharField(
        required=False,
        max_length=2000,
        label="Accept length, tok/step",
        help_text="Bonus token included; one figure for all repeats, or one for each.",
    )
    server_args = RunForm.base_fields["server_args"]
    engine_release = forms.CharField(
        required=False, max_length=40, label="Engine's release", help_text="As 0.5.9."
    )
    concurrency = forms.IntegerField(
        required=False, min_value=1, max_value=4096, help_text="Requests at once, if known."
    )
    host = forms.CharField(required=False, max_length=200, help_text="Machine and GPUs.")
    hypothesis = forms.ChoiceField(required=False, help_text="Which hypothesis it tests.")
    baseline = forms.ChoiceField(required=False, help_text="The run it is compared with.")
    after = forms.ChoiceField(
        required=False, label="Place", help_text="Where on the timeline it belongs."
    )
    note = MarkdownField()

    def __init__(self, *args: Any, places: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(forms.ChoiceField, self.fields["after"])
        field.choices = [("", "at the end"), *places]

    clean_server_args = RunForm.clean_server_args

    def _figures(self, name: str) -> list[float]:
        words = self.cleaned_data[name].replace(";", " ").split()
        found = []
        for word in words:
            try:
                found.append(float(word))
            except ValueError:
                raise forms.ValidationError(f"{word!r} is no number; write 56.8 57.1.") from None
        return found

    def clean_tok_s(self) -> list[float]:
        found = self._figures("tok_s")
        if not found:
            raise forms.ValidationError("Give at least one figure.")
        return found

    def clean_accept_len(self) -> list[float]:
        return self._figures("accept_len")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        speeds, lengths = values.get("tok_s"), values.get("accept_len")
        if speeds and lengths and len(lengths) not in (1, len(speeds)):
            self.add_error(
                "accept_len", f"{len(lengths)} figures for {len(speeds)} repeats: one, or as many."
            )
        return values

    def repeats(self) -> list[tuple[float, float | None]]:
        """(tok/s, accept length or None) of each repeat."""
        speeds, lengths = self.cleaned_data["tok_s"], self.cleaned_data["accept_len"]
        if len(lengths) == 1:
            lengths = lengths * len(speeds)
        return list(zip(speeds, lengths or [None] * len(speeds), strict=True))


class NoteForm(Form):
    """A run's title and note, or another text in Markdown."""

    title = forms.CharField(max_length=200)
    note = MarkdownField(rows=8)
