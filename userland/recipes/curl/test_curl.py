"""curl against a server in the same sandbox: requests, files, redirects, errors, retries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from userland.recipes.guest_server import URL, printed, run
from wasmsand import Sandbox


def echoed(sandbox: Sandbox, arguments: str) -> dict[str, Any]:
    """What the server saw of a request."""
    told: dict[str, Any] = json.loads(printed(sandbox, f"curl -sS {arguments}"))
    return told


def test_protocols_and_features(sandbox: Sandbox) -> None:
    shown = printed(sandbox, "curl --version").splitlines()
    assert shown[0].startswith("curl 8.22.0 (wasm32-unknown-linux-musl) libcurl/8.22.0 OpenSSL/3.5")
    assert {"file", "ftp", "ftps", "http", "https", "ws", "wss"} <= set(shown[2].split())
    assert {"HTTP2", "HTTPS-proxy", "IPv6", "SSL", "brotli", "libz", "zstd"} <= set(
        shown[3].split()
    )


def test_help_is_there(sandbox: Sandbox) -> None:
    assert printed(sandbox, "curl --help").startswith("Usage: curl [options...] <url>\n")
    assert "--write-out" in printed(sandbox, "curl --help all")


def test_a_request_is_what_the_options_say(served: Sandbox) -> None:
    plain = echoed(served, "$U/echo?a=1")
    assert (plain["method"], plain["query"], plain["body"]) == ("GET", "a=1", "")
    assert plain["headers"] == {
        "host": "127.0.0.1:8000", "user-agent": "curl/8.22.0", "accept": "*/*"
    }  # fmt: skip
    posted = echoed(served, "-d a=1 --data-urlencode 'b=x y&z' $U/echo")
    assert (posted["method"], posted["body"]) == ("POST", "a=1&b=x+y%26z")
    assert posted["headers"]["content-type"] == "application/x-www-form-urlencoded"
    sent = echoed(
        served, """--json '{"a": 1}' -X PATCH -A me -H 'X-One: 1' -u ann:secret $U/echo"""
    )
    assert (sent["method"], sent["body"]) == ("PATCH", '{"a": 1}')
    assert sent["headers"]["content-type"] == "application/json"
    assert sent["headers"]["user-agent"] == "me"
    assert sent["headers"]["x-one"] == "1"
    assert sent["headers"]["authorization"] == "Basic YW5uOnNlY3JldA=="
    assert echoed(served, "-G -d q=1 -d r=2 $U/echo")["query"] == "q=1&r=2"


def test_a_form_uploads_a_file(served: Sandbox) -> None:
    form = echoed(served, "-F name=Ann -F 'file=@-;filename=a.txt;type=text/plain' $U/echo <<< in")
    assert form["headers"]["content-type"].startswith("multipart/form-data; boundary=")
    assert 'name="name"\r\n\r\nAnn\r\n' in form["body"]
    assert 'name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nin\n' in form["body"]


def test_files_go_up_and_down(served: Sandbox) -> None:
    script = """seq 50000 > big; curl -sS -T big $U/stored && cmp big site/stored
    seq 9 | curl -sS -T - $U/piped && cat site/piped | wc -l
    mkdir down && cd down && curl -sSO $U/stored && cmp ../big stored && curl -sS -o x $U/piped
    head -c 1000 ../big > part && curl -sS -C - -o part $U/stored && cmp ../big part
    curl -sS -r 0-3 $U/stored | wc -c
    curl -sSO --output-dir new --create-dirs $U/piped; ls . new"""
    assert printed(served, script) == (
        "stored\nstored\n9\n4\n.:\nnew\npart\nstored\nx\n\nnew:\npiped\n"
    )


def test_redirects_are_followed_when_asked(served: Sandbox) -> None:
    code = "-o /dev/null -w '%{http_code} %{num_redirects} %{url_effective} %{redirect_url}\\n'"
    assert printed(served, f"curl -sS {code} $U/redirect/3") == (
        f"302 0 {URL}/redirect/3 {URL}/redirect/2\n"
    )
    assert printed(served, f"curl -sSL {code} $U/redirect/3") == f"200 3 {URL}/echo \n"
    endless = run(served, "curl -sSL --max-redirs 2 $U/redirect/3")
    assert (endless.exit_code, endless.stderr) == (
        47,
        "curl: (47) Maximum (2) redirects followed\n",
    )


def test_heads_and_headers(served: Sandbox) -> None:
    head = printed(served, "curl -sSI $U/compressed")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert "Content-Length: 300\r\n" in head
    assert "HTTP/1.1 204 " in printed(served, "curl -sSi $U/status/204")
    assert printed(served, "curl -sS -D - -o /dev/null $U/cookie?a=1 | grep -i cookie") == (
        "Set-Cookie: a=1; Path=/\r\n"
    )
    assert printed(served, "curl -sS -o /dev/null -w '%header{set-cookie}' $U/cookie?a=1") == (
        "a=1; Path=/"
    )


def test_content_is_decompressed(served: Sandbox) -> None:
    script = "curl -sS --compressed $U/compressed | uniq -c; curl -sS $U/compressed | wc -c"
    assert printed(served, script) == "     50 plain\n300\n"


def test_a_chunked_answer_is_one_text(served: Sandbox) -> None:
    assert printed(served, "curl -sS $U/chunked") == "one\ntwo\nthree\n"


def test_connections_are_kept(served: Sandbox) -> None:
    script = "curl -sS -w '%{num_connects} ' $U/status/200 $U/status/404 $U/status/200"
    assert printed(served, script) == "status\n1 status\n0 status\n0 "


def test_many_transfers_at_once(served: Sandbox) -> None:
    script = """for i in $(seq 40); do seq $i > site/$i; done
    curl -sS -Z "$U/[1-40]" -o 'got-#1'
    for i in $(seq 40); do cmp got-$i site/$i; done; ls got-* | wc -l"""
    assert printed(served, script) == "40\n"


def test_times_and_sizes_are_told(served: Sandbox) -> None:
    script = """curl -sS -o /dev/null -w '%{json}' $U/compressed |
    jq -c '[.http_code, .size_download, .remote_ip, .remote_port, .local_ip, .scheme, .method,
        (.time_total > 0 and .time_total < 5), (.time_connect <= .time_starttransfer)]'"""
    assert printed(served, script) == (
        '[200,300,"127.0.0.1",8000,"127.0.0.1","http","GET",true,true]\n'
    )


