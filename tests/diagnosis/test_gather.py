import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specdebug.diagnosis.case import Input, build_case
from specdebug.diagnosis.diagnose import diagnose, to_json

CASES = Path(__file__).parents[1] / "data" / "cases"
LINE = (
    "[2026-05-06 09:10:{:02d} TP0] Decode batch, #running-req: 1, #token: 900, token usage: 0.01, "
    "accept len: 1.60, accept rate: 0.80, cuda graph: True, gen throughput (token/s): 56.80, "
    "#queue-req: 0\n"
)
COMMAND = (
    "python -m sglang.launch_server --model-path a/b --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path d --speculative-num-steps 1 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 16\n"
)


def text(name: str, value: object) -> Input:
    raw = value if isinstance(value, str) else json.dumps(value)
    return Input(name, raw.encode())


def log(lines: int = 6) -> str:
    return "".join(LINE.format(i) for i in range(lines))


def test_names_do_not_matter_only_content() -> None:
    case = build_case([text("a.bin", log()), text("b.log", COMMAND)])
    assert len(case.launches) == 1
    assert len(case.boots) == 1


def test_a_paste_may_hold_a_command_and_lines_at_once() -> None:
    case = build_case([text("paste", COMMAND + "gives\n" + log())])
    assert len(case.launches) == 1
    assert sum(len(s) for b in case.boots for s in b.stretches) == 6


def test_evidence_quotes_the_line_of_the_file() -> None:
    found = diagnose(build_case([text("x.log", log()), text("c", COMMAND)]))
    quoted = [e for f in found.findings for e in f.evidence if e.source == "x.log"]
    assert quoted
    lines = log().splitlines()
    assert all(e.line and lines[e.line - 1] == e.text for e in quoted)


def test_a_release_in_an_image_tag_is_used() -> None:
    case = build_case([text("c", f"docker run lmsysorg/sglang:v0.5.9-cu129 {COMMAND}")])
    assert case.engine_version is not None
    assert case.engine_version.value == "0.5.9"


def test_what_the_caller_says_wins_over_notes() -> None:
    notes = text("notes.json", {"engine_version": "0.5.9", "baseline_tok_s": 90})
    case = build_case([notes], engine_version="0.5.12", baseline=80.0)
    assert case.engine_version is not None
    assert case.engine_version.value == "0.5.12"
    assert case.baseline_tok_s is not None
    assert case.baseline_tok_s.value == 80.0


@pytest.mark.parametrize(
    ("training", "word"),
    [
        ({"val_accuracy": 0}, "no fraction"),
        ({"val_accuracy": "good"}, "no number"),
        ({"features": ["embed", -1]}, "layer numbers"),
        ("none", "must be an object"),
    ],
)
def test_notes_that_make_no_sense_are_named(training: object, word: str) -> None:
    found = diagnose(build_case([text("notes.json", {"training": training, "env": {}})]))
    assert any(word in (i.unusable or "") for i in found.unusable)


def test_an_accuracy_in_per_cent_is_understood() -> None:
    case = build_case([text("notes.json", {"training": {"val_accuracy": 74.7}})])
    assert case.training.val_accuracy == pytest.approx(0.747)


def test_the_same_file_given_twice_counts_once() -> None:
    path = CASES / "09-kimi-k25-story" / "pasted.txt"
    case = build_case([Input("a", path), Input("a", path)])
    assert len(case.measured) == 3
    assert case.inputs[1].unusable is None


def test_a_second_draft_config_is_named_and_not_mixed_in() -> None:
    path = CASES / "13-healthy" / "draft_config.json"
    other = CASES / "07-small-vocabulary-without-map" / "draft_config.json"
    case = build_case([Input("one", path), Input("two", other)])
    assert "a second draft config" in (case.inputs[1].unusable or "")
    assert case.draft is not None
    assert case.draft.source == "one"


def test_a_late_start_seen_from_outside_is_found() -> None:
    found = diagnose(
        build_case([text("events", log() + "Warning  Unhealthy  kubelet  Startup probe failed\n")])
    )
    assert "start-timeout" in {f.code for f in found.findings}


def test_looping_answers_are_found_in_their_text() -> None:
    answer = {
        "text": "the " * 60,
        "meta_info": {
            "completion_tokens": 60,
            "spec_verify_ct": 20,
            "spec_accept_length": 3.0,
            "spec_accept_histogram": [0, 0, 20],
        },
    }
    found = diagnose(build_case([text("a.json", answer)]))
    assert "degenerate-output" in {f.code for f in found.findings}


