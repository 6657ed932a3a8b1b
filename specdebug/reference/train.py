"""Train the shipped pair again: `python -m specdebug.reference.train --out DIR`; no other models.

About half an hour on one core. The target memorises a fixed text, then the draft learns to follow
it, on that text and on the target's own answers, with five unrolled steps (EAGLE-3's training-time
test), so that its own hidden states are among what it has seen when it is served.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from specdebug.reference import checkpoint, corpus, tokenizer
from specdebug.reference.draft import Draft
from specdebug.reference.layers import Shape
from specdebug.reference.optimizer import Muon
from specdebug.reference.target import Target

TARGET_SHAPE = Shape(
    vocab_size=tokenizer.VOCAB_SIZE,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=12,
    num_attention_heads=4,
    max_position_embeddings=1024,
)
DRAFT_INTERMEDIATE = 512
DRAFT_VOCAB = 384
# Hidden states the draft reads: the embedding, then the outputs of layers 1 and 5 counted from 0.
TRAINED_STATES = (0, 2, 6)
DEPTH = 5
# The target's own text for the draft to learn from: so many answers to prompts of so many tokens.
ANSWERS, PROMPT = 600, 48
DEPTH_DECAY = 0.9
# Verification is greedy: the draft is taught a sharpened distribution, nearer to the best choice.
SHARPEN = 2.0
MATRIX_LR, OTHER_LR = 0.02, 4e-3


def training_ids(vocabulary: Tokenizer) -> Tensor:
    """The corpus as one row of token ids, files closed by the end token."""
    ids: list[int] = []
    for source in corpus.read():
        ids += vocabulary.encode(source.text + tokenizer.EOS).ids
    return torch.tensor(ids)


class Optimizers:
    """Muon for inner matrices, Adam for embeddings, heads and norms; one learning rate curve."""

    def __init__(self, model: nn.Module, steps: int) -> None:
        inner: list[nn.Parameter] = []
        rest: list[nn.Parameter] = []
        for name, param in model.named_parameters():
            if not param.requires_grad:
                continue
            edge = name.startswith(("embed", "head"))
            (inner if param.dim() == 2 and not edge else rest).append(param)
        self.params = inner + rest
        self.muon = Muon(inner, MATRIX_LR)
        self.adam = torch.optim.AdamW(rest, lr=OTHER_LR, betas=(0.9, 0.95), weight_decay=0.0)
        self.steps, self.done = steps, 0

    def step(self, loss: Tensor) -> None:
        """Backward, clip and move; warm-up over 20 steps, then a linear fall in the second half."""
        warm = min(1.0, (self.done + 1) / 20)
        factor = warm * max(0.02, min(1.0, (self.steps - self.done) / (0.5 * self.steps)))
        self.muon.lr = MATRIX_LR * factor
        for group in self.adam.param_groups:
            group["lr"] = OTHER_LR * factor
        self.muon.zero_grad()
        self.adam.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.params, 1.0)
        self.muon.step()
        self.adam.step()
        self.done += 1


def batch(ids: Tensor, rows: int, tokens: int, generator: torch.Generator) -> Tensor:
    """Random stretches of the text, [rows, tokens]."""
    starts = torch.randint(0, len(ids) - tokens, (rows,), generator=generator)
    return torch.stack([ids[start : start + tokens] for start in starts.tolist()])


def train_target(
    ids: Tensor,
    *,
    steps: int,
    seed: int,
    say: Callable[[str], None],
    rows: int = 2,
    tokens: int = 256,
) -> Target:
    """Memorise the text by next-token cross-entropy."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Target(TARGET_SHAPE)
    model.reset()
    optimizers = Optimizers(model, steps)
    begun = time.monotonic()
    for step in range(steps):
        chunk = batch(ids, rows, tokens + 1, generator)
        logits, _ = model(chunk[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        optimizers.step(loss)
        if step % 100 == 0 or step == steps - 1:
            right = (logits.argmax(-1) == chunk[:, 1:]).float().mean().item()
            spent = time.monotonic() - begun
            say(f"target step {step} {spent:.0f} s loss {loss.item():.3f} accuracy {right:.3f}")
    return model.eval()


@dataclass(frozen=True)
class Lesson:
    """What the target makes of many stretches of the text, computed once.

    N stretches of T + DEPTH tokens: ids [N, T + DEPTH], captured [N, T, 3 * hidden], choice
    [N, T + DEPTH] (the target's best next token), wanted [N, T + DEPTH, draft vocabulary] (its
    distribution over what the draft can say).
    """

    ids: Tensor
    captured: Tensor
    choice: Tensor
    wanted: Tensor

    def some(self, rows: int, generator: torch.Generator) -> "Lesson":
        """Random rows."""
        picked = torch.randint(0, len(self.ids), (rows,), generator=generator)
        return Lesson(*(part[picked] for part in vars(self).values()))


@torch.no_grad()
def answers(target: Target, ids: Tensor, tokens: int) -> Tensor:
    """What the target itself goes on with after prompts from the text, [ANSWERS, tokens].

    The prompts stand evenly over the text. A draft is served on such text, not on the training
    text: where the target leaves what it has memorised, the two differ.
    """
    prompt = min(PROMPT, tokens // 2)
    starts = torch.linspace(0, len(ids) - prompt - 1, ANSWERS).long().tolist()
    rows = torch.stack([ids[start : start + prompt] for start in starts])
    done = []
    for chunk in torch.split(rows, 64):
        while chunk.shape[1] < tokens:
            logits, _ = target(chunk)
            chunk = torch.cat([chunk, logits[:, -1].argmax(-1, keepdim=True)], 1)
        done.append(chunk)
    return torch.cat(done)


@torch.no_grad()
def lesson(target: Target, draft: Draft, ids: Tensor, tokens: int) -> Lesson:
    """Run the target over stretches that begin every tokens / 3 tokens of the text, and over its
    own answers."""
    starts = range(0, len(ids) - tokens - DEPTH, tokens // 3)
    stretches = torch.stack([ids[start : start + tokens + DEPTH] for start in starts])
    stretches = torch.cat([stretches, answers(target, ids, tokens + DEPTH)])
    parts = []
    for chunk in torch.split(stretches, 8):
        logits, states = target(chunk)
        captured = torch.cat([states[k][:, :tokens] for k in TRAINED_STATES], -1)
        wanted = torch.softmax(SHARPEN * logits[..., draft.t2d], -1)
        parts.append((chunk, captured, logits.argmax(-1), wanted))
    return Lesson(*(torch.cat(part) for part in zip(*parts, strict=True)))


def draft_loss(draft: Draft, taught: Lesson) -> tuple[Tensor, list[float]]:
    """Cross-entropy to the target's distribution per depth; and top-1 agreement per depth.

    Places where the target's choice is outside the draft vocabulary carry no loss, and count as
    disagreement.
    """
    rows = taught.captured.shape[1] - 1
    total = torch.zeros(())
    agreement = []
    for k, out in enumerate(draft.unroll(taught.captured[:, :rows], taught.ids[:, 1:], DEPTH)):
        places = slice(k + 1, k + 1 + rows)
        best, wanted = taught.choice[:, places], taught.wanted[:, places]
        said = draft.t2d[best].float()
        entropy = -(said[..., None] * wanted * torch.log_softmax(out, -1)).sum(-1).mean()
        total = total + entropy * DEPTH_DECAY**k
        agreement.append((draft.target_ids[out.argmax(-1)] == best).float().mean().item())
    return total / sum(DEPTH_DECAY**k for k in range(DEPTH)), agreement


def train_draft(
    target: Target,
    ids: Tensor,
    *,
    steps: int,
    seed: int,
    say: Callable[[str], None],
    rows: int = 2,
    tokens: int = 144,
) -> Draft:
    """Teach a draft head to follow the target on its text and on what it says by itself."""
    torch.manual_seed(seed + 100)
    generator = torch.Generator().manual_seed(seed + 7)
    sizes = {**vars(target.shape), "num_hidden_layers": 1, "intermediate_size": DRAFT_INTERMEDIATE}
    draft = Draft(Shape(**sizes), DRAFT_VOCAB, len(TRAINED_STATES))
    draft.reset()
    counts = torch.bincount(ids, minlength=target.shape.vocab_size)
    common = counts.topk(DRAFT_VOCAB).indices.sort().values
    draft.set_vocabulary(common - torch.arange(DRAFT_VOCAB))
    with torch.no_grad():
        draft.embed.weight.copy_(target.embed.weight)
        draft.head.weight.copy_(target.head.weight[common])
    optimizers = Optimizers(draft, steps)
    begun = time.monotonic()
    taught = lesson(target, draft, ids, tokens)
    # The target's states are in the hundreds and Muon's steps have one size: on states as they are
    # every step would throw fc's output about. Train on states of size one, fold the scale after.
    scale = taught.captured.square().mean().sqrt()
    taught.captured.div_(scale)
    for step in range(steps):
        loss, agreement = draft_loss(draft, taught.some(rows, generator))
        optimizers.step(loss)
        if step % 100 == 0 or step == steps - 1:
            depths = " ".join(f"{share:.3f}" for share in agreement)
            spent = time.monotonic() - begun
            say(f"draft step {step} {spent:.0f} s loss {loss.item():.3f} agreement {depths}")
    with torch.no_grad():
        draft.fc.weight.div_(scale)
    return draft.eval()


def main(argv: list[str] | None = None) -> int:
    """Train what is asked for and write HF folders OUT/target and OUT/draft."""
    parser = argparse.ArgumentParser(
        prog="python -m specdebug.reference.train", description=__doc__
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder to write target/ and draft/"
    )
    parser.add_argument("--only", choices=["target", "draft"], help="draft: reads OUT/target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target-steps", type=int, default=5000)
    parser.add_argument("--draft-steps", type=int, default=3000)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # two threads are slower at this size (0.152 against 0.121 s a step)

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    try:
        vocabulary = tokenizer.train([source.text for source in corpus.read()])
    except corpus.CorpusError as error:
        say(f"train: {error}")
        return 1
    ids = training_ids(vocabulary)
    say(f"corpus {len(ids)} tokens")
    target_dir, draft_dir = args.out / "target", args.out / "draft"
    record = {"seed": args.seed, "corpus_tokens": len(ids)}
    if args.only != "draft":
        target = train_target(ids, steps=args.target_steps, seed=args.seed, say=say)
        checkpoint.save_target(target, target_dir, vocabulary)
        _note(target_dir, {**record, "steps": args.target_steps})
    if args.only != "target":
        target = checkpoint.load_target(target_dir)
        draft = train_draft(target, ids, steps=args.draft_steps, seed=args.seed, say=say)
        checkpoint.save_draft(draft, draft_dir, vocabulary, [k - 1 for k in TRAINED_STATES])
        _note(draft_dir, {**record, "steps": args.draft_steps, "hidden_states": TRAINED_STATES})
    return 0


def _note(folder: Path, record: dict[str, object]) -> None:
    (folder / "training.json").write_text(json.dumps({**record, "torch": torch.__version__}) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
