from typing import Any

from specdebug.diagnosis.checks import serving as checks
from specdebug.diagnosis.facts import Measured

RESET = "Max running requests is reset to 48 for speculative decoding."


def capped(make: Any, *, queue: float, running: float, asked: dict[str, Any], **more: Any) -> Any:
    lines = make.stretch([2.2] * 8, running=running, queue=queue)
    return make.case(
        requested=asked,
        boots=[
            make.boot(
                lines,
                args=make.args(max_running_requests=asked.get("max_running_requests", 48)),
                notices=[("argument-warning", RESET)]
                if "max_running_requests" not in asked
                else [],
            )
        ],
        **more,
    )


def test_a_pinned_batch_with_a_queue_is_capped(make: Any) -> None:
    found = checks.running_requests_capped(capped(make, queue=100, running=48, asked=make.asked()))
    assert found is not None
    assert "48 requests" in found.statement
    assert "100 requests wait" in found.statement


def test_a_client_above_the_limit_is_enough(make: Any) -> None:
    case = capped(make, queue=0, running=48, asked=make.asked(), concurrency=256)
    found = checks.running_requests_capped(case)
    assert found is not None
    assert "256 at once" in found.statement


def test_the_warning_without_a_load_is_harmless(make: Any) -> None:
    assert (
        checks.running_requests_capped(capped(make, queue=0, running=1, asked=make.asked())) is None
    )


def test_a_limit_somebody_asked_for_is_theirs(make: Any) -> None:
    case = capped(make, queue=100, running=48, asked=make.asked(max_running_requests=48))
    assert checks.running_requests_capped(case) is None


def test_the_limit_is_split_over_data_parallel_ranks(make: Any) -> None:
    ranks = [make.stretch([2.2] * 8, running=12, queue=9, rank=f"DP{k}") for k in range(4)]
    case = make.case(
        requested=make.asked(dp_size=4),
        boots=[make.boot(*ranks, args=make.args(max_running_requests=48, dp_size=4))],
    )
    found = checks.running_requests_capped(case)
    assert found is not None
    assert "12 requests per rank" in found.statement


def test_without_the_command_nobody_knows_who_set_the_limit(make: Any) -> None:
    lines = make.stretch([2.2] * 8, running=48, queue=9)
    case = make.case(boots=[make.boot(lines, args=make.args(max_running_requests=48))])
    assert checks.running_requests_capped(case) is None


def test_disabled_graphs_are_named(make: Any) -> None:
    case = make.case(requested=make.asked(disable_cuda_graph=True), engine_version="0.5.9")
    found = checks.cuda_graph_off(case)
    assert found is not None
    assert "disabled" in found.statement


def test_graphs_below_the_running_batch_are_named(make: Any) -> None:
    lines = make.stretch([2.1] * 10, running=20, graph=0)
    found = checks.cuda_graph_off(
        make.case(boots=[make.boot(lines, args=make.args(cuda_graph_max_bs=2))])
    )
    assert found is not None
    assert "at most 2 requests and 20 run" in found.statement


def test_eager_lines_in_an_excerpt_are_named(make: Any) -> None:
    found = checks.cuda_graph_off(make.case(boots=[make.boot(make.stretch([2.1] * 10, graph=0))]))
    assert found is not None
    assert "100 %" in found.statement


def test_a_rare_eager_line_is_no_fault(make: Any) -> None:
    lines = make.stretch([2.1] * 40)
    lines.graph[3] = 0
    assert checks.cuda_graph_off(make.case(boots=[make.boot(lines, args=make.args())])) is None


def test_on_a_cpu_graphs_are_never_on(make: Any) -> None:
    lines = make.stretch([2.1] * 10, graph=0)
    case = make.case(
        boots=[make.boot(lines, args=make.args(device="cpu", disable_cuda_graph=True))]
    )
    assert checks.cuda_graph_off(case) is None