def test_the_same_case_gives_the_same_answer() -> None:
    paths = sorted((CASES / "09-kimi-k25-story").iterdir())
    inputs = [Input(p.name, p) for p in paths if p.name != "expect.json"]
    assert to_json(diagnose(build_case(inputs))) == to_json(diagnose(build_case(inputs)))


SEEDS = [COMMAND, log(3), '{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {']
JUNK = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=300).map(lambda t: t.encode("utf-8", "surrogatepass")),
    st.builds(
        lambda seed, cut, junk: (seed[:cut] + junk + seed[cut:]).encode("utf-8", "ignore"),
        st.sampled_from(SEEDS),
        st.integers(0, 300),
        st.text(max_size=40),
    ),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(JUNK, min_size=1, max_size=3))
def test_every_input_is_used_or_refused_with_a_reason(pieces: list[bytes]) -> None:
    found = diagnose(build_case([Input(f"in{i}", p) for i, p in enumerate(pieces)]))
    told = {i.name: i.summary or i.unusable for i in found.inputs}
    assert all(told.get(f"in{i}") for i in range(len(pieces)))
    assert all(e.source in told for f in found.findings for e in f.evidence)
    assert json.loads(json.dumps(to_json(found), allow_nan=False)) == to_json(found)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 10**7), st.floats(), st.text(max_size=6)),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=6,
)
KEYS = [
    "hidden_size",
    "num_hidden_layers",
    "vocab_size",
    "draft_vocab_size",
    "max_position_embeddings",
    "rope_theta",
    "rope_scaling",
    "tie_word_embeddings",
    "eagle_config",
    "num_attention_heads",
    "norm_output",
]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES),
    st.dictionaries(st.sampled_from([*KEYS, "text_config"]), VALUES),
    st.one_of(st.none(), VALUES),
)
def test_every_config_is_read_as_far_as_it_makes_sense(
    draft: dict[str, object], target: dict[str, object], ids: object
) -> None:
    draft = {"architectures": ["LlamaForCausalLMEagle3"], **draft}
    if ids is not None:
        draft["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": ids}
    target = {"architectures": ["KimiK25ForConditionalGeneration"], **target}
    notes = {"engine_version": "0.5.13", "training": {"features": ["embed", 3, 31]}}
    header = {"fc.weight": {"dtype": "BF16", "shape": [64, 192]}}
    inputs = [
        text("draft.json", draft),
        text("target.json", target),
        text("notes.json", notes),
        text("header.json", header),
    ]
    found = diagnose(build_case(inputs))
    assert {given.name for given in inputs} <= {i.name for i in found.inputs}
    assert json.loads(json.dumps(to_json(found), allow_nan=False)) == to_json(found)


TABLE = (
    "\n============ Serving Benchmark Result ============\n"
    "Backend:                                 sglang\n"
    "Output token throughput (tok/s):         35.50\n"
    "==================================================\n"
)


def test_a_table_below_pasted_lines_is_read_too() -> None:
    case = build_case([text("paste", log() + TABLE)])
    assert len(case.boots) == 1
    assert [row.tok_s for row in case.measured] == [(35.5,)]


def test_the_engines_own_lines_are_no_benchmark() -> None:
    assert build_case([text("paste", log())]).measured == ()


