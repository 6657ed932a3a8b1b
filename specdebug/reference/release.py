"""What the served SGLang release changes in this engine, as one table; other releases are refused.

Sources: the published wheels of the releases named (draft positions: sgl-project/sglang PR 25015,
in 0.5.12; log accept rate redefined in 0.5.11).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class EngineRelease:
    """The differences between releases that this engine reproduces."""

    name: str
    # Releases up to 0.5.11 advance the position before each draft decode forward and so skip one.
    draft_position_offset: int
    # False: log accept rate = accept len / draft tokens. True: (len - 1) / (draft tokens - 1).
    strict_log_rate: bool
    # Up to 0.5.10.post1 the overlap scheduler is switched off with a warning. This engine has none.
    warns_overlap_off: bool
    # meta_info names of "accepted drafts" and "proposed drafts".
    accepted_names: tuple[str, ...]
    proposed_names: tuple[str, ...]
    histogram_names: tuple[str, ...]

    def log_accept_rate(self, accept_length: float, draft_tokens: int) -> float:
        """The `accept rate` of a Decode batch line."""
        if self.strict_log_rate:
            return (accept_length - 1) / (draft_tokens - 1)
        return accept_length / draft_tokens


_OLD = (("spec_accept_token_num",), ("spec_draft_token_num",), ("spec_accept_histogram",))
_MIDDLE = (("spec_accepted_drafts",), ("spec_proposed_drafts",), ("spec_accept_histogram",))
_NEW = (
    ("spec_num_correct_drafts", "spec_accepted_drafts"),
    ("spec_num_proposed_drafts", "spec_proposed_drafts"),
    ("spec_correct_drafts_histogram", "spec_accept_histogram"),
)

RELEASES = {
    release.name: release
    for release in (
        EngineRelease("0.5.9", 1, False, True, *_OLD),
        EngineRelease("0.5.10", 1, False, True, *_OLD),
        EngineRelease("0.5.10.post1", 1, False, True, *_OLD),
        EngineRelease("0.5.11", 1, True, False, *_MIDDLE),
        EngineRelease("0.5.12", 0, True, False, *_NEW),
    )
}
DEFAULT = "0.5.10.post1"
