from typing import Any

import pytest

from specdebug.diagnosis.checks import asked as checks
from specdebug.diagnosis.checks import differing, refused
from specdebug.diagnosis.facts import Measured

WARNING = (
    "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
    "speculative_eagle_topk == 1"
)


def test_an_override_seen_in_the_log_is_certain_and_shows_flag_warning_and_value(make: Any) -> None:
    case = make.case(
        requested=make.asked(steps=1, tokens=16),
        boots=[make.boot(args=make.args(steps=1), notices=[("argument-warning", WARNING)])],
    )
    found = checks.draft_tokens_overridden(case)
    assert found is not None
    assert found.confidence == "certain"
    assert "16" in found.statement
    assert "1 + 1" in found.statement
    assert {e.source for e in found.evidence} == {"requested", "server.log"}
    assert any(WARNING in e.text for e in found.evidence)
    assert "--speculative-num-steps 15" in found.fix
    assert "--speculative-num-draft-tokens 2" in found.fix


def test_the_warning_alone_is_no_override(make: Any) -> None:
    # The engine prints it too when the flag was omitted, so only a lost value counts.
    case = make.case(
        requested=make.asked(steps=3, tokens=None),
        boots=[make.boot(args=make.args(steps=3), notices=[("argument-warning", WARNING)])],
    )
    assert checks.draft_tokens_overridden(case) is None


def test_an_override_is_predicted_from_the_command_alone(make: Any) -> None:
    case = make.case(requested=make.asked(steps=1, tokens=16), engine_version="0.5.9")
    found = checks.draft_tokens_overridden(case)
    assert found is not None
    assert found.confidence == "certain"


def test_with_an_unknown_release_the_prediction_is_likely(make: Any) -> None:
    found = checks.draft_tokens_overridden(make.case(requested=make.asked(steps=1, tokens=16)))
    assert found is not None
    assert found.confidence == "likely"
    assert "release" in found.settled_by


def test_before_046_nothing_is_overridden(make: Any) -> None:
    case = make.case(requested=make.asked(steps=1, tokens=16), engine_version="0.4.5")
    assert checks.draft_tokens_overridden(case) is None


def test_upward_overrides_count_too(make: Any) -> None:
    case = make.case(requested=make.asked(steps=5, tokens=2), engine_version="0.5.9")
    found = checks.draft_tokens_overridden(case)
    assert found is not None
    assert "6 are in force" in found.statement


@pytest.mark.parametrize(("steps", "topk", "tokens"), [(3, 1, 4), (3, 4, 16), (15, 1, 16)])
def test_a_valid_pair_or_a_tree_is_left_alone(
    make: Any, steps: int, topk: int, tokens: int
) -> None:
    case = make.case(
        requested=make.asked(steps=steps, topk=topk, tokens=tokens), engine_version="0.5.9"
    )
    assert checks.draft_tokens_overridden(case) is None


def test_a_row_of_a_table_is_enough_for_an_override(make: Any) -> None:
    row = Measured("R1", "pasted.txt", line=4, num_steps=1, topk=1, draft_tokens_asked=16)
    found = checks.draft_tokens_overridden(make.case(runs=[row]))
    assert found is not None
    assert found.evidence[0].line == 4
    fine = Measured("R2", "pasted.txt", num_steps=15, topk=1, draft_tokens_asked=16)
    assert checks.draft_tokens_overridden(make.case(runs=[fine])) is None


def test_decode_lines_betray_a_window_of_two(make: Any) -> None:
    lines = make.stretch([1.6, 1.58, 1.62, 1.6, 1.65], window=2)
    case = make.case(requested=make.asked(steps=15, tokens=16), boots=[make.boot(lines)])
    found = checks.effective_window_inferred(case)
    assert found is not None
    assert found.severity == "high"
    assert "give 2" in found.statement


