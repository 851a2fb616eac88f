"""Packages for web pages and services, in use."""

from __future__ import annotations

from userland.recipes.guest_with_pip import Guest

_SERVER = """
import json, threading
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"path": self.path, "agent": self.headers["X-Agent"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        body = self.rfile.read(size).upper()
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
"""


def test_requests(guest: Guest) -> None:
    guest.run("pip install -q requests")
    program = """
import requests
answer = requests.get(url + "/a", params={"q": "ü"}, headers={"X-Agent": "me"}, timeout=9)
print(answer.status_code, answer.json())
with requests.Session() as session:
    print(session.post(url, data={"a": "b"}).text, session.post(url, json=[1]).text)
try:
    requests.get("http://127.0.0.1:1", timeout=1)
except requests.ConnectionError as error:
    print(type(error).__name__)
"""
    assert guest.python(_SERVER + program).splitlines() == [
        "200 {'path': '/a?q=%C3%BC', 'agent': 'me'}",
        "A=B [1]",
        "ConnectionError",
    ]


def test_httpx(guest: Guest) -> None:
    guest.run("pip install -q httpx")
    program = """
import asyncio, httpx
print(httpx.get(url + "/a", headers={"X-Agent": "me"}).json())
async def main():
    async with httpx.AsyncClient() as client:
        answers = await asyncio.gather(*(client.post(url, content=b"x") for _ in range(3)))
        print([answer.text for answer in answers])
asyncio.run(main())
"""
    assert guest.python(_SERVER + program).splitlines() == [
        "{'path': '/a', 'agent': 'me'}",
        "['X', 'X', 'X']",
    ]


def test_beautifulsoup4_and_html5lib(guest: Guest) -> None:
    guest.run("pip install -q beautifulsoup4 html5lib markdownify")
    program = """
from bs4 import BeautifulSoup
from markdownify import markdownify
page = "<ul><li class=a>one<li class=b><a href=/x>two</a></ul>"
for parser in ("html.parser", "html5lib"):
    soup = BeautifulSoup(page, parser)
    print([item.get_text() for item in soup.select("li.b")], soup.a["href"])
print(markdownify("<h1>T</h1><p>a <b>c</b></p>", heading_style="ATX").strip().splitlines())
"""
    assert guest.python(program).splitlines() == [
        "['two'] /x",
        "['two'] /x",
        "['# T', '', 'a **c**']",
    ]


def test_flask(guest: Guest) -> None:
    guest.run("pip install -q flask")
    program = """
from flask import Flask, jsonify, render_template_string, request
app = Flask(__name__)
@app.get("/hello/<name>")
def hello(name):
    return render_template_string("Hello {{ name }}", name=name)
@app.post("/sum")
def add():
    return jsonify(total=sum(request.json))
client = app.test_client()
print(client.get("/hello/<b>").text, client.post("/sum", json=[1, 2]).json, client.get("/").status)
"""
    assert guest.python(program) == "Hello &lt;b&gt; {'total': 3} 404 NOT FOUND\n"


def test_websockets(guest: Guest) -> None:
    guest.run("pip install -q websockets")
    program = """
import asyncio
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
async def echo(socket):
    async for message in socket:
        await socket.send(message[::-1])
async def main():
    async with serve(echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}") as socket:
            await socket.send("abc")
            print(await socket.recv())
asyncio.run(main())
"""
    assert guest.python(program) == "cba\n"


def test_small_ones(guest: Guest) -> None:
    guest.run("pip install -q pyjwt xmltodict defusedxml idna")
    program = """
import defusedxml.ElementTree, idna, jwt, xmltodict
token = jwt.encode({"a": 1}, "secret" * 8, algorithm="HS256")
print(jwt.decode(token, "secret" * 8, algorithms=["HS256"]))
print(xmltodict.parse("<a><b>1</b><b>2</b></a>"), idna.encode("bücher.example"))
try:
    defusedxml.ElementTree.fromstring('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
except defusedxml.EntitiesForbidden as error:
    print(type(error).__name__)
"""
    assert guest.python(program).splitlines() == [
        "{'a': 1}",
        "{'a': {'b': ['1', '2']}} b'xn--bcher-kva.example'",
        "EntitiesForbidden",
    ]
