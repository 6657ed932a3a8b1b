"""A process that holds a server as a worker does, to be killed by the tests: says each phase on
stdout, one a line."""

import json
import sys

from tests.workers.conftest import FAKE
from workers import engines, runner
from workers.plan import Progress, RunPlan

engines.ENGINES["fake"] = FAKE
last = ""


def say(progress: Progress) -> None:
    global last
    if progress.phase != last:
        last = progress.phase
        print(last, flush=True)


plan = RunPlan.from_json(json.loads(sys.argv[1]))
runner.measure(plan, on_progress=say, should_stop=lambda: "")
print("ended", flush=True)
