"""Files: sent to a run or an investigation, named by their content's hash, taken away again."""

from __future__ import annotations

import io
import re
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from experiments import intake, store
from experiments.api import find, problems, schema
from experiments.api.endpoint import Endpoint, OpenFile, file_answer
from experiments.api.paging import piece
from experiments.api.shapes import Shape, Text, page_of
from experiments.models import Blob, Investigation, Run
from experiments.queries.search import KINDS, narrowed

TAG = ["evidence"]
_SHA = re.compile(r"[0-9a-f]{64}")
NAME = OpenApiParameter("name", str, required=True, description="Name of the file, for people.")


class EvidenceShape(serializers.Serializer):
    """A file of an investigation or of one of its runs; its kind is told from its content."""

    id = serializers.IntegerField(source="pk")
    investigation = serializers.CharField(source="investigation.slug")
    run = serializers.CharField(source="run.label", default=None, allow_null=True)
    name = serializers.CharField()
    kind = serializers.CharField()
    problem = serializers.CharField(allow_blank=True, help_text="why it could not be read")
    sha256 = serializers.CharField(source="blob_id")
    size = serializers.IntegerField(source="blob.size", help_text="bytes")
    added_by = serializers.CharField(allow_blank=True)
    added_at = serializers.DateTimeField()


class KnownContent(Shape):
    """A content that is kept already, under a name."""

    sha256 = serializers.RegexField(r"^[0-9a-f]{64}$")
    name = Text(max_length=200)


class BlobShape(serializers.Serializer):
    sha256 = serializers.CharField()
    size = serializers.IntegerField(help_text="bytes")


EvidencePiece = page_of(EvidenceShape, "EvidencePage")


class Stream(BaseParser):
    """The body as it comes, read by the store in pieces."""

    media_type = "application/octet-stream"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return stream


class _Attach(Endpoint):
    asks = {"PUT": "worker", "POST": "worker"}
    repeatable = False

    def take(self, request: Any, row: Investigation, run: Run | None) -> Response:
        name = request.GET.get("name", "")
        if not name.strip() or "\0" in name or len(name) > 200:
            raise exceptions.ValidationError({"name": ["name the file, as ?name=server.log"]})
        body = request.data
        kept = intake.take_file(
            investigation=row,
            run=run,
            name=name,
            stream=body if hasattr(body, "read") else io.BytesIO(b""),
            by=self.by,
        )
        return Response(EvidenceShape(kept).data, status=201)

    def know(self, request: Any, row: Investigation, run: Run | None) -> Response:
        values = find.checked(KnownContent, request.data)
        if not Blob.objects.filter(pk=values["sha256"]).exists():
            raise exceptions.NotFound("no such content is kept; send the bytes with PUT")
        try:
            file = store.path_of(values["sha256"]).open("rb")
        except OSError:
            raise exceptions.NotFound("its bytes are gone; send them again with PUT") from None
        with file:
            kept = intake.take_file(
                investigation=row, run=run, name=values["name"], stream=file, by=self.by
            )
        return Response(EvidenceShape(kept).data, status=201)


class InvestigationEvidence(Endpoint):
    @extend_schema(
        operation_id="listEvidence", parameters=schema.LIST, responses=EvidencePiece, tags=TAG
    )
    def get(self, request: Any, slug: str) -> Response:
        """The files of an investigation and of its runs."""
        rows = narrowed(KINDS["evidence"], request.GET.get("filter", ""))
        rows = rows.filter(investigation=find.investigation(slug))
        found = piece(KINDS["evidence"], rows, request.GET)
        return Response({"items": EvidenceShape(found.rows, many=True).data, "next": found.next})


class InvestigationFile(_Attach):
    parser_classes = (Stream,)

    @extend_schema(
        operation_id="sendFile",
        parameters=[NAME],
        request={"application/octet-stream": schema.FILE},
        responses={201: EvidenceShape},
        tags=TAG,
    )
    def put(self, request: Any, slug: str) -> Response:
        """Send a file that belongs to no run; the same content under the same name is one row."""
        return self.take(request, find.investigation(slug), None)


class RunFile(_Attach):
    parser_classes = (Stream,)

    @extend_schema(
        operation_id="sendRunFile",
        parameters=[NAME],
        request={"application/octet-stream": schema.FILE},
        responses={201: EvidenceShape},
        tags=TAG,
    )
    def put(self, request: Any, slug: str, number: int) -> Response:
        """Send a file of a run; findings are drawn again with it where the run has ended."""
        run = find.run(slug, number)
        return self.take(request, run.investigation, run)


class KnownInvestigationFile(_Attach):
    @extend_schema(
        operation_id="attachKnownFile",
        request=KnownContent,
        responses={201: EvidenceShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str) -> Response:
        """Attach a content by its hash without sending it; 404 where it is not kept yet."""
        return self.know(request, find.investigation(slug), None)


class KnownRunFile(_Attach):
    @extend_schema(
        operation_id="attachKnownRunFile",
        request=KnownContent,
        responses={201: EvidenceShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """The same for a run."""
        run = find.run(slug, number)
        return self.know(request, run.investigation, run)


class OneBlob(Endpoint):
    @extend_schema(operation_id="readBlob", responses=BlobShape, tags=TAG)
    def get(self, request: Any, sha256: str) -> Response:
        """Whether a content is kept, and its size."""
        row = Blob.objects.get(pk=_known(sha256))
        return Response({"sha256": row.pk, "size": row.size})


class BlobContent(Endpoint):
    @extend_schema(
        operation_id="readBlobContent",
        responses={(200, "application/octet-stream"): schema.FILE},
        tags=TAG,
    )
    def get(self, request: Any, sha256: str) -> Any:
        """The bytes of a content."""
        row = Blob.objects.get(pk=_known(sha256))
        try:
            file = store.path_of(row.pk).open("rb")
        except OSError:
            raise problems.Unavailable("its bytes are no longer in the data folder") from None
        return file_answer(OpenFile(file), name=row.pk[:16], media_type="application/octet-stream")


def _known(sha256: str) -> str:
    if not _SHA.fullmatch(sha256):
        raise exceptions.NotFound("a content is named by its SHA-256, 64 hexadecimal digits")
    return sha256
