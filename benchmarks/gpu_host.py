"""What a worker does with GPUs, tried on this host's own driver: naming, leasing, refusing, waiting
for memory, sampling, and what sampling costs.

    python -m benchmarks.gpu_host [--out DIR] [--only SCENE ...] [--fake]

Prints a line for each check and writes gpu-host.json and gpu-host.txt into DIR. Exit code 1 where
one failed, 2 where there is no GPU to try it on. Needs an idle NVIDIA GPU and a torch with CUDA in
the same interpreter; about three minutes. --fake runs the same scenes on the tests' stand-in for
NVML without any GPU, to see that the script itself works.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.gpu_scenes import SCENES, all_gpus
from benchmarks.gpu_trial import ROOT, Host
from workers.gpus import NoGpus

SOURCE = ROOT / "tests" / "data" / "nvml" / "fake_nvml.c"


# ---- on a stand-in -------------------------------------------------------------------------------


def pretend(folder: Path) -> None:
    """Start anew with the tests' NVML in front of the machine's own."""
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    (folder / "gpus.txt").write_text("gpu 0 used=400\n")
    given = {"FAKE_NVML": str(folder / "gpus.txt"), "LD_LIBRARY_PATH": str(folder)}
    os.execve(  # noqa: S606 - no shell is wanted
        sys.executable,
        [sys.executable, "-m", "benchmarks.gpu_host", *sys.argv[1:]],
        {**os.environ, **given},
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="+", choices=tuple(SCENES), default=tuple(SCENES))
    parser.add_argument("--fake", action="store_true")
    given = parser.parse_args()
    if given.fake and "FAKE_NVML" not in os.environ:
        pretend(Path(tempfile.mkdtemp(prefix="specdebug-nvml-")))
    try:
        found = all_gpus()
    except NoGpus as problem:
        print(
            f"gpu_host: no NVIDIA GPU can be asked here ({problem}). Run it on a GPU host, or "
            "with --fake to try the script alone.",
            file=sys.stderr,
        )
        return 2
    if not found:
        print("gpu_host: the driver answers and names no GPU.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="specdebug-") as folder:
        os.environ["SPECDEBUG_GPU_LOCKS"] = str(Path(folder) / "locks")
        state = os.environ.get("FAKE_NVML") if given.fake else None
        host = Host(Path(folder), Path(state) if state else None)
        for name in given.only:
            begin = time.perf_counter()
            host.say(f"== {name}: {(SCENES[name].__doc__ or '').strip()}")
            try:
                SCENES[name](host)
            except Exception as problem:  # the other scenes are worth their minutes
                host.check(f"{name} came to its end", False, f"{type(problem).__name__}: {problem}")
            host.say(f"     {time.perf_counter() - begin:.1f} s")
        wrong = [check["check"] for check in host.checks if not check["ok"]]
        host.say(
            f"{len(host.checks) - len(wrong)} of {len(host.checks)} checks hold"
            + (f"; not: {', '.join(wrong)}" if wrong else "")
        )
        if given.out:
            given.out.mkdir(parents=True, exist_ok=True)
            data = {
                "nvml": "stand-in" if state else "the machine's",
                "checks": host.checks,
                **host.figures,
            }
            (given.out / "gpu-host.json").write_text(json.dumps(data, indent=1) + "\n")
            (given.out / "gpu-host.txt").write_text("\n".join(host.lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
