"""Makes a token for the API and prints it, the only time it is seen."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from experiments import lifecycle
from experiments.lifecycle import access
from experiments.models import ApiToken


class Command(BaseCommand):
    help = "Make a token for the API and print it; it is not shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", help="whose token; the owner of this record by default")
        parser.add_argument("--name", default="made on the command line", help="what it is for")
        parser.add_argument("--scope", choices=ApiToken.Scope.values, default=ApiToken.Scope.WRITE)
        parser.add_argument("--days", type=int, default=90, help="how long it lasts")
        parser.add_argument("--migrate", action="store_true", help="bring the record up to date")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["migrate"]:
            call_command("migrate", verbosity=0, interactive=False)
        user = lifecycle.owner()
        if options["user"]:
            found = User.objects.filter(username=options["user"], is_active=True).first()
            if found is None:
                raise CommandError(f"there is no active user {options['user']!r}")
            user = found
        try:
            _, text = access.make_token(
                user=user, name=options["name"], scope=options["scope"], days=options["days"]
            )
        except lifecycle.Refused as no:
            raise CommandError(str(no)) from None
        self.stdout.write(text)
