"""git: making and rewriting history."""

from __future__ import annotations

from collections.abc import Callable

from wasmsand import CommandResult, Sandbox

Run = Callable[[str], CommandResult]
Printed = Callable[[str], str]


def test_objects_have_the_names_they_have_everywhere(printed: Printed) -> None:
    script = """
    git init -q r && cd r
    printf 'hello\\n' > a && mkdir d && ln -s ../a d/link && printf '#!/bin/sh\\n' > d/x
    chmod +x d/x && git add . && git commit -q -m 'first

with a body'
    git ls-tree -r HEAD; git cat-file commit HEAD; git rev-parse HEAD; git fsck --strict"""
    assert printed(script) == (
        "100644 blob ce013625030ba8dba906f756967f9e9ca394464a\ta\n"
        "120000 blob 82f488f26965d3d02080ccf7969854a23f0f32b1\td/link\n"
        "100755 blob 1a2485251c33a70432394c93fb89330ef214bfc9\td/x\n"
        "tree 90c268b8fdaf2d3b600c5182646b6e0f24a4626c\n"
        "author Ann <ann@example.org> 1704161045 +0100\n"
        "committer Bob <bob@example.org> 1704161045 +0100\n\nfirst\n\nwith a body\n"
        "42dc2a1848c2b3c40be801ef3d22ebf2ca0c75bd\n"
    )


def test_without_a_name_it_asks_for_one(sandbox: Sandbox) -> None:
    script = "git init -q r; cd r; git commit -q --allow-empty -m x"
    result = sandbox.commands.run(script, env={"GIT_CONFIG_NOSYSTEM": "1"})
    assert result.exit_code == 128
    assert "Please tell me who you are." in result.stderr
    assert 'git config --global user.email "you@example.com"' in result.stderr


