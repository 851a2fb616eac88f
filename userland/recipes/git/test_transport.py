"""git: repositories that talk to each other, and processes that go on after a fork.

Only what lies on the way to a fork is Asyncified, so every way there is walked here.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wasmsand import CommandResult

Run = Callable[[str], CommandResult]
Printed = Callable[[str], str]

ORIGIN = """
git init -q origin && cd origin && for f in a b c; do save $f; done && git tag v1 && cd ..
"""


@pytest.mark.parametrize("url", ["origin", "file://$HOME/origin"])
def test_clone_fetch_and_pull(printed: Printed, url: str) -> None:
    script = f"""{ORIGIN}
    git clone -q {url} copy && cd copy && git log --format=%s && ls && git describe --tags
    cd ../origin && save d && git switch -q -c other && save e && cd ../copy
    git fetch -q && git branch -r && git pull -q && git log --format=%s -1 && git status -sb
    git fsck && git ls-remote -q --heads | wc -l"""
    assert printed(script) == (
        "c\nb\na\na\nb\nc\nv1\n  origin/HEAD -> origin/main\n  origin/main\n  origin/other\n"
        "d\n## main...origin/main\n2\n"
    )


def test_progress_and_messages_of_the_other_side_are_shown(printed: Printed, run: Run) -> None:
    printed(ORIGIN)
    result = run("git clone --progress file://$HOME/origin copy")
    assert result.exit_code == 0
    assert "remote: Counting objects: 100% (9/9), done." in result.stderr
    assert "Receiving objects: 100% (9/9)" in result.stderr


def test_shallow_and_partial_clones(printed: Printed) -> None:
    script = f"""{ORIGIN}
    git -C origin config uploadpack.allowFilter true
    git clone -q --depth 1 file://$HOME/origin shallow && git -C shallow rev-list --count HEAD
    git -C shallow fetch -q --unshallow && git -C shallow rev-list --count HEAD
    git clone -q --filter=blob:none --no-checkout file://$HOME/origin part
    git -C part rev-list --objects --missing=print HEAD | grep -c '^?'
    git -C part checkout -q && cat part/a"""
    assert printed(script) == "1\n3\n3\na\n"


def test_push_runs_the_hooks_of_the_other_side(printed: Printed, run: Run) -> None:
    printed("""
    git init -q --bare hub && git clone -q hub copy 2>/dev/null && cd copy && save a
    cat > ../hub/hooks/pre-receive <<'HOOK'
#!/bin/sh
while read old new ref; do echo "got $ref"; case $ref in */bad) exit 1;; esac; done
HOOK
    printf '#!/bin/sh\\necho update $1\\n' > ../hub/hooks/update
    printf '#!/bin/sh\\necho done >&2\\n' > ../hub/hooks/post-receive
    printf '#!/bin/sh\\nread ref rest; echo $ref > ../pushed\\n' > .git/hooks/pre-push
    chmod +x ../hub/hooks/pre-receive ../hub/hooks/update ../hub/hooks/post-receive
    chmod +x .git/hooks/pre-push""")
    good = run("cd copy; git push -u origin main")
    assert good.exit_code == 0
    messages = [line for line in good.stderr.splitlines() if "done" not in line]
    assert "remote: done        " in good.stderr
    assert messages == [
        "remote: got refs/heads/main        ",
        "remote: update refs/heads/main        ",
        "To /home/user/hub",
        " * [new branch]      main -> main",
    ]
    bad = run("cd copy; git push origin main:bad")
    assert bad.exit_code == 1
    assert "! [remote rejected] main -> bad (pre-receive hook declined)" in bad.stderr
    assert printed("cat pushed; git -C hub for-each-ref --format='%(refname)'") == (
        "refs/heads/main\nrefs/heads/main\n"
    )


def test_a_proc_receive_hook_decides_what_a_push_does(printed: Printed, run: Run) -> None:
    printed(f"""{ORIGIN}
    git clone -q --bare origin hub && git -C hub config receive.procReceiveRefs refs/for
    cat > hub/hooks/proc-receive <<'HOOK'
