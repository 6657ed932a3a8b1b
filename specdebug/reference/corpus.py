"""The text behind the shipped models: fixed standard library sources, checked by hash.

Not a general text loader: training has to be repeatable, so another interpreter's sources (which
differ by a few lines from release to release) are refused rather than used in silence.
"""

import hashlib
import sysconfig
from dataclasses import dataclass
from pathlib import Path

# Python 3.11.7, https://docs.python.org/3/license.html (PSF licence version 2). Short modules of
# different kinds: a model that has memorised them writes varied text, where one trained on the
# whole library falls into loops that flatter the accept length.
SOURCES: dict[str, str] = {
    "textwrap.py": "62867e40cdea6669b361f72af4d7daf0359f207c92cbeddfc7c7506397c1f31c",
    "heapq.py": "6d43277e5c76fc0f073cd388fcff852d14d068f6bb6d4886c340f8b75a1229a9",
    "shlex.py": "42ab6060f316e121e374e6621d8c1c98b8db323903c3df289a810c45a8ae46a7",
    "queue.py": "f6c37fc37cd7440979f7d22d40ee818fa3b714c573610c08fa52911d541193f0",
    "glob.py": "fa579f8a50a66313d34d339f10be0821c9b4fed6207e8ba8e29ed1c5e119f740",
    "fnmatch.py": "6683da36e47af523f3f41e18ad244d837783e19e98911cc0b7415dea81494ebc",
    "bisect.py": "e5b2ff166f48a06e70ae831d8c9b47283fcd0c254306eee12d3dae9c55e11526",
    "linecache.py": "e814839fc75010db274ae034f45b0fff7e529ccb702319048545fef84c2045b7",
    "getpass.py": "e74fd445337ff503223dd8aa4bdd7d04917067d00c796a10bedb7a1381a4960a",
    "sched.py": "edfb309483d7cb05e06ad86d1fdeb819629f71402dc6710a1bec36c7afcaac50",
}

# Text of the same kind that the models have never seen: prompts are taken from both.
UNSEEN: dict[str, str] = {
    "json/decoder.py": "9f02654649816145bc76f8c210a5fe3ba1de142d4d97a1c93105732e747c285b",
    "graphlib.py": "7bd338c5a475d1101064603d3baa5507446d3c5e73f741f6d6e77c6204c1eb65",
    "zipapp.py": "776078e89fd7dadbce41678f8bacd3b493135e6d610911c867489415420de383",
    "colorsys.py": "d9800f8e81d46e63ca6f2e7d6ac5f344d85afb92c3cf6d103b5f977f1ad66ac2",
    "secrets.py": "86893f2e4d33e8d02f8cc1d1de7a436d395ae9c9d48ff3dc0225a9cca1601759",
    "reprlib.py": "264433cc232332db871666b3bb6e4c2cb97b092cb8d5056a45ec2e53daea2b1c",
}


class CorpusError(Exception):
    """The standard library here is not the text that the shipped models were trained on."""


@dataclass(frozen=True)
class Source:
    """One file of the corpus: its name in the standard library and its text."""

    name: str
    text: str


def read(files: dict[str, str] | None = None) -> list[Source]:
    """Read the corpus from this interpreter's standard library, in list order.

    Raises CorpusError where a file is missing or its SHA-256 differs from the recorded one.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    found = []
    for name, expected in (SOURCES if files is None else files).items():
        path = root / name
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise CorpusError(f"{path}: cannot read it ({error}); train with Python 3.11") from None
        digest = hashlib.sha256(raw).hexdigest()
        if digest != expected:
            raise CorpusError(
                f"{path}: SHA-256 {digest[:12]}..., the shipped models were trained on "
                f"{expected[:12]}...; train with Python 3.11.7"
            )
        found.append(Source(name, raw.decode("utf-8")))
    return found