def test_status_tells_what_changed(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save a && save b && save c
    echo more >> a; git rm -q b; git mv c d; echo new > e; echo '*.o' > .gitignore; touch f.o
    git status --short --branch; git status -s --ignored | tail -n 1
    git diff --stat; git diff --cached --name-status -M"""
    assert printed(script) == (
        "## main\n M a\nD  b\nR  c -> d\n?? .gitignore\n?? e\n!! f.o\n"
        " a | 1 +\n 1 file changed, 1 insertion(+)\nD\tb\nR100\tc\td\n"
    )


def test_a_change_of_the_same_size_right_after_an_add_is_seen(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save a 1
    for i in 2 3 4 5 6 7 8 9; do
        echo $i > a; ! git diff --quiet || echo missed $i; git add a
    done
    git diff --cached --stat; git cat-file -p :a"""
    assert printed(script) == " a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n9\n"


def test_log_formats(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save a && git tag -a v1 -m one && save b && git branch old HEAD~1
    git log --oneline --decorate --graph --all
    git log --format='%h|%an|%ae|%ad|%s|%D' --date=format:%Y/%m/%d
    git log --format=%cI -1; git log --stat --format=%s -1
    git shortlog -sn HEAD; git describe --long; git rev-list --count HEAD"""
    assert printed(script) == (
        "* f4363bd (HEAD -> main) b\n* 6b3b83f (tag: v1, old) a\n"
        "f4363bd|Ann|ann@example.org|2024/01/02|b|HEAD -> main\n"
        "6b3b83f|Ann|ann@example.org|2024/01/02|a|tag: v1, old\n"
        "2024-01-02T03:04:05+01:00\nb\n\n b | 1 +\n 1 file changed, 1 insertion(+)\n"
        "     2\tAnn\nv1-1-gf4363bd\n2\n"
    )


def test_a_conflict_is_marked_and_resolved(printed: Printed, run: Run) -> None:
    printed("""
    git init -q r && cd r && save f $'a\nb\nc'
    git switch -q -c side && save f $'a\nside\nc' && git switch -q main && save f $'a\nmain\nc'""")
    result = run("cd r; git merge side")
    assert result.exit_code == 1
    assert result.stdout == (
        "Auto-merging f\nCONFLICT (content): Merge conflict in f\n"
        "Automatic merge failed; fix conflicts and then commit the result.\n"
    )
    assert printed("cd r; cat f; git status --short; git diff --name-only --diff-filter=U") == (
        "a\n<<<<<<< HEAD\nmain\n=======\nside\n>>>>>>> side\nc\nUU f\nf\n"
    )
    resolve = "git checkout -q --theirs f && git add f && git commit -q --no-edit"
    assert printed(f"cd r; {resolve}; git log --graph --format=%s; cat f") == (
        "*   Merge branch 'side'\n|\\  \n| * f\n* | f\n|/  \n* f\na\nside\nc\n"
    )


def test_three_branches_are_merged_at_once(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save base
    for b in x y z; do git switch -q -c $b main && save $b; done; git switch -q main
    git merge -q -m all x y z; ls; git log -1 --format='%s %p' | wc -w; git merge-base x z"""
    assert printed(script) == (
        "Fast-forwarding to: x\nTrying simple merge with y\nTrying simple merge with z\n"
        "base\nx\ny\nz\n4\n1bcadb9d904442a68f3e23c17927ce28f774db8f\n"
    )


def test_rebase_moves_commits(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save a && git switch -q -c topic && save t1 && save t2
    git switch -q main && save b && git rebase -q main topic
    git log --format=%s; git status -sb; ls"""
    assert printed(script) == "t2\nt1\nb\na\n## topic\na\nb\nt1\nt2\n"


def test_interactive_rebase_takes_its_plan_from_an_editor(sandbox: Sandbox, run: Run) -> None:
    sandbox.files.write(
        "plan", "sed -i -e '/ b$/s/^pick/reword/' -e '/ d$/s/^pick/fixup/' -e '/ e$/d' \"$1\"\n"
    )
    script = """
    git init -q r && cd r && for f in a b c d e; do save $f; done
    GIT_SEQUENCE_EDITOR='sh ../plan' GIT_EDITOR='sed -i s/b/B/' git rebase -q -i --root >/dev/null
    git log --format=%s; ls; git reflog -1 --format=%gs
    save f f 'fixup! B'; GIT_SEQUENCE_EDITOR=: git rebase -q -i --autosquash --root
    git log --format=%s; git show --stat --format= HEAD~1
    git rebase --exec 'echo run' HEAD~1 2>/dev/null"""
    assert run(script).stdout == (
        "c\nB\na\na\nb\nc\nd\nrebase (finish): returning to refs/heads/main\n"
        "c\nB\na\n b | 1 +\n f | 1 +\n 2 files changed, 2 insertions(+)\nrun\n"
    )


def test_a_rebase_stops_at_a_conflict_and_goes_on(printed: Printed, run: Run) -> None:
    printed("""
    git init -q r && cd r && save f 1 && git switch -q -c topic && save f 2 two && save g
    git switch -q main && save f 3 three && git switch -q topic""")
    stopped = run("cd r; git rebase main")
    assert stopped.exit_code == 1
    assert "CONFLICT (content): Merge conflict in f" in stopped.stdout
    assert "could not apply" in stopped.stderr
    assert "interactive rebase in progress" in run("cd r; git status").stdout
    done = run("cd r; echo 23 > f; git add f; GIT_EDITOR=true git rebase --continue >/dev/null")
    assert done.exit_code == 0
    assert printed("cd r; git log --format=%s; cat f") == "g\ntwo\nthree\nf\n23\n"


def test_stash(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save a && echo 2 >> a && echo u > u && git stash -q -u
    git status -s; git stash list; git stash show -p --format= | tail -n 1
    save b; git stash pop -q; git status -s; git stash list
    git stash -q -- a; git stash branch again 2>&1 | head -n 1"""
    assert printed(script) == (
        "stash@{0}: WIP on main: 6b3b83f a\n+2\n M a\n?? u\nSwitched to a new branch 'again'\n"
    )


def test_cherry_pick_and_revert(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save a && git switch -q -c side && save b && save c
    git switch -q main && git cherry-pick -x side~1 >/dev/null && git log -1 --format=%B
    git revert --no-edit HEAD >/dev/null && git log --format=%s && ls
    git show --stat --format= HEAD"""
    assert printed(script) == (
        "b\n\n(cherry picked from commit f4363bd73b597da888cb534671cbc848d9db270a)\n\n"
        'Revert "b"\nb\na\na\n b | 1 -\n 1 file changed, 1 deletion(-)\n'
    )


def test_bisect_finds_the_commit_that_broke_it(printed: Printed) -> None:
    script = """
    git init -q r && cd r
    for i in $(seq 20); do
        echo $i > n; [ $i -lt 13 ] || echo broken > bug
        git add . && git commit -q -m $i
    done
    git bisect start HEAD HEAD~19 >/dev/null 2>&1
    git bisect run sh -c '! test -e bug' 2>&1 | grep 'first bad commit' | wc -l
    git show -s --format=%s refs/bisect/bad
    git bisect reset 2>/dev/null; git rev-list --count HEAD"""
    assert printed(script).splitlines()[-2:] == ["13", "20"]


def test_blame_follows_lines(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save f $'one\ntwo' first && GIT_AUTHOR_NAME=Cid save f $'one\n2' second
    git mv f g && git commit -q -m moved
    git blame -s -f g; git blame --line-porcelain -L2,2 g | grep -e '^author ' -e ^summary
    git log --follow --format=%s g; git log -S two --format=%s; git log -L2,2:g --format=%s -s"""
    assert printed(script) == (
        "^485300d f 1) one\n1ab5590a f 2) 2\nauthor Cid\nsummary second\n"
        "moved\nsecond\nfirst\nsecond\nfirst\nsecond\nfirst\n"
    )


def test_tags_notes_reflog(printed: Printed) -> None:
    script = """
    git init -q r && cd r && save a && git tag light && git tag -a v1.0 -m $'one\noh' && save b
    git tag -n1; git describe; git notes add -m noted; git log -1 --format='%s %N'
    git cat-file tag v1.0 | tail -n 3; git reset -q --hard HEAD~1; git reflog --format='%gd %gs'
    git reset -q --hard HEAD@{1}; git log --format=%s
    git branch -m renamed; git branch --list; git rev-parse --abbrev-ref HEAD"""
    assert printed(script) == (
        "light           a\nv1.0            one\nv1.0-1-gf4363bd\nb noted\n\n"
        "\none\noh\nHEAD@{0} reset: moving to HEAD~1\nHEAD@{1} commit: b\n"
        "HEAD@{2} commit (initial): a\nb\na\n* renamed\nrenamed\n"
    )
