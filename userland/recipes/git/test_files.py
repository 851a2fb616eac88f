"""git: patches, searches, and the files of a working tree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wasmsand import CommandResult, Sandbox

Run = Callable[[str], CommandResult]
Printed = Callable[[str], str]


def test_diff_and_apply(printed: Printed) -> None:
    script = """
    git init -q r && cd r && seq 12 > n && printf 'a\\0b' > bin && git add . && git commit -q -m 1
    sed -i 's/^6$/six/' n; chmod +x n; printf 'a\\0c' > bin; git diff > ../p; cat ../p
    git diff --binary > ../full; git diff --numstat; git diff --word-diff=porcelain n | grep '^[-+]'
    git checkout -q . && git apply --check ../full && git apply --index ../full && git status -s
    git apply -R --index ../full && git status -s; git diff --no-index /dev/null n | head -n 2"""
    assert printed(script) == (
        "diff --git a/bin b/bin\nindex 20b5be9..88f3700 100644\n"
        "Binary files a/bin and b/bin differ\n"
        "diff --git a/n b/n\nold mode 100644\nnew mode 100755\nindex 08fe19c..7ceb3b4\n"
        "--- a/n\n+++ b/n\n@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n 9\n"
        "-\t-\tbin\n1\t1\tn\n--- a/n\n+++ b/n\n-6\n+six\nM  bin\nM  n\n"
        "diff --git a/n b/n\nnew file mode 100644\n"
    )


def test_patches_by_mail(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save a && save b 'grüße' 'Grüße: ä' && save c
    git format-patch -q -o ../out HEAD~2 && ls ../out && grep -e ^From: -e ^Subject ../out/0001*
    git reset -q --hard HEAD~2 && git am -q ../out/*.patch && git log --format='%an %s' && cat b
    git range-diff HEAD~2...HEAD~1 | head -n 1"""
    assert printed(script) == (
        "0001-Gr-e.patch\n0002-c.patch\nFrom: Ann <ann@example.org>\n"
        "Subject: [PATCH 1/2] =?UTF-8?q?Gr=C3=BC=C3=9Fe:=20=C3=A4?=\n"
        "Ann c\nAnn Grüße: ä\nAnn a\ngrüße\n"
        "-:  ------- > 1:  e1c0060 Grüße: ä\n"
    )


@pytest.mark.parametrize(
    ("arguments", "stdout"),
    [
        ("-n foo", "d/b.c:1:foo(1);\nf.txt:2:a foo bar\n"),
        ("-c -i FOO", "d/b.c:1\nf.txt:1\n"),
        ("-l -e foo --and -e bar", "f.txt\n"),
        (r"-P -o '\bf(o+)(?= )'", "f.txt:foo\n"),
        ("-w -h -E 'ba[rz]'", "a foo bar\n"),
        ("foo HEAD -- '*.c'", "HEAD:d/b.c:foo(1);\n"),
        ("-F '(1)' d", "d/b.c:foo(1);\n"),
        ("-L foo", "u\n"),
    ],
)
def test_grep(printed: Printed, arguments: str, stdout: str) -> None:
    printed("""
    git init -q r && cd r && mkdir d && echo 'foo(1);' > d/b.c && printf 'x\\na foo bar\\n' > f.txt
    echo ü > u && git add . && git commit -q -m 1; echo foo > untracked""")
    assert printed(f"cd r; git grep {arguments}") == stdout


