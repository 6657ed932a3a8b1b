"""Loads the recorded Kimi-K2.5 investigation; doing it again changes nothing."""

from typing import Any

from django.core.management.base import BaseCommand

from experiments.story.recorded import load_story


class Command(BaseCommand):
    help = "Load the recorded Kimi-K2.5 investigation, unless it is there."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{load_story()}: loaded")
