"""qjs: scripts and modules, the std and os modules, and errors."""

from __future__ import annotations

import pytest

from userland.recipes.script_tables import run_file
from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        ("console.log([3, 1, 2].sort().map(x => x * 2).join())", "2,4,6\n"),
        (
            "console.log(2n ** 100n, 0.1 + 0.2, -0 === 0)",
            "1267650600228229401496703205376 0.30000000000000004 true\n",
        ),
        (
            "console.log(JSON.stringify({a: [1, {b: null}], s: 'é€'}))",
            '{"a":[1,{"b":null}],"s":"é€"}\n',
        ),
        (
            "const {a, ...rest} = {a: 1, b: 2, c: 3}; console.log(a, JSON.stringify(rest))",
            '1 {"b":2,"c":3}\n',
        ),
        (
            "console.log('05-17'.replace(/(?<m>\\d+)-(?<d>\\d+)/u, '$<d>.$<m>.'))",
            "17.05.\n",
        ),
        (
            "console.log(new Date(0).toISOString(), '\\u{1F600}'.length)",
            "1970-01-01T00:00:00.000Z 2\n",
        ),
        ("console.log([...new Set([1, 1, 2])], new Map([[1, 2]]).get(1))", "1,2 2\n"),
        ("class A { #x = 5; get x() { return this.#x } } console.log(new A().x)", "5\n"),
        (
            "(async () => { await null; console.log('later') })(); console.log('now')",
            "now\nlater\n",
        ),
        ("function* g() { yield* [1, 2] } console.log([...g()].length)", "2\n"),
        ("console.log(new Float64Array([1.5, 2.5]).reduce((a, b) => a + b))", "4\n"),
    ],
)
def test_expressions(sandbox: Sandbox, script: str, stdout: str) -> None:
    result = sandbox.commands.run(["qjs", "-e", script])
    assert (result.stdout, result.stderr) == (stdout, "")


def test_a_script_with_a_first_line_is_a_program(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "total",
        "#!/usr/bin/env -S qjs --std\n"
        "let sum = 0, line;\n"
        "while ((line = std.in.getline()) !== null) sum += Number(line.split(',')[1]);\n"
        "print(scriptArgs[1], sum);\n",
    )
    result = sandbox.commands.run("chmod +x total; printf 'a,1\\nb,2.5\\n' | ./total sum:")
    assert (result.stdout, result.stderr) == ("sum: 3.5\n", "")


def test_modules(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "lib/shape.js", "export const area = (w, h) => w * h;\nexport default 'shapes';\n"
    )
    sandbox.files.write(
        "main.js",
        "import name, {area} from './lib/shape.js';\n"
        "const again = await import('./lib/shape.js');\n"
        "console.log(name, area(6, 7), again.area === area);\n",
    )
    result = sandbox.commands.run("qjs -m main.js; qjs main.js")
    assert (result.stdout, result.stderr) == ("shapes 42 true\n" * 2, "")


def test_programs_that_a_script_starts(sandbox: Sandbox) -> None:
    script = (
        "import * as os from 'os';\n"
        "import * as std from 'std';\n"
        "const wait = code => { std.out.puts(`${code}\\n`); std.out.flush(); };\n"
        "wait(os.exec(['sh', '-c', 'exit 3']));\n"
        "wait(os.exec(['sh', '-c', 'kill -9 $$']));\n"
        "wait(os.exec(['env'], {env: {A: 'b'}}));\n"
        "wait(os.exec(['pwd'], {cwd: '/usr'}));\n"
        "wait(os.exec(['not-there']));\n"
        "wait(os.exec(['argv0', '-c', 'echo $0'], {file: '/bin/sh'}));\n"
        "const [r, w] = os.pipe();\n"
        "const pid = os.exec(['echo', 'piped'], {block: false, stdout: w});\n"
        "os.close(w);\n"
        "std.out.puts(std.fdopen(r, 'r').readAsString());\n"
        "const [ended, status] = os.waitpid(pid, 0);\n"
        "wait(ended === pid && status === 0);\n"
        "wait(std.popen('seq 3', 'r').readAsString().split('\\n'));\n"
    )
    assert run_file(sandbox, "run.js", script, "qjs run.js") == (
        "3\n-9\nA=b\n0\n/usr\n0\n127\nargv0\n0\npiped\ntrue\n1,2,3,\n"
    )


