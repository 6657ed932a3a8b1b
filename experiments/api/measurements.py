"""Points and log of a run that a program measures, sent in numbered pieces."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from experiments import streams
from experiments.api import find, problems, schema
from experiments.api.endpoint import Endpoint, OpenFile, file_answer
from experiments.models import PointStream
from experiments.queries.pages import RUN_LOG
from experiments.store import path_of

TAG = ["measurements"]
LARGEST_PIECE = 4 << 20
OFFSET = "Upload-Offset"
_ROW = {
    "type": "array",
    "minItems": 3,
    "maxItems": 3,
    "items": {},
    "description": "[step, seconds since the epoch, {metric: value}]",
}


class Rows(serializers.Serializer):
    """Rows of one sender, numbered from `first_row`; those that were taken before are skipped."""

    writer = serializers.CharField(max_length=64, help_text="name of this sender, e.g. a UUID")
    first_row = serializers.IntegerField(min_value=0)
    rows = serializers.ListField(child=serializers.JSONField(), max_length=streams.MOST_ROWS)


ROWS_SCHEMA = {
    "type": "object",
    "required": ["writer", "first_row", "rows"],
    "additionalProperties": False,
    "properties": {
        "writer": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$"},
        "first_row": {"type": "integer", "minimum": 0},
        "rows": {"type": "array", "maxItems": streams.MOST_ROWS, "items": _ROW},
    },
}


class Taken(serializers.Serializer):
    """next_row: the first row not taken yet. points: how many were new."""

    next_row = serializers.IntegerField()
    points = serializers.IntegerField()


class Series(serializers.Serializer):
    """The points of one metric in the order of arrival."""

    metric = serializers.CharField()
    steps = serializers.ListField(child=serializers.IntegerField())
    times = serializers.ListField(child=serializers.FloatField())
    values = serializers.ListField(child=serializers.FloatField())
    total = serializers.IntegerField(help_text="points kept; more than shown where thinned")


class LogSize(serializers.Serializer):
    offset = serializers.IntegerField(help_text="bytes of the log taken so far")


class Points(Endpoint):
    asks = {"POST": "worker"}
    repeatable = False

    @extend_schema(
        operation_id="sendPoints",
        request={"application/json": ROWS_SCHEMA},
        responses=Taken,
        tags=TAG,
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Send rows of points, up to 10,000 rows and 20,000 points a call; 409 with `expected`
        where rows before them are missing."""
        data = request.data
        if not isinstance(data, dict) or data.keys() != {"writer", "first_row", "rows"}:
            raise exceptions.ValidationError(
                {"": ["an object with writer, first_row and rows is required"]}
            )
        writer, first, rows = data["writer"], data["first_row"], data["rows"]
        if not isinstance(writer, str):
            raise exceptions.ValidationError({"writer": ["a text is required"]})
        if type(first) is not int or not 0 <= first < 1 << 62:
            raise exceptions.ValidationError({"first_row": ["a whole number is required"]})
        if not isinstance(rows, list):
            raise exceptions.ValidationError({"rows": ["a list is required"]})
        taken = streams.take_rows(
            find.measured(slug, number), writer=writer, first_row=first, rows=rows
        )
        return Response({"next_row": taken.next_row, "points": taken.points})

    @extend_schema(
        operation_id="readPoints",
        parameters=[
            OpenApiParameter("metric", str, required=True),
            OpenApiParameter(
                "most",
                {"type": "integer", "minimum": 1, "maximum": 100_000},
                description="Points at most; above that every n-th one (default 10,000).",
            ),
        ],
        responses=Series,
        tags=TAG,
    )
    def get(self, request: Any, slug: str, number: int) -> Response:
        """The points of one metric."""
        name = request.GET.get("metric", "")
        if not streams.METRIC_NAME.fullmatch(name):
            raise exceptions.ValidationError({"metric": ["name a metric, as metric=tok_s"]})
        text = request.GET.get("most", "10000")
        if not (text.isascii() and text.isdigit() and len(text) < 7 and 1 <= int(text) <= 100_000):
            raise exceptions.ValidationError({"most": ["must be a number from 1 to 100000"]})
        found = list(streams.points(find.measured(slug, number), name))
        stride = max(1, -(-len(found) // int(text)))
        shown = found[::stride]
        return Response(
            {
                "metric": name,
                "steps": [p[0] for p in shown],
                "times": [p[1] for p in shown],
                "values": [p[2] for p in shown],
                "total": len(found),
            }
        )


class Progress(Endpoint):
    asks = {"GET": "read or worker"}

    @extend_schema(
        operation_id="readProgress",
        responses=Taken,
        tags=TAG,
        parameters=[OpenApiParameter("writer", str, required=True)],
    )
    def get(self, request: Any, slug: str, number: int) -> Response:
        """How many rows of a sender were taken; where it goes on after an interruption."""
        writer = request.GET.get("writer", "")
        if not streams.WRITER_NAME.fullmatch(writer):
            raise exceptions.ValidationError({"writer": ["name the sender, as writer=..."]})
        row = PointStream.objects.filter(run=find.measured(slug, number), writer=writer).first()
        return Response({"next_row": row.next_row if row else 0, "points": 0})


class Octets(BaseParser):
    """Bytes as they are, up to one piece."""

    media_type = "application/octet-stream"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> bytes:
        data: bytes = stream.read(LARGEST_PIECE + 1)
        if len(data) > LARGEST_PIECE:
            raise problems.TooLarge(f"a piece has at most {LARGEST_PIECE >> 20} MiB")
        return data


class Log(Endpoint):
    asks = {"POST": "worker"}
    repeatable = False
    parser_classes = (Octets,)

    @extend_schema(
        operation_id="appendLog",
        request={"application/octet-stream": schema.FILE},
        parameters=[
            OpenApiParameter(
                OFFSET,
                {"type": "integer", "minimum": 0},
                OpenApiParameter.HEADER,
                required=True,
                description="Where this piece begins in the sender's log.",
            )
        ],
        responses=LogSize,
        tags=TAG,
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Append a piece of the log, at most 4 MiB; 409 with `expected` where bytes before it are
        missing. Pieces that were taken before are skipped."""
        text = request.headers.get(OFFSET, "")
        if not re.fullmatch(r"[0-9]{1,15}", text):
            raise exceptions.ValidationError({OFFSET: ["a whole number of bytes is required"]})
        run = find.measured(slug, number)
        data = request.data if isinstance(request.data, bytes) else b""
        size = streams.append_log(run, offset=int(text), data=data)
        return Response({"offset": size}, headers={OFFSET: str(size)})

    @extend_schema(
        operation_id="readLog",
        responses={(200, "application/octet-stream"): schema.FILE},
        tags=TAG,
    )
    def get(self, request: Any, slug: str, number: int) -> Any:
        """The log as bytes, kept or still growing; 404 where there is none."""
        run = find.run(slug, number)
        kept = run.evidence.filter(kind=RUN_LOG).first()
        path = path_of(kept.blob_id) if kept is not None else streams.log_path(run)
        try:
            file = path.open("rb")
        except OSError:
            raise exceptions.NotFound(f"{run.label} has no log") from None
        return file_answer(
            OpenFile(file), name=f"{slug}-r{number}.log", media_type="application/octet-stream"
        )


class LogOffset(Endpoint):
    asks = {"GET": "read or worker"}

    @extend_schema(operation_id="readLogOffset", responses=LogSize, tags=TAG)
    def get(self, request: Any, slug: str, number: int) -> Response:
        """How many bytes of the log were taken; where to go on after an interruption."""
        size = streams.log_size(find.measured(slug, number))
        return Response({"offset": size}, headers={OFFSET: str(size)})