def test_two_windows_fit_a_constant_length_on_an_unknown_release(make: Any) -> None:
    lines = make.stretch([2.5] * 6, window=5)
    found = checks.effective_window_inferred(make.case(boots=[make.boot(lines)]))
    assert found is not None
    assert found.confidence == "possible"
    assert "4 or 5" in found.statement
    assert found.settled_by == "the engine's release"


def test_a_known_release_decides_between_the_two(make: Any) -> None:
    lines = make.stretch([2.5] * 6, window=5)
    case = make.case(
        requested=make.asked(steps=3, tokens=4), boots=[make.boot(lines)], engine_version="0.5.9"
    )
    found = checks.effective_window_inferred(case)
    assert found is not None
    assert "give 5" in found.statement
    strict = make.case(
        requested=make.asked(steps=3, tokens=4), boots=[make.boot(lines)], engine_version="0.5.12"
    )
    assert checks.effective_window_inferred(strict) is None


def test_a_window_that_matches_the_asked_one_is_quiet(make: Any) -> None:
    lines = make.stretch([2.2, 2.5, 2.8, 2.4, 2.6], window=4)
    case = make.case(requested=make.asked(steps=3, tokens=4), boots=[make.boot(lines)])
    assert checks.effective_window_inferred(case) is None


def test_adaptive_speculation_has_no_single_window(make: Any) -> None:
    lines = make.stretch([1.6, 1.58, 1.62, 1.6, 1.65], window=2)
    case = make.case(
        requested=make.asked(steps=15, tokens=16, speculative_adaptive=True),
        boots=[make.boot(lines)],
    )
    assert checks.effective_window_inferred(case) is None


def test_another_value_that_the_engine_changed_is_named(make: Any) -> None:
    case = make.case(
        requested=make.asked(page_size=16),
        boots=[make.boot(args=make.args(page_size=64))],
    )
    found = differing.argument_overridden(case)
    assert found is not None
    assert "page_size 16 became 64" in found.statement


def test_equal_values_in_other_spellings_are_no_override(make: Any) -> None:
    case = make.case(
        requested=make.asked(mem_fraction_static="0.85", cuda_graph_bs="1 2 4", tp_size="8"),
        boots=[
            make.boot(args=make.args(mem_fraction_static=0.85, cuda_graph_bs=[1, 2, 4], tp_size=8))
        ],
    )
    assert differing.argument_overridden(case) is None


def test_omitted_arguments_are_named_as_defaults(make: Any) -> None:
    case = make.case(
        requested=make.asked(None, None, None),
        engine_version="0.5.9",
        target_config={
            "architectures": ["LlamaForCausalLM"],
            "num_hidden_layers": 32,
            "hidden_size": 4096,
        },
    )
    found = checks.defaults_chosen(case)
    assert found is not None
    assert found.severity == "info"
    assert "num_steps 5, topk 4, draft tokens 8" in found.statement


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("deepseek-ai/DeepSeek-V3", 4),
        ("meta-llama/Llama-3.1-8B-Instruct", 8),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", None),
        ("meta-llama/Llama-3.2-11B-Vision", None),
        ("some/target", None),
    ],
)
def test_a_published_models_name_tells_its_class_and_so_its_defaults(
    make: Any, model: str, tokens: int | None
) -> None:
    asked = make.asked(None, None, None, model_path=model)
    found = checks.defaults_chosen(make.case(requested=asked, engine_version="0.5.12"))
    assert found is not None
    assert (f"draft tokens {tokens}" in found.statement) == (tokens is not None)
    assert found.settled_by


def test_with_the_release_known_the_target_is_what_decides_the_defaults(make: Any) -> None:
    requested = make.asked(None, None, None)
    found = checks.defaults_chosen(make.case(requested=requested, engine_version="0.5.12"))
    assert found is not None
    assert "0.5.12 chooses depends on the target's architecture" in found.statement
    assert "release" not in found.settled_by
    found = checks.defaults_chosen(make.case(requested=requested))
    assert found is not None
    assert "the engine's release" in found.settled_by


