"""How far something is: one line drawn again on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import sys

from specdebug.client.commands.console import clean

WIDTH = 24


class Bar:
    """A progress bar on standard error; `end` it before anything else is said."""

    def __init__(self, name: str) -> None:
        self.name, self.last, self.drawn = name, "", False
        self.live = sys.stderr.isatty()

    def show(self, words: str, fraction: float, detail: str = "") -> None:
        """Where it stands. fraction: 0 to 1."""
        words = clean(words)
        if not self.live:
            if words != self.last:
                print(f"{self.name}: {words}", file=sys.stderr)
            self.last = words
            return
        bar, percent = "#" * round(WIDTH * fraction), f"{100 * fraction:3.0f} %"
        line = f"\r{self.name} [{bar:<{WIDTH}}] {percent} {words} {clean(detail)[:40]}"
        print(f"{line:<100}"[:110], end="", file=sys.stderr, flush=True)
        self.drawn = True

    def end(self) -> None:
        """Leave the line."""
        if self.drawn:
            print(file=sys.stderr)
            self.drawn = False