def test_cookies_are_kept_in_a_jar(served: Sandbox) -> None:
    printed(served, "curl -sS -c jar $U/cookie?taste=good")
    assert echoed(served, "-b jar $U/echo")["headers"]["cookie"] == "taste=good"
    assert echoed(served, "-b x=1 $U/echo")["headers"]["cookie"] == "x=1"


def test_netrc_has_the_password(served: Sandbox) -> None:
    script = """printf 'machine 127.0.0.1 login ann password secret\\n' > .netrc
    curl -sS $U/private; curl -sS -n $U/private; curl -sS -u ann:secret $U/private"""
    assert printed(served, script) == "who?\nwelcome\nwelcome\n"


def test_a_proxy_gets_the_whole_address(served: Sandbox) -> None:
    # The server takes the path of any address, so that it can play the proxy.
    script = """curl -sSv -x $U http://far.example/status/200 2>&1 | grep -E '^> GET|^status'
    http_proxy=$U curl -sSv http://far.example/status/200 2>&1 | grep -E '^> GET'
    http_proxy=$U no_proxy=127.0.0.1 curl -sS $U/status/200"""
    assert printed(served, script) == (
        "> GET http://far.example/status/200 HTTP/1.1\r\n"
        "> GET http://far.example/status/200 HTTP/1.1\r\nstatus\n"
    )


def test_a_name_can_be_given_an_address(served: Sandbox) -> None:
    told = echoed(served, "--resolve my.example:8000:127.0.0.1 http://my.example:8000/echo")
    assert told["headers"]["host"] == "my.example:8000"


def test_retries_until_it_works(served: Sandbox) -> None:
    script = (
        "curl -sS --retry 5 --retry-delay 1 --retry-max-time 20 -o got $U/flaky?a 2> log; cat got"
    )
    assert printed(served, script) == "now\n"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("-f $U/status/404", 22, "curl: (22) The requested URL returned error: 404"),
        ("--fail-with-body $U/status/500", 22, "(22) The requested URL returned error: 500"),
        ("-m 0.5 $U/slow?5", 28, "curl: (28) Operation timed out after 50"),
        ("http://127.0.0.1:9/", 7, "curl: (7) Failed to connect to 127.0.0.1:9"),
        ("http://10.0.0.1/", 7, "curl: (7) Failed to connect to 10.0.0.1:80"),
        ("nothing://x/", 1, 'curl: (1) Protocol "nothing" not supported'),
        ("file:///nowhere", 37, "curl: (37) Could not open file /nowhere"),
        ("-o /nowhere/x $U/status/200", 23, "(23)"),
    ],
)
def test_an_error_has_its_number(
    served: Sandbox, arguments: str, exit_code: int, message: str
) -> None:
    result = run(served, f"curl -sS {arguments}")
    assert result.exit_code == exit_code
    assert message in result.stderr


def test_files_of_the_sandbox_have_addresses_too(sandbox: Sandbox) -> None:
    assert printed(sandbox, "echo here > f; curl -sS file:///home/user/f") == "here\n"


def test_unix_sockets_carry_http(sandbox: Sandbox) -> None:
    server = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()\n"
        "c = s.accept()[0]; c.recv(9999)\n"
        "c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\nhi\\n'); c.close()"
    )
    sandbox.files.write("/tmp/server.py", server)
    sandbox.commands.start("python3 /tmp/server.py")
    script = "until test -S /tmp/s; do sleep 0.02; done; curl -sS --unix-socket /tmp/s http://x/"
    assert printed(sandbox, script) == "hi\n"
