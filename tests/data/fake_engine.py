"""A stand-in for an engine: SGLang-like lines, its routes, a switch for every way to misbehave."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser(prog="fake_engine")
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--api-key", default="")
parser.add_argument("--model-path", default="m")
parser.add_argument("--tp-size", type=int, default=1)
parser.add_argument("--never-ready", action="store_true")
parser.add_argument("--silent", action="store_true", help="print nothing, never be ready")
parser.add_argument("--no-ready-line", action="store_true", help="only /health says ready")
parser.add_argument("--crash-at-load", action="store_true")
parser.add_argument("--hang-after-crash", action="store_true")
parser.add_argument("--crash-after", type=int, default=0, help="requests")
parser.add_argument("--load-seconds", type=float, default=0.0)
parser.add_argument("--token-seconds", type=float, default=0.0005)
parser.add_argument("--ignore-sigterm", action="store_true")
parser.add_argument("--grandchild", action="store_true")
parser.add_argument("--garbage", action="store_true")
parser.add_argument("--plain", action="store_true", help="no speculation")
parser.add_argument("--refuse", type=int, default=0, help="answer /generate with this status")
parser.add_argument("--no-flush", action="store_true")
parser.add_argument("--print-environment", action="store_true")
parser.add_argument("--full-disk", action="store_true", help="every log line fails")
args = parser.parse_args()


def say(text: str) -> None:
    try:
        sys.stderr.write(time.strftime("[%Y-%m-%d %H:%M:%S] ") + text + "\n")
        sys.stderr.flush()
    except OSError:
        if not args.full_disk:
            raise


if args.full_disk:
    sys.stderr = open(os.open("/dev/full", os.O_WRONLY), "w", buffering=1)  # noqa: SIM115, PTH123
if args.ignore_sigterm:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if args.grandchild:
    # One in our session, one that leaves it: both must go with us.
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-S", "-c", code])
    subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
if args.silent:
    time.sleep(600)
if args.print_environment:
    say(json.dumps(dict(os.environ)))
say(f"server_args=ServerArgs(model_path={args.model_path!r}, api_key={args.api_key!r})")
if args.garbage:
    sys.stderr.buffer.write(b"\xff\xfe\x00torn \x1b[31m[2026-11\xc3" + b"x" * 70_000 + b"\r\r\n")
    sys.stderr.buffer.flush()
say("Load weight begin. avail mem=21.25 GB")
for shard in range(3):
    time.sleep(args.load_seconds / 3)
    say(f"\rLoading safetensors checkpoint shards: {shard + 1}/3 Completed")
if args.crash_at_load:
    say("Scheduler hit an exception: Traceback (most recent call last):")
    sys.stderr.write('  File "model.py", line 1, in load\n')
    sys.stderr.write("FileNotFoundError: no weights in m\n")
    say("Received sigquit from a child process. It usually means the child failed.")
    if args.hang_after_crash:
        time.sleep(600)
    sys.exit(3)
say(
    "Load weight end. elapsed=0.07 s, type=LlamaForCausalLM, dtype=torch.float32, "
    "avail mem=21.25 GB, mem usage=0.00 GB."
)

ready = threading.Event()
served = 0
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

    def log_message(self, *ignored: object) -> None:
        pass

    def answer(self, body: object, status: int = 200) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if self.path == "/health":
            self.answer("", 200 if ready.is_set() else 503)
        elif self.path == "/server_info":
            self.answer(
                {
                    "model_path": args.model_path,
                    "api_key": args.api_key,
                    "version": "0.5.10.post1",
                    "served": served,
                    "internal_states": [{"avg_spec_accept_length": float("nan")}],
                }
            )
        elif self.path == "/metrics":
            self.answer(f"sglang:gen_throughput {served}.0\n")
        else:
            self.answer({"detail": "Not Found"}, 404)

    def do_POST(self) -> None:
        global served
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        if self.path == "/flush_cache" and not args.no_flush:
            self.answer("Cache flushed.\n")
            return
        if self.path != "/generate":
            self.answer({"detail": "Not Found"}, 404)
            return
        if args.api_key and self.headers.get("Authorization") != f"Bearer {args.api_key}":
            self.answer({"error": "Unauthorized"}, 401)
            return
        if args.refuse:
            self.answer({"error": {"message": "The input is too long."}}, args.refuse)
            return
        with lock:
            served += 1
            number = served
        if args.crash_after and number > args.crash_after:
            say("Scheduler hit an exception: Traceback (most recent call last):")
            sys.stderr.write("RuntimeError: CUDA error: an illegal memory access was encountered\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        tokens = given["sampling_params"]["max_new_tokens"]
        time.sleep(tokens * args.token_seconds)
        seed = hashlib.sha256(given["text"].encode()).digest()
        ids = [seed[n % 32] for n in range(tokens)]
        meta = {"prompt_tokens": 5, "completion_tokens": tokens, "e2e_latency": 0.1}
        if not args.plain:
            passes = (tokens + 1) // 2
            meta |= {"spec_verify_ct": passes, "spec_accept_histogram": [1, passes - 1]}
        say(
            "Decode batch, #running-req: 1, #token: 33, token usage: 0.00, accept len: 1.80, "
            "accept rate: 0.90, cpu graph: False, gen throughput (token/s): 16.51, #queue-req: 0"
        )
        self.answer({"text": "x", "output_ids": ids, "meta_info": meta})


try:
    server = ThreadingHTTPServer((args.host, args.port), Handler)
except OSError:
    say(
        f"ERROR:    [Errno 98] error while attempting to bind on address "
        f"('{args.host}', {args.port}): address already in use"
    )
    sys.exit(1)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
if not args.never_ready:
    ready.set()
    if not args.no_ready_line:
        say("The server is fired up and ready to roll!")
stopped = threading.Event()
if not args.ignore_sigterm:
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
while not stopped.wait(0.2):
    pass
say("SIGTERM received. Draining requests and shutting down...")