def test_clean_and_restore(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save a && mkdir d && touch d/x b.o c && echo '*.o' > .git/info/exclude
    git clean -n -d; git clean -q -f -d; ls; git clean -q -f -x; ls; rm a; git restore a; ls
    git rm -q --cached a && git status -s && git reset -q && git status -s"""
    assert printed(script) == ("Would remove c\nWould remove d/\na\nb.o\na\na\nD  a\n?? a\n")


def test_filters_clean_and_smudge_what_passes(printed: Printed, run: Run) -> None:
    script = """
    git init -q r && cd r && echo '*.up filter=up' > .gitattributes
    git config filter.up.clean 'tr a-z A-Z' && git config filter.up.smudge 'tr A-Z a-z; true %f'
    git config filter.up.required true
    echo hello > a.up; seq 100000 | sed s/^/x/ > big.up; git add .; git commit -q -m 1
    git cat-file -p :a.up; git cat-file -p :big.up | head -n 1; rm *.up; git checkout -q .
    cat a.up; md5sum < big.up; git status -s"""
    assert printed(script) == ("HELLO\nX1\nhello\nf6448fead5ccaf28cc4adcce750b9d29  -\n")
    broken = run("cd r; git config filter.up.clean 'exit 3'; touch b.up; git add b.up")
    assert broken.exit_code == 128
    assert broken.stderr == (
        "error: external filter 'exit 3' failed 3\nerror: external filter 'exit 3' failed\n"
        "fatal: b.up: clean filter 'up' failed\n"
    )


def test_line_ends(printed: Printed) -> None:
    script = """
    git init -q r && cd r && echo 'f text=auto eol=crlf' > .gitattributes
    printf 'a\\r\\nb\\r\\n' > f
    git add . && git commit -q -m 1 && git cat-file -s :f && rm f && git checkout -q f && wc -c < f
    git ls-files --eol f"""
    assert printed(script).split() == [
        "4",
        "6",
        "i/lf",
        "w/crlf",
        "attr/text=auto",
        "eol=crlf",
        "f",
    ]


def test_sparse_checkout_and_rerere(printed: Printed, run: Run) -> None:
    script = """
    git init -q r && cd r && mkdir x y && save x/a && save y/b && save c
    git sparse-checkout set x; ls; git status -s; git sparse-checkout disable
    ls | tr '\\n' ' '; echo
    git config rerere.enabled true
    git switch -q -c s HEAD~1; save c 1; git switch -q main; save c 2"""
    assert printed(script) == "c\nx\nc x y \n"
    run("cd r; git merge s; echo 12 > c; git add c; git commit -q -m m; git reset -q --hard HEAD~1")
    again = run("cd r; git merge s; cat c")
    assert again.stdout.splitlines()[-1] == "12"
    assert "Resolved 'c' using previous resolution." in again.stdout + again.stderr


def test_archives(printed: Printed) -> None:
    script = """
    git init -q r && cd r && mkdir d && save d/a && ln -s a d/l && git add . && git commit -q -m l
    git archive --prefix=p/ HEAD > ../x.tar; git archive --format=zip HEAD | wc -c
    git archive HEAD d/a | git get-tar-commit-id; head -c 100 ../x.tar | tr -d '\\0' | head -c 9"""
    lines = printed(script).splitlines()
    assert int(lines[0]) > 200
    assert len(lines[1]) == 40


def test_a_large_file_and_many_files(printed: Printed) -> None:
    script = """
    git init -q r && cd r && head -c 20000000 /dev/zero > zero && seq 400000 > numbers
    for d in $(seq 20); do mkdir d$d; for f in $(seq 50); do echo $d $f > d$d/f$f; done; done
    git add . && git commit -q -m big && git gc -q && rm -r d* zero
    git checkout -q . && git status -s
    git ls-files | wc -l; wc -c < zero; git fsck && git diff --stat HEAD"""
    assert printed(script) == "1002\n20000000\n"


def test_an_editor_writes_the_message(printed: Printed, sandbox: Sandbox) -> None:
    sandbox.files.write("edit", '#!/bin/sh\ngrep "new file" "$1" > seen; echo edited > "$1"\n')
    sandbox.commands.run("chmod +x edit")
    script = """
    git init -q r && cd r && touch a && git add a && EDITOR=$HOME/edit git commit -q
    git log --format=%B; cat seen; git config core.editor 'sed -i s/edited/again/'
    git commit -q --amend; git log --format=%s"""
    assert printed(script) == "edited\n\n#\tnew file:   a\nagain\n"


def test_messages_of_common_mistakes(run: Run) -> None:
    result = run("git status; git init -q r; cd r; git log; git checkout nosuch; git comit")
    assert result.stderr.splitlines() == [
        "fatal: not a git repository (or any of the parent directories): .git",
        "fatal: your current branch 'main' does not have any commits yet",
        "error: pathspec 'nosuch' did not match any file(s) known to git",
        "git: 'comit' is not a git command. See 'git --help'.",
        "",
        "The most similar command is",
        "\tcommit",
    ]


def test_help_and_aliases(printed: Printed) -> None:
    script = """
    git config --global alias.last 'log -1 --format=%s'
    git config --global alias.up '!echo up $(pwd)'
    git init -q r && cd r && save a && mkdir d && git last && (cd d && git up x)
    git --version; git help -a | grep -c '^   '
    { git commit -h 2>&1 || :; } | head -n 1 | cut -c1-17
    git --exec-path; git config --get-regexp 'alias.*' | wc -l"""
    lines = printed(script).splitlines()
    assert lines[:3] == ["a", "up /home/user/r x", "git version 2.47.3"]
    assert int(lines[3]) > 100
    assert lines[4:] == ["usage: git commit", "/usr/libexec/git-core", "2"]
