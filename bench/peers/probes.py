"""What an agent may type, with the output that bash and the GNU tools give on Linux.

Rules: a probe is a script of the kind that agents write, and passes only if standard output is
exactly this. Nothing is chosen to favour anybody; `tests/bench/test_probes.py` checks the
expectations against the programs of the machine that runs the tests.
"""

# ruff: noqa: E501  (a script is one line)
from __future__ import annotations

from typing import NamedTuple


class Probe(NamedTuple):
    """One script."""

    group: str
    name: str
    script: str
    expected: str


def _probes(group: str, *rows: tuple[str, str, str]) -> tuple[Probe, ...]:
    return tuple(Probe(group, *row) for row in rows)


SHELL = _probes(
    "shell language",
    ("arrays", 'a=(x y z); a+=(w); echo "${#a[@]} ${a[-1]} ${a[@]:1:2}"', "4 w y z\n"),
    ("associative arrays", 'declare -A m=([k]=v [l]=w); echo "${m[k]} ${#m[@]}"', "v 2\n"),
    (
        "process substitution",
        "diff <(printf 'a\\nb\\n') <(printf 'a\\nc\\n')",
        "2c2\n< b\n---\n> c\n",
    ),
    ("here-document", "x=5; cat <<EOF\nvalue $x $((x*2))\nEOF", "value 5 10\n"),
    ("pipefail", "set -o pipefail; false | true; echo $?", "1\n"),
    ("PIPESTATUS", 'true | false | true; echo "${PIPESTATUS[*]}"', "0 1 0\n"),
    ("regular expressions", '[[ ab12 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"', "12\n"),
    ("extended globs", "shopt -s extglob; x=foo.tar.gz; echo ${x%%.@(tar|zip)*}", "foo\n"),
    (
        "functions and locals",
        "f() { local v=$1; ((v > 0)) && f $((v-1)); printf %s $v; }; f 3",
        "0123",
    ),
    ("name references", "f() { local -n r=$1; r=new; }; v=old; f v; echo $v", "new\n"),
    ("mapfile", "mapfile -t l < <(seq 3); echo ${l[2]} ${#l[@]}", "3 3\n"),
    ("getopts", "set -- -a -b x; while getopts ab: o; do echo $o $OPTARG; done", "a\nb x\n"),
    ("fall through in case", "case a in a) echo 1;;& [a-z]) echo 2;; *) echo 3;; esac", "1\n2\n"),
    ("trap on exit", "(trap 'echo bye' EXIT; echo hi; exit 3); echo $?", "hi\nbye\n3\n"),
    (
        "trap of a signal",
        "(trap 'echo got; exit 4' TERM; kill $BASHPID; sleep 5); echo $?",
        "got\n4\n",
    ),
    ("background jobs", "(sleep 0.1; echo late) & echo early; wait", "early\nlate\n"),
    ("wait for one", "(exit 7) & wait $!; echo $?", "7\n"),
    ("kill a job", "sleep 60 & kill $!; wait $! 2>/dev/null; echo $?", "143\n"),
    ("redirections", "exec 3>f; echo a >&3; exec 3>&-; { cat; } <f; rm f", "a\n"),
    ("errexit", "(set -e; false; echo no); echo $?", "1\n"),
    ("arithmetic", "echo $((2**40 % 1000)) $((0x1f ^ 3)) $((7/2))", "776 28 3\n"),
    ("printf", "printf '%05.2f|%-4s|%x\\n' 3.14159 ab 255", "03.14|ab  |ff\n"),
    (
        "string operations",
        "s=hello; echo ${s^^} ${s//l/L} ${s:1:3} ${s/#he/J}",
        "HELLO heLLo ell Jllo\n",
    ),
    ("select parts by IFS", "IFS=: read -r a b c <<< x:y:z; echo $c$b$a", "zyx\n"),
    ("coprocess", "coproc cat; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x", "hi\n"),
)

PROCESSES = _probes(
    "processes and files",
    ("an endless writer ends", "yes | head -2; echo ${PIPESTATUS[0]}", "y\ny\n141\n"),
    ("a long pipeline", "seq 300000 | grep 7 | sort -rn | head -1", "299997\n"),
    ("timeout", "timeout 0.3 sleep 5; echo $?", "124\n"),
    ("named pipe", "mkfifo p; echo hi > p & cat p; rm p", "hi\n"),
    ("file lock", "exec 9>l; flock 9; flock -n l echo no || echo locked; rm l", "locked\n"),
    ("sparse file", "truncate -s 1G s; stat -c '%s' s; du -k s | cut -f1; rm s", "1073741824\n0\n"),
    ("hard links", "echo a>x; ln x y; stat -c %h x; rm x; cat y; rm y", "2\na\n"),
    ("symbolic links", "mkdir -p d/e; ln -s d/e k; cd k; pwd -P | sed 's|.*/d|d|'", "d/e\n"),
    ("permissions", "echo a>x; chmod 640 x; stat -c %A x; rm -f x", "-rw-r-----\n"),
    ("umask", "(umask 077; : > u; stat -c %a u); rm u", "600\n"),
    (
        "find and exec",
        "mkdir t; touch t/{a,b}.txt; find t -name '*.txt' -exec basename {} \\; | sort",
        "a.txt\nb.txt\n",
    ),
    ("xargs in parallel", "seq 6 | xargs -n2 -P3 sh -c 'echo $(($0+$1))' | sort -n", "3\n7\n11\n"),
    ("/proc", "grep -c Pid: /proc/self/status", "3\n"),
    (
        "process substitution out",
        "seq 3 | tee >(wc -l > n) >/dev/null; sleep 0.2; cat n; rm n",
        "3\n",
    ),
)

