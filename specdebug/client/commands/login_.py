"""Keep a server's address and a token on this machine.

The token is made on the server's Tokens page, or there with `manage.py api_token`.
"""

from __future__ import annotations

import argparse
import getpass
import sys

from specdebug.client.api import Client
from specdebug.client.commands.console import OK, UNUSABLE, options, shown, with_client
from specdebug.client.settings import Login, config_file, save_login

EXAMPLES = """examples:
  specdebug login --url https://specdebug.example.com
  manage.py api_token | specdebug login --url http://127.0.0.1:8000 --token -
  specdebug login --forget"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("--forget", action="store_true", help="remove what is kept")


def run(args: argparse.Namespace) -> int:
    if args.forget:
        config_file().unlink(missing_ok=True)
        print(f"{config_file()} is gone")
        return OK
    from_stdin = args.token == "-"  # noqa: S105 (a sign, no password)
    if from_stdin:
        args.token = sys.stdin.readline().strip()
    elif args.token is None:
        args.token = getpass.getpass("token (sdb_...): ").strip()
    if not args.token:
        print("specdebug login: no token was given", file=sys.stderr)
        return UNUSABLE

    def work(client: Client) -> int:
        me = client.me()
        path = save_login(Login(client.connection.url, args.token))
        line = f"{me['user']} ({me['role']}) at {client.connection.url}, kept in {path}"
        shown(me, args.json, [line])
        return OK

    return with_client(args, work)
