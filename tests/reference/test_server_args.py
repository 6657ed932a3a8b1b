"""Arguments in, effective values and the release's own warnings out."""

import re
from pathlib import Path

import pytest

from specdebug.reference import server_args
from specdebug.reference.server_args import ArgsError, Resolved

BASE = ["--model-path", "m/target"]
SPEC = [*BASE, "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "m/draft"]


def spec(*more: str) -> Resolved:
    return server_args.resolve([*SPEC, *more])


def window(steps: int, tokens: int) -> tuple[str, ...]:
    return (
        *("--speculative-num-steps", str(steps), "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", str(tokens)),
    )


def refused(*argv: str) -> tuple[str, ...]:
    with pytest.raises(ArgsError) as caught:
        server_args.resolve(list(argv))
    return caught.value.lines


def test_topk_one_makes_draft_tokens_follow_steps_with_the_release_s_warning() -> None:
    resolved = spec(*window(1, 16))
    assert resolved.args["speculative_num_draft_tokens"] == 2
    assert (
        "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 "
        "when speculative_eagle_topk == 1"
    ) in resolved.warnings


def test_a_window_that_fits_is_left_alone_and_not_warned_about() -> None:
    resolved = spec(*window(15, 16))
    assert resolved.args["speculative_num_draft_tokens"] == 16
    assert not [line for line in resolved.warnings if "adjusted" in line]


def test_draft_tokens_left_out_are_set_and_warned_about_all_the_same() -> None:
    resolved = spec("--speculative-num-steps", "3", "--speculative-eagle-topk", "1")
    assert resolved.args["speculative_num_draft_tokens"] == 4
    assert server_args.TOKENS_ADJUSTED in resolved.warnings


def test_running_requests_fall_back_to_48_only_where_they_were_not_given() -> None:
    assert spec(*window(1, 2)).args["max_running_requests"] == 48
    assert server_args.RUNNING_RESET in spec(*window(1, 2)).warnings
    given = spec(*window(1, 2), "--max-running-requests", "4")
    assert given.args["max_running_requests"] == 4
    assert server_args.RUNNING_RESET not in given.warnings


def test_the_overlap_warning_ends_with_0_5_11() -> None:
    assert server_args.OVERLAP_OFF in spec(*window(1, 2)).warnings
    later = spec(*window(1, 2), "--engine-release", "0.5.11")
    assert server_args.OVERLAP_OFF not in later.warnings


def test_the_warnings_come_in_the_order_of_the_release() -> None:
    assert spec(*window(1, 16)).warnings == (
        server_args.GRAPH_OFF,
        server_args.RUNNING_RESET,
        server_args.OVERLAP_OFF,
        server_args.TOKENS_ADJUSTED,
    )


def test_without_speculation_only_the_graph_is_warned_about() -> None:
    resolved = server_args.resolve(BASE)
    assert resolved.warnings == (server_args.GRAPH_OFF,)
    assert not resolved.speculative
    assert resolved.args["speculative_num_steps"] is None


def test_steps_alone_end_as_in_the_release_and_say_what_is_missing() -> None:
    told = refused(*SPEC, "--speculative-num-steps", "3")
    assert told[0].startswith("--speculative-eagle-topk is missing")
    assert told[1] == "TypeError: '>' not supported between instances of 'NoneType' and 'int'"


@pytest.mark.parametrize(
    "flags", [("--speculative-num-draft-tokens", "16"), ("--speculative-eagle-topk", "1")]
)
def test_draft_tokens_or_topk_without_steps_end_in_a_bare_assertion(flags: tuple[str, ...]) -> None:
    told = refused(*SPEC, *flags)
    assert told[0].startswith("--speculative-num-steps is missing")
    assert told[1] == "AssertionError"


def test_flags_all_left_out_mean_topk_4_for_llama_which_is_refused_here() -> None:
    assert refused(*SPEC)[0].startswith("topk 4 (the default): the reference engine drafts chains")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--speculative-num-steps", "3", "--speculative-eagle-topk", "2"), "chains only"),
        (("--speculative-num-steps", "0", "--speculative-eagle-topk", "1"), "between 1 and 96"),
        (("--speculative-num-steps", "97", "--speculative-eagle-topk", "1"), "between 1 and 96"),
    ],
)
def test_chains_that_cannot_run_are_refused(argv: tuple[str, ...], words: str) -> None:
    assert words in refused(*SPEC, *argv)[0]


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--tp-size", "8"),
        ("--tensor-parallel-size", "2"),
        ("--tp", "2"),
        ("--dp-size", "2"),
        ("--pp-size", "2"),
        ("--device", "cuda"),
        ("--dtype", "bfloat16"),
        ("--quantization", "fp8"),
        ("--attention-backend", "fa3"),
        ("--page-size", "16"),
        ("--engine-release", "0.4.6"),
        ("--decode-log-interval", "0"),
        ("--port", "70000"),
    ],
)
def test_what_needs_another_engine_is_refused_by_flag_and_value(flag: str, value: str) -> None:
    told = refused(*BASE, flag, value)[0]
    assert value in told
    assert told.startswith("--")


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--tp-size", "1"), ("--device", "cpu"), ("--dtype", "float32"), ("--page-size", "1")],
)
def test_the_same_flags_with_values_that_run_are_taken(flag: str, value: str) -> None:
    assert server_args.resolve([*BASE, flag, value]).args["model_path"] == "m/target"


