"""The loaded pair: tokenizer, decoder and limits, with the log lines of loading; serves nothing."""

import logging
import time
from pathlib import Path

import torch
from torch import nn

from specdebug.reference import capture, checkpoint, tokenizer
from specdebug.reference.decode import ChainDecoder, Decoder, PlainDecoder
from specdebug.reference.draft import Draft
from specdebug.reference.layers import KVCache
from specdebug.reference.server_args import ArgsError, Resolved
from specdebug.reference.target import Target

log = logging.getLogger("specdebug.reference")
GIB = 1 << 30


class Engine:
    """Everything a request needs. num_steps is 0 without speculation."""

    def __init__(self, resolved: Resolved) -> None:
        """Load; raises CheckpointError, TokenizerError, CaptureError or ArgsError."""
        args = resolved.args
        self.release = resolved.release
        self.capture_id_offset = resolved.capture_id_offset
        torch.set_num_threads(1)  # two threads are slower at this size
        torch.manual_seed(args["random_seed"])
        folder = Path(args["model_path"])
        checkpoint.read_config(folder)
        self.tokenizer = tokenizer.load(Path(args["tokenizer_path"]))
        before = _load_begin()
        target = checkpoint.load_target(folder)
        _load_end(before, target, checkpoint.TARGET_ARCHITECTURE)
        self.vocab_size = target.shape.vocab_size
        self.end_id = self.tokenizer.token_to_id(tokenizer.EOS)
        limit = target.shape.max_position_embeddings
        self.context_length = args["context_length"] or limit
        if not 1 < self.context_length <= limit:
            raise ArgsError(f"--context-length {self.context_length}: the model has {limit}")
        self.capacity = min(args["max_total_tokens"] or limit, self.context_length)
        self.num_steps = 0
        if not resolved.speculative:
            plain = PlainDecoder(target)
            self._allocated(plain.cache)
            self.decoder: Decoder = plain
            return
        self.num_steps = args["speculative_num_steps"]
        draft_folder = Path(args["speculative_draft_model_path"])
        config = checkpoint.read_config(draft_folder)
        before = _load_begin()
        draft = checkpoint.load_draft(draft_folder, target)
        _load_end(before, draft, checkpoint.DRAFT_ARCHITECTURE)
        chosen = capture.from_config(
            config,
            draft_folder / checkpoint.CONFIG,
            num_layers=target.shape.num_hidden_layers,
            num_aux=draft.num_aux,
            id_offset=self.capture_id_offset,
        )
        for note in chosen.notes:
            log.info("specdebug reference engine: %s.", note)
        chain = ChainDecoder(
            target,
            draft,
            hidden_states=chosen.hidden_states,
            num_steps=self.num_steps,
            position_offset=self.release.draft_position_offset,
        )
        self._allocated(chain.cache)
        self._allocated(chain.draft_cache)
        self.decoder = chain

    def claim_thread(self) -> None:
        """Call on the thread that will decode: thread counts are per thread."""
        torch.set_num_threads(1)

    def text(self, ids: list[int]) -> str:
        """Ids -> text without the special tokens."""
        decoded: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return decoded

    def ids(self, text: str) -> list[int]:
        """Text -> ids, no special tokens added."""
        encoded: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return encoded

    def _allocated(self, cache: KVCache) -> None:
        size = cache.gib / 2
        log.info(
            "KV Cache is allocated. #tokens: %d, K size: %.2f GB, V size: %.2f GB",
            self.capacity,
            size,
            size,
        )
        log.info("Memory pool end. avail mem=%.2f GB", available_gib())


def available_gib() -> float:
    """Memory the system can still give, in GiB; 0 where /proc does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0.0
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024 / GIB
    return 0.0


def _load_begin() -> tuple[float, float]:
    available = available_gib()
    log.info("Load weight begin. avail mem=%.2f GB", available)
    return time.perf_counter(), available


def _load_end(before: tuple[float, float], model: Target | Draft, architecture: str) -> None:
    log.info(
        "Load weight end. elapsed=%.2f s, type=%s, avail mem=%.2f GB, mem usage=%.2f GB.",
        time.perf_counter() - before[0],
        architecture,
        available_gib(),
        _weight_gib(model),
    )


def _weight_gib(model: nn.Module) -> float:
    return sum(p.numel() * p.element_size() for p in model.parameters()) / GIB
