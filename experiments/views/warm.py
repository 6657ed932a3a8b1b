"""Loads in the background what the next page will need, once somebody has come to the first one.

Statistics and pictures take seconds to import. At the start of the server nobody needs them;
at the first click everybody does.
"""

from __future__ import annotations

import gc
import importlib
import threading
from functools import cache

SLOW = ("scipy.special", "scipy.stats", "vl_convert")
# A page makes some ten thousand objects that end with it; at Python's own thresholds the collector
# walks through every library several times a page.
THRESHOLDS = (20_000, 20, 50)


@cache
def begin() -> threading.Thread:
    """Start loading, once per process; a page that needs a module earlier waits for it."""
    thread = threading.Thread(target=_load, name="warm-up", daemon=True)
    thread.start()
    return thread


def _load() -> None:
    for name in SLOW:
        try:
            importlib.import_module(name)
        except (ImportError, OSError):
            continue  # the page that needs it says so
    gc.freeze()  # what is loaded stays: nobody need look through it again
    gc.set_threshold(*THRESHOLDS)
