"""A server that answers as a GPU would: what a real engine said before, at a fixed step time, with
the processor idle in between. It decodes nothing.

    python benchmarks/paced_server.py ANSWERS.json PORT LOG [--step-ms 20]

ANSWERS.json maps a prompt's text to the engine's whole answer of /generate, "" to /server_info.
Each answer takes its verify passes (or tokens) times the step time, and leaves a decode line.
"""

from __future__ import annotations

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def handler(answers: dict[str, Any], log: Path, step: float) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # One write an answer; else it waits for the acknowledgement of the headers.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path in ("/server_info", "/get_server_info"):
                self._say(answers[""])
            else:
                self._say({}, 404 if self.path == "/metrics" else 200)

        def do_POST(self) -> None:
            at = time.monotonic()
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path != "/generate":
                self._say({})
                return
            answer = answers[json.loads(body)["text"]]
            meta = answer["meta_info"]
            passes = meta.get("spec_verify_ct") or meta["completion_tokens"]
            time.sleep(max(at + passes * step - time.monotonic(), 0))
            rate = meta["completion_tokens"] / (passes * step)
            with log.open("a") as file:
                file.write(
                    f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] Decode batch. #running-req: 1, "
                    f"accept len: {meta['completion_tokens'] / passes:.2f}, cuda graph: True, "
                    f"gen throughput (token/s): {rate:.2f}, #queue-req: 0\n"
                )
            self._say(answer)

        def _say(self, what: Any, status: int = 200) -> None:
            data = json.dumps(what).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("log", type=Path)
    parser.add_argument("--step-ms", type=float, default=20.0)
    args = parser.parse_args()
    answers = json.loads(args.answers.read_text())
    made = handler(answers, args.log, args.step_ms / 1000)
    ThreadingHTTPServer(("127.0.0.1", args.port), made).serve_forever()


if __name__ == "__main__":
    main()
