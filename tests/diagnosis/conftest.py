"""Small cases written by hand: decode lines from a few figures, configs of a Kimi-like pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from specdebug.diagnosis.facts import Boot, Case, Fact, Measured, Notice, Stretch, case_from_rows
from specdebug.diagnosis.findings import Finding

Found = Callable[[Case], dict[str, Finding]]


def stretch(
    lengths: Sequence[float | None],
    *,
    window: int | None = None,
    strict: bool = False,
    running: float = 1,
    queue: float = 0,
    step_ms: float = 20.0,
    tokens: Sequence[float] | None = None,
    graph: int = 1,
    rank: str = "",
) -> Stretch:
    """Decode lines whose figures agree: throughput from step time, rate from the window."""
    n = len(lengths)
    known = [math.nan if v is None else v for v in lengths]
    rates = [math.nan] * n
    if window is not None:
        rates = [
            round((v - 1) / (window - 1) if strict else v / window, 2) if v == v else v
            for v in known
        ]
    return Stretch(
        rank=rank,
        lines=list(range(100, 100 + n)),
        running=[float(running)] * n,
        queue=[float(queue)] * n,
        tokens=list(tokens or [1000.0 + 40 * i for i in range(n)]),
        accept_len=known,
        accept_rate=rates,
        graph=[graph] * n,
        throughput=[1000 * (1 if v != v else v) * running / step_ms for v in known],
    )


def boot(
    *stretches: Stretch,
    args: dict[str, Any] | None = None,
    notices: Sequence[tuple[str, str]] = (),
    ready: bool = True,
    source: str = "server.log",
    line: int = 1,
) -> Boot:
    effective = {k: Fact(v, source, 4, f"{k}={v!r}") for k, v in (args or {}).items()}
    return Boot(
        source=source,
        line=line,
        excerpt=args is None,
        effective=effective,
        stretches=stretches,
        notices=tuple(Notice(kind, source, 50 + i, t) for i, (kind, t) in enumerate(notices)),
        ready=ready and args is not None,
    )


def args(
    steps: int | None = 3, topk: int = 1, tokens: int | None = None, **more: Any
) -> dict[str, Any]:
    """The engine's effective arguments of a speculative server."""
    return {
        "model_path": "some/target",
        "device": "cuda",
        "speculative_algorithm": None if steps is None else "EAGLE3",
        "speculative_num_steps": steps,
        "speculative_eagle_topk": topk,
        "speculative_num_draft_tokens": tokens if tokens is not None else (steps or 0) + 1,
        "disable_cuda_graph": False,
        "max_running_requests": 32,
        **more,
    }


def asked(
    steps: int | None = 3, topk: int | None = 1, tokens: int | None = 4, **more: Any
) -> dict[str, Any]:
    """A launch command's flags."""
    given = {
        "model_path": "some/target",
        "speculative_algorithm": "EAGLE3",
        "speculative_num_steps": steps,
        "speculative_eagle_topk": topk,
        "speculative_num_draft_tokens": tokens,
        **more,
    }
    return {k: v for k, v in given.items() if v is not None}


KIMI_TARGET: dict[str, Any] = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "text_config": {
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "vocab_size": 163840,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "kv_lora_rank": 512,
        "max_position_embeddings": 262144,
        "rope_theta": 50000.0,
    },
}


def kimi_draft(ids: Sequence[int] | None, **more: Any) -> dict[str, Any]:
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "num_hidden_layers": 1,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "head_dim": 128,
        "vocab_size": 163840,
        "draft_vocab_size": 32000,
        "max_position_embeddings": 262144,
        "rope_theta": 50000.0,
        "tie_word_embeddings": False,
        **more,
    }
    if ids is not None:
        config["eagle_config"] = {
            "use_aux_hidden_state": True,
            "eagle_aux_hidden_state_layer_ids": list(ids),
        }
    return config


def story_rows() -> list[Measured]:
    """The four figures of the story; R3's accept length was never recorded."""
    return [
        Measured("R0", "story", speculative=False, tok_s=(90.0,)),
        Measured(
            "R1",
            "story",
            speculative=True,
            num_steps=1,
            topk=1,
            draft_tokens_asked=16,
            tok_s=(56.8,),
            accept_len=1.6,
            accept_rate=0.80,
        ),
        Measured(
            "R2",
            "story",
            speculative=True,
            num_steps=15,
            topk=1,
            draft_tokens_asked=16,
            tok_s=(46.7,),
            accept_len=1.9,
            accept_rate=0.12,
        ),
        Measured(
            "R3",
            "story",
            speculative=True,
            tok_s=(54.8,),
            changes=("aux layers [2, 30, 58] -> [-1, 2, 30]",),
        ),
    ]


class Make:
    """The builders above, reachable from tests without an import path."""

    stretch = staticmethod(stretch)
    boot = staticmethod(boot)
    args = staticmethod(args)
    asked = staticmethod(asked)
    kimi_draft = staticmethod(kimi_draft)
    kimi_target = KIMI_TARGET
    story_rows = staticmethod(story_rows)
    case = staticmethod(case_from_rows)


@pytest.fixture(scope="session")
def make() -> type[Make]:
    return Make


@pytest.fixture(scope="session")
def codes() -> Found:
    """Findings of a case by code, from the whole registry."""
    from specdebug.diagnosis.diagnose import diagnose

    return lambda case: {f.code: f for f in diagnose(case).findings}
