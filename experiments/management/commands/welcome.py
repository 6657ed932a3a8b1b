"""What bin/start asks of the record: migrate, the example, its replay, a login link (printed)."""

from io import StringIO
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    help = "Migrate, load the example, queue its replay if asked, print a one-time login link."
    # They import every page, which takes longer than all the rest; bin/test runs them.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--base", required=True, help="address of the web pages")
        parser.add_argument("--replay", action="store_true", help="queue the replay's runs")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, skip_checks=True)
        # Only the link goes to our own output: whoever calls us reads it there.
        call_command("load_story", stdout=StringIO())
        if options["replay"]:
            call_command("replay", stdout=StringIO())
        call_command("login_link", base=options["base"], stdout=self.stdout)
