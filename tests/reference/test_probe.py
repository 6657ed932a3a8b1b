"""The probe on the shipped pair, whose draft was trained on hidden_states [0, 2, 6]."""

import json
from pathlib import Path

import pytest
import torch

from specdebug.client import cli
from specdebug.reference import checkpoint, corpus, probing, tokenizer
from specdebug.reference.draft import Draft
from specdebug.reference.probe import Probe, probe
from specdebug.reference.target import Target
from specdebug.reference.variants import DRAFT, TARGET, WRONG_IDS, write_draft

RIGHT, WRONG = (0, 2, 6), (2, 6, 10)


@pytest.fixture(scope="module")
def pair() -> tuple[Target, Draft, torch.Tensor]:
    torch.set_num_threads(1)
    target = checkpoint.load_target(TARGET)
    vocabulary = tokenizer.load(TARGET)
    windows = [vocabulary.encode(source.text).ids[300:364] for source in corpus.read()]
    return target, checkpoint.load_draft(DRAFT, target), torch.tensor(windows[:8])


@pytest.fixture(scope="module")
def found(pair: tuple[Target, Draft, torch.Tensor]) -> Probe:
    return probe(*pair, served=WRONG)


def test_the_layers_of_the_training_fit_best_where_they_leave_a_trace(found: Probe) -> None:
    # The embedding is a thousandth of what the draft is fed: other layers fit that slot as well.
    assert [slot.layer for slot in found.slots[1:]] == [2, 6]
    assert found.slots[0].share < 0.01 < found.slots[1].share
    assert RIGHT in {score.layers for score in found.alike}
    assert 0 in found.slots[0].alike
    assert {6} <= set(found.slots[2].alike) <= {5, 6, 7}
    assert found.tokens == 8 * 63


def test_other_layers_than_those_of_the_training_are_called_wrong(found: Probe) -> None:
    assert found.served is not None
    assert found.served.layers == WRONG
    assert found.served.z > 5
    assert found.served.worse > 0.2
    assert found.served.agreement < found.best.agreement
    assert found.fits is False


def test_the_layers_of_the_training_are_not_called_wrong(
    pair: tuple[Target, Draft, torch.Tensor],
) -> None:
    target, draft, ids = pair
    assert probe(target, draft, ids[:4], served=RIGHT).fits is True
    assert probe(target, draft, ids[:1]).fits is None


def test_the_losses_of_a_slot_fall_towards_its_layer(found: Probe) -> None:
    curve = found.slots[2].losses
    assert min(range(len(curve)), key=curve.__getitem__) == 6
    assert curve[6] < curve[7] < curve[12]
    assert curve[6] < curve[5] < curve[0]


@pytest.mark.parametrize("served", [(2, 6), (2, 6, 13), (2, 6, -1)])
def test_served_states_that_cannot_be_are_refused(
    pair: tuple[Target, Draft, torch.Tensor], served: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="are not 3 of 0 to 12"):
        probe(*pair, served=served)


def test_the_command_tells_a_wrong_config_and_the_ids_that_are_right(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = write_draft(tmp_path / "draft", WRONG_IDS)
    assert cli.main(["probe", str(TARGET), str(wrong), "--tokens", "256", "--json"]) == 1
    told = json.loads(capfd.readouterr().out)
    assert told["served"]["layers"] == list(WRONG)
    assert told["best"]["layers"][1:] == [2, 6]
    assert told["layer_ids"]["ids"][1:] == [1, 5]
    assert told["fits"] is False


def test_the_command_says_in_words_that_a_pair_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert probing.main([str(TARGET), str(DRAFT), "--tokens", "256"]) == 0
    told = capsys.readouterr().out
    assert "served are [0, 2, 6] (as the reference engine reads the draft's config)" in told
    assert "WRONG" not in told
    assert "hidden_states[6]" in told


def test_a_release_that_cannot_feed_the_embedding_is_said_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [str(TARGET), str(DRAFT), "--tokens", "128", "--engine-version", "0.5.10"]
    assert probing.main(words) == 0
    assert "SGLang 0.5.10 does not serve it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--served", "a,b"], "--served 'a,b'"),
        (["--served", "1,2"], "are not 3 of 0 to 12"),
        (["--tokens", "5"], "--tokens 5"),
        (["--engine-version", "latest"], "is no release"),
        (["--text", "/nowhere/text"], "/nowhere/text: cannot read it"),
        (["--text", str(DRAFT / "config.json")], "give more --text"),
    ],
)
def test_what_cannot_be_used_gets_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert probing.main([str(TARGET), str(DRAFT), *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1


def test_a_folder_that_is_no_checkpoint_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert probing.main([str(tmp_path), str(DRAFT)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert probing.main([str(TARGET), str(TARGET)]) == 2
    assert "architectures" in capsys.readouterr().err


def test_without_torch_the_command_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["probe", "a", "b"]) == 2
    assert "needs torch, safetensors, tokenizers" in capsys.readouterr().err
