"""Training learns, on tiny sizes; the shipped pair's own training takes a quarter of an hour."""

import pytest
import torch

from specdebug.reference import corpus, train
from tests.reference.conftest import tiny_shape


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """A text that repeats, and a target of five small layers."""
    monkeypatch.setattr(train, "TARGET_SHAPE", tiny_shape())
    monkeypatch.setattr(train, "TRAINED_STATES", (0, 2, 4))
    monkeypatch.setattr(train, "DRAFT_INTERMEDIATE", 24)
    monkeypatch.setattr(train, "DRAFT_VOCAB", 12)
    monkeypatch.setattr(train, "DEPTH", 3)
    torch.manual_seed(0)
    return torch.randperm(12)[:7].repeat(60)


def test_target_and_draft_learn_a_text_that_repeats(small: torch.Tensor) -> None:
    said: list[str] = []
    target = train.train_target(small, steps=40, seed=0, say=said.append, rows=2, tokens=24)
    assert float(said[-1].split()[-1]) > 0.9  # accuracy
    draft = train.train_draft(target, small, steps=60, seed=0, say=said.append, rows=2, tokens=24)
    depths = [float(word) for word in said[-1].split("agreement ")[1].split()]
    assert len(depths) == train.DEPTH
    assert min(depths) > 0.8
    assert draft.d2t.shape == (12,)


def test_the_same_seed_gives_the_same_weights(small: torch.Tensor) -> None:
    def once(seed: int) -> torch.Tensor:
        model = train.train_target(
            small, steps=3, seed=seed, say=lambda line: None, rows=1, tokens=16
        )
        return model.head.weight.detach()

    assert torch.equal(once(1), once(1))
    assert not torch.equal(once(1), once(2))


def test_the_wrong_interpreter_is_told_and_trains_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    monkeypatch.setattr(corpus, "SOURCES", {"bisect.py": "0" * 64})
    assert train.main(["--out", f"{tmp_path}/out"]) == 1
    assert "train with Python 3.11.7" in capsys.readouterr().out
