"""A long paste takes time in proportion to its length, whatever it consists of."""

import time

import pytest

from specdebug.diagnosis.facts import Input
from specdebug.diagnosis.gather import build_case
from specdebug.sglang import flags

SHAPES = {
    "blank lines": "\n",
    "assignments": "A=b\n",
    "heredocs": "<<E\n",
    "open lists": '["a",\n',
    "brackets": "[",
    "braces": "{",
    "quotes": "'\n",
    "JSON lines": '{"a":1}\n',
    "flags without backslash": "--a b\n",
    "table rows": "| a | b |\n",
    "YAML keys": "- a: b\n",
    "rows without a figure": "| a step | b | c |\n",
    "dicts of Python": "{'a': 1} ",
    "open dicts of Python": "{'a': [\n",
    "broken decode lines": "Decode batch, #running-req: 1,\n token usage: 0.1,\n",
}


def seconds(shape: str, size: int) -> float:
    """Processor seconds to read a paste of `size` characters, the better of two."""
    part = SHAPES[shape]
    text = "sglang serve --tp 8\n" + part * (size // len(part))
    best = float("inf")
    for _ in range(2):
        flags._parsed.cache_clear()
        begin = time.process_time()
        build_case([Input("paste", text.encode())])
        best = min(best, time.process_time() - begin)
    return best


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_paste_takes_less_than_three_times_as_long(shape: str) -> None:
    for _ in range(4):  # what else the machine does may hit one of the two
        short, long = seconds(shape, 30_000), seconds(shape, 60_000)
        if long < 0.02 or long < 3 * short:
            return
    pytest.fail(f"{shape}: {short:.3f} s for 30 KB, {long:.3f} s for 60 KB")