def test_files(sandbox: Sandbox) -> None:
    script = (
        "import * as os from 'os';\n"
        "import * as std from 'std';\n"
        "os.mkdir('d');\n"
        "const f = std.open('d/f', 'w'); f.printf('%05d|%s\\n', 42, 'x'); f.close();\n"
        "console.log(std.loadFile('d/f'), os.readdir('d')[0].sort());\n"
        "const [st, err] = os.stat('d/f');\n"
        "console.log(err, st.size, (st.mode & os.S_IFMT) === os.S_IFREG);\n"
        "console.log(os.stat('missing')[1] === std.Error.ENOENT, std.open('missing', 'r'));\n"
        "os.symlink('d/f', 'l'); console.log(os.readlink('l')[0], os.realpath('l')[0]);\n"
        "console.log(os.rename('d/f', 'g'), os.remove('g'), os.remove('g') < 0);\n"
    )
    assert run_file(sandbox, "files.js", script, "qjs files.js") == (
        "00042|x\n .,..,f\n0 8 true\ntrue null\nd/f /home/user/d/f\n0 0 true\n"
    )


def test_timers_and_signals(sandbox: Sandbox) -> None:
    script = (
        "import * as os from 'os';\n"
        "os.signal(os.SIGUSR1, () => { console.log('signal'); os.signal(os.SIGUSR1, null); });\n"
        "const raise = () => os.exec(['sh', '-c', 'echo second; kill -USR1 $PPID']);\n"
        "os.setTimeout(raise, 20);\n"
        "os.setTimeout(() => console.log('first'), 1);\n"
    )
    assert run_file(sandbox, "wait.js", script, "qjs wait.js") == "first\nsecond\nsignal\n"


def test_errors_have_a_trace_and_a_status(sandbox: Sandbox) -> None:
    sandbox.files.write("bad.js", "function f(x) {\n  return x.y.z;\n}\nf({});\n")
    result = sandbox.commands.run("qjs bad.js")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "TypeError: cannot read property 'z' of undefined\n"
        "    at f (bad.js:2:13)\n"
        "    at <eval> (bad.js:4:2)\n\n"
    )
    result = sandbox.commands.run("qjs --std -e 'std.exit(7)'; echo $?; qjs missing.js; echo $?")
    assert result.stdout == "7\n1\n"
    assert result.stderr == "missing.js: No such file or directory\n"
    result = sandbox.commands.run(["qjs", "-e", "let let = 1"])
    assert result.exit_code == 1
    assert result.stderr.startswith("SyntaxError: ")


@pytest.mark.parametrize(
    "script",
    [
        "function f(n) { return 1 + f(n + 1) } f(1)",
        "(function f() { [1].map(f) })()",
        "let o = {toString() { return '' + o }}; '' + o",
    ],
)
def test_runaway_recursion_is_an_error_of_the_script(sandbox: Sandbox, script: str) -> None:
    caught = f"try {{ {script} }} catch (e) {{ console.log(e instanceof Error) }}"
    result = sandbox.commands.run(["qjs", "-e", caught])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "true\n", "")


def test_memory_that_cannot_be_had_is_an_error_of_the_script() -> None:
    with Sandbox(memory_limit_bytes=64 << 20) as sandbox:
        script = "try { new ArrayBuffer(200e6) } catch (e) { console.log(`${e}`) }"
        result = sandbox.commands.run(["qjs", "-e", script])
        assert (result.stdout, result.stderr) == ("InternalError: out of memory\n", "")


def test_a_worker_is_a_thread_that_answers_messages(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "worker.js",
        "import * as os from 'os';\n"
        "const parent = os.Worker.parent;\n"
        "parent.onmessage = ({data}) => {\n"
        "  parent.postMessage({sum: data.reduce((a, b) => a + b)});\n"
        "  parent.onmessage = null;\n"
        "};\n",
    )
    sandbox.files.write(
        "main.js",
        "import * as os from 'os';\n"
        "const worker = new os.Worker('./worker.js');\n"
        "worker.onmessage = ({data}) => { console.log(data.sum); worker.onmessage = null; };\n"
        "worker.postMessage([1, 2, 3]);\n",
    )
    result = sandbox.commands.run(["qjs", "-m", "main.js"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "6\n", "")