def test_speculation_needs_the_algorithm_and_a_draft() -> None:
    assert "only EAGLE3" in refused(*BASE, "--speculative-algorithm", "EAGLE")[0]
    assert "needs a draft" in refused(*BASE, "--speculative-algorithm", "EAGLE3")[0]


def test_an_unknown_flag_ends_with_status_2_and_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        server_args.resolve([*BASE, "--no-such-flag"])
    assert ended.value.code == 2
    assert "--no-such-flag" in capsys.readouterr().err


def test_the_server_args_line_shows_effective_values() -> None:
    line = spec(*window(1, 16)).log_line()
    assert line.startswith("server_args=ServerArgs(model_path='m/target', ")
    assert line.endswith(")")
    assert "speculative_num_draft_tokens=2," in line
    assert "engine_release" not in line


def test_every_field_of_the_server_args_line_is_one_the_real_server_has(shared: Path) -> None:
    sample = shared / "samples/sglang-0.5.10.post1-cpu/m2_eagle3_steps1_draft16_server.log"
    fields = re.compile(r"(\w+)=")
    real = next(line for line in sample.read_text().splitlines() if "server_args=" in line)
    real_order = fields.findall(real.partition("ServerArgs(")[2])
    ours = list(spec(*window(1, 16)).args)
    assert [key for key in ours if key not in real_order] == []
    # The order matters to nobody, but a reader finds a field where the real log has it.
    assert [key for key in real_order if key in set(ours)] == ours


def test_the_warnings_are_the_real_server_s_words(shared: Path) -> None:
    sample = shared / "samples/sglang-0.5.10.post1-cpu/inprocess_server_args_0.5.10.post1.txt"
    said = sample.read_text().splitlines()
    assert [line for line in spec(*window(1, 16)).warnings if line not in said] == []


def test_the_release_decides_on_draft_positions_unless_the_knob_does() -> None:
    knob = ("--draft-position-offset", "0")
    assert spec(*window(3, 4)).release.draft_position_offset == 1
    turned = spec(*window(3, 4), *knob)
    assert turned.release.draft_position_offset == 0
    assert turned.release.name == "0.5.10.post1"
    newer = spec(*window(3, 4), "--engine-release", "0.5.12")
    assert newer.release.draft_position_offset == 0
    assert "draft_position_offset" not in turned.args


def test_what_an_id_captures_can_be_turned() -> None:
    assert spec(*window(3, 4)).capture_id_offset == 1
    assert spec(*window(3, 4), "--capture-id-offset", "0").capture_id_offset == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--speculative-num-steps", "3", "--speculative-eagle-topk", "4"], "drafts chains only"),
        (["--speculative-num-steps", "x"], "invalid int value: 'x'"),
        (["--no-such-flag", "1"], "unrecognized arguments: --no-such-flag 1"),
        (["--help"], "prints its help"),
    ],
)
def test_a_refusal_is_told_without_a_process_that_ends(
    more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in server_args.refusal([*SPEC, *more])
    assert capsys.readouterr() == ("", "")


def test_of_what_runs_no_refusal_is_told() -> None:
    assert server_args.refusal([*SPEC, *window(15, 16)]) == ""
    assert server_args.refusal(BASE) == ""