TOOLS = _probes(
    "tools",
    ("awk", "printf '3 a\\n1 b\\n' | awk '{s+=$1; l[$2]=$1} END {print s, l[\"b\"], length(l)}'", "4 1 2\n"),
    ("sed", "printf 'a1\\nb2\\n' | sed -E 's/([a-z])([0-9])/\\2\\1/;$!d'", "2b\n"),
    ("sort by key", "printf 'b 10\\na 9\\nc 10\\n' | sort -k2,2nr -k1,1", "b 10\nc 10\na 9\n"),
    ("join", "join <(printf '1 a\\n2 b\\n') <(printf '1 x\\n2 y\\n')", "1 a x\n2 b y\n"),
    ("date", "TZ=UTC date -d '2024-02-28 +2 days' +%F", "2024-03-01\n"),
    ("diff and patch", "printf 'a\\nb\\n'>o; printf 'a\\nc\\n'>n; diff -u o n >p; patch -s o p; cat o; rm o n p", "a\nc\n"),
    ("tar with gzip", "mkdir z; echo hi >z/f; tar czf z.tgz z; rm -r z; tar xzf z.tgz; cat z/f; rm -r z*", "hi\n"),
    ("jq", """echo '{"a":[1,{"b":2}]}' | jq -c '.a[1].b, (.a|length)'""", "2\n2\n"),
    ("sha256sum", "printf abc | sha256sum | cut -c1-16", "ba7816bf8f01cfea\n"),
    ("make", "printf 'all: x\\n\\t@cat x\\nx:\\n\\t@echo made > x\\n' > Makefile; make -s; rm x Makefile", "made\n"),
    ("sqlite3", "sqlite3 :memory: 'create table t(a); insert into t values(1),(2); select sum(a) from t'", "3\n"),
    ("git", "git init -q r; cd r; echo a>f; git add f; git -c user.name=n -c user.email=e@x commit -qm m; "
            "git log --format=%s; git status --short | wc -l", "m\n0\n"),
    ("bc", "echo 'scale=20; 1/3' | bc", ".33333333333333333333\n"),
    ("vim as an editor", "printf 'a\\n' > v; vim -es -u NONE -c '%s/a/b/' -c wq v; cat v; rm v", "b\n"),
)  # fmt: skip

PYTHON = _probes(
    "Python",
    ("standard library", "python3 -c 'import json, re, sqlite3; print(json.dumps({\"a\": 1}))'", '{"a": 1}\n'),
    ("a script with arguments", "printf 'import sys\\nprint(sys.argv[1:])\\n' > s.py; python3 s.py a b; rm s.py", "['a', 'b']\n"),
    ("subprocess", "python3 -c 'import subprocess; print(subprocess.check_output([\"echo\", \"hi\"]))'", "b'hi\\n'\n"),
    ("threads", "python3 -c 'import threading as t; x=[]; [k.start() or k.join() for k in [t.Thread(target=x.append, args=(1,))]]; print(x)'", "[1]\n"),
    ("os.fork", "python3 -c 'import os; p=os.fork()\nif p: print(os.waitpid(p, 0)[1] >> 8)\nelse: os._exit(7)'", "7\n"),
    ("sockets inside", "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\", 0)); c=socket.create_connection(s.getsockname()); a,_=s.accept(); c.send(b\"x\"); print(a.recv(1))'", "b'x'\n"),
    ("asyncio", "python3 -c 'import asyncio; print(asyncio.run(asyncio.sleep(0, 5)))'", "5\n"),
    ("numpy", "python3 -c 'import numpy as np; print(np.arange(6).reshape(2,3).sum(axis=0))'", "[3 5 7]\n"),
    ("pandas", "python3 -c 'import pandas as pd; print(pd.DataFrame({\"a\": [1, 2]}).a.mean())'", "1.5\n"),
    ("from a pipe", "seq 5 | python3 -c 'import sys; print(sum(map(int, sys.stdin)))'", "15\n"),
)  # fmt: skip

PROBES = SHELL + PROCESSES + TOOLS + PYTHON
