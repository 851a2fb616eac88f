"""patch: every kind of diff, backups, rejects, reversal, and what it refuses."""

from __future__ import annotations

import pytest

from userland.recipes.script_tables import complains
from wasmsand import Sandbox

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
NEW = "one\n2\nthree\nfour\nfive\nsix\nseven\neight\n"


@pytest.fixture
def tree(sandbox: Sandbox) -> Sandbox:
    sandbox.files.write("a/file", OLD)
    sandbox.files.write("b/file", NEW)
    sandbox.files.write("file", OLD)
    return sandbox


@pytest.mark.parametrize("kind", ["-u", "-c", "", "-e"])
def test_kinds_of_diffs(tree: Sandbox, kind: str) -> None:
    result = tree.commands.run(f"diff {kind} a/file b/file | patch file")
    # A script for ed is handed to ed, which is not told of.
    said = "" if kind == "-e" else "patching file file\n"
    assert (result.stdout, result.stderr, result.exit_code) == (said, "", 0)
    assert tree.files.read("file").decode() == NEW


def test_a_tree_with_stripped_names(tree: Sandbox) -> None:
    script = "diff -ruN a b > p; mkdir work; cp file work; cd work; patch -p1 < ../p"
    assert tree.commands.run(script).stdout == "patching file file\n"
    assert tree.files.read("work/file").decode() == NEW


def test_reversal(tree: Sandbox) -> None:
    script = "diff -u a/file b/file > p; patch -s file p && patch -s -R file p && cmp file a/file"
    assert tree.commands.run(script).exit_code == 0


def test_offsets_and_fuzz(tree: Sandbox) -> None:
    script = (
        "diff -u a/file b/file > p; { echo zero; sed s/one/ONE/ a/file; } > file; "
        "patch file p; tr '\\n' ' ' < file"
    )
    result = tree.commands.run(script)
    assert result.stdout.splitlines()[1:] == [
        "Hunk #1 succeeded at 2 with fuzz 1 (offset 1 line).",
        "zero ONE 2 three four five six seven eight ",
    ]


def test_rejects_and_backups(tree: Sandbox) -> None:
    script = "diff -u a/file b/file > p; seq 9 > file; patch -b file p"
    result = tree.commands.run(script)
    assert result.exit_code == 1
    assert result.stdout == (
        "patching file file\nHunk #1 FAILED at 1.\n"
        "1 out of 1 hunk FAILED -- saving rejects to file file.rej\n"
    )
    assert tree.files.read("file.rej").decode().startswith("--- file")
    assert tree.commands.run("cmp file.orig <(seq 9)").exit_code == 0


def test_dry_run_changes_nothing(tree: Sandbox) -> None:
    result = tree.commands.run("diff -u a/file b/file | patch --dry-run file")
    assert result.stdout == "checking file file\n"
    assert tree.files.read("file").decode() == OLD


def test_creation_and_removal(tree: Sandbox) -> None:
    script = (
        "mkdir x y; echo gone > x/old; echo come > y/new; diff -ruN x y > p; cp -r x z; cd z; "
        "patch -p1 < ../p; ls; cat new"
    )
    result = tree.commands.run(script)
    assert result.stdout == "patching file new\npatching file old\nnew\ncome\n"


def test_a_git_diff_renames_and_sets_modes(sandbox: Sandbox) -> None:
    sandbox.files.write("script", "#!/bin/sh\necho hi\n")
    sandbox.files.write(
        "p",
        "diff --git a/script b/tool\nold mode 100644\nnew mode 100755\nsimilarity index 50%\n"
        "rename from script\nrename to tool\n--- a/script\n+++ b/tool\n@@ -1,2 +1,2 @@\n"
        " #!/bin/sh\n-echo hi\n+echo hello\n",
    )
    result = sandbox.commands.run("patch -p1 < p; ./tool; ls")
    assert result.stdout == "patching file tool (renamed from script)\nhello\np\ntool\n"


def test_output_to_another_file(tree: Sandbox) -> None:
    result = tree.commands.run("diff -u a/file b/file | patch -o - file 2>/dev/null")
    assert result.stdout == NEW
    assert tree.files.read("file").decode() == OLD


def test_an_applied_patch_is_noticed(tree: Sandbox) -> None:
    script = "diff -u a/file b/file > p; patch -s file p; patch -N file p; echo $?; patch -f file p"
    result = tree.commands.run(script)
    assert "Reversed (or previously applied) patch detected!  Skipping patch." in result.stdout
    assert result.exit_code == 1


def test_it_refuses_names_outside(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/victim", "safe\n")
    sandbox.files.write(
        "p", "--- ../../tmp/victim\n+++ ../../tmp/victim\n@@ -1 +1 @@\n-safe\n+broken\n"
    )
    result = sandbox.commands.run("patch -p0 -f < p")
    assert result.exit_code != 0
    assert "No file to patch.  Skipping patch." in result.stdout
    assert sandbox.files.read("/tmp/victim").decode() == "safe\n"


test_errors = complains(
    ("echo nonsense | patch", 2, "Only garbage was found in the patch input."),
    ("patch -p0 < missing", 1, "missing: No such file or directory"),
    ("patch file missing", 2, "Can't open patch file missing : No such file or directory"),
    (
        "printf -- '--- a\\n+++ b\\n@@ -1,5 +1 @@\\n-x\\n' | patch f",
        2,
        "malformed patch at line",
    ),
    ("patch --nonsense", 2, "unrecognized option '--nonsense'"),
    on_stdout=True,
)


def test_line_ends_of_dos(sandbox: Sandbox) -> None:
    sandbox.files.write("f", "a\r\nb\r\n")
    sandbox.files.write("p", "--- f\r\n+++ f\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n")
    result = sandbox.commands.run("patch < p; patch --binary -s < p")
    assert result.stdout == (
        "(Stripping trailing CRs from patch; use --binary to disable.)\npatching file f\n"
        "Hunk #1 FAILED at 1 (different line endings).\n"
        "1 out of 1 hunk FAILED -- saving rejects to file f.rej\n"
    )
    assert sandbox.files.read("f") == b"a\r\nc\r\n"


def test_a_large_patch(sandbox: Sandbox) -> None:
    script = "seq 200000 > a; sed 's/7$/seven/' a > b; diff -u a b > p; patch -s a p; cmp a b"
    result = sandbox.commands.run(script, timeout_ms=120_000)
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)