def test_a_draft_that_was_never_captured_is_named_from_a_whole_log_only(make: Any) -> None:
    notices = [("capture-begin", "Capture cuda graph begin"), ("capture-end", "Capture end")]
    lines = make.stretch([2.1] * 10, graph=-1)
    whole = make.boot(lines, args=make.args(), notices=notices)
    found = checks.cuda_graph_off(make.case(boots=[whole]))
    assert found is not None
    assert found.confidence == "likely"
    excerpt = make.boot(lines, notices=notices)
    assert checks.cuda_graph_off(make.case(boots=[excerpt])) is None
    drafted = make.boot(
        lines, args=make.args(), notices=[*notices, ("capture-draft-end", "Capture draft end")]
    )
    assert checks.cuda_graph_off(make.case(boots=[drafted])) is None


def test_a_latent_attention_backend_inherited_by_an_ordinary_draft_is_named(make: Any) -> None:
    def case(backend: str, own: str | None) -> Any:
        return make.case(
            boots=[
                make.boot(
                    args=make.args(
                        attention_backend=backend, speculative_draft_attention_backend=own
                    )
                )
            ],
            draft_config=make.kimi_draft([1, 29, 57], num_key_value_heads=8),
            target_config=make.kimi_target,
        )

    assert checks.draft_attention_backend(case("flashmla", None)) is not None
    assert checks.draft_attention_backend(case("fa3", None)) is None
    assert checks.draft_attention_backend(case("flashmla", "triton")) is None


def test_simulated_acceptance_is_found_in_the_environment(make: Any) -> None:
    found = checks.simulated_acceptance(make.case(env={"SGLANG_SIMULATE_ACC_LEN": "3.0"}))
    assert found is not None
    assert "3.0" in found.statement


def test_another_environment_simulates_nothing(make: Any) -> None:
    assert checks.simulated_acceptance(make.case(env={"SGLANG_ENABLE_SPEC_V2": "1"})) is None
    assert checks.simulated_acceptance(make.case(env={"SGLANG_SIMULATE_ACC_LEN": "-1"})) is None


def loaded(tok_s: float, running: float, base: float | None) -> list[Measured]:
    rows = [
        Measured(
            "spec",
            "x",
            speculative=True,
            num_steps=7,
            topk=1,
            tok_s=(tok_s,),
            accept_len=3.0,
            running=running,
        )
    ]
    if base is not None:
        rows.append(Measured("plain", "x", speculative=False, tok_s=(base,), running=running))
    return rows


def test_a_large_batch_without_gain_is_named(make: Any) -> None:
    found = checks.batch_too_large(make.case(runs=loaded(4000, 64, 4200)))
    assert found is not None
    assert found.severity == "medium"
    assert "512 tokens" in found.statement


def test_a_large_batch_with_a_gain_or_a_small_one_is_left_alone(make: Any) -> None:
    assert checks.batch_too_large(make.case(runs=loaded(6000, 64, 4200))) is None
    assert checks.batch_too_large(make.case(runs=loaded(300, 4, 320))) is None


def test_between_64_and_256_a_loss_is_a_caution(make: Any) -> None:
    found = checks.batch_too_large(make.case(runs=loaded(1000, 16, 1200)))
    assert found is not None
    assert found.severity == "info"
    assert checks.batch_too_large(make.case(runs=loaded(1000, 16, None))) is None


def test_an_excerpt_pinned_at_the_releases_own_limit_is_capped(make: Any) -> None:
    lines = make.stretch([2.2] * 8, running=48, queue=60)
    case = make.case(requested=make.asked(), boots=[make.boot(lines)], concurrency=128)
    assert checks.running_requests_capped(case) is not None
    given = make.case(
        requested=make.asked(max_running_requests=48), boots=[make.boot(lines)], concurrency=128
    )
    assert checks.running_requests_capped(given) is None


def test_the_log_alone_tells_of_the_limit(make: Any) -> None:
    lines = make.stretch([2.2] * 8, running=48, queue=12)
    told = make.case(boots=[make.boot(lines, notices=[("argument-warning", RESET)])])
    assert checks.running_requests_capped(told) is not None
    assert checks.running_requests_capped(make.case(boots=[make.boot(lines)])) is None
