"""Every finding code with its title, family and one paragraph of explanation; no logic.

The codes are public names: command line, API, pages and reports print them. Never rename one.
"""

from dataclasses import dataclass
from typing import Literal

Family = Literal[
    "configuration", "draft and target", "acceptance", "cost", "measurement", "server life"
]


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """code, a title of a few words, its family, and the paragraph `specdebug explain` prints."""

    code: str
    title: str
    family: Family
    explanation: str


def _family(family: Family, rows: dict[str, tuple[str, str]]) -> dict[str, CatalogueEntry]:
    return {
        code: CatalogueEntry(code, title, family, " ".join(explanation.split()))
        for code, (title, explanation) in rows.items()
    }


_CONFIGURATION = _family(
    "configuration",
    {
        "draft-tokens-overridden": (
            "Draft tokens replaced by num_steps + 1",
            """With --speculative-eagle-topk 1 the draft is a chain, and every release from 0.4.6 on
            sets the number of draft tokens to num_steps + 1 whatever was asked. The engine prints
            one bare sentence before logging is set up, without the old or the new number, so it is
            easily missed. Raise --speculative-num-steps if more draft tokens are wanted, or ask for
            num_steps + 1 if the chain length is meant.""",
        ),
        "effective-window-inferred": (
            "Verification window read from accept len and accept rate",
            """A decode line that carries accept len and accept rate gives away how many tokens each
            verification looks at. Releases 0.5.6 to 0.5.10.post1 print len / window, releases from
            0.5.11 print (len - 1) / (window - 1), 0.5.4 and 0.5.5 print len / (steps + 1). When the
            window found this way is not the one asked for, the engine serves another configuration.
            With an unknown release and a nearly constant accept len two windows can fit; then both
            are named.""",
        ),
        "argument-overridden": (
            "An argument in force differs from the one asked",
            """A value on the launch command and the value in the engine's own list of arguments
            disagree. The engine resolves arguments in several passes, and many of them are silent.
            Figures measured belong to the effective value. Where no rule of the engine makes the
            one of the other, the log may as well be of another start: then both readings are
            named.""",
        ),
        "defaults-chosen": (
            "Speculative arguments left to the engine",
            """num_steps, topk and draft tokens were all omitted, so the release chose them by the
            target's architecture: 5/4/8 or 3/1/4. The choice is not logged and changed between
            releases, so write the values down explicitly before comparing.""",
        ),
        "arguments-rejected": (
            "The release refuses this combination of arguments",
            """The server would stop while reading its arguments, often with an error that names no
            flag: steps without topk raise a TypeError, draft tokens without steps a bare
            AssertionError, topk above 1 with a page size above 1 or with trtllm_mha a
            ValueError.""",
        ),
        "wrong-algorithm-for-draft": (
            "EAGLE-3 draft started under another algorithm",
            """An EAGLE-3 draft needs --speculative-algorithm EAGLE3. Under EAGLE the target
            captures no auxiliary hidden states, the draft's fc layer is skipped without a word, and
            the accept length is exactly 1.00.""",
        ),
        "running-requests-capped": (
            "Speculation capped the number of running requests",
            """When --max-running-requests is not given, speculation sets it to 48 (split over data
            parallel ranks). Requests then wait in the queue, and a comparison with a baseline that
            ran more requests at once says nothing about the draft. Set the limit explicitly for
            both sides.""",
        ),
        "cuda-graph-off": (
            "Decode steps run without CUDA graphs",
            """Graphs are disabled, or were captured for fewer requests than are running, or the
            draft's graphs were never captured. Each step then launches its kernels one by one,
            which hits speculation harder than plain decoding because a step has more forwards.""",
        ),
        "draft-attention-backend": (
            "Draft inherits an attention backend made for another attention",
            """The draft uses grouped-query attention while the target uses multi-head latent
            attention, and the target's backend is inherited by the draft. Set --speculative-draft-
            attention-backend explicitly.""",
        ),
        "simulated-acceptance": (
            "Acceptance is simulated",
            """SGLANG_SIMULATE_ACC_LEN is set: the engine accepts a fixed number of tokens whatever
            the draft says. It is a tool to measure the reachable speed; outputs and acceptance
            figures are not real.""",
        ),
    },
)

