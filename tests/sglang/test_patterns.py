import gc
import importlib
import pkgutil
import re

import pytest

import specdebug.diagnosis
import specdebug.sglang
from specdebug.sglang.patterns import _Later, regex


def test_a_pattern_answers_as_a_compiled_one_does() -> None:
    words = regex(r"(\w+)=(\d+)", re.IGNORECASE)
    found = words.search("a tp=8")
    assert found is not None
    assert found.groups() == ("tp", "8")
    assert words.findall("a=1 B=2") == [("a", "1"), ("B", "2")]
    assert (words.pattern, words.groups) == (r"(\w+)=(\d+)", 2)
    assert regex(rb"\d+").sub(b"#", b"a1") == b"a#"


def test_a_pattern_compiles_when_it_is_first_used() -> None:
    broken = regex("(")
    with pytest.raises(re.error):
        broken.search("x")


def test_every_pattern_of_the_readers_and_checks_compiles() -> None:
    for package in (specdebug.sglang, specdebug.diagnosis):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    gc.unfreeze()  # what a server's warm-up froze is not told of otherwise
    held = [each for each in gc.get_objects() if type(each) is _Later]
    assert len(held) > 100
    for each in held:
        source, flags = each._made_of
        if source != "(":  # of the test above, where it is still alive
            re.compile(source, flags)
