"""Names that SGLang imports without a guard and does not call on a CPU."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args: object, **kwargs: object) -> None:
        raise NotImplementedError(f"sgl_kernel.kvcacheio.{name} needs a GPU")

    return missing
