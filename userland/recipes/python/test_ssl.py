"""Python's ssl: TLS between processes of the sandbox, authorities, fresh random numbers."""

from __future__ import annotations

from wasmsand import Sandbox

CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -keyout key.pem "
    "-out cert.pem -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2> /dev/null"
)

SERVER = """
import asyncio, ssl
async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()
async def main():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain("cert.pem", "key.pem")
    server = await asyncio.start_server(echo, "localhost", 8443, ssl=context)
    open("ready", "w").close()
    await server.serve_forever()
asyncio.run(main())
"""

CLIENT = """
import asyncio, ssl, sys
async def main():
    context = ssl.create_default_context(cafile=sys.argv[1] if len(sys.argv) > 1 else None)
    reader, writer = await asyncio.open_connection("localhost", 8443, ssl=context)
    print(writer.get_extra_info("ssl_object").version())
    for text in (b"hello", b"x" * 60_000):
        writer.write(text + b"\\n")
        print((await reader.readline()) == text.upper() + b"\\n")
    writer.close()
    await writer.wait_closed()
asyncio.run(main())
"""


def test_tls_between_two_processes(sandbox: Sandbox) -> None:
    sandbox.files.write("server.py", SERVER)
    sandbox.files.write("client.py", CLIENT)
    result = sandbox.commands.run(
        f"{CERTIFICATE}\npython3 server.py 2> server.log &\n"
        "until [ -e ready ]; do sleep 0.05; done\n"
        "python3 client.py cert.pem; python3 client.py 2>&1 | tail -n 1; kill %1"
    )
    accepted, refused = result.stdout.split("True\nTrue\n")
    assert accepted == "TLSv1.3\n"
    assert "certificate verify failed: self-signed certificate" in refused


def test_https_by_the_library(sandbox: Sandbox) -> None:
    sandbox.files.write("page.txt", "content\n")
    server = (
        "import http.server as h, ssl, threading\n"
        "server = h.HTTPServer(('localhost', 8443), h.SimpleHTTPRequestHandler)\n"
        "context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
        "context.load_cert_chain('cert.pem', 'key.pem')\n"
        "server.socket = context.wrap_socket(server.socket, server_side=True)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "import urllib.request\n"
        "client = ssl.create_default_context(cafile='cert.pem')\n"
        "print(urllib.request.urlopen('https://localhost:8443/page.txt', context=client).read())\n"
    )
    sandbox.files.write("both.py", server)
    result = sandbox.commands.run(f"{CERTIFICATE}; python3 both.py 2> log || cat log")
    assert result.stdout == "b'content\\n'\n"


def test_the_authorities_are_found(sandbox: Sandbox) -> None:
    code = "import ssl; print(len(ssl.create_default_context().get_ca_certs()) > 100)"
    assert sandbox.commands.run(["python3", "-c", code]).stdout == "True\n"


def test_random_numbers_are_fresh_at_every_start(sandbox: Sandbox) -> None:
    code = "import os, ssl; print(os.urandom(8).hex(), ssl.RAND_bytes(8).hex())"
    result = sandbox.commands.run(f"for i in 1 2 3; do python3 -c '{code}'; done")
    assert len(set(result.stdout.split())) == 6


def test_a_configuration_of_its_own_is_followed(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "own.cnf",
        "openssl_conf = init\n[init]\nproviders = providers\n[providers]\ndefault = on\n"
        "legacy = on\n[on]\nactivate = 1\n",
    )
    command = (
        "python3 -c 'import hashlib; print(hashlib.new(\"md4\").hexdigest())' 2>&1 | tail -n 1"
    )
    result = sandbox.commands.run(f"export OPENSSL_CONF=own.cnf; {command}")
    assert result.stdout == "31d6cfe0d16ae931b73c59d7e0c089c0\n"
    assert sandbox.commands.run(command).stdout.startswith("ValueError: ")
