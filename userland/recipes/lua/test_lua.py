"""lua: scripts as they are written for a shell, and the programs that they start."""

from __future__ import annotations

import pytest

from userland.recipes.script_tables import run_file
from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        (
            "print(_VERSION, 7 // 2, 7 / 2, 2^53, 1 << 40)",
            "Lua 5.4\t3\t3.5\t9.007199254741e+15\t1099511627776\n",
        ),
        ("print(math.maxinteger + 1 == math.mininteger, 0x7fffffff + 1)", "true\t2147483648\n"),
        ('print(("%5.2f|%x|%q"):format(3.14159, 255, "a\\nb"))', ' 3.14|ff|"a\\\nb"\n'),
        ('print(("k=v, x=y"):gsub("(%w+)=(%w+)", "%2=%1"))', "v=k, y=x\t2\n"),
        ('for _, c in utf8.codes("aé€") do io.write(c, " ") end', "97 233 8364 "),
        (
            "local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) "
            "print(co(), co(), co())",
            "1\t2\t3\n",
        ),
        (
            'local t <close> = setmetatable({}, {__close = function() print("closed") end}) '
            'print("open")',
            "open\nclosed\n",
        ),
        ("print(pcall(error, {code = 7}))", None),
        ('print(select(2, pcall(error, "no", 0)))', "no\n"),
        (
            "print(os.getenv('HOME'), os.time{year=2024, month=1, day=1, hour=12})",
            "/home/user\t1704110400\n",
        ),
        ('print(os.date("!%Y-%m-%dT%H:%M:%S", 86399))', "1970-01-01T23:59:59\n"),
        ("print(#string.rep('x', 1 << 20), collectgarbage('count') > 1024)", "1048576\ttrue\n"),
    ],
)
def test_expressions(sandbox: Sandbox, script: str, stdout: str | None) -> None:
    result = sandbox.commands.run(["lua", "-e", script])
    assert (result.exit_code, result.stderr) == (0, "")
    if stdout is not None:
        assert result.stdout == stdout


def test_a_script_with_a_first_line_is_a_program(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "count",
        "#!/usr/bin/env lua\n"
        "local n = {}\n"
        "for line in io.lines() do\n"
        '  for word in line:gmatch("%a+") do n[word] = (n[word] or 0) + 1 end\n'
        "end\n"
        "local words = {}\n"
        "for word in pairs(n) do words[#words + 1] = word end\n"
        "table.sort(words)\n"
        "for _, word in ipairs(words) do print(word, n[word], arg[1]) end\n",
    )
    result = sandbox.commands.run("chmod +x count; printf 'b a\\nb c b\\n' | ./count x | tail -n 2")
    assert (result.stdout, result.stderr) == ("b\t3\tx\nc\t1\tx\n", "")


def test_programs_that_a_script_starts(sandbox: Sandbox) -> None:
    script = (
        'local p = io.popen("seq 3")\n'
        'print(p:read("a"):gsub("\\n", " "), p:close())\n'
        'print(os.execute("exit 3"))\n'
        'print(os.execute("kill -TERM $$"))\n'
        'print(io.popen("exit 4"):close())\n'
        'local w = io.popen("tr a-z A-Z", "w")\n'
        'w:write("upper\\n") w:close()\n'
        "print(os.execute())\n"
    )
    assert run_file(sandbox, "run.lua", script, "lua run.lua") == (
        "1 2 3 \ttrue\texit\t0\nnil\texit\t3\nnil\tsignal\t15\nnil\texit\t4\nUPPER\ntrue\n"
    )


def test_files(sandbox: Sandbox) -> None:
    script = (
        'local f = assert(io.open("numbers", "w"))\n'
        "for i = 1, 1000 do f:write(i, '\\n') end\n"
        'print(f:seek("cur")) f:close()\n'
        'f = io.open("numbers") f:seek("set", 10)\n'
        'print(f:read("n", "n")) f:close()\n'
        'print(io.open("missing"))\n'
        'print(os.rename("numbers", "n2"), os.remove("n2"), os.remove("n2"))\n'
        "local t = os.tmpname() print(io.open(t) ~= nil, os.remove(t))\n"
    )
    assert run_file(sandbox, "files.lua", script, "lua files.lua") == (
        "3893\n6\t7\nnil\tmissing: No such file or directory\t2\n"
        "true\ttrue\tnil\tn2: No such file or directory\t2\ntrue\ttrue\n"
    )


def test_modules_and_bytecode(sandbox: Sandbox) -> None:
    sandbox.files.write("shapes.lua", "return { area = function(w, h) return w * h end }\n")
    sandbox.files.write("main.lua", 'print(require("shapes").area(6, 7))\n')
    result = sandbox.commands.run("lua main.lua; luac -o main.luac main.lua && lua main.luac")
    assert (result.stdout, result.stderr) == ("42\n42\n", "")
    result = sandbox.commands.run("luac -l main.lua | grep -c CALL; echo 'x = = 1' | luac -p -")
    assert result.stdout == "3\n"
    assert result.stderr == "luac: stdin:1: unexpected symbol near '='\n"
    assert result.exit_code == 1


def test_errors_have_a_trace_and_a_status(sandbox: Sandbox) -> None:
    sandbox.files.write("bad.lua", "local function f(x) return x.y.z end\nf({})\n")
    result = sandbox.commands.run("lua bad.lua")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "lua: bad.lua:1: attempt to index a nil value (field 'y')\n"
        "stack traceback:\n"
        "\tbad.lua:1: in local 'f'\n"
        "\tbad.lua:2: in main chunk\n"
        "\t[C]: in ?\n"
    )
    result = sandbox.commands.run("lua -e 'os.exit(7)'; echo $?; lua missing.lua; echo $?")
    assert result.stdout == "7\n1\n"
    assert result.stderr == "lua: cannot open missing.lua: No such file or directory\n"


def test_runaway_recursion_is_an_error_of_the_script(sandbox: Sandbox) -> None:
    deep_lua = "local function f(n) return 1 + f(n + 1) end print(pcall(f, 1))"
    deep_c = 'local s = ("("):rep(500) .. "1" .. (")"):rep(500) print(load("return " .. s))'
    deep_match = 'print(pcall(string.find, ("a"):rep(300000), ("a?"):rep(300000) .. "b"))'
    for script in (deep_lua, deep_c, deep_match):
        result = sandbox.commands.run(["lua", "-e", script])
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith(("false\t", "nil\t"))


def test_much_data(sandbox: Sandbox) -> None:
    script = (
        "local t = {} for i = 1, 300000 do t[i] = (i * 7919) % 1000003 end table.sort(t) "
        "local s = {} for i = 1, #t do s[#s + 1] = tostring(t[i]) end "
        "print(#table.concat(s, ','), t[1], t[#t])"
    )
    result = sandbox.commands.run(["lua", "-e", script])
    assert (result.stdout, result.stderr) == ("2066663\t5\t1000000\n", "")


def test_memory_that_cannot_be_had_is_an_error_of_the_script() -> None:
    with Sandbox(memory_limit_bytes=64 << 20) as sandbox:
        script = 'print(pcall(string.rep, "x", 100 << 20))'
        result = sandbox.commands.run(["lua", "-e", script])
        assert (result.stdout, result.stderr) == ("false\tnot enough memory\n", "")
