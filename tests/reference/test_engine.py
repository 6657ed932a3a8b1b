"""Limits of a loaded pair, and the rows behind its longest context."""

import pytest

from specdebug.reference import layers, server_args, variants
from specdebug.reference.engine import Engine
from specdebug.reference.server_args import MAX_STEPS, ArgsError


def engine(*flags: str) -> Engine:
    return Engine(server_args.resolve(["--model-path", str(variants.TARGET), *flags]))


def test_the_capacity_is_the_context_or_what_was_asked_for_below_it() -> None:
    assert engine().capacity == 1024
    assert engine("--max-total-tokens", "8192").capacity == 1024
    assert engine("--max-total-tokens", "300").capacity == 300
    assert engine("--context-length", "200").capacity == 200


def test_a_context_beyond_the_model_is_refused() -> None:
    with pytest.raises(ArgsError, match="--context-length 2048: the model has 1024"):
        engine("--context-length", "2048")


def test_the_longest_chain_fits_behind_the_longest_context() -> None:
    assert MAX_STEPS + 2 <= layers.SLACK
