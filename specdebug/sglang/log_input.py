"""Where log bytes come from: plain or compressed files, streams, lines; handed on as UTF-8."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

PIECE = 1 << 19  # small enough to stay in a core's own cache while it is scanned
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


class Decoder:
    """Turns UTF-16 into UTF-8, told by its mark or by zero bytes in the first piece; passes the
    rest."""

    def __init__(self) -> None:
        self._incremental: codecs.IncrementalDecoder | None = None
        self._decided = False
        self._head = b""

    def decode(self, data: bytes) -> bytes:
        """The next piece as UTF-8; the first four bytes may be held back until they can be told."""
        if not self._decided:
            data = self._head + data
            if len(data) < 4:
                self._head = data
                return b""
            self._head = b""
            self._decide(data)
            if self._incremental is None and data.startswith(codecs.BOM_UTF8):
                data = data[3:]
        if self._incremental is None:
            return data
        return self._incremental.decode(data).lstrip("\ufeff").encode("utf-8", "replace")

    def close(self) -> bytes:
        """What was held back."""
        head, self._head = self._head, b""
        if self._incremental is not None:
            return self._incremental.decode(b"", True).encode("utf-8", "replace")
        return head

    def _decide(self, data: bytes) -> None:
        self._decided = True
        name = None
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            name = "utf-16"
        else:
            sample = data[:400]
            if sample[1::2].count(0) > 0.4 * len(sample) // 2 > 0 == sample[0::2].count(0):
                name = "utf-16-le"
            elif sample[0::2].count(0) > 0.4 * len(sample) // 2 > 0 == sample[1::2].count(0):
                name = "utf-16-be"
        if name is not None:
            self._incremental = codecs.getincrementaldecoder(name)("replace")


def pieces(
    log: str | os.PathLike[str] | IO[bytes] | IO[str] | Iterable[str | bytes],
) -> Iterator[tuple[bytes | str, str]]:
    """(piece, problem) pairs; `problem` is set when the rest of a compressed file is unreadable."""
    if isinstance(log, str | os.PathLike):
        with Path(log).open("rb") as file:
            yield from _of_stream(file)
    elif hasattr(log, "read"):
        yield from _of_stream(cast("IO[Any]", log))
    else:
        for line in log:
            yield (line, "")


def _of_stream(file: IO[Any]) -> Iterator[tuple[bytes | str, str]]:
    head = file.read(PIECE)
    if isinstance(head, str):
        while head:
            yield head, ""
            head = file.read(PIECE)
        return
    kind = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
    if kind is None:
        while head:
            # Whole lines spare the reader a copy; a line without end comes in pieces all the same.
            if not head.endswith(b"\n") and hasattr(file, "readline"):
                head += file.readline(PIECE)
            yield head, ""
            head = file.read(PIECE)
        return
    yield from _decompressed(_opened(kind, _Chained(head, file)), kind)


def _decompressed(stream: IO[bytes], kind: str) -> Iterator[tuple[bytes | str, str]]:
    import lzma  # late, here and below: few logs are packed
    import zlib

    read = 0
    # A plain read would lose what it has when the data break off in the middle of it.
    take = getattr(stream, "read1", stream.read)
    parts: list[bytes] = []
    while True:
        try:
            part = take(PIECE)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
            if not read:
                raise ValueError(
                    f"this {kind} file is broken at its start ({error}); send it again or unpacked"
                ) from error
            yield b"".join(parts), ""
            yield b"", f"the {kind} data breaks off here ({error}); what came before was read"
            return
        parts.append(part)
        read += len(part)
        if not part or sum(map(len, parts)) >= PIECE:
            yield b"".join(parts), ""
            parts = []
        if not part:
            return


def _opened(kind: str, raw: io.RawIOBase) -> IO[bytes]:
    buffered = io.BufferedReader(raw, PIECE)
    if kind == "gzip":
        import gzip

        return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered))
    if kind == "xz":
        import lzma

        return cast("IO[bytes]", lzma.LZMAFile(buffered))
    if kind == "bzip2":
        import bz2

        return cast("IO[bytes]", bz2.BZ2File(buffered))
    return _zstd(buffered)


def _zstd(buffered: IO[bytes]) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            import zstandard  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise ValueError(
                "this file is zstd-compressed and no zstd reader is installed: unpack it first"
            ) from None
        return cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(buffered))
    return cast("IO[bytes]", zstd.ZstdFile(buffered))


class _Chained(io.RawIOBase):
    """The bytes already read, then the rest of the file."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._head = head
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._head:
            size = min(len(buffer), len(self._head))
            buffer[:size] = self._head[:size]
            self._head = self._head[size:]
            return size
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
