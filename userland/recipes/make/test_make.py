"""make: rules, functions, jobs at once, make in make, and how it fails."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


def run_make(sandbox: Sandbox, makefile: str, arguments: str = "") -> tuple[str, str, int]:
    sandbox.files.write("Makefile", makefile)
    result = sandbox.commands.run(f"make {arguments}", timeout_ms=60_000)
    return result.stdout, result.stderr, result.exit_code


def test_only_what_is_older_is_made_again(sandbox: Sandbox) -> None:
    makefile = (
        "all: a.out b.out\n"
        "%.out: %.in\n\t@echo making $@ from $<\n\t@tr a-z A-Z < $< > $@\n"
        ".PHONY: all clean\n"
        "clean:\n\trm -f *.out\n"
    )
    sandbox.files.write("a.in", "first\n")
    sandbox.files.write("b.in", "second\n")
    first = "making a.out from a.in\nmaking b.out from b.in\n"
    assert run_make(sandbox, makefile) == (first, "", 0)
    assert sandbox.files.read("b.out").decode() == "SECOND\n"
    assert run_make(sandbox, makefile) == ("make: Nothing to be done for 'all'.\n", "", 0)
    sandbox.commands.run("touch -d '+1 minute' a.in")
    assert run_make(sandbox, makefile)[0].startswith("making a.out from a.in\n")
    assert run_make(sandbox, makefile, "clean") == ("rm -f *.out\n", "", 0)
    assert sandbox.commands.run("ls").stdout == "Makefile\na.in\nb.in\n"


@pytest.mark.parametrize(
    ("line", "stdout"),
    [
        ("$(shell echo a; echo b)", "a b"),
        ("$(words $(shell seq 1000))", "1000"),
        ("$(patsubst %.c,%.o,x.c y.c z.h)", "x.o y.o z.h"),
        ("$(sort c b a b)", "a b c"),
        ("$(foreach v,1 2 3,<$(v)>)", "<1> <2> <3>"),
        ("$(wildcard *.c)", "m.c n.c"),
        ("$(notdir $(abspath ./d/../e.c)) $(dir a/b.c) $(suffix q.tar.gz)", "e.c a/ .gz"),
        ("$(if $(filter m.c,$(wildcard *)),yes,no)", "yes"),
        ("$(call twice,ab)", "abab"),
        ("$(file <m.c)", "int m;"),
        ("$(origin HOME) $(flavor twice) $(value twice)", "environment recursive $(1)$(1)"),
        ("$(subst a,b,banana) $(strip   x   y )", "bbnbnb x y"),
        ("$(shell exit 3)$(.SHELLSTATUS)", "3"),
    ],
)
def test_functions(sandbox: Sandbox, line: str, stdout: str) -> None:
    sandbox.files.write("m.c", "int m;")
    sandbox.files.write("n.c", "")
    makefile = f"twice = $(1)$(1)\nvalue := {line}\nall:;@printf '%s\\n' '$(value)'\n"
    assert run_make(sandbox, makefile) == (f"{stdout}\n", "", 0)


def test_conditionals_includes_and_variables_from_outside(sandbox: Sandbox) -> None:
    sandbox.files.write("more.mk", "EXTRA += from-include\n")
    makefile = (
        "EXTRA := start\ninclude more.mk\n-include missing.mk\n"
        "ifeq ($(MODE),fast)\nFLAGS = -O3\nelse\nFLAGS = -O0\nendif\n"
        "define LINES\none\ntwo\nendef\nexport LINES\n"
        "target: private LOCAL = own\n"
        "target: ; @echo $(EXTRA) $(FLAGS) $(LOCAL) $(FROM_ENV) $$LINES\n"
    )
    sandbox.files.write("Makefile", makefile)
    result = sandbox.commands.run("FROM_ENV=env make MODE=fast")
    assert (result.stdout, result.stderr) == ("start from-include -O3 own env one two\n", "")


def test_jobs_run_at_once(sandbox: Sandbox) -> None:
    # Each of the four waits for the other three: one after another they would never end.
    makefile = (
        "all: 1 2 3 4\n"
        "1 2 3 4:\n\t@touch here.$@; while [ $$(ls here.* | wc -l) -lt 4 ]; do sleep 0.02; done\n"
    )
    assert run_make(sandbox, makefile, "-j4") == ("", "", 0)


def test_never_more_jobs_than_allowed(sandbox: Sandbox) -> None:
    names = " ".join(f"t{n}" for n in range(8))
    count = "set -- run.*; echo $$# >> seen"
    makefile = f"all: {names}\nt%: ; @mkdir run.$@; {count}; sleep 0.05; rmdir run.$@\n"
    assert run_make(sandbox, makefile, "-j3")[2] == 0
    seen = [int(line) for line in sandbox.files.read("seen").decode().split()]
    assert len(seen) == 8
    assert max(seen) <= 3


@pytest.mark.parametrize("style", ["fifo", "pipe"])
def test_make_in_make_shares_the_jobs(sandbox: Sandbox, style: str) -> None:
    sandbox.files.write(
        "sub/Makefile",
        "all: a b c d\na b c d:\n"
        "\t@mkdir ../run.$(NAME)$@; set -- ../run.*; echo $$# >> ../seen; sleep 0.05; "
        "rmdir ../run.$(NAME)$@\n",
    )
    makefile = "all: x y\nx y:\n\t+@$(MAKE) --no-print-directory -C sub NAME=$@\n"
    stdout, stderr, status = run_make(sandbox, makefile, f"-j3 --jobserver-style={style}")
    assert (stdout, stderr, status) == ("", "", 0)
    seen = [int(line) for line in sandbox.files.read("seen").decode().split()]
    assert len(seen) == 8
    assert max(seen) <= 3


def test_make_in_make_tells_where_it_is(sandbox: Sandbox) -> None:
    sandbox.files.write("sub/Makefile", "all:\n\t@echo level $(MAKELEVEL) in $(notdir $(CURDIR))\n")
    stdout, stderr, status = run_make(sandbox, "all:\n\t$(MAKE) -C sub\n")
    assert stdout == (
        "make -C sub\n"
        "make[1]: Entering directory '/home/user/sub'\n"
        "level 1 in sub\n"
        "make[1]: Leaving directory '/home/user/sub'\n"
    )
    assert (stderr, status) == ("", 0)


def test_output_of_jobs_can_be_kept_together(sandbox: Sandbox) -> None:
    makefile = "all: a b\na b:\n\t@echo $@ begins; sleep 0.1; echo $@ ends\n"
    stdout, _, status = run_make(sandbox, makefile, "-j2 -O")
    assert status == 0
    assert stdout in (
        "a begins\na ends\nb begins\nb ends\n",
        "b begins\nb ends\na begins\na ends\n",
    )


@pytest.mark.parametrize(
    ("makefile", "arguments", "stdout", "stderr"),
    [
        ("all:\n\tfalse\n", "", "false\n", "make: *** [Makefile:2: all] Error 1\n"),
        ("all:\n\t@exit 7\n", "", "", "make: *** [Makefile:2: all] Error 7\n"),
        ("all: gone\n", "", "",
         "make: *** No rule to make target 'gone', needed by 'all'.  Stop.\n"),
        ("", "what", "", "make: *** No rule to make target 'what'.  Stop.\n"),
        ("all:\n    spaces\n", "", "", "Makefile:2: *** missing separator.  Stop.\n"),
        ("$(error stop here)\n", "", "", "Makefile:1: *** stop here.  Stop.\n"),
        ("all:\n\tno-such-command-here\n", "", "no-such-command-here\n",
         "make: no-such-command-here: No such file or directory\n"
         "make: *** [Makefile:2: all] Error 127\n"),
        ("all:\n\t@kill -TERM $$$$\n", "", "", "make: *** [Makefile:2: all] Terminated\n"),
        ("a: b\nb: a\n\t@echo b\n", "", "b\n", "make: Circular b <- a dependency dropped.\n"),
    ],
)  # fmt: skip
def test_failures(
    sandbox: Sandbox, makefile: str, arguments: str, stdout: str, stderr: str
) -> None:
    printed, said, status = run_make(sandbox, makefile, arguments)
    assert (printed, said) == (stdout, stderr)
    assert status == (0 if "Circular" in stderr else 2)


def test_a_failed_line_is_ignored_when_asked_and_others_go_on(sandbox: Sandbox) -> None:
    makefile = "all: a b\na:\n\t-@exit 1\n\t@echo a goes on\nb:\n\t@exit 2\nc:\n\t@echo c\n"
    stdout, stderr, status = run_make(sandbox, makefile, "-k all c")
    assert stdout == "a goes on\nc\n"
    assert stderr == (
        "make: [Makefile:3: a] Error 1 (ignored)\n"
        "make: *** [Makefile:6: b] Error 2\n"
        "make: Target 'all' not remade because of errors.\n"
    )
    assert status == 2


def test_a_half_made_target_is_deleted(sandbox: Sandbox) -> None:
    makefile = ".DELETE_ON_ERROR:\nout:\n\t@echo half > $@; false\n"
    _, stderr, status = run_make(sandbox, makefile)
    assert stderr == "make: *** [Makefile:3: out] Error 1\nmake: *** Deleting file 'out'\n"
    assert status == 2
    assert not sandbox.files.exists("out")


def test_dry_run_question_and_database(sandbox: Sandbox) -> None:
    makefile = "out: in\n\tcp in out\n"
    sandbox.files.write("in", "")
    assert run_make(sandbox, makefile, "-n") == ("cp in out\n", "", 0)
    assert run_make(sandbox, makefile, "-q") == ("", "", 1)
    assert "out: in\n" in run_make(sandbox, makefile, "-pn")[0]


def test_one_shell_and_another_shell(sandbox: Sandbox) -> None:
    makefile = (
        "SHELL = /bin/bash\n.SHELLFLAGS = -euc\n.ONESHELL:\n"
        "all:\n\t@x=(1 2 3)\n\tcd /tmp\n\techo $${#x[@]} $$PWD\n"
    )
    assert run_make(sandbox, makefile) == ("3 /tmp\n", "", 0)


def test_a_makefile_from_standard_input(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("printf 'all:;@echo from stdin\\n' | make -f -")
    assert (result.stdout, result.stderr) == ("from stdin\n", "")


def test_make_is_ended_by_a_signal_and_takes_its_jobs_along(sandbox: Sandbox) -> None:
    makefile = "out:\n\t@echo part > out; sleep 30\n"
    sandbox.files.write("Makefile", makefile)
    result = sandbox.commands.run(
        "make & sleep 1; kill -TERM $!; wait $!; echo $?; ls out 2>&1; "
        "cat /proc/[0-9]*/comm | grep -c sleep"
    )
    assert result.stdout == "143\nls: cannot access 'out': No such file or directory\n0\n"
    assert result.stderr == (
        "make: *** Deleting file 'out'\nmake: *** [Makefile:2: out] Terminated\n"
    )


def test_many_targets(sandbox: Sandbox) -> None:
    makefile = "N := $(shell seq 300)\nall: $(N:%=t%)\nt%: ; @echo $* >> done\n"
    assert run_make(sandbox, makefile, "-j4")[2] == 0
    assert sandbox.commands.run("sort -n done | cmp - <(seq 300)").exit_code == 0


def test_version_and_help(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("make --version | head -n 1; gmake --help | head -n 1")
    assert result.stdout == "GNU Make 4.4.1\nUsage: gmake [options] [target] ...\n"
    assert sandbox.commands.run("make").stderr == (
        "make: *** No targets specified and no makefile found.  Stop.\n"
    )
