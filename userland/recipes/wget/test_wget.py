"""GNU wget against a server in the same sandbox: files, recursion, errors, the background."""

from __future__ import annotations

import json

import pytest

from userland.recipes.guest_server import URL, printed, run
from wasmsand import Sandbox


def test_help_and_features(sandbox: Sandbox) -> None:
    assert "Usage: wget [OPTION]... [URL]..." in printed(sandbox, "wget --help")
    shown = printed(sandbox, "wget --version")
    assert shown.startswith("GNU Wget 1.25.0 built on linux-musl.")
    assert {"+https", "+ipv6", "+ssl/openssl", "+large-file"} <= set(shown.split())


def test_a_file_is_fetched(served: Sandbox) -> None:
    script = """seq 50000 > site/big; wget -q $U/big && cmp big site/big; wget -qO- $U/big | wc -l
    wget -q -O other $U/big && cmp other big; wget -q -P dir $U/big; ls dir; wget -nv $U/big -o log
    sed 's/.*URL/URL/' log; ls big*"""
    assert printed(served, script) == (
        f'50000\nbig\nURL:{URL}/big [288894/288894] -> "big.1" [1]\nbig\nbig.1\n'
    )


def test_progress_is_told(served: Sandbox) -> None:
    result = run(served, "seq 10 > site/f; wget $U/f")
    assert "HTTP request sent, awaiting response... 200 OK\nLength: 21 " in result.stderr
    assert "f\N{RIGHT SINGLE QUOTATION MARK} saved [21/21]" in result.stderr


def test_a_part_is_completed(served: Sandbox) -> None:
    script = """seq 50000 > site/big; head -c 1000 site/big > big
    wget -q -c $U/big; cmp big site/big; wget -q -c $U/big
    wget -S --spider $U/big 2>&1 | grep -c 'HTTP/1.1 200 OK'"""
    assert printed(served, script) == "1\n"


def test_a_site_is_mirrored(served: Sandbox) -> None:
    pages = {
        "index.html": '<a href="a.html">a</a> <img src="/pic/p.png"> <a href="http://far.example/">far</a>',
        "a.html": '<link rel=stylesheet href="s.css"> <a href="deep/b.html#x">b</a>',
        "s.css": "body { background: url(pic/q.png) }",
        "deep/b.html": '<a href="../index.html">up</a> <a href="../unlinked">no</a>',
        "pic/p.png": "p",
        "pic/q.png": "q",
        "hidden": "nobody links here",
    }
    for name, content in pages.items():
        served.files.write(f"/home/user/site/{name}", content)
    script = """wget -q -r -nH --reject unlinked -P got $U/index.html
    cd got && find . -type f | sort; cmp a.html ../site/a.html; cd ..
    wget -q -p -k -nH -P page $U/a.html; cd page; find . -type f | sort"""
    assert printed(served, script) == (
        "./a.html\n./deep/b.html\n./index.html\n./pic/p.png\n./pic/q.png\n./s.css\n"
        "./a.html\n./pic/q.png\n./s.css\n"
    )
    assert f'href="{URL}/deep/b.html#x"' in served.files.read_text("page/a.html")


def test_requests_are_what_the_options_say(served: Sandbox) -> None:
    script = "wget -qO- --post-data=a=1 --header='X-One: 1' -U me --user=ann --password=x $U/echo"
    told = json.loads(printed(served, f"{script} --auth-no-challenge"))
    assert (told["method"], told["body"], told["headers"]["x-one"]) == ("POST", "a=1", "1")
    assert told["headers"]["user-agent"] == "me"
    assert told["headers"]["authorization"] == "Basic YW5uOng="
    put = json.loads(printed(served, "wget -qO- --method=PUT --body-data=b $U/echo"))
    assert (put["method"], put["body"]) == ("PUT", "b")


def test_redirects_compression_chunks_passwords_and_cookies(served: Sandbox) -> None:
    script = """wget -qO- $U/redirect/3 | jq -r .method; wget -qO- $U/chunked
    wget -qO- --compression=auto $U/compressed | uniq -c
    wget -qO- --user=ann --password=secret $U/private
    wget -qO- --save-cookies jar --keep-session-cookies $U/cookie?a=1
    wget -qO- --load-cookies jar $U/echo | jq -r .headers.cookie"""
    assert printed(served, script) == ("GET\none\ntwo\nthree\n     50 plain\nwelcome\nset\na=1\n")


def test_it_goes_into_the_background(served: Sandbox) -> None:
    script = """echo text > site/f; LC_ALL=C wget -b $U/f | sed 's/pid .*/pid/'
    for i in $(seq 200); do grep -q saved wget-log && break; sleep 0.05; done; cat f"""
    assert printed(served, script) == (
        "Continuing in background, pid\nOutput will be written to 'wget-log'.\ntext\n"
    )


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("$U/status/404", 8, "ERROR 404: Not Found."),
        ("-T 0.3 -t 1 $U/slow?5", 4, "Read error (Connection timed out) in headers."),
        ("-t 1 http://127.0.0.1:9/", 4, "failed: Connection refused."),
        ("http://10.0.0.1/", 4, "failed: Network is unreachable."),
        ("-O /nowhere/x $U/status/200", 1, "/nowhere/x: No such file or directory"),
        ("gopher://x/", 1, "Unsupported scheme"),
    ],
)
def test_an_error_has_its_number(
    served: Sandbox, arguments: str, exit_code: int, message: str
) -> None:
    result = run(served, f"wget {arguments}")
    assert result.exit_code == exit_code
    assert message in result.stderr
