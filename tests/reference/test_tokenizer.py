"""The byte-level vocabulary."""

from pathlib import Path

import pytest

from specdebug.reference import tokenizer, variants


def test_any_text_survives_the_round_trip() -> None:
    shipped = tokenizer.load(variants.TARGET)
    for text in (
        "def f(x):\n    return x\n",
        "\t tabs  and   spaces ",
        "Grüße 你好 🙂",
        "\x00\x7f",
    ):
        assert shipped.decode(shipped.encode(text).ids) == text


def test_an_indent_is_one_token_with_its_newline() -> None:
    trained = tokenizer.train(["def f():\n    pass\n" * 50])
    assert len(trained.encode("\n    ").ids) == 1


def test_the_end_token_is_one_id_and_left_out_of_the_text() -> None:
    shipped = tokenizer.load(variants.TARGET)
    ids = shipped.encode("x</s>").ids
    assert ids[-1] == shipped.token_to_id(tokenizer.EOS) == 1
    assert shipped.decode(ids, skip_special_tokens=True) == "x"


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(tokenizer.TokenizerError, match=r"tokenizer\.json: cannot read it"):
        tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(tokenizer.TokenizerError, match=r"tokenizer\.json: not a tokenizer\.json"):
        tokenizer.load(tmp_path)


def test_target_and_draft_ship_the_same_tokenizer() -> None:
    name = "tokenizer.json"
    assert (variants.TARGET / name).read_bytes() == (variants.DRAFT / name).read_bytes()
