"""git over HTTP: from and to servers in the same sandbox."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from userland.recipes.guest_server import start_git_server, start_web_server
from wasmsand import CommandResult, Sandbox

Run = Callable[[str], CommandResult]
Printed = Callable[[str], str]

URL = "http://127.0.0.1:8000"
HUB = """
git init -q work && cd work && for f in a b c; do save $f; done && git tag v1 && cd ..
git clone -q --bare work site/hub.git && git -C site/hub.git config http.receivepack true
"""


@pytest.fixture
def hub(sandbox: Sandbox, printed: Printed) -> Sandbox:
    """A sandbox that serves one repository by git's own CGI program."""
    start_git_server(sandbox)
    printed(HUB)
    return sandbox


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_clone_push_fetch_and_pull(printed: Printed, version: int) -> None:
    script = f"""git config --global protocol.version {version}
    git clone -q {URL}/hub.git one && git clone -q {URL}/hub.git two && cd one && ls
    save d && git push -q && git log --format=%s -1 origin/main && cd ../two && git fetch -q
    git status -sb && git pull -q && cat d && git switch -q -c side && save e
    git push -q -u origin side && git ls-remote -q --heads | cut -f 2 && git fsck
    git push -q origin :side && git ls-remote -q origin | cut -f 2"""
    assert printed(script) == (
        "a\nb\nc\nd\n## main...origin/main [behind 1]\nd\nrefs/heads/main\nrefs/heads/side\n"
        "HEAD\nrefs/heads/main\nrefs/tags/v1\n"
    )


@pytest.mark.usefixtures("hub")
def test_progress_of_the_server_is_shown(run: Run) -> None:
    result = run(f"git clone --progress {URL}/hub.git copy")
    assert result.exit_code == 0
    assert "remote: Counting objects: 100% (9/9), done." in result.stderr
    assert "Receiving objects: 100% (9/9)" in result.stderr


@pytest.mark.usefixtures("hub")
def test_shallow_and_partial_clones(printed: Printed) -> None:
    script = f"""git -C site/hub.git config uploadpack.allowFilter true
    git clone -q --depth 1 {URL}/hub.git shallow && git -C shallow rev-list --count HEAD
    git -C shallow fetch -q --unshallow && git -C shallow rev-list --count HEAD
    git clone -q --filter=blob:none --no-checkout {URL}/hub.git part
    git -C part rev-list --objects --missing=print HEAD | grep -c '^?'
    git -C part checkout -q && cat part/a
    git archive --remote=file://$HOME/site/hub.git v1 | tar t | wc -l"""
    assert printed(script) == "1\n3\n3\na\n3\n"


@pytest.mark.usefixtures("hub")
def test_a_large_push_is_sent_in_chunks(printed: Printed) -> None:
    script = f"""git clone -q {URL}/hub.git one && cd one && head -c 3000000 /dev/urandom > big
    git add big && git commit -q -m big && git push -q && cd .. && git clone -q {URL}/hub.git two
    cmp one/big two/big && git -C two fsck"""
    assert printed(script) == ""


@pytest.mark.usefixtures("hub")
def test_a_password_comes_from_the_address_a_helper_or_a_program(
    printed: Printed, run: Run
) -> None:
    private = f"{URL}/private/hub.git"
    helper = "!f() { echo username=ann; echo password=secret; }; f"
    script = f"""git ls-remote -q {private.replace("//", "//ann:secret@")} HEAD | wc -l
    git -c credential.helper='{helper}' ls-remote -q {private} HEAD | wc -l
    printf '#!/bin/sh\ncase $1 in User*) echo ann;; *) echo secret;; esac\n' > ask; chmod +x ask
    GIT_ASKPASS=./ask git ls-remote -q {private} HEAD | wc -l"""
    assert printed(script) == "1\n1\n1\n"
    refused = run(f"GIT_TERMINAL_PROMPT=0 git clone -q {private}")
    assert refused.exit_code == 128
    assert "could not read Username" in refused.stderr


@pytest.mark.usefixtures("hub")
def test_submodules_over_http(printed: Printed) -> None:
    script = f"""git init -q top && cd top && save x && git submodule --quiet add {URL}/hub.git lib
    git commit -q -m sub && git clone -q --bare . ../site/top.git && cd ..
    git clone -q --recurse-submodules {URL}/top.git copy && ls copy/lib"""
    assert printed(script) == "a\nb\nc\n"


def test_a_server_of_files_is_enough_to_clone(sandbox: Sandbox, printed: Printed) -> None:
    start_web_server(sandbox)
    script = f"""{HUB} git -C site/hub.git repack -q -a -d; git -C site/hub.git update-server-info
    git clone -q {URL}/hub.git copy && ls copy && git -C copy fsck
    cd work && save d && git push -q ../site/hub.git main && cd ../site/hub.git
    git update-server-info && cd ../../copy && git pull -q && cat d"""
    assert printed(script) == "a\nb\nc\nd\n"


def test_https_needs_an_authority_that_is_trusted(sandbox: Sandbox, run: Run) -> None:
    start_web_server(sandbox, 8443, tls=True)
    url = "https://localhost:8443/hub.git"
    run(f"{HUB} git -C site/hub.git update-server-info")
    refused = run(f"git clone -q {url}")
    assert refused.exit_code == 128
    assert "SSL certificate" in refused.stderr
    trusted = run(f"git -c http.sslCAInfo=$HOME/authority.pem clone -q {url} one && ls one")
    assert (trusted.stdout, trusted.stderr) == ("a\nb\nc\n", "")
    assert run(f"GIT_SSL_NO_VERIFY=1 git clone -q {url} two && ls two").stdout == "a\nb\nc\n"


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            f"{URL}/nothing.git",
            "fatal: repository 'http://127.0.0.1:8000/nothing.git/' not found\n",
        ),
        ("http://127.0.0.1:9/x", "Failed to connect to 127.0.0.1"),
        ("http://10.0.0.1/x", "Failed to connect to 10.0.0.1"),
        ("nothing://x/y", "git: 'remote-nothing' is not a git command"),
    ],
)
def test_an_error_says_what_is_wrong(run: Run, address: str, message: str) -> None:
    result = run(f"git clone -q {address} copy")
    assert result.exit_code == 128
    assert message in result.stderr
