"""Investigations as one file: taken away whole, taken in as a new one; and tables as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.response import Response

from experiments import archive, store
from experiments.api import find, schema
from experiments.api.endpoint import Endpoint, OpenFile, file_answer
from experiments.api.evidence import Stream
from experiments.api.investigations import InvestigationShape
from experiments.models import Run
from experiments.queries.run_items import run_items

TAG = ["exports"]
LARGEST = 4 << 30


class Archive(Endpoint):
    @extend_schema(
        operation_id="exportInvestigation",
        responses={(200, "application/zip"): schema.FILE},
        tags=TAG,
    )
    def get(self, request: Any, slug: str) -> Any:
        """The investigation with all its rows and files, to be imported elsewhere."""
        file = archive.export(find.investigation(slug))
        return file_answer(OpenFile(file), name=f"{slug}.zip", media_type="application/zip")


class Import(Endpoint):
    parser_classes = (Stream,)
    repeatable = False

    @extend_schema(
        operation_id="importInvestigation",
        request={"application/octet-stream": schema.FILE},
        responses={201: InvestigationShape},
        tags=TAG,
    )
    def post(self, request: Any) -> Response:
        """Take in an archive as a new investigation."""
        body = request.data
        if not hasattr(body, "read"):
            raise exceptions.ValidationError({"": ["send the archive as the body"]})
        # Zip files are read from their end, so the whole must be here first.
        kept = store.put(body, limit=LARGEST)
        with store.path_of(kept.pk).open("rb") as file:
            made = archive.take_in(file, by=request.user)
        return Response(InvestigationShape(made).data, status=201)


class RunsCsv(Endpoint):
    @extend_schema(operation_id="exportRuns", responses={(200, "text/csv"): schema.FILE}, tags=TAG)
    def get(self, request: Any, slug: str) -> Any:
        """The runs as a table: one row each, a column for each metric and parameter."""
        rows = Run.objects.filter(investigation=find.investigation(slug))
        items = run_items(list(rows.select_related("investigation", "hypothesis")))
        metrics = sorted({name for item in items for name in item.metrics})
        params = sorted({name for item in items for name in item.params})
        text = io.StringIO()
        table = csv.writer(text)
        head = ["label", "title", "state", "engine", "release", "recorded", "baseline"]
        table.writerow(
            [
                *head,
                *(f"metrics.{name}" for name in metrics),
                *(f"n.{name}" for name in metrics),
                *(f"params.{name}" for name in params),
            ]
        )
        for item in items:
            run = item.run
            known = [item.metrics.get(name) for name in metrics]
            table.writerow(
                [
                    *(run.label, _cell(run.title), run.state, run.engine, run.engine_release),
                    *(run.recorded, item.baseline),
                    *("" if row is None else row.value for row in known),
                    *("" if row is None else row.count for row in known),
                    *(_cell(item.params.get(name, "")) for name in params),
                ]
            )
        return file_answer(
            [text.getvalue().encode("utf-8", "replace")],
            name=f"{slug}-runs.csv",
            media_type="text/csv; charset=utf-8",
        )


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is kept a text."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