_DRAFT_AND_TARGET = _family(
    "draft and target",
    {
        "aux-layer-mismatch": (
            "Draft is fed other layers than in training",
            """An EAGLE-3 draft reads hidden states of three target layers. The layers this release
            captures for the ids in the draft config are not those the training used, slot by slot.
            The draft still works to a degree, so nothing fails: only the acceptance suffers.""",
        ),
        "aux-layer-convention": (
            "The same layer ids mean other layers elsewhere",
            """Frameworks disagree whether an id names the input or the output of a layer, and
            SGLang changed the reading for DeepSeek and Kimi targets at 0.5.13. The same file
            captures other tensors after an upgrade or in another framework. Without the training
            side nobody can say which reading is right.""",
        ),
        "aux-layers-defaulted": (
            "Layer ids missing, so the engine uses its defaults",
            """The engine reads eagle_config.eagle_aux_hidden_state_layer_ids and nothing else. When
            the key is missing, misspelled or at top level, it silently captures the inputs of
            layers 2, n//2 and n-3.""",
        ),
        "aux-layer-not-capturable": (
            "A layer id this release cannot capture",
            """An id below zero (the embedding) or at or beyond the number of layers is never
            reached by the target's layer loop in this release: the server crashes, or fewer states
            than expected reach the draft and its fc layer gets the wrong width.""",
        ),
        "fc-width-mismatch": (
            "fc layer does not fit the captured states",
            """The input width of the draft's fc layer must be the number of captured layers times
            the target's hidden size.""",
        ),
        "draft-vocab-map": (
            "Draft vocabulary cannot be translated",
            """The draft speaks a smaller vocabulary than the target and needs d2t, which stores
            target id minus draft id. Without it, or with absolute ids in it, draft tokens are
            translated to the wrong target tokens.""",
        ),
        "draft-weights-missing": (
            "Weights of the draft are not in the checkpoint",
            """The loader ignores tensor names it does not know and never checks that every
            parameter was filled. A missing lm_head or fc leaves random numbers and an accept length
            of 1.00, and so does a missing embedding of a width that is not the target's; one of the
            target's width is taken from the target, which is said and no fault.""",
        ),
        "draft-norm-unread": (
            "A norm setting of the draft is not read by this release",
            """norm_before_fc, fc_norm, norm_output and norm_before_residual change the draft's
            forward pass. Older releases ignore the keys without a word and run another network than
            the one trained.""",
        ),
        "draft-context-short": (
            "Draft positions end before the target's",
            """The draft's max_position_embeddings is below the context that is served, or its rope
            settings differ from the target's. Acceptance falls off where the draft's positions
            end.""",
        ),
    },
)

_ACCEPTANCE = _family(
    "acceptance",
    {
        "dead-draft": (
            "Nothing is ever accepted",
            """The accept length includes the bonus token, so 1.00 means that no draft token was
            accepted. From the first line on it points at weights, algorithm or layers; after a
            healthy stretch at a poisoned state; on one rank only, at that rank.""",
        ),
        "acceptance-below-training": (
            "Acceptance below what training promised",
            """Validation accuracy a as an independent chain predicts an accept length of (1 -
            a^(S+1)) / (1 - a) at S steps. Teacher-forced accuracy is an upper guide, so a shortfall
            above 15 % is reported, with the part that is short: the first position (features) or
            the later ones (the recurrent step).""",
        ),
        "acceptance-below-reference": (
            "Acceptance below a public reference curve",
            """A published acceptance curve for the same target lies more than 10 % higher. Other
            draft, other quantisation, other prompts: a flag, not a proof.""",
        ),
        "acceptance-collapses": (
            "Acceptance collapses after the first position",
            """The first draft token is accepted at a healthy rate and the later ones are not. That
            is the mark of the recurrent step: the hidden state fed back, the draft's KV cache or
            positions, or a training without multi-step unroll. Wrong layers lower the first
            position instead.""",
        ),
        "first-position-low": (
            "The first draft token is rarely accepted",
            """The first position sees only the target's features, no recurrence. Acceptance between
            0.02 and 0.20 there points at wrong features or a shift by one; below 0.02 the draft is
            dead.""",
        ),
        "acceptance-decays": (
            "Acceptance falls with the context length",
            """Accept length falls as the context grows, steadily or over a cliff. Look at the
            draft's max_position_embeddings and rope settings first.""",
        ),
        "acceptance-uneven": (
            "Ranks accept differently",
            """Data-parallel ranks of one server show accept lengths further apart than 1.3 to 1. An
            average over ranks hides a rank with bad weights, other traffic or another state.""",
        ),
        "degenerate-output": (
            "Output that says nothing about the draft",
            """An accept length above 95 % of what is possible, or one token repeated, usually means
            that the target is looping. Such output is trivially predictable. Releases 0.4.9 to
            0.5.1 let topk above 1 with a page size above 1 through, which later ones refuse because
            results are incorrect: acceptance on them says nothing either.""",
        ),
    },
)

