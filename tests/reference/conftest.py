"""The shipped pair, loaded once, and tiny random models for what does not need it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from torch import nn

from specdebug.reference import checkpoint, tokenizer, variants
from specdebug.reference.draft import Draft
from specdebug.reference.layers import Shape
from specdebug.reference.target import Target
from tests.reference.running import SPECULATIVE, Running, start

torch.set_num_threads(1)  # the sizes here are slower on two
ROOT = Path(__file__).resolve().parents[2]
RIGHT, WRONG = (0, 2, 6), (2, 6, 10)


@dataclass(frozen=True)
class Pair:
    """Target, draft and tokenizer as shipped."""

    target: Target
    draft: Draft
    tokenizer: Tokenizer


@pytest.fixture(scope="session")
def pair() -> Pair:
    target = checkpoint.load_target(variants.TARGET)
    draft = checkpoint.load_draft(variants.DRAFT, target)
    return Pair(target, draft, tokenizer.load(variants.TARGET))


@pytest.fixture(scope="session")
def prompts(pair: Pair) -> list[list[int]]:
    """32 prompts: the 16 texts the worker sends, and 16 of random tokens."""
    lines = (ROOT / "workers/prompts/stdlib.jsonl").read_text().splitlines()
    texts = [pair.tokenizer.encode(json.loads(line)["text"]).ids for line in lines]
    dice = random.Random(5)
    noise = [[dice.randrange(2, 512) for _ in range(dice.randrange(1, 60))] for _ in range(16)]
    return texts + noise


def tiny_shape(**changes: int) -> Shape:
    sizes = {
        "vocab_size": 40,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 5,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
    }
    return Shape(**{**sizes, **changes})


def randomise(model: nn.Module, seed: int) -> None:
    """Weights without structure: zero-initialised branches would hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.copy_(noise * 0.3 if weight.dim() > 1 else 1 + noise * 0.1)


@pytest.fixture
def tiny_target() -> Target:
    model = Target(tiny_shape())
    randomise(model, 1)
    return model.eval()


@pytest.fixture
def tiny_draft(tiny_target: Target) -> Draft:
    draft = Draft(tiny_shape(num_hidden_layers=1), 30)
    randomise(draft, 2)
    draft.embed.weight.data = tiny_target.embed.weight.data
    draft.set_vocabulary(torch.arange(30) // 4)
    return draft.eval()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    log = tmp_path_factory.mktemp("serve") / "server.log"
    running = start(log, *SPECULATIVE, "--enable-metrics", "--decode-log-interval", "10")
    try:
        running.wait()
        yield running
    finally:
        running.process.kill()
        running.process.wait()
