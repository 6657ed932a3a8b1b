"""Prints a one-time login link for the local owner, whose account is made on first use."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.urls import reverse

from experiments import lifecycle


class Command(BaseCommand):
    help = "Print a link that logs the local owner in once, within an hour."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--base", default="http://127.0.0.1:8000", help="address of the web pages"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            token = lifecycle.make_login_link(user=lifecycle.owner())
        except DatabaseError as no:
            raise CommandError(
                f"The record in {settings.DATA_DIR} cannot be used ({no}): start specdebug once "
                "(bin/start), or name the folder that it runs on in SPECDEBUG_DATA."
            ) from None
        self.stdout.write(options["base"].rstrip("/") + reverse("login-link", args=[token]))
