"""The byte-level BPE of the shipped models, as a Hugging Face tokenizer.json; knows no model."""

import json
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

BOS, EOS = "<s>", "</s>"
VOCAB_SIZE = 512
# Words with their leading space, digits, a newline with its indent, runs of spaces, runs of signs:
# source code keeps its indents as single tokens.
WORDS = r" ?[A-Za-z_]+| ?[0-9]+|\n[ ]*| +|[^A-Za-z0-9_\s]+|\s"


class TokenizerError(Exception):
    """A tokenizer.json that is missing or cannot be read; the message names the file."""


def train(texts: list[str]) -> Tokenizer:
    """Train a byte-level BPE of VOCAB_SIZE entries: <s> = 0, </s> = 1, 256 bytes, then merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=[BOS, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path, max_length: int) -> None:
    """Write tokenizer.json and tokenizer_config.json into a checkpoint folder."""
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "model_max_length": max_length,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def load(folder: Path) -> Tokenizer:
    """Load tokenizer.json from a checkpoint folder; raises TokenizerError naming the file."""
    path = folder / "tokenizer.json"
    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TokenizerError(f"{path}: cannot read it: {error.strerror}") from None
    except Exception as error:  # the library raises bare Exception for every kind of bad content
        raise TokenizerError(f"{path}: not a tokenizer.json: {error}") from None
