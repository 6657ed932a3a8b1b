"""Shapes that several resources share: kinds of fields, and what is answered of a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from experiments.lifecycle.hypotheses import METRICS

DEEPEST = 20
LARGEST_JSON = 200_000


class Shape(serializers.Serializer):
    """A JSON object; unknown members of a request are refused, so that a typo is not lost."""

    default_error_messages = {"invalid": "A JSON object is required."}

    def to_internal_value(self, data: Any) -> Any:
        value = super().to_internal_value(data)
        if isinstance(data, dict) and (unknown := data.keys() - self._known):
            known = ", ".join(sorted(self._known)) or "nothing"
            raise serializers.ValidationError(
                {
                    name: [f"is not known here; known: {known}"]
                    for name in sorted(str(name)[:80] for name in unknown)
                }
            )
        return value

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(name for name, field in self.fields.items() if not field.read_only)


class Told(serializers.Serializer):
    """An answer that is given often and in long lists: where its fields read and how they show it
    is worked out once, not for each row. A field may be without a default, be a method, or have
    None as its default for where the row that it leads to is missing."""

    def to_representation(self, instance: Any) -> dict[str, Any]:
        return {name: read(instance) for name, read in self._reads}

    @cached_property
    def _reads(self) -> list[tuple[str, Callable[[Any], Any]]]:
        fields = self.fields.items()
        return [(name, self._read(field)) for name, field in fields if not field.write_only]

    def _read(self, field: serializers.Field) -> Callable[[Any], Any]:
        if isinstance(field, serializers.SerializerMethodField):
            method: Callable[[Any], Any] = getattr(self, str(field.method_name))
            return method
        get = attrgetter(".".join(field.source_attrs))
        if isinstance(field, serializers.DateTimeField):
            return lambda row: _moment(get(row))
        if type(field) not in _AS_THEY_ARE:
            raise TypeError(f"{field.field_name}: {type(field).__name__} is not told as it is kept")
        if field.default is None:
            return lambda row: _or_none(get, row)
        return get


# What a field of these kinds shows is what the row has.
_AS_THEY_ARE = (
    serializers.BooleanField,
    serializers.CharField,
    serializers.ChoiceField,
    serializers.FloatField,
    serializers.IntegerField,
)


def _moment(value: datetime | None) -> str | None:
    """As the framework's own DateTimeField has it; times of the record are in UTC."""
    return None if value is None else value.isoformat().replace("+00:00", "Z")


def _or_none(get: Callable[[Any], Any], row: Any) -> Any:
    try:
        return get(row)
    except AttributeError:
        return None


class Number(serializers.FloatField):
    """A finite number; texts are not taken for numbers."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise serializers.ValidationError("A number is required.")
        try:
            value = float(data)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise serializers.ValidationError("The number is too large.")
        bounded: float = self.run_validators(value) or value
        return bounded


class Whole(serializers.IntegerField):
    """An integer; texts, booleans and 1.5 are not taken for one."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not (
            isinstance(data, int) or (isinstance(data, float) and data.is_integer())
        ):
            raise serializers.ValidationError("A whole number is required.")
        return int(data)


class Flag(serializers.BooleanField):
    """true or false and nothing that stands for them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("true or false is required.")
        return data


class Text(serializers.CharField):
    """A text; numbers are not taken for one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("A text is required.")
        text: str = super().to_internal_value(data)
        return text


@extend_schema_field({"type": "object", "additionalProperties": {}})
class JsonObject(serializers.JSONField):
    """An object of any members, as far as every database keeps them."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("A JSON object is required.")
        check_json(data)
        return data


@extend_schema_field({})
class JsonValue(serializers.JSONField):
    """Any JSON value, as far as every database keeps it."""

    def to_internal_value(self, data: Any) -> Any:
        check_json(data)
        return data


def check_json(data: Any) -> None:
    """Raises ValidationError for what cannot be kept or answered: zero bytes, half characters,
    numbers that no double holds, nesting beyond reason."""
    pending: list[tuple[Any, int]] = [(data, 0)]
    size = 0
    while pending:
        value, depth = pending.pop()
        size += 1
        if depth > DEEPEST:
            raise serializers.ValidationError(f"Nested deeper than {DEEPEST}.")
        if isinstance(value, dict):
            for name, inner in value.items():
                pending += [(name, depth + 1), (inner, depth + 1)]
        elif isinstance(value, list):
            pending += [(inner, depth + 1) for inner in value]
        elif isinstance(value, str):
            size += len(value)
            if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
                raise serializers.ValidationError("A text holds a zero byte or half a character.")
        elif isinstance(value, int) and abs(value) >= 1 << 63:
            raise serializers.ValidationError(f"The number {str(value)[:30]} is too large.")
        elif isinstance(value, float) and not math.isfinite(value):
            raise serializers.ValidationError("A number is too large.")
        if size > LARGEST_JSON:
            raise serializers.ValidationError("The object is too large; attach it as a file.")


class Label(serializers.RegexField):
    """The label of a run (R3) or of a hypothesis (H2) within the investigation."""

    def __init__(self, letter: str, **options: Any) -> None:
        self.letter = letter
        super().__init__(rf"^{letter}[0-9]{{1,9}}$", **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError(f"A label like {self.letter}1 is required.")
        text: str = super().to_internal_value(data)
        return text


def metric_field(**options: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=[(name, name) for name in METRICS], **options)


class Fields(serializers.Serializer):
    """One complaint: the dotted path of the field, empty for the whole, and the reason."""

    field = serializers.CharField(allow_blank=True)
    reason = serializers.CharField()


class Problem(serializers.Serializer):
    """Why a request was not answered as asked (RFC 9457)."""

    type = serializers.CharField(help_text="urn:specdebug:problem:..., docs/api.md lists them")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(allow_blank=True)
    errors = Fields(many=True, required=False)
    obstacles = serializers.ListField(child=serializers.CharField(), required=False)
    expected = serializers.IntegerField(required=False)


def page_of(item: type[serializers.Serializer], name: str) -> type[serializers.Serializer]:
    """The shape of a piece of a list."""
    return type(
        name,
        (serializers.Serializer,),
        {
            "__doc__": "A piece of a list; `next`: the cursor of the next piece, null at the end.",
            "items": item(many=True),
            "next": serializers.CharField(allow_null=True),
        },
    )
