"""The programs that drive the other sandboxes, each in its own language.

Rules: a program reads one request per line, `{"kind": ..., "text": ...}`, and answers with one
line, `{"stdout": ..., "seconds": ..., "failure": ...}`. It measures itself, so the pipe does not
count. A kind is a key of the program's table: `shell` and `python` create a sandbox for each
request, `live shell` and `live python` keep one. Everything that a sandbox brings itself is on.
"""

from __future__ import annotations

from typing import Final

_NODE_LOOP: Final = """
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const { kind, text } = JSON.parse(line);
  const began = performance.now();
  let answer;
  try {
    answer = { stdout: await kinds[kind](text) };
  } catch (error) {
    answer = { stdout: "", failure: String(error).slice(0, 200) };
  }
  console.log(JSON.stringify({ ...answer, seconds: (performance.now() - began) / 1000 }));
}
process.exit(0);
"""

JUST_BASH: Final = f"""
import {{ Bash }} from "just-bash";
async function run(bash, script) {{
  const limit = AbortSignal.timeout(20000);
  const result = await Promise.race([
    bash.exec(script, {{ signal: limit }}),
    new Promise((_, no) => limit.addEventListener("abort", () => no(new Error("timeout")))),
  ]);
  return result.stdout;
}}
const fresh = () => new Bash({{ python: true, javascript: true }});
const quoted = (code) => `python3 -c '${{code.replaceAll("'", "'\\\\''")}}'`;
const live = fresh();
const kinds = {{
  shell: (script) => run(fresh(), script),
  python: (code) => run(fresh(), quoted(code)),
  "live shell": (script) => run(live, script),
}};
{_NODE_LOOP}"""

PYODIDE: Final = f"""
import {{ loadPyodide }} from "pyodide";
let printed = "";
async function fresh() {{
  const python = await loadPyodide();
  python.setStdout({{ batched: (line) => {{ printed += line + "\\n"; }} }});
  return python;
}}
function run(python, code) {{
  printed = "";
  python.runPython(code);
  return printed;
}}
let live;
const kinds = {{
  python: async (code) => run(await fresh(), code),
  "live python": async (code) => run((live ??= await fresh()), code),
}};
{_NODE_LOOP}"""

_PYTHON_LOOP: Final = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    began = time.perf_counter()
    try:
        answer = {"stdout": kinds[request["kind"]](request["text"])}
    except Exception as error:
        answer = {"stdout": "", "failure": repr(error)[:200]}
    answer["seconds"] = time.perf_counter() - began
    print(json.dumps(answer), flush=True)
"""

BASHKIT: Final = f"""
import shlex
from bashkit import Bash
fresh = lambda: Bash(python=True, sqlite=True)
live = fresh()
kinds = {{
    "shell": lambda script: fresh().execute_sync(script).stdout,
    "python": lambda code: fresh().execute_sync("python3 -c " + shlex.quote(code)).stdout,
    "live shell": lambda script: live.execute_sync(script).stdout,
}}
{_PYTHON_LOOP}"""

PYERYX: Final = f"""
import eryx
live = eryx.Session()
text = lambda result: bytes(result.stdout).decode() if not isinstance(result.stdout, str) else result.stdout
kinds = {{
    "python": lambda code: text(eryx.Sandbox().execute(code)),
    "live python": lambda code: text(live.execute(code)),
}}
{_PYTHON_LOOP}"""  # noqa: E501
