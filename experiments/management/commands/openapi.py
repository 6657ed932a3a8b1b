"""Writes the API's OpenAPI document anew, as it is committed beside the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from drf_spectacular.generators import SchemaGenerator


class Command(BaseCommand):
    help = "Write the API's OpenAPI document to openapi.yaml."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", type=Path, default=Path(settings.BASE_DIR) / "openapi.yaml")

    def handle(self, *args: Any, **options: Any) -> None:
        maker: Any = SchemaGenerator
        generator = maker(urlconf="experiments.api.urls")
        found = json.loads(json.dumps(generator.get_schema(request=None, public=True)))
        text = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=100)
        options["to"].write_text(text)
        self.stdout.write(f"{options['to']}: {len(found['paths'])} addresses")
