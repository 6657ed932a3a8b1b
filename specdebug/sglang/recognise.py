"""What a file is, told by its content; a name decides only between two readings; judges nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from specdebug.sglang import (
    benches,
    flags,
    log_events,
    log_line,
    meta_info,
    request_log,
    rules,
    server_info,
)
from specdebug.sglang.pasted import as_text, load
from specdebug.sglang.patterns import regex

Kind = Literal[
    "command",
    "server-log",
    "vllm-log",
    "server-info",
    "metrics",
    "generate-answers",
    "bench",
    "draft-config",
    "target-config",
    "safetensors",
    "safetensors-header",
    "notes",
    "text",
    "unusable",
]


@dataclass(frozen=True)
class Recognised:
    """`reason` says what was seen, or for "unusable" what is wrong and what to do."""

    kind: Kind
    reason: str


_HEAD = 1 << 20
_BINARY: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a picture; paste the text that it shows"),
    (b"\xff\xd8\xff", "a picture; paste the text that it shows"),
    (b"GIF8", "a picture; paste the text that it shows"),
    (b"%PDF", "a PDF; paste the text or attach the log itself"),
    (b"PK\x03\x04", "a zip archive or pickled weights; unpack it, or attach a safetensors file"),
    (b"\x80\x02", "pickled data; attach a safetensors file or its header"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "a database"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"ustar", "a tar archive; attach the files in it"),
)
_NOTE_KEYS = frozenset({"training", "baseline_tok_s", "engine_version", "concurrency", "env"})
_BENCH_KEYS = frozenset({"output_throughput", "overall_throughput", "acc_length", "step_time"})
_CONFIG_KEYS = frozenset(
    {"hidden_size", "num_hidden_layers", "text_config", "max_position_embeddings", "vocab_size"}
)
_DRAFT_KEYS = frozenset({"eagle_config", "draft_vocab_size", "speculators_model_type"})
_STAMP = regex(r"^\W*\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^\]\n]{0,60}\] ", re.MULTILINE)
_LOG_SIGNS = (
    "Decode batch",
    "server_args=",
    "ServerArgs(",
    "Load weight begin",
    "Load weight end",
    "Prefill batch",
    "ready to roll",
    "Scheduler hit an exception",
    "max_total_num_tokens=",
)
_RAISED = regex(
    r"(?:^|[\s:\]])(?:(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): |Traceback \(most recent"
    r"|ERROR:\s|\[Errno \d+\] )"
)
_METRIC = regex(r"^(?:# (?:HELP|TYPE) )?(?:sglang|vllm):\w+", re.MULTILINE)


def recognise(name: str, content: bytes | str) -> Recognised:
    """Tell the kind of one input; `content` may be its first megabyte. Never raises on content.

    `name` appears in reasons, and tells a draft's plain model config from a target's.
    """
    if isinstance(content, bytes):
        content = content[:_HEAD]
        found = _binary(name, content)
        if found is not None:
            return found
        unpacked = _unpacked(content)
        if isinstance(unpacked, Recognised):
            return unpacked
        content = unpacked
    text = as_text(content[:_HEAD])
    if not text.strip():
        return Recognised("unusable", f"{name} is empty")
    if text.count("\x00") > len(text) // 50 or text[:4000].count("\ufffd") > 400:
        return Recognised("unusable", f"{name} is binary data of no kind that is read here")
    stripped = text.lstrip()
    if stripped[:15].lower().startswith(("<!doctype html", "<html")):
        return Recognised("unusable", f"{name} is a web page; attach the raw file behind it")
    if stripped.startswith("version https://git-lfs"):
        return Recognised("unusable", f"{name} is a Git LFS pointer; fetch the file (git lfs pull)")
    if stripped[0] == "{" or (
        re.match(r"\[\s*[{\[\"\]\d-]", stripped) and not _STAMP.match(stripped)
    ):
        found = _json(name, stripped, cut=len(content) >= _HEAD)
        if found is not None:
            return _by_name(name, found)
    return _text(text)


def _by_name(name: str, found: Recognised) -> Recognised:
    """A separate small model that drafts has the config of any model: only its name tells."""
    file = PurePath(name.lower())
    if (
        found.kind == "target-config"
        and "target" not in file.name
        and any("draft" in part for part in file.parts[-3:])
    ):
        return Recognised("draft-config", "a model's config.json, called a draft's")
    return found


def _binary(name: str, content: bytes) -> Recognised | None:
    length = int.from_bytes(content[:8], "little")
    if len(content) > 9 and content[8:9] == b"{" and 2 <= length <= 100_000_000:
        return Recognised("safetensors", f"begins with a safetensors header of {length:,} bytes")
    for magic, what in _BINARY:
        if content.startswith(magic) or (magic == b"ustar" and content[257:262] == magic):
            return Recognised("unusable", f"{name} is {what}")
    return None


_PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd")


def _unpacked(content: bytes) -> bytes | Recognised:
    """The start of compressed content; anything else comes back as it is."""
    if not content.startswith(_PACKED):
        return content
    import bz2  # late: few inputs are packed
    import lzma
    import zlib

    try:
        if content.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(31).decompress(content, _HEAD)
        if content.startswith(b"\xfd7zXZ\x00"):
            return lzma.LZMADecompressor().decompress(content, _HEAD)
        if content.startswith(b"BZh"):
            return bz2.BZ2Decompressor().decompress(content, _HEAD)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
        return Recognised("unusable", f"the compressed data is broken ({error}); send it again")
    return Recognised("server-log", "zstd-compressed; taken for a log")


def _json(name: str, text: str, cut: bool) -> Recognised | None:
    """The kind of JSON content, None when it only looks like JSON at its first character."""
    try:
        value = load(text)
    except ValueError as error:
        if goes_on(text) or text.startswith(("{'", "[{'")):
            return None
        first = text.split("\n", 1)[0]
        try:
            # JSON lines: the first line is a whole object.
            return of_value(load(first))
        except ValueError:
            pass
        if cut:
            return _by_keys(text)
        if any(sign in text for sign in _LOG_SIGNS) or _STAMP.search(text):
            return None
        if isinstance(error, json.JSONDecodeError) and '"' in text:
            where = f"at line {error.lineno} column {error.colno}"
            said = error.msg.removesuffix(" at")
            return Recognised("unusable", f"{name} is broken JSON: {said} {where}")
        return None
    return of_value(value)


def goes_on(text: str) -> bool:
    """Whether a whole JSON value stands in front of other words."""
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, Mapping) and text[end:].lstrip()[:1] not in tuple("{}[],:")


def _by_keys(text: str) -> Recognised | None:
    keys = set(re.findall(r'"([A-Za-z_]\w*)"\s*:', text[:200_000]))
    for kind, signs in (
        ("bench", _BENCH_KEYS),
        ("generate-answers", frozenset({"meta_info"})),
        ("server-info", frozenset({"internal_states", "mem_fraction_static"})),
        ("safetensors-header", frozenset({"dtype", "data_offsets"})),
    ):
        if keys & signs:
            return Recognised(kind, f"long JSON with {', '.join(sorted(keys & signs))}")  # type: ignore[arg-type]
    return None


def of_value(value: Any) -> Recognised:
    """The kind of a decoded JSON value; "text" for one that nothing here reads."""
    if isinstance(value, list):
        inner = next((item for item in value if isinstance(item, Mapping)), None)
        return of_value(inner) if inner is not None else Recognised("text", "a JSON list")
    if not isinstance(value, Mapping):
        return Recognised("text", "a JSON value")
    keys = value.keys()
    if _is_header(value):
        return Recognised("safetensors-header", "tensor names with dtype and shape")
    if meta_info.looks_like(value):
        return Recognised("generate-answers", "an answer with meta_info")
    if benches.from_mapping(value) is not None or keys & _BENCH_KEYS:
        return Recognised("bench", "a benchmark result")
    if server_info.looks_like(value):
        return Recognised("server-info", "server arguments of a running server")
    if keys & _DRAFT_KEYS or _is_draft(value):
        return Recognised("draft-config", "a draft's config.json")
    if keys & _CONFIG_KEYS:
        return Recognised("target-config", "a model's config.json")
    if keys & _NOTE_KEYS:
        return Recognised("notes", "notes: " + ", ".join(sorted(keys & _NOTE_KEYS)))
    return Recognised("text", "JSON with none of the keys that are read here")


def _is_header(value: Mapping[str, Any]) -> bool:
    tensors = [entry for name, entry in value.items() if name != "__metadata__"][:50]
    return bool(tensors) and all(
        isinstance(entry, Mapping) and "dtype" in entry and "shape" in entry for entry in tensors
    )


def _is_draft(value: Mapping[str, Any]) -> bool:
    # An EAGLE-1 head calls itself an ordinary model; no model that is served has one layer.
    if value.get("num_hidden_layers") == 1 and not isinstance(value.get("text_config"), Mapping):
        return True
    names = value.get("architectures")
    if not isinstance(names, list):
        return False
    return any(
        isinstance(name, str) and re.search(r"(?i)eagle|nextn|dflash", name) for name in names
    )


def _text(text: str) -> Recognised:
    if "SpecDecoding metrics" in text:
        return Recognised("vllm-log", "lines with SpecDecoding metrics")
    sign = next((sign for sign in _LOG_SIGNS if sign in text), None)
    if sign is not None:
        return Recognised("server-log", f"has {sign!r}")
    if _METRIC.search(text):
        return Recognised("metrics", "samples of sglang: or vllm:")
    if "Serving Benchmark Result" in text:
        return Recognised("bench", "a printed benchmark table")
    if "Avg generation throughput" in text:
        return Recognised("vllm-log", "vLLM throughput lines")
    if flags.parse_command(text[:200_000]):
        return Recognised("command", "launches a server")
    if any(rules.printing(line) for line in text.split("\n", 500)[:500]):
        return Recognised("server-log", "has a line of the argument stage")
    report = benches.read_benches(text[:200_000])
    if report.runs:
        return Recognised("bench", f"benchmark figures ({report.runs[0].kind})")
    if len(_STAMP.findall(text[:200_000])) >= 3:
        return Recognised("server-log", "lines with the engine's time stamp")
    if announces(text):
        return Recognised("server-log", "a line on how a server failed")
    return Recognised("text", "plain text")


def announces(text: str) -> bool:
    """Whether some line says how an engine fared: a stamped line, or a traceback's last one."""
    for line in text.split("\n", 500)[:500]:
        parts = log_line.take_apart(request_log.own_text(line[:4_000]))
        found = log_events.event_of(parts.message) if parts.message else None
        if found is not None and (parts.stamped or _RAISED.search(parts.message)):
            return True
    return False
