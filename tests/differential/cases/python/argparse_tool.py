"""A command-line tool, called with good and bad arguments."""

import argparse
import sys


def build() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tool", description="Counts things.")
    parser.add_argument("--verbose", "-v", action="count", default=0, help="say more")
    parser.add_argument("--version", action="version", version="%(prog)s 1.0")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="add numbers")
    add.add_argument("numbers", type=int, nargs="+", metavar="N")
    add.add_argument("--base", choices=("dec", "hex"), default="dec")
    commands.add_parser("list", help="list them")
    return parser


for argv in (["add", "1", "2", "-vv"], ["add", "10", "--base", "hex"], ["-v", "list"], ["add", "x"],
             [], ["add", "1", "--base", "oct"], ["--version"], ["add", "--help"]):
    print(">", argv)
    sys.stdout.flush()
    try:
        options = build().parse_args(argv)
    except SystemExit as stop:
        print("exit", stop.code)
        continue
    print(options)
