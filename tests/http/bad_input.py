"""Wrong requests and the answers to them, in one table.

`python -m tests.http.bad_input` asks a real server and prints the table as Markdown, as in
docs/protocols/http.md; `test_bad_input.py` compares the two. In a target, `@` is the path of a
living sandbox, and `@killed` that of a killed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.http.server import Answer, Client, serving

_SETTINGS = ("--max-json-bytes", "100000", "--max-upload-bytes", "200000")


@dataclass(frozen=True)
class Wrong:
    """One wrong request."""

    what: str
    method: str
    target: str
    value: object = None
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


JSON = {"Content-Type": "application/json"}

TABLE = (
    # The request itself.
    Wrong("unknown path", "GET", "/v2/sandboxes"),
    Wrong("wrong method", "PUT", "/v1/sandboxes"),
    Wrong("malformed JSON", "POST", "@/run", body=b'{"command": ', headers=JSON),
    Wrong("JSON that is not UTF-8", "POST", "@/run", body=b'{"command": "\xff"}', headers=JSON),
    Wrong(
        "number that JSON does not allow",
        "POST",
        "@/run",
        body=b'{"timeout_ms": NaN}',
        headers=JSON,
    ),
    Wrong("10,000 nested lists", "POST", "@/run", body=b"[" * 10_000, headers=JSON),
    Wrong("JSON that is not an object", "POST", "@/run", value=["true"]),
    Wrong("wrong content type", "POST", "@/run", body=b"{}", headers={"Content-Type": "text/xml"}),
    Wrong("no content type", "POST", "@/run", body=b"{}"),
    Wrong("JSON body too large", "POST", "@/run", value={"command": "x" * 100_000}),
    Wrong("file too large", "PUT", "@/files?path=a", body=b"x" * 200_001),
    Wrong("parameter given twice", "GET", "@/files?path=a&path=b"),
    Wrong("unknown parameter", "GET", "@/files?path=a&color=red"),
    Wrong("parameter for a path without parameters", "GET", "@/usage?x=1"),
    Wrong("17 parameters", "GET", "@/files?" + "&".join(f"p{n}=1" for n in range(17))),
    # Sandboxes.
    Wrong("unknown sandbox", "GET", "/v1/sandboxes/sbx-0"),
    Wrong("killed sandbox", "POST", "@killed/run", value={"command": "true"}),
    Wrong("option of the wrong type", "POST", "/v1/sandboxes", value={"max_processes": "many"}),
    Wrong("negative limit", "POST", "/v1/sandboxes", value={"memory_limit_bytes": -1}),
    Wrong("limit that is not an integer", "POST", "/v1/sandboxes", value={"max_inodes": 1.5}),
    Wrong(
        "limit above the server's maximum",
        "POST",
        "/v1/sandboxes",
        value={"max_output_bytes": 2**40},
    ),
    Wrong("unknown option", "POST", "/v1/sandboxes", value={"wasm_dir": "/etc"}),
    Wrong("relative cwd", "POST", "/v1/sandboxes", value={"cwd": "work"}),
    Wrong("cwd that is a file", "POST", "/v1/sandboxes", value={"cwd": "/etc/passwd"}),
    Wrong("variable with a NUL", "POST", "/v1/sandboxes", value={"env": {"A": "\0"}}),
    Wrong("variable without a name", "POST", "/v1/sandboxes", value={"env": {"": "x"}}),
    Wrong("variable that is a number", "PATCH", "@/env", value={"set": {"A": 1}}),
    Wrong("name with an equals sign", "PATCH", "@/env", value={"set": {"A=B": "x"}}),
    # The network.
    Wrong("network that is a string", "POST", "/v1/sandboxes", value={"network": "a.com"}),
    Wrong("rule with a scheme", "POST", "/v1/sandboxes", value={"network": ["https://a.com"]}),
    Wrong("rule with a wildcard inside", "POST", "/v1/sandboxes", value={"network": ["a.*.com"]}),
    Wrong("rule with a bad port", "POST", "/v1/sandboxes", value={"network": ["a.com:65536"]}),
    Wrong("address in an unusual form", "POST", "/v1/sandboxes", value={"network": ["0x7f.1"]}),
    Wrong("network beyond the token", "POST", "/v1/sandboxes", value={"network": ["*"]}),
    Wrong("proxy of a client", "POST", "/v1/sandboxes", value={"network": {"proxy": "http://a"}}),
    Wrong(
        "rules for a sandbox without a network",
        "POST",
        "@/network/allow",
        value={"rules": ["a.com"]},
    ),
    # Commands.
    Wrong("missing command", "POST", "@/run", value={}),
    Wrong("command that is a number", "POST", "@/run", value={"command": 7}),
    Wrong("argument that is a number", "POST", "@/run", value={"command": ["echo", 7]}),
    Wrong("empty argument vector", "POST", "@/run", value={"command": []}),
    Wrong("command with a NUL", "POST", "@/run", value={"command": "echo \0"}),
    Wrong("program that does not exist", "POST", "@/run", value={"command": ["nothing"]}),
    Wrong("cwd that does not exist", "POST", "@/run", value={"command": "pwd", "cwd": "/no"}),
    Wrong("negative timeout", "POST", "@/run", value={"command": "true", "timeout_ms": -5}),
    Wrong("bad base64", "POST", "@/run", value={"command": "cat", "stdin_base64": "%%%"}),
    Wrong(
        "two kinds of stdin",
        "POST",
        "@/run",
        value={"command": "cat", "stdin": "a", "stdin_base64": "YQ=="},
    ),
    Wrong("unknown field", "POST", "@/run", value={"command": "true", "shell": "zsh"}),
    Wrong("unknown started command", "GET", "@/commands/cmd-0/output"),
    Wrong(
        "descriptor 2 as an input",
        "POST",
        "@/commands",
        value={"command": "true", "inputs": [2]},
    ),
    Wrong("pid that is not a number", "POST", "@/processes/x/signal", value={"signal": 15}),
    Wrong("pid that does not exist", "POST", "@/processes/9999/signal", value={"signal": 15}),
    Wrong("signal that does not exist", "POST", "@/processes/9999/signal", value={"signal": 99}),
    # Files.
    Wrong("missing path", "GET", "@/files"),
    Wrong("empty path", "GET", "@/files?path="),
    Wrong("path with a NUL", "GET", "@/files?path=a%00b"),
    Wrong("path above the root", "GET", "@/files?path=/../../../../etc/shadow"),
    Wrong("relative path that leads up", "GET", "@/files?path=../../../nothing"),
    Wrong("name of 300 bytes", "PUT", "@/files?path=/tmp/" + "n" * 300, body=b"x"),
    Wrong("path of 5,000 bytes", "PUT", "@/files?path=" + "/d" * 2500, body=b"x"),
    Wrong("file that does not exist", "GET", "@/files?path=/nothing"),
    Wrong("directory as a file", "GET", "@/files?path=/etc"),
    Wrong("file as a directory", "GET", "@/files/list?path=/etc/passwd"),
    Wrong("negative offset", "GET", "@/files?path=/etc/passwd&offset=-1"),
    Wrong("invalid mode", "PUT", "@/files?path=/tmp/a&mode=99999", body=b"x"),
    Wrong("yes instead of true", "DELETE", "@/files?path=/tmp&recursive=yes"),
    Wrong("rename without a target", "POST", "@/files/rename", value={"source": "/a"}),
)


def answers() -> Iterator[tuple[Wrong, Answer]]:
    """Each wrong request, with the answer of a server."""
    with serving(*_SETTINGS) as server:
        client = Client(server.url)
        sandbox, killed = client.create(), client.create()
        client.ask("DELETE", killed)
        before = client.ask("GET", f"{sandbox}/files/list?path=/").body
        for wrong in TABLE:
            target = wrong.target.replace("@killed", killed).replace("@", sandbox)
            answer = client.ask(
                wrong.method, target, wrong.value, body=wrong.body, headers=wrong.headers
            )
            yield wrong, answer
        assert client.ask("GET", f"{sandbox}/files/list?path=/").body == before
        assert client.run(sandbox, "echo works on").json["stdout"] == "works on\n"
        client.ask("DELETE", sandbox)
        assert client.ask("GET", "/v1/sandboxes").json == {"sandboxes": []}


def markdown_row(wrong: Wrong, answer: Answer) -> str:
    """One line of the table in the documentation."""
    status, code, message = answer.error
    errno = answer.json["error"]["errno"]
    if "/v1/sandboxes/sbx-" in wrong.target or wrong.target.startswith("@killed"):
        message = message[: message.index("'")] + "'sbx-…'" + message[message.rindex("'") + 1 :]
    if len(message) > 160:
        message = message[:60] + "…"
    message = message.replace("|", r"\|")
    return f"| {wrong.what} | {status} | `{code}` | {errno or ''} | {message} |"


def markdown() -> str:
    """The whole table."""
    head = ["| wrong | status | `code` | `errno` | `message` |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(markdown_row(*pair) for pair in answers())])


if __name__ == "__main__":
    print(markdown())
