"""Import hooks that let the CUDA build of SGLang run on a CPU; found by Python at start-up through
PYTHONPATH, in the server and in every process it spawns. Costs nothing until SGLang is imported."""

from __future__ import annotations

import importlib.abc
import importlib.util
import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_kept: list[Any] = []  # a torch.library.Library undoes its definitions when it is collected


def _before_torchvision() -> None:
    """Its C extension does not load beside a CPU torch, and it expects two operators from it."""
    torch: Any = importlib.import_module("torch")
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)


def _after_common(module: ModuleType) -> None:
    """SGLang calls these two without asking whether there is CUDA."""
    torch: Any = importlib.import_module("torch")
    if not torch.cuda.is_available():
        torch.cuda.synchronize = lambda *_, **__: None
        torch.cuda.empty_cache = lambda *_, **__: None


def _after_eagle_utils(module: Any) -> None:
    tree = importlib.import_module("specdebug_eagle_tree")
    module.sgl_build_tree_kernel_efficient = tree.build_tree
    module.verify_tree_greedy_func = tree.verify_greedy


def _after_torch_native(module: Any) -> None:
    attention = importlib.import_module("specdebug_eagle_attention")
    module.TorchNativeAttnBackend = attention.with_verify(module.TorchNativeAttnBackend)


def _after_draft_utils(module: Any) -> None:
    attention = importlib.import_module("specdebug_eagle_attention")
    attention.offer_torch_native(module.DraftBackendFactory)


def _after_llama(module: Any) -> None:
    """With CAPTURE_EMBEDDING=1 the state in front of layer 0 can be captured (id -1): the release
    adds a residual there that does not exist yet, and stops with a TypeError."""
    if os.environ.get("CAPTURE_EMBEDDING") == "1":
        _patch(
            module,
            module.LlamaModel,
            "forward",
            "aux_hidden_states.append(hidden_states + residual)",
            "aux_hidden_states.append("
            "hidden_states if residual is None else hidden_states + residual)",
        )


def _after_eagle_worker(module: Any) -> None:
    """With DRAFT_POSITIONS_FIXED=1 draft decode steps skip no position, as from 0.5.12 on
    (sgl-project/sglang PR 25015): the position is advanced after the step and not before."""
    if os.environ.get("DRAFT_POSITIONS_FIXED") == "1":
        _patch(
            module,
            module.EAGLEWorker,
            "draft_forward",
            "forward_batch.positions.add_(1)",
            "forward_batch.positions.add_(1 if i > 0 else 0)",
        )


def _patch(module: Any, owner: Any, name: str, old: str, new: str) -> None:
    """Replace one piece of a method's source; an error where it is not there exactly once."""
    source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
    if source.count(old) != 1:
        raise ImportError(f"{owner.__name__}.{name} is not the one that this patch was made for")
    space: dict[str, Any] = {}
    code = compile(source.replace(old, new), f"<patched {name}>", "exec")
    exec(code, module.__dict__, space)  # noqa: S102
    setattr(owner, name, space[name])


BEFORE: dict[str, Callable[[], None]] = {"torchvision": _before_torchvision}
AFTER: dict[str, Callable[[Any], None]] = {
    "sglang.srt.utils.common": _after_common,
    "sglang.srt.speculative.eagle_utils": _after_eagle_utils,
    "sglang.srt.layers.attention.torch_native_backend": _after_torch_native,
    "sglang.srt.speculative.draft_utils": _after_draft_utils,
    "sglang.srt.models.llama": _after_llama,
    "sglang.srt.speculative.eagle_worker": _after_eagle_worker,
}


class _Hooks(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self._busy: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in self._busy or (name not in BEFORE and name not in AFTER):
            return None
        self._busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy.discard(name)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            BEFORE.get(name, lambda: None)()
            run(module)
            AFTER.get(name, lambda _: None)(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _Hooks())
