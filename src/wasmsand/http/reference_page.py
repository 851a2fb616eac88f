"""The page `/docs` of the server: the OpenAPI document for people.

Owns the HTML. Rules: everything on the page comes from the document, which is made from the table
of routes, so the page cannot differ from the server. It has no scripts and loads nothing, so it
works offline and its policy can forbid everything else; all text is escaped.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from html import escape
from typing import Any, Final

_DEFAULT_HOST: Final = "127.0.0.1:8750"
_HOST: Final = re.compile(r"[A-Za-z0-9.\-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")
_ADDRESS: Final = "http://{address}"
_GROUPS: Final = {
    "snapshots": "Copies",
    "restore": "Copies",
    "fork": "Copies",
    "sessions": "Copies",
    "packages": "Packages",
    "network": "The network",
    "run": "Commands",
    "commands": "Commands",
    "processes": "Commands",
    "python": "Python sessions",
    "shells": "Shell sessions",
    "listening": "Servers in a sandbox",
    "ports": "Servers in a sandbox",
    "tunnels": "Servers in a sandbox",
    "terminal": "Terminals",
    "files": "Files",
}
"""The heading for requests with a word in their path."""
_SERVER: Final = "The server"
_SANDBOXES: Final = "Sandboxes"
_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem;
  color: #1a1a1a; background: #fff; }
code, pre { font: 0.9em/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: #f4f4f6; padding: 0.75rem; overflow-x: auto; border-radius: 4px; }
details { border: 1px solid #d8d8de; border-radius: 4px; margin: 0.3rem 0; }
summary { padding: 0.35rem 0.6rem; cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; }
details > div { padding: 0 0.8rem 0.6rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.6rem 0.25rem 0;
  border-bottom: 1px solid #e6e6ea; }
nav a { margin-right: 0.8rem; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #17171a; } pre { background: #232328; }
  details { border-color: #3a3a42; } th, td { border-color: #33333a; } a { color: #8ab4ff; }
}
"""
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode("ascii")

HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Headers of the page."""

_BEGINNING: Final = """\
<p>Requests and responses are JSON, except for the contents of files. Every error has a
<code>code</code> for programs and a <code>message</code> for people.
<a href="/openapi.json">openapi.json</a> has all of this for programs.</p>
<pre>URL={address}
curl -s -X POST $URL/v1/sandboxes
curl -s $URL/v1/sandboxes/<i>ID</i>/run -H 'Content-Type: application/json' \\
  -d '{"command": "echo hello | tr a-z A-Z"}'
curl -s -X DELETE $URL/v1/sandboxes/<i>ID</i></pre>
<p>If the server has tokens, each request needs one:
<code>-H "Authorization: Bearer $TOKEN"</code>. From Python,
<code>Sandbox.connect("{address}", token=...)</code> has the same methods as
<code>Sandbox()</code>.</p>
""".replace("{address}", _ADDRESS)


def reference_page(document: bytes, host: str) -> str:
    """The page for an OpenAPI document. `host` is the header of the request, for the examples."""
    shown = host if _HOST.fullmatch(host) else _DEFAULT_HOST
    return _page(document).replace(_ADDRESS, f"http://{shown}")


@cache
def _page(document: bytes) -> str:
    described = json.loads(document)
    schemas = described["components"]["schemas"]
    groups: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            row = "".join(_operation(method, path, operation, schemas))
            groups.setdefault(_group(path), []).append(row)
    names = [*groups, "Objects"]
    title = f"wasmsand {escape(described['info']['version'])}: HTTP"
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{title}</h1>{_BEGINNING}<nav>",
            *(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name in names),
            "</nav>",
            *(
                f'<h2 id="{_anchor(name)}">{escape(name)}</h2>{"".join(rows)}'
                for name, rows in groups.items()
            ),
            '<h2 id="objects">Objects</h2>',
            *(_schema(name, schema) for name, schema in sorted(schemas.items())),
            "</body></html>",
        ]
    )


def _group(path: str) -> str:
    words = path.split("/")
    if words[1] != "v1":
        return _SERVER
    if words[2] == "snapshots":
        return _GROUPS["snapshots"]
    return _GROUPS.get(words[4], _SANDBOXES) if len(words) > 4 else _SANDBOXES


def _operation(
    method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]
) -> Iterator[str]:
    yield f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code> "
    yield f"{_text(operation['summary'])}</summary><div>"
    if not operation["security"]:
        yield "<p>Needs no token.</p>"
    query = [each for each in operation["parameters"] if each["in"] == "query"]
    if query:
        yield "<p>Query parameters:</p>"
        yield _table((each["name"], each["schema"], each["required"]) for each in query)
    if body := operation.get("requestBody"):
        yield f"<p>Body: {_contents(body['content'])}</p>"
        for each in body["content"].values():
            yield _fields(schemas.get(_name(each.get("schema", {})), {}))
    for status, response in operation["responses"].items():
        if status != "default":
            yield f"<p>Response {escape(status)}: {_contents(response['content'])}</p>"
    yield "</div></details>"


def _contents(content: Mapping[str, Mapping[str, Any]]) -> str:
    return ", or ".join(
        _type(described["schema"]) if "$ref" in described.get("schema", {}) else _code(media)
        for media, described in content.items()
    )


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    # The anchor is inside, so that browsers open the element when it is the target of a link.
    return (
        f"<details><summary>{_code(name)} {_text(schema.get('description', ''))}</summary>"
        f'<div id="{_anchor(name)}">{_fields(schema)}</div></details>'
    )


def _fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    fields = schema.get("properties", {})
    if not fields:
        return ""
    return _table((name, kind, name in required) for name, kind in fields.items())


def _table(rows: Iterator[tuple[str, Mapping[str, Any], bool]]) -> str:
    lines = []
    for name, schema, required in rows:
        note = "required" if required else ""
        if schema.get("default") is not None:
            note = f"default {_code(json.dumps(schema['default']))}"
        text = _text(schema.get("description", "")).removesuffix(".")
        about = "; ".join(part for part in (text, note) if part)
        lines.append(f"<tr><td>{_code(name)}</td><td>{_type(schema)}</td><td>{about}</td></tr>")
    return f"<table>{''.join(lines)}</table>"


def _type(schema: Mapping[str, Any]) -> str:
    """The type of a value in words."""
    if name := _name(schema):
        return f'<a href="#{_anchor(name)}">{escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(_code(json.dumps(each)) for each in schema["enum"])
    kind = schema.get("type", "any value")
    if kind == "array" and schema.get("items"):
        return f"array of {_type(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object with values {_type(schema['additionalProperties'])}"
    if schema.get("contentEncoding"):
        return escape(str(schema["contentEncoding"]))
    return escape(str(kind))


def _name(schema: Mapping[str, Any]) -> str:
    """The name of the object that a schema refers to, or an empty text."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _text(text: str) -> str:
    """Text with `code` between backquotes."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text, quote=False))


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
