"""What the library says of files and pasted text, arranged for a page; keeps nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import UploadedFile

from specdebug.diagnosis.catalogue import CATALOGUE
from specdebug.diagnosis.diagnose import Diagnosis, diagnose
from specdebug.diagnosis.facts import Input
from specdebug.diagnosis.gather import build_case

PASTED = "pasted text"
# What findings quote where it matters; the command line's --json has all of it.
_ASIDE = ("requested_", "captured_layers_", "target_", "draft_rope", "written_", "fixed_")


@dataclass(frozen=True)
class Checked:
    """A diagnosis with its named figures: those that are one value or a short list."""

    diagnosis: Diagnosis
    figures: tuple[tuple[str, str], ...]
    explained: tuple[tuple[Any, Any], ...]

    @property
    def used(self) -> int:
        return sum(1 for given in self.diagnosis.inputs if given.unusable is None)


def checked(
    files: Iterable[UploadedFile[Any]],
    text: str,
    *,
    engine_version: str | None = None,
    baseline: float | None = None,
) -> Checked:
    """Read and judge what came; an input that cannot be used is named with its reason."""
    inputs = [Input(_name(file), _data(file)) for file in files]
    if text.strip():
        inputs.append(Input(PASTED, text.encode("utf-8", "surrogateescape")))
    found = diagnose(build_case(inputs, engine_version=engine_version, baseline=baseline))
    return Checked(
        found,
        tuple((k, _figure(v)) for k, v in found.values.items() if _short(k, v)),
        tuple((finding, CATALOGUE.get(finding.code)) for finding in found.findings),
    )


def _name(file: UploadedFile[Any]) -> str:
    return (file.name or "file")[:200]


def _data(file: UploadedFile[Any]) -> bytes | Path:
    # Large uploads lie in a temporary file, which is read where it is.
    path = getattr(file, "temporary_file_path", None)
    return Path(path()) if path is not None else bytes(file.read())


def _short(name: str, value: Any) -> bool:
    if name.startswith(_ASIDE) or value is None or isinstance(value, dict):
        return False
    return not (isinstance(value, list) and value and isinstance(value[0], dict))


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:200]