def test_a_config_between_words_is_read() -> None:
    config = json.dumps({"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 8}, indent=1)
    case = build_case([text("paste", f"My draft:\n```json\n{config}\n```\n{COMMAND}")])
    assert case.draft is not None
    assert case.draft.raw["hidden_size"] == 8
    assert len(case.launches) == 1


def test_keyword_arguments_say_what_was_asked() -> None:
    call = "llm = sgl.Engine(\n    speculative_num_steps=3,\n    speculative_eagle_topk=1,\n)\n"
    (launch,) = build_case([text("paste", call)]).launches
    assert launch.requested["speculative_num_steps"].value == 3
    assert launch.requested["speculative_num_steps"].line == 2


def test_effective_arguments_on_lines_of_their_own_were_not_asked_for() -> None:
    dump = "server_args=ServerArgs(\nspeculative_num_steps=3,\n)\n" + log()
    assert build_case([text("paste", dump)]).launches == ()


def test_how_a_start_failed_is_read_below_its_command() -> None:
    failed = COMMAND + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    (found,) = build_case([text("paste", failed)]).boots
    assert [n.kind for n in found.notices] == ["out-of-memory"]


def test_a_compressed_log_that_breaks_off_is_read_to_there() -> None:
    raw = "".join(LINE.format(i % 60) for i in range(400)).encode()
    (read,) = build_case([Input("server.log.gz", gzip.compress(raw)[:-20])]).inputs
    assert read.unusable is None
    assert "breaks off" in read.summary
    (whole,) = build_case([Input("server.log.gz", gzip.compress(raw))]).inputs
    assert "breaks off" not in whole.summary


def test_evidence_is_quoted_without_colours() -> None:
    (boot,) = build_case([text("log", "\x1b[36mapi | \x1b[0m" + log())]).boots
    assert "\x1b" not in boot.stretches[0].texts[1]


def test_a_cpu_server_says_nothing_of_graphs_it_cannot_have() -> None:
    off = log().replace("cuda graph: True", "cuda graph: False")
    (gpu,) = build_case([text("log", off)]).boots
    (cpu,) = build_case([text("log", off.replace("cuda graph", "cpu graph"))]).boots
    assert set(gpu.stretches[0].graph) == {0}
    assert set(cpu.stretches[0].graph) == {-1}


def test_the_only_command_tells_the_depth_of_a_tables_only_drafting_row() -> None:
    table = (
        "| run | tok/s | accept len |\n|---|---|---|\n| baseline | 90 | - |\n| A | 56.8 | 1.6 |\n"
    )
    found = diagnose(build_case([text("cmd", COMMAND), text("table", table)]))
    assert "speculation-cannot-win" in {f.code for f in found.findings}
    more = table + "| B | 60 | 1.9 |\n"
    found = diagnose(build_case([text("cmd", COMMAND), text("table", more)]))
    assert "speculation-cannot-win" not in {f.code for f in found.findings}


def test_printed_rates_are_per_cent_even_where_all_are_below_one() -> None:
    table = (
        "============ Serving Benchmark Result ============\n"
        "Output token throughput (tok/s):         40.00\n"
        "Acceptance length:                       1.01\n"
        "Drafts:                                  5000\n"
        "Per-position acceptance (%):\n"
        "  Position 0:                            0.80\n"
        "  Position 1:                            0.10\n"
        "==================================================\n"
    )
    (read,) = build_case([text("bench", table)]).positions
    assert read.conditional[0] == pytest.approx(0.008)
    assert read.drafts == 5000


VLLM = (
    "INFO 08-11 12:00:10 [metrics.py:86] SpecDecoding metrics: Draft acceptance rate: 32.3%, "
    "Mean acceptance length: 1.97, Accepted: 485 tokens, Drafted: 1500 tokens, "
    "Per-position acceptance rate: 0.720, 0.200, 0.050\n"
)


def test_vllm_counts_its_drafts_itself_and_is_quoted_verbatim() -> None:
    case = build_case([text("log", VLLM * 3)])
    assert list(case.boots[0].stretches[0].drafts) == [500.0] * 3
    found = diagnose(case)
    assert found.values["drafts"] == 1500
    assert "too-few-samples" not in {f.code for f in found.findings}
    assert case.boots[0].stretches[0].texts[1] == VLLM.strip()
    few = diagnose(build_case([text("log", VLLM)]))
    assert "too-few-samples" in {f.code for f in few.findings}


def test_a_call_on_one_line_says_what_was_asked_and_other_words_do_not() -> None:
    call = "llm = sgl.Engine(model_path='a', speculative_num_steps=3, speculative_eagle_topk=1)"
    (launch,) = build_case([text("paste", call)]).launches
    assert launch.requested["speculative_eagle_topk"].value == 1
    other = build_case([text("paste", "we set speculative_num_steps=3, it was fine")])
    assert other.launches == ()


def test_one_paste_may_hold_a_whole_log_configs_notes_and_a_clients_report() -> None:
    started = (
        "[2026-05-06 09:09:00] server_args=ServerArgs(model_path='a/b', tp_size=1)\n"
        "[2026-05-06 09:09:10 TP0] Load weight begin. avail mem=77.10 GB\n"
        "[2026-05-06 09:09:20 TP0] Load weight end. type=LlamaForCausalLM, mem usage=9.00 GB.\n"
    )
    notes = json.dumps({"baseline_tok_s": 90, "training": {"val_accuracy": 0.7}})
    paste = f"my client\noutput tokens/s   35.5\n\n{notes}\n\n{started}{log()}\nthanks\n"
    case = build_case([text("pasted.txt", paste)])
    assert case.baseline_tok_s is not None
    assert case.training.val_accuracy == 0.7
    assert [row.tok_s for row in case.measured] == [(35.5,)]
    assert case.boots[0].effective["model_path"].value == "a/b"


def test_what_the_engine_prints_between_its_lines_is_no_client_figure() -> None:
    started = "[2026-05-06 09:09:00] server_args=ServerArgs(model_path='a/b', tp_size=1)\n"
    case = build_case([text("x.log", f"{started}warm up: 812.5 tok/s\n{log()}")])
    assert case.measured == ()


@pytest.mark.parametrize("packed", [False, True])
def test_a_vllm_log_is_read_packed_or_not(packed: bool) -> None:
    raw = (CASES / "22-vllm-healthy" / "server.log").read_bytes()
    data = gzip.compress(raw) if packed else raw
    case = build_case([Input("server.log", data)])
    assert case.positions
    assert case.boots[0].engine == "vllm"


def test_answers_in_a_paste_are_pooled() -> None:
    answer = {"meta_info": {"completion_tokens": 30, "spec_verify_ct": 20, "id": "x"}}
    answer["meta_info"]["spec_accept_histogram"] = [10, 10]
    paste = f"two requests:\n{json.dumps(answer)}\nand\n{json.dumps(answer)}\n"
    case = build_case([text("pasted.txt", paste)])
    assert [p.drafts for p in case.positions] == [40]


CLIENT = """============ Serving Benchmark Result ============
Backend:                                 sglang
Max request concurrency:                 1
Output token throughput (tok/s):         {}
{}==================================================
"""


def test_of_two_clients_tables_the_one_without_accept_length_is_the_plain_run() -> None:
    tables = [
        text("one.txt", CLIENT.format("90.0", "")),
        text("two.txt", CLIENT.format("56.8", "Accept length:   1.60\n")),
    ]
    found = diagnose(build_case([*tables, text("c", COMMAND)]))
    assert found.values["baseline_tok_s"] == 90.0
    assert found.values["step_ms"] == 28.169
    alone = diagnose(build_case([tables[0], text("c", COMMAND)]))
    assert "baseline_tok_s" not in alone.values


def test_a_table_in_a_file_called_baseline_is_the_plain_run() -> None:
    named = text("bench_baseline.txt", CLIENT.format("90.0", ""))
    found = diagnose(build_case([named, text("x.log", log(30)), text("c", COMMAND)]))
    assert found.values["baseline_tok_s"] == 90.0


def test_a_flag_with_a_variable_set_elsewhere_is_neither_refused_nor_missing() -> None:
    found = diagnose(build_case([text("c", COMMAND.replace("tokens 16", "tokens $N"))]))
    assert found.faults == ()
    assert "requested_draft_tokens" not in found.values
    assert found.values["effective_draft_tokens"] == 2


def test_random_prompts_matter_to_a_server_that_drafts() -> None:
    client = text("b", "python -m sglang.bench_serving --dataset-name random --num-prompts 9\n")
    plain = text("c", "python -m sglang.launch_server --model-path a/b\n")
    codes = [f.code for f in diagnose(build_case([client, plain])).findings]
    assert "prompts-not-representative" not in codes
    codes = [f.code for f in diagnose(build_case([client, text("c", COMMAND)])).findings]
    assert "prompts-not-representative" in codes


def test_requests_that_wait_in_the_queue_do_not_run() -> None:
    rows = CLIENT.format("2725.0", "Concurrency:  250.9\nAccept length:   2.20\n")
    client = text("bench.txt", rows.replace("concurrency:                 1", "concurrency: 256"))
    release = text("n", {"engine_version": "0.5.9"})
    found = diagnose(build_case([client, text("c", COMMAND), release]))
    assert found.values["running_requests"] == 48
    assert found.values["step_ms"] == pytest.approx(1000 * 2.2 * 48 / 2725, rel=1e-4)


@pytest.mark.parametrize(
    ("written", "value"), [(90, 90), ("90", 90), ("90 tok/s", 90), ("~56.8", 56.8)]
)
def test_numbers_in_notes_may_be_written_as_text(written: object, value: float) -> None:
    found = diagnose(build_case([text("notes.json", {"baseline_tok_s": written, "env": {}})]))
    assert found.unusable == ()
    assert found.values["baseline_tok_s"] == value


@pytest.mark.parametrize("key", ["baseline_tok_s", "concurrency"])
@pytest.mark.parametrize("written", [0, -3, "fast", True, [90], 1e999])
def test_numbers_in_notes_that_make_no_sense_are_named(key: str, written: object) -> None:
    found = diagnose(build_case([text("notes.json", {key: written, "env": {}})]))
    assert [i.name for i in found.unusable] == [f"notes.json: {key}"]
    assert "positive number" in (found.unusable[0].unusable or "")


def test_features_may_be_written_as_words() -> None:
    notes = text("notes.json", {"training": {"features": ["embedding", "3", 31]}})
    assert build_case([notes]).training.features == ("embed", 3, 31)


def test_a_table_may_have_a_rule_of_single_dashes() -> None:
    table = "|setup|tokens/s|acceptance length|\n|-|-|-|\n|spec|62|2.2|\n|w/o spec|95|n/a|\n"
    found = diagnose(build_case([text("pasted.txt", table)]))
    assert (found.values["tok_s"], found.values["baseline_tok_s"]) == (62, 95)


STORY = """baseline (no speculation): 90 tok/s
R1: steps 1, topk 1, draft tokens 16: 56.8 tok/s, accept len 1.6, accept rate 0.80
R2: steps 15, topk 1, draft tokens 16: 46.7 tok/s, accept len 1.9
R3: aux layers changed: 54.8 tok/s
"""


def test_the_story_told_in_four_lines_is_understood() -> None:
    training = {"val_accuracy": 0.747, "features": ["embed", 3, 31]}
    draft = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]},
    }
    target = {"architectures": ["KimiK25ForConditionalGeneration"], "num_hidden_layers": 61}
    found = diagnose(
        build_case(
            [
                text("pasted.txt", STORY),
                text("notes.json", {"training": training}),
                text("draft.json", draft),
                text("target.json", target),
            ]
        )
    )
    assert {
        "draft-tokens-overridden",
        "speculation-cannot-win",
        "step-overhead-unexplained",
        "acceptance-below-training",
        "acceptance-collapses",
        "aux-layer-mismatch",
        "aux-layer-convention",
    } <= {f.code for f in found.findings}
    assert found.values["unexplained_overhead_ms"] == pytest.approx(16.16, abs=0.01)
    assert found.missing is not None
    assert "R3" in found.missing.input
    overheard = next(f for f in found.findings if f.code == "effective-window-inferred")
    assert overheard.severity == "info"  # the override says it already


