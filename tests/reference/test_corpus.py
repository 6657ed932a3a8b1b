"""The training text is checked before it is used."""

import hashlib
import sysconfig
from pathlib import Path

import pytest

from specdebug.reference import corpus


def test_a_file_with_the_recorded_hash_is_read() -> None:
    here = Path(sysconfig.get_paths()["stdlib"]) / "bisect.py"
    digest = hashlib.sha256(here.read_bytes()).hexdigest()
    (source,) = corpus.read({"bisect.py": digest})
    assert source.name == "bisect.py"
    assert "def bisect_left" in source.text


def test_another_interpreter_s_file_is_refused_by_name() -> None:
    with pytest.raises(corpus.CorpusError, match=r"bisect\.py: SHA-256 .* trained on 0000"):
        corpus.read({"bisect.py": "0" * 64})


def test_a_missing_file_is_refused_by_name() -> None:
    with pytest.raises(corpus.CorpusError, match=r"no_such\.py: cannot read it"):
        corpus.read({"no_such.py": "0" * 64})


def test_trained_and_unseen_text_do_not_overlap() -> None:
    assert not corpus.SOURCES.keys() & corpus.UNSEEN.keys()
