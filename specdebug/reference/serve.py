"""Serve the reference engine: `python -m specdebug.reference.serve --model-path DIR ...`.

The order of things: arguments and their rules, the port, the weights, one warm-up request, ready.
Everything it says goes to stderr, one line at a time, in the form of SGLang's server log.
"""

import logging
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from specdebug.reference import NOTE, server_args
from specdebug.reference.server_args import ArgsError, Resolved

if TYPE_CHECKING:
    from specdebug.reference.engine import Engine
    from specdebug.reference.scheduler import Scheduler

log = logging.getLogger("specdebug.reference")
# Requests at hand may finish for this long after SIGTERM; as long again to notice being dropped.
GRACE_SECONDS = 5.0
WARM_UP_TOKENS = 8


def main(argv: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; the exit status is 0 then, 1 for what cannot be served."""
    say(NOTE + ".")
    try:
        resolved = server_args.resolve(sys.argv[1:] if argv is None else argv)
        for flag in ("model_path", "speculative_draft_model_path"):
            _folder(resolved, flag)
    except ArgsError as error:
        say(*error.lines)
        return 1
    say(*resolved.warnings)
    _start_logging(resolved)
    log.info("%s", resolved.log_line())
    stop = threading.Event()

    def ask_to_stop(signum: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, ask_to_stop)
    signal.signal(signal.SIGINT, ask_to_stop)
    return _serve(resolved, stop)


def _serve(resolved: Resolved, stop: threading.Event) -> int:
    # Imported late because they need torch: a wrong flag is answered without waiting for it.
    from specdebug.reference.capture import CaptureError
    from specdebug.reference.checkpoint import CheckpointError
    from specdebug.reference.engine import Engine
    from specdebug.reference.routes import Server
    from specdebug.reference.scheduler import Scheduler
    from specdebug.reference.tokenizer import TokenizerError

    args = resolved.args
    address = (args["host"], args["port"])
    try:
        server = Server(*address, resolved)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        log.error(
            "ERROR:    [Errno %s] error while attempting to bind on address %r: %s",
            error.errno,
            address,
            reason,
        )
        return 1
    listener = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    listener.start()
    try:
        engine = Engine(resolved)
    except (CheckpointError, TokenizerError, CaptureError, ArgsError) as error:
        log.error("%s", error)
        server.shutdown()
        server.server_close()
        return 1
    scheduler = Scheduler(
        engine,
        decode_log_interval=args["decode_log_interval"],
        max_queued=args["max_queued_requests"],
    )
    scheduler.thread.start()
    server.scheduler = scheduler
    _announce(resolved, engine, server.server_port)
    if not args["skip_server_warmup"]:
        _warm_up(scheduler)
    server.ready.set()
    log.info("The server is fired up and ready to roll!")
    stop.wait()
    log.info("INFO:     Shutting down")
    scheduler.close(GRACE_SECONDS)
    server.shutdown()
    server.server_close()
    log.info("INFO:     Application shutdown complete.")
    log.info("INFO:     Finished server process [%d]", os.getpid())
    return 0


def _announce(resolved: Resolved, engine: "Engine", port: int) -> None:
    args = resolved.args
    log.info(
        "max_total_num_tokens=%d, chunked_prefill_size=%d, max_prefill_tokens=%d, "
        "max_running_requests=1, context_len=%d, available_cpu_mem=%.2f GB",
        engine.capacity,
        args["chunked_prefill_size"],
        args["max_prefill_tokens"],
        engine.context_length,
        _available_gib(),
    )
    log.info("INFO:     Started server process [%d]", os.getpid())
    log.info("INFO:     Waiting for application startup.")
    log.info("INFO:     Application startup complete.")
    host = f"[{args['host']}]" if ":" in args["host"] else args["host"]
    log.info("INFO:     Uvicorn running on http://%s:%d (Press CTRL+C to quit)", host, port)


def _available_gib() -> float:
    from specdebug.reference.engine import available_gib

    return available_gib()


def _warm_up(scheduler: "Scheduler") -> None:
    """One short request, as the real server sends itself; it counts in the averages, as there."""
    from specdebug.reference.scheduler import Job

    engine = scheduler.engine
    prompt = tuple(engine.ids("The capital city of France is"))
    ticket = scheduler.submit(Job(prompt, min(WARM_UP_TOKENS, engine.capacity - len(prompt))))
    ticket.progress.get()


def _folder(resolved: Resolved, key: str) -> None:
    path = resolved.args[key]
    if path is not None and not Path(path).is_dir():
        flag = "--" + key.replace("_", "-")
        raise ArgsError(f"{flag} {path}: no such folder; give the folder of a checkpoint")


def say(*lines: str) -> None:
    """Bare lines on stderr, as the real server prints before its log is set up."""
    for line in lines:
        sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _start_logging(resolved: Resolved) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("[%(asctime)s] %(message)s", "%Y-%m-%d %H:%M:%S"))
    log.handlers = [handler]
    log.propagate = False
    level = resolved.args["log_level"].upper()
    log.setLevel(level)
    http_level = resolved.args["log_level_http"]
    logging.getLogger("specdebug.reference.http").setLevel((http_level or level).upper())


if __name__ == "__main__":
    raise SystemExit(main())