_COST = _family(
    "cost",
    {
        "slower-than-baseline": (
            "Slower than without speculation",
            """Throughput with the draft is below the plain run by more than noise. The change
            splits into an acceptance part (tokens per step) and a step-time part, as log
            ratios.""",
        ),
        "speculation-cannot-win": (
            "Even a perfect draft would lose",
            """The break-even accept length, step time over plain step time, is higher than the most
            tokens a step can yield (num_steps + 1). No draft can win with this step cost: cut the
            cost or raise num_steps.""",
        ),
        "below-break-even": (
            "Accept length below break-even",
            """Each step yields fewer tokens than a plain server would produce in the same time.
            Says how much accept length or how many milliseconds are missing.""",
        ),
        "step-overhead-unexplained": (
            "A fixed cost per step that nothing explains",
            """Step time as a line over num_steps has a fixed part. Verification of a few tokens
            should cost about a plain step; what lies above it is overhead: draft path without CUDA
            graphs, the verify attention backend, the overlap scheduler being off, or two different
            clients.""",
        ),
        "draft-too-deep": (
            "Fewer draft steps would be faster",
            """From the acceptance by position and the cost line over num_steps, another num_steps
            is predicted to give more tokens per second.""",
        ),
        "batch-too-large": (
            "Batch times window leaves no spare compute",
            """Speculation uses compute that a small batch leaves idle. With running requests times
            window in the hundreds the verification costs in proportion to its tokens and the gain
            is gone.""",
        ),
    },
)

_MEASUREMENT = _family(
    "measurement",
    {
        "prompts-not-representative": (
            "Prompts that say nothing about acceptance",
            """Random token ids, random words, repeated prompts or ignore_eos give text no draft was
            trained for, or loops that any draft predicts. Fine for comparing one flag, useless for
            judging acceptance.""",
        ),
        "client-counts-chunks": (
            "The client counts chunks, not tokens",
            """A streaming client that counts events sees one event per verification step, which
            carries several tokens. Its figure times the accept length is the server's figure.""",
        ),
        "too-few-samples": (
            "Too few samples for a verdict",
            """Under 1,000 drafts or fewer than five repeats: figures are reported, but a difference
            between two of them may be noise.""",
        ),
        "warm-up-counted": (
            "Warm-up lines are part of the average",
            """The first decode line after an idle time counts the idle seconds, and lines far below
            the median come from a cold start. Averages over them are too low.""",
        ),
        "several-boots": (
            "One log holds several server starts",
            """The file was appended to by more than one start. Each start may have its own
            arguments; averages across them describe neither.""",
        ),
        "accept-rate-not-comparable": (
            "Accept rates of different definitions",
            """Log accept rate was redefined at 0.5.6 and at 0.5.11, and the per-request rate is yet
            another one. Compare accept lengths, never rates. Rates that the noted release cannot
            have printed are named here too.""",
        ),
    },
)

_SERVER_LIFE = _family(
    "server life",
    {
        "out-of-memory": (
            "Out of memory",
            """The server or a request ran out of GPU memory, or the pool for the KV cache did not
            fit. Lower --mem-fraction-static or the batch, or leave room for the draft.""",
        ),
        "server-died": (
            "The server died",
            """The log shows an exception in the scheduler, a dead rank or a failed child. An exit
            code of -9 alone is no crash: a clean stop ends that way too.""",
        ),
        "start-timeout": (
            "The server did not become ready in time",
            """Start-up ended without the ready line. Loading weights and capturing graphs of a
            large model takes tens of minutes.""",
        ),
        "watchdog": (
            "The watchdog fired",
            """A forward pass took longer than --watchdog-timeout: a hang in a collective, or a step
            that really is that slow.""",
        ),
        "requests-retracted": (
            "Running requests were pushed out",
            """The KV cache was full, so running requests were retracted and computed again. Figures
            of that stretch include work done twice.""",
        ),
        "port-in-use": (
            "The port is taken",
            """Another process listens on the port, often an older server that did not stop. Clients
            may even be talking to that one.""",
        ),
        "gpu-busy": (
            "The GPU was not free",
            """Another process holds GPU memory or the device, so the start failed or the figures
            are shared.""",
        ),
        "missing-model": (
            "A model could not be found",
            """The path or repository of the target or the draft does not exist or is not
            readable.""",
        ),
        "gpu-throttled": (
            "A GPU was held back",
            """NVML said during the measured repeats that the clocks were lowered: by heat, by the
            hardware's brake, or (only noted) by the power cap. In 1 % of the samples or more, and
            at least two, by anything but the power cap it is a fault, from 10 % a high one. The
            power cap is noted from half of the samples on.""",
        ),
        "gpu-lost": (
            "A GPU fell off the bus",
            """A GPU stopped answering NVML while the run lasted. Whatever the server did after that
            moment says nothing about speculation.""",
        ),
        "gpu-memory-errors": (
            "Uncorrected errors of GPU memory",
            """The count of uncorrected ECC errors rose during the run. Outputs may be wrong, and
            the figures belong to a GPU that needs a reset.""",
        ),
    },
)

CATALOGUE: dict[str, CatalogueEntry] = {
    **_CONFIGURATION,
    **_DRAFT_AND_TARGET,
    **_ACCEPTANCE,
    **_COST,
    **_MEASUREMENT,
    **_SERVER_LIFE,
}