def test_defaults_that_are_the_same_for_every_target_are_certain(make: Any) -> None:
    requested = make.asked(None, None, None, speculative_algorithm="EAGLE")
    found = checks.defaults_chosen(make.case(requested=requested, engine_version="0.4.4.post1"))
    assert found is not None
    assert "num_steps 5, topk 4, draft tokens 8" in found.statement
    assert (found.confidence, found.settled_by) == ("certain", "")


def test_the_block_of_a_block_draft_is_told_by_its_config_and_open_without(make: Any) -> None:
    requested = make.asked(None, None, None, speculative_algorithm="DFLASH")
    open_one = checks.defaults_chosen(make.case(requested=requested, engine_version="0.5.11"))
    assert open_one is not None
    assert "the block size of the draft's config, 16 where it names none" in open_one.statement
    assert "the draft's config.json" in open_one.settled_by
    config = {"architectures": ["DFlashDraftModel"], "block_size": 8}
    told = checks.defaults_chosen(
        make.case(requested=requested, engine_version="0.5.11", draft_config=config)
    )
    assert told is not None
    assert "8 draft tokens" in told.statement
    given = make.asked(None, None, 16, speculative_algorithm="DFLASH")
    assert checks.defaults_chosen(make.case(requested=given, engine_version="0.5.11")) is None


def test_given_arguments_are_no_defaults(make: Any) -> None:
    assert checks.defaults_chosen(make.case(requested=make.asked())) is None


def test_steps_without_topk_are_refused(make: Any) -> None:
    case = make.case(requested=make.asked(3, None, None), engine_version="0.5.9")
    found = refused.arguments_rejected(case)
    assert found is not None
    assert found.severity == "critical"
    assert "TypeError" in found.statement


def test_a_server_that_runs_was_not_refused(make: Any) -> None:
    case = make.case(
        requested=make.asked(3, None, None),
        engine_version="0.5.9",
        boots=[make.boot(make.stretch([2.0] * 5), args=make.args())],
    )
    assert refused.arguments_rejected(case) is None


def test_a_complete_command_is_not_refused(make: Any) -> None:
    case = make.case(requested=make.asked(), engine_version="0.5.9")
    assert refused.arguments_rejected(case) is None


def test_an_eagle3_draft_under_eagle_is_certain(make: Any) -> None:
    case = make.case(
        requested=make.asked(speculative_algorithm="EAGLE"),
        draft_config=make.kimi_draft([1, 29, 57]),
    )
    found = checks.wrong_algorithm_for_draft(case)
    assert found is not None
    assert found.confidence == "certain"


def test_the_class_that_loaded_is_enough_to_know_the_draft(make: Any) -> None:
    from dataclasses import replace

    boot = make.boot(args=make.args(speculative_algorithm="EAGLE"), notices=[("model-load", "x")])
    loaded = replace(
        boot, notices=(replace(boot.notices[0], fields={"type": "LlamaForCausalLMEagle3"}),)
    )
    assert checks.wrong_algorithm_for_draft(make.case(boots=[loaded])) is not None


def test_an_eagle3_draft_under_eagle3_is_right(make: Any) -> None:
    case = make.case(requested=make.asked(), draft_config=make.kimi_draft([1, 29, 57]))
    assert checks.wrong_algorithm_for_draft(case) is None


def test_an_eagle_draft_under_eagle3_is_named(make: Any) -> None:
    draft = {"architectures": ["LlamaForCausalLMEagle"], "model_type": "llama"}
    found = checks.wrong_algorithm_for_draft(make.case(requested=make.asked(), draft_config=draft))
    assert found is not None
    assert found.confidence == "likely"


