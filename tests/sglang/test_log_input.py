"""Bytes of every origin arrive as UTF-8."""

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.log_input import Decoder, pieces


@given(
    st.text(alphabet="abc é 漢\n", min_size=8).filter(lambda text: text[:4].isascii()),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.integers(1, 7),
)
def test_decoding_does_not_depend_on_how_bytes_are_cut(text: str, encoding: str, size: int) -> None:
    raw = text.encode(encoding)
    decoder = Decoder()
    out = b"".join(decoder.decode(raw[at : at + size]) for at in range(0, len(raw), size))
    assert (out + decoder.close()).decode() == text


def test_utf16_without_a_mark_is_told_by_its_zeros_and_zeros_alone_are_not() -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        assert Decoder().decode("Decode batch".encode(encoding)) == b"Decode batch"
    assert Decoder().decode(b"\0" * 40) == b"\0" * 40


def test_less_than_four_bytes_are_not_lost() -> None:
    decoder = Decoder()
    assert decoder.decode(b"ab") == b""
    assert decoder.close() == b"ab"


def test_streams_lines_and_text_are_handed_on() -> None:
    raw = b"one\ntwo\n"
    for log in (io.BytesIO(raw), io.BytesIO(gzip.compress(raw)), [b"one\n", b"two\n"]):
        assert b"".join(piece for piece, _ in pieces(log) if isinstance(piece, bytes)) == raw
    assert [piece for piece, _ in pieces(io.StringIO("one\n"))] == ["one\n"]


def test_zstd_without_a_reader_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in ("compression", "compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match="unpack it first"):
        list(pieces(io.BytesIO(b"\x28\xb5\x2f\xfd rest")))
