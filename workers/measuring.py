"""The measured part of a run: warm-up, repeats, and what is kept of each request; it starts and
stops no server."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from workers import bench_serving, load
from workers.plan import Phase, Repeat, Request, RunPlan, ShouldStop
from workers.prompt_files import Prompt, PromptFile

REQUESTS = "requests.jsonl"
# A request's own words; logits asked for by somebody's patch would fill the disk.
LONGEST_META = 64 * 1024
# Where in the whole the phases stand, as the progress bar shows them.
LOADED = 0.3
WARM = 0.35
MEASURED = 0.98

Tell = Callable[[Phase, str, float | None], None]


class Measuring:
    """Asks one ready server what its plan says; `repeats` are the whole ones so far.

    `died` says "" while the server lives. Raises RunEnded for whatever ends the run.
    """

    def __init__(
        self,
        plan: RunPlan,
        prompts: PromptFile,
        client: load.Client,
        *,
        tell: Tell,
        should_stop: ShouldStop,
        died: Callable[[], str],
    ) -> None:
        self.plan, self.prompts, self.client = plan, prompts, client
        self.tell, self.should_stop, self.died = tell, should_stop, died
        self.folder = Path(plan.folder)
        self.repeats: list[Repeat] = []
        self.files: list[tuple[str, str]] = []

    def warm_up(self) -> None:
        """Some prompts that are not measured: kernels get compiled, memory gets touched."""
        work, prompts = self.plan.workload, self.prompts.prompts
        self.tell("warming up", f"{work.warm_up_prompts} prompts, not measured", LOADED)
        if work.warm_up_prompts:
            # From the end of the set, so that as few as can be are asked again in the repeats.
            chosen = [prompts[-1 - n % len(prompts)] for n in range(work.warm_up_prompts)]
            self._ask(chosen, index=0, work_rate=None, on_answer=lambda _: None)

    def measure(self) -> None:
        """All repeats, each on an empty prefix cache."""
        work, prompts = self.plan.workload, self.prompts.prompts
        chosen = [prompts[n % len(prompts)] for n in range(work.prompts_per_repeat)]
        everything = work.repeats * len(chosen)
        for index in range(work.repeats):
            self.client.flush_cache()

            def answered(count: int, index: int = index) -> None:
                done = (index * len(chosen) + count) / everything
                self.tell(
                    "measuring",
                    f"repeat {index + 1} of {work.repeats}, prompt {count} of {len(chosen)}",
                    WARM + (MEASURED - WARM) * done,
                )

            if work.client == "bench-serving":
                answered(0)
                self.repeats.append(self._bench(chosen, index))
            else:
                rate = work.request_rate
                repeat = self._ask(chosen, index=index, work_rate=rate, on_answer=answered)
                self.repeats.append(self._kept(repeat))

    def _ask(
        self,
        prompts: list[Prompt],
        *,
        index: int,
        work_rate: float | None,
        on_answer: Callable[[int], None],
    ) -> Repeat:
        return load.run_repeat(
            self.client,
            prompts,
            replace(self.plan.workload, request_rate=work_rate),
            index=index,
            should_stop=self.should_stop,
            died=self.died,
            on_answer=on_answer,
        )

    def _bench(self, prompts: list[Prompt], index: int) -> Repeat:
        repeat, output = bench_serving.run_repeat(
            self.plan,
            prompts,
            self.client.url,
            index=index,
            should_stop=self.should_stop,
            died=self.died,
        )
        self.files.append((output.name, "client-output"))
        return repeat

    def _kept(self, repeat: Repeat) -> Repeat:
        """Write what the server said of each request beside the log; a full disk costs the file."""
        try:
            with (self.folder / REQUESTS).open("a", encoding="utf-8") as file:
                for request in repeat.requests:
                    file.write(_line(repeat.index, request) + "\n")
            if (REQUESTS, "requests") not in self.files:
                self.files.append((REQUESTS, "requests"))
        except OSError:
            self.files = [kept for kept in self.files if kept[0] != REQUESTS]
        return replace(repeat, requests=tuple(replace(r, meta={}) for r in repeat.requests))


def _line(repeat: int, request: Request) -> str:
    about: dict[str, Any] = {
        "repeat": repeat,
        "prompt": request.prompt,
        "seconds": request.seconds,
        "output_sha256": request.output_sha256,
    }
    # NaN is no JSON for whoever reads this file next.
    meta = json.dumps(request.meta, default=str).replace("NaN", "null")
    if len(meta) > LONGEST_META:
        meta = json.dumps({"left_out": f"{len(meta)} bytes"})
    return json.dumps(about)[:-1] + f', "meta_info": {meta}}}'