def test_a_refusal_in_the_log_is_certain_without_any_command(make: Any) -> None:
    text = "TypeError: '>' not supported between instances of 'NoneType' and 'int'"
    boot = make.boot(notices=[("error-message", text)])
    found = refused.arguments_rejected(make.case(boots=[boot]))
    assert found is not None
    assert found.confidence == "certain"
    assert found.evidence[0].text == text
    other = make.boot(notices=[("error-message", "TypeError: no such thing")])
    assert refused.arguments_rejected(make.case(boots=[other])) is None


def test_flags_quoted_in_prose_are_asked_values_and_never_refused() -> None:
    from specdebug.diagnosis.case import Input, build_case

    text = b"we pass --speculative-num-steps 1 --speculative-eagle-topk 1 and ask for 16 with\n"
    text += b"--speculative-num-draft-tokens 16 but it is slow\n"
    case = build_case([Input("prose", text)])
    found = checks.draft_tokens_overridden(case)
    assert found is not None
    assert found.evidence[0].line == 2
    lone = build_case([Input("prose", b"why is --speculative-num-draft-tokens 16 so slow?")])
    assert refused.arguments_rejected(lone) is None
    assert checks.draft_tokens_overridden(lone) is None


def test_a_row_with_length_and_rate_betrays_its_window(make: Any) -> None:
    def row(asked: int) -> Measured:
        return Measured(
            "R1",
            "pasted",
            num_steps=None,
            draft_tokens_asked=asked,
            accept_len=1.6,
            accept_rate=0.8,
        )

    found = checks.effective_window_inferred(make.case(runs=[row(16)]))
    assert found is not None
    assert "gives 2" in found.statement
    assert checks.effective_window_inferred(make.case(runs=[row(2)])) is None


def test_a_draft_called_eagle3_under_eagle_is_possible_until_its_config_is_known(make: Any) -> None:
    asked = make.asked(
        speculative_algorithm="EAGLE", speculative_draft_model_path="drafts/qwen3-8b-eagle3"
    )
    found = checks.wrong_algorithm_for_draft(make.case(requested=asked))
    assert found is not None
    assert (found.severity, found.confidence) == ("medium", "possible")
    known = make.case(requested=asked, draft_config={"architectures": ["LlamaForCausalLMEagle"]})
    assert checks.wrong_algorithm_for_draft(known) is None
    other = make.asked(
        speculative_algorithm="EAGLE", speculative_draft_model_path="drafts/eagle-30b"
    )
    assert checks.wrong_algorithm_for_draft(make.case(requested=other)) is None


def test_a_refusal_that_hangs_on_the_backend_is_a_possibility_and_names_it(make: Any) -> None:
    case = make.case(requested=make.asked(3, 4, 16, page_size=64), engine_version="0.5.9")
    found = refused.arguments_rejected(case)
    assert found is not None
    assert (found.severity, found.confidence) == ("info", "possible")
    assert "attention backend" in found.settled_by
    settled = make.asked(3, 4, 16, page_size=64, attention_backend="flashinfer")
    assert refused.arguments_rejected(make.case(requested=settled, engine_version="0.5.9")) is None


def test_a_window_that_the_override_explains_is_told_once_as_a_fault(make: Any) -> None:
    lines = make.stretch([1.4, 1.6, 1.8, 1.5, 1.7], window=2)
    case = make.case(
        requested=make.asked(1, 1, 16), boots=[make.boot(lines)], engine_version="0.5.9"
    )
    override, window = checks.draft_tokens_overridden(case), checks.effective_window_inferred(case)
    assert override is not None
    assert window is not None
    assert (override.severity, window.severity) == ("high", "info")
    lines = make.stretch([1.4, 2.6, 2.8, 1.5, 2.7], window=3)
    case = make.case(
        requested=make.asked(1, 1, 16), boots=[make.boot(lines)], engine_version="0.5.9"
    )
    window = checks.effective_window_inferred(case)
    assert window is not None
    assert window.severity == "high"  # three is neither what was asked nor what the rule gives