def test_everything_that_is_wrong_with_the_training_notes_is_named_at_once() -> None:
    notes = {"training": {"val_accuracy": "high", "features": ["x", 3]}}
    case = build_case([text("notes.json", notes), text("b.log", COMMAND)])
    (said,) = [i.unusable for i in case.inputs if i.unusable]
    assert 'val_accuracy "high" is no number' in said
    assert "['x', 3] may hold" in said
    fine = {"training": {"val_accuracy": 74.7, "features": ["embed", 3]}}
    case = build_case([text("notes.json", fine), text("b.log", COMMAND)])
    assert not any(i.unusable for i in case.inputs)
    assert case.training.val_accuracy == 0.747


def test_a_summary_names_what_of_a_table_was_left_out() -> None:
    table = (
        b"| batch | A tok/s | B tok/s | accept length | wobble |\n|---|---|---|---|---|\n"
        b"| 1 | 90 | 60 | 1.6 | 3 |\n"
    )
    case = build_case(
        [Input("a.md", table), Input("b.md", b"| run | tok/s |\n|---|---|\n| a | 9 |")]
    )
    first, second = (told.summary for told in case.inputs)
    assert "cannot be told apart" in first
    assert "'accept length' is attached to no run" in first
    assert "column 'wobble' is not understood" in first
    assert second == "1 run"
    assert [row.source for row in case.measured] == ["b.md"]  # nothing may be said of A and B