#!/bin/bash
packet() {{ printf '%04x%s' $((${{#1}} + 4)) "$1"; }}
read -rn 4 n; read -rN $((16#$n - 4)) hello; read -rn 4 flush
packet version=1; printf 0000
read -rn 4 n; read -rN $((16#$n - 4)) line; read -rn 4 flush
set -- $line; echo "asked for $3" >&2; packet "ok $3"; printf 0000
HOOK
    chmod +x hub/hooks/proc-receive""")
    result = run("cd origin; git push ../hub HEAD:refs/for/main")
    assert "remote: asked for refs/for/main" in result.stderr
    assert "HEAD -> refs/for/main" in result.stderr
    assert result.exit_code == 0


def test_plumbing_of_transports(printed: Printed) -> None:
    script = f"""{ORIGIN}
    git init -q --bare hub && git -C origin send-pack --quiet ../hub main 2>/dev/null
    git -C hub rev-list --count main
    git init -q two && cd two && git fetch-pack -q ../origin refs/heads/main >/dev/null 2>&1
    git count-objects"""
    assert printed(script) == "3\n9 objects, 36 kilobytes\n"


def test_a_transport_helper_of_ones_own(printed: Printed) -> None:
    script = f"""{ORIGIN}
    git config --global protocol.ext.allow always
    git clone -q 'ext::git %s origin' copy && cd copy && save d
    git init -q --bare ../hub && git push -q 'ext::git %s ../hub' main
    git -C ../hub log --format=%s -1; git fetch -q 'ext::git %s ../hub'; git log --format=%s -1"""
    assert printed(script) == "d\nd\n"


def test_gc_goes_into_the_background(printed: Printed) -> None:
    script = """
    git init -q r && cd r && git config gc.auto 5 && git config maintenance.autoDetach true
    for i in $(seq 30); do save $i; done; git gc --auto -q 2>/dev/null
    for i in $(seq 100); do
        ls .git/objects/pack/*.pack >/dev/null 2>&1 && [ ! -e .git/gc.pid ] && break; sleep 0.1
    done
    git count-objects -v | grep -e ^packs; git fsck && git rev-list --count HEAD"""
    assert printed(script).splitlines()[-1] == "30"


def test_packs_are_made_read_and_checked(printed: Printed) -> None:
    script = """
    git init -q r && cd r && seq 20000 > big
    for i in 1 2 3 4 5; do echo $i >> big; git add big; git commit -q -m $i; done
    git gc -q && git count-objects -v | grep -e ^count -e ^packs -e ^in-pack
    git verify-pack .git/objects/pack/*.idx && git fsck --full
    git log -p --format= | grep -c '^+[1-5]$'
    git repack -q -a -d -f --depth=50 && git prune && git cat-file -p HEAD~2:big | tail -n 1
    git bundle create -q ../all.bundle --all && git clone -q ../all.bundle ../out
    tail -n 1 ../out/big"""
    assert printed(script) == "count: 0\nin-pack: 15\npacks: 1\n10\n3\n5\n"


def test_submodules(printed: Printed) -> None:
    script = f"""{ORIGIN}
    git config --global protocol.file.allow always
    git init -q top && cd top && save x && git submodule --quiet add $HOME/origin lib
    git commit -q -m sub && git submodule status | cut -c 42- && cat .gitmodules && cd ..
    git clone -q --recurse-submodules top copy 2>/dev/null && ls copy/lib
    cd copy && git -C lib switch -q -c w && echo 1 >> lib/a && git status -s
    git submodule foreach -q 'git rev-parse --abbrev-ref HEAD' && git diff --submodule | tail -n 1
    git submodule deinit -q -f lib && ls lib"""
    assert printed(script) == (
        " lib (v1)\n"
        '[submodule "lib"]\n\tpath = lib\n\turl = /home/user/origin\n'
        "a\nb\nc\n m lib\nw\nSubmodule lib contains modified content\n"
    )


def test_worktrees(printed: Printed) -> None:
    script = f"""{ORIGIN}
    cd origin && git worktree add -q -b side ../side v1 && cd ../side && save s
    git worktree list | sed 's/ .*\\[/ [/' && git -C ../origin log --format=%s side -1
    cd ../origin && git worktree remove ../side && git worktree list | wc -l
    git branch -d side 2>/dev/null || echo kept"""
    lines = printed(script).splitlines()
    assert lines == ["/home/user/origin [main]", "/home/user/side [side]", "s", "1", "kept"]


def test_hooks_of_a_commit(printed: Printed, run: Run) -> None:
    printed("""
    git init -q r && cd r/.git/hooks
    printf '#!/bin/sh\\ngit diff --cached --check\\n' > pre-commit
    printf '#!/bin/bash\\nsed -i "1s/^/[T-1] /" "$1"\\n' > commit-msg
    printf '#!/bin/sh\\ngit log -1 --format=%%s > ../seen\\n' > post-commit
    chmod +x pre-commit commit-msg post-commit""")
    assert printed("cd r; save a; git log --format=%s; cat ../seen") == "[T-1] a\n[T-1] a\n"
    refused = run("cd r; printf 'x  \\n' > b; git add b; git commit -q -m b")
    assert (refused.exit_code, refused.stderr) == (1, "b:1: trailing whitespace.\n+x  \n")
