"""Queues the Kimi-K2.5 pattern on the reference engine; doing it again changes nothing."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from experiments.story.replay import Pace, start_replay


class Command(BaseCommand):
    help = "Plan the replay of the example on the reference engine and queue its runs."

    def add_arguments(self, parser: CommandParser) -> None:
        usual = Pace()
        parser.add_argument("--repeats", type=int, default=usual.repeats, help="measured repeats")
        parser.add_argument("--prompts", type=int, default=usual.prompts, help="prompts a repeat")
        parser.add_argument("--tokens", type=int, default=usual.tokens, help="tokens a prompt")

    def handle(self, *args: Any, **options: Any) -> None:
        pace = Pace(options["repeats"], options["prompts"], options["tokens"])
        self.stdout.write(f"{start_replay(pace)}: queued")
