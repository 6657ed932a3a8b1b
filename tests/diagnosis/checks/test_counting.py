from typing import Any

import pytest

from specdebug.diagnosis.checks import counting as checks
from specdebug.diagnosis.checks.costs import slower_than_baseline
from specdebug.diagnosis.checks.prompts import prompts_not_representative
from specdebug.diagnosis.facts import Measured, Positions


def client_and_server(make: Any, client: float, length: float = 3.0) -> Any:
    lines = make.stretch([length] * 12, step_ms=1000 * length / 24.4)
    row = Measured("client", "bench.txt", speculative=None, tok_s=(client,))
    return make.case(
        boots=[make.boot(lines, args=make.args(steps=4))], runs=[row], baseline_tok_s=12.1
    )


def test_a_client_that_counts_chunks_is_caught_and_its_loss_is_not_real(make: Any) -> None:
    case = client_and_server(make, 8.1)
    found = checks.client_counts_chunks(case)
    assert found is not None
    assert "12.1 tok/s is not real" in found.statement
    assert slower_than_baseline(case) is None


@pytest.mark.parametrize("client", [24.0, 16.0, 3.0])
def test_another_ratio_is_no_chunk_counting(make: Any, client: float) -> None:
    assert checks.client_counts_chunks(client_and_server(make, client)) is None


def test_without_acceptance_chunks_are_tokens(make: Any) -> None:
    assert checks.client_counts_chunks(client_and_server(make, 22.0, length=1.1)) is None


def test_few_drafts_are_named_as_information(make: Any) -> None:
    found = checks.too_few_samples(make.case(boots=[make.boot(make.stretch([2.0] * 10))]))
    assert found is not None
    assert found.severity == "info"
    assert "400 drafts" in found.statement
    many = make.case(boots=[make.boot(make.stretch([2.0] * 30))])
    assert checks.too_few_samples(many) is None


def test_single_throughputs_are_named(make: Any) -> None:
    found = checks.too_few_samples(make.case(runs=make.story_rows()))
    assert found is not None
    assert "fewer than 5 repeats" in found.statement


def test_a_cold_line_that_moves_the_average_is_named(make: Any) -> None:
    lines = make.stretch([2.0] * 12)
    lines.throughput[0] = 1.3
    found = checks.warm_up_counted(make.case(boots=[make.boot(lines)]))
    assert found is not None
    assert found.evidence[0].line == 100
    assert checks.warm_up_counted(make.case(boots=[make.boot(make.stretch([2.0] * 12))])) is None


def test_two_starts_in_one_file_are_named_with_their_lines(make: Any) -> None:
    one, two = make.boot(args=make.args(1), line=1), make.boot(args=make.args(3), line=43)
    found = checks.several_boots(make.case(boots=[one, two]))
    assert found is not None
    assert "1, 43" in found.statement
    other = make.boot(args=make.args(3), source="other.log")
    assert checks.several_boots(make.case(boots=[one, other])) is None


def test_rates_of_two_definitions_are_not_compared(make: Any) -> None:
    lengths = [2.2, 2.5, 2.8, 2.4, 2.6]
    old = make.boot(make.stretch(lengths, window=4), source="old.log")
    new = make.boot(make.stretch(lengths, window=4, strict=True), source="new.log")
    found = checks.accept_rate_not_comparable(make.case(boots=[old, new]))
    assert found is not None
    same = make.boot(make.stretch(lengths, window=4), source="same.log")
    assert checks.accept_rate_not_comparable(make.case(boots=[old, same])) is None


def prompts(
    make: Any, dataset: str | None, *, speculative: bool = True, eos: bool | None = None
) -> Any:
    row = Measured(
        "b",
        "bench.jsonl",
        speculative=speculative,
        tok_s=(60.0,),
        dataset=dataset,
        accept_len=1.6 if speculative else None,
        ignore_eos=eos,
    )
    return make.case(runs=[row])


def test_random_prompts_say_nothing_about_acceptance(make: Any) -> None:
    found = prompts_not_representative(prompts(make, "random-ids"))
    assert found is not None
    assert found.severity == "medium"


def test_real_prompts_or_plain_runs_are_fine(make: Any) -> None:
    assert prompts_not_representative(prompts(make, "custom")) is None
    assert prompts_not_representative(prompts(make, None)) is None
    assert prompts_not_representative(prompts(make, "random-ids", speculative=False)) is None


def test_forced_outputs_are_a_note(make: Any) -> None:
    found = prompts_not_representative(prompts(make, "custom", eos=True))
    assert found is not None
    assert found.severity == "info"


def test_answers_and_old_logs_have_different_rates(make: Any) -> None:
    old = make.boot(make.stretch([2.2, 2.5, 2.8, 2.4, 2.6], window=4))
    answers = Positions(
        "a.json", None, "spec_accept_rate", (0.6,), 100, "from the summed histograms"
    )
    assert checks.accept_rate_not_comparable(make.case(boots=[old], positions=[answers]))
