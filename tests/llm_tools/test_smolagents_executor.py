"""A real `CodeAgent` of smolagents runs its code in a sandbox; only the model is a script."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("smolagents", reason="pip install 'wasmsand[adapters]'")

from smolagents import ChatMessage, CodeAgent, Model, tool

from wasmsand import Sandbox
from wasmsand.tools.adapters import tool_calls
from wasmsand.tools.adapters.smolagents_executor import (
    CALLS_MAX,
    SandboxExecutionError,
    SandboxExecutor,
)


@pytest.fixture
def executor(sandbox: Sandbox) -> Iterator[SandboxExecutor]:
    made = SandboxExecutor(sandbox)
    yield made
    made.cleanup()


class Script(Model):  # type: ignore[misc]
    """A model that says what it is told to say."""

    def __init__(self, codes: Sequence[str]) -> None:
        super().__init__(model_id="script")
        self.codes = list(codes)
        self.seen: list[str] = []

    def generate(self, messages: Any, **options: Any) -> Any:
        self.seen.append(str(messages[-1].content))
        content = f"Thought: go on\n<code>\n{self.codes.pop(0)}\n</code>"
        return ChatMessage(role="assistant", content=content)


@tool  # type: ignore[untyped-decorator]
def weather(city: str, days: int = 1) -> dict[str, Any]:
    """The weather of a city.

    Args:
        city: The city.
        days: For how many days.
    """
    if city == "nowhere":
        raise ValueError("unknown city")
    return {"city": city, "degrees": [20] * days, "on": date(2026, 1, 2)}


def agent_of(executor: SandboxExecutor, *codes: str) -> tuple[Any, Script]:
    model = Script(codes)
    agent = CodeAgent(
        tools=[weather],
        model=model,
        executor=executor,
        additional_authorized_imports=["*"],
        verbosity_level=0,
        max_steps=6,
    )
    return agent, model


def test_an_agent_uses_variables_tools_and_the_sandbox(
    executor: SandboxExecutor, sandbox: Sandbox
) -> None:
    agent, model = agent_of(
        executor,
        "import subprocess\nx = weather('Rome', days=2)\nprint(x['degrees'], given)",
        "open('f', 'w').write(str(x))\nprint(subprocess.check_output(['uname']))",
        "final_answer((x['on'], {1: sum(x['degrees'])}))",
    )
    answer = agent.run("what is the weather?", additional_args={"given": {"a": (1, 2)}})
    assert answer == (date(2026, 1, 2), {1: 40})
    assert "[20, 20] {'a': (1, 2)}" in model.seen[1]
    assert "b'Linux" in model.seen[2]
    assert "datetime.date(2026, 1, 2)" in sandbox.files.read_text("f")


def test_an_agent_recovers_from_its_errors(executor: SandboxExecutor) -> None:
    agent, model = agent_of(
        executor,
        "x = 5\nprint('before')\n1 / 0",
        "weather('nowhere')",
        "weather(town='Rome')",
        "final_answer(x)",
    )
    assert agent.run("go") == 5
    assert "ZeroDivisionError: division by zero" in model.seen[1]
    assert "before" in str(agent.memory.steps[1].observations)
    assert "RuntimeError: ValueError: unknown city" in model.seen[2]
    assert "RuntimeError: " in model.seen[3]


def test_values_of_expressions_are_outputs(executor: SandboxExecutor) -> None:
    output = executor("print('hi')\n[1, 'two']")
    assert (output.output, output.logs, output.is_final_answer) == ([1, "two"], "hi\n", False)
    assert executor("{1, 2}").output == {1, 2}
    assert executor("object").output == "<class 'object'>"
    assert executor("x = 1").output is None


VALUES: list[Any] = [
    None, True, 1, -2.5, "é", [1, [2]], {"a": {"b": None}}, {1: 2, (3, 4): 5}, {"$": "tuple"},
    (1, (2,)), {1, 2}, frozenset({3}), b"\x00\xff", 1 + 2j, date(2026, 1, 2), Decimal("1.10"),
    10**40,
]  # fmt: skip


def test_values_go_to_the_sandbox_and_back(executor: SandboxExecutor) -> None:
    executor.send_tools({"final_answer": lambda value: value, "same": lambda value: value})
    executor.send_variables({"values": VALUES})
    back = executor("final_answer([same(value) for value in values])")
    assert back.is_final_answer
    assert back.output == VALUES
    assert [type(value) for value in back.output] == [type(value) for value in VALUES]
    assert executor("final_answer(object)").output == "<class 'object'>"


def test_large_values_go_through_files(executor: SandboxExecutor, sandbox: Sandbox) -> None:
    executor.send_tools({"double": lambda text: text * 2})
    output = executor("text = double('x' * 1_000_000)\nlen(text), text[:2]")
    assert output.output == (2_000_000, "xx")
    executor.send_tools({"same": lambda text: text})
    for size in (100, 2_400, 7_400, 14_900, 15_100, 24_000):
        for letter in ('"', "\\", "é", "\0"):
            code = f"same({letter!r} * {size}) == {letter!r} * {size}"
            assert executor(code).output is True
    assert sandbox.files.list("/tmp/.wasmsand-tool-calls") == []


def test_a_value_that_cannot_be_sent_is_refused(executor: SandboxExecutor) -> None:
    with pytest.raises(TypeError, match="x: a value of type object cannot be carried"):
        executor.send_variables({"x": object()})
    with pytest.raises(ValueError, match="must be an identifier"):
        executor.send_variables({"a b": 1})
    with pytest.raises(ValueError, match="must be an identifier"):
        executor.send_tools({"import os; x": print})


def test_the_time_of_tools_does_not_count(sandbox: Sandbox) -> None:
    executor = SandboxExecutor(sandbox, timeout_ms=1_500)

    def slow() -> str:
        time.sleep(2)
        return "done"

    executor.send_tools({"slow": slow})
    assert executor("slow()").output == "done"
    executor("x = 1")
    with pytest.raises(SandboxExecutionError, match="took too long and was interrupted"):
        executor("while True: pass")
    assert executor("x").output == 1
    executor.cleanup()


def test_an_interpreter_that_ends_is_replaced(executor: SandboxExecutor, sandbox: Sandbox) -> None:
    executor.send_tools({"double": lambda n: 2 * n})
    executor.send_variables({"sent": 3})
    executor("x = 1")
    with pytest.raises(SandboxExecutionError, match="has ended; variables are lost"):
        executor("import os; os._exit(3)")
    assert executor("'x' in globals(), double(sent)").logs == ""
    sandbox.commands.run("pkill -9 python3")
    output = executor("print(double(sent))")
    assert output.logs == "(the interpreter had ended; earlier variables are lost)\n6\n"


def test_printed_output_is_cut(sandbox: Sandbox) -> None:
    executor = SandboxExecutor(sandbox, max_print_outputs_length=100)
    logs = executor("print('a' * 1000 + 'b' * 1000)").logs
    assert logs.startswith("a" * 50 + "\n[... 1901 characters left out ...]\n")
    executor.cleanup()


HOSTILE = [
    "not json", "5", "[]", '["weather"]', '["__import__", ["os"], {}]', '["weather", {}, []]',
    '["weather", [{"$": "exec", "v": "1"}], {}]', '["weather", [{"$": "set", "v": [[]]}], {}]',
    '["weather", [{"$": "timedelta", "v": 1e300}], {}]', '"/etc/passwd"',
    '"/tmp/.wasmsand-tool-calls/../../etc/passwd"', '"/tmp/.wasmsand-tool-calls/none"',
    "[" * 100_000,
    '["weather", [{"$": ["unhashable"], "v": 1}], {}]',
]  # fmt: skip


@pytest.mark.parametrize("message", HOSTILE)
def test_calls_that_are_none_are_refused(executor: SandboxExecutor, message: str) -> None:
    called: list[Any] = []
    executor.send_tools({"weather": called.append})
    answer = executor._on_input(executor._token + message)
    assert answer is not None
    assert set(json.loads(answer)) == {"error"}
    assert called == []


def test_tools_are_called_only_so_often(executor: SandboxExecutor) -> None:
    called: list[int] = []
    executor.send_tools({"count": called.append})
    with pytest.raises(SandboxExecutionError, match=f"more than {CALLS_MAX} times"):
        executor("for n in range(100_000): count(n)")
    assert len(called) == CALLS_MAX


def test_input_of_the_code_has_no_answer(executor: SandboxExecutor) -> None:
    with pytest.raises(SandboxExecutionError, match="EOFError"):
        executor("input('name? ')")


def test_decoding_makes_only_plain_values() -> None:
    for data in ({"$": "object"}, {"$": "path", "v": {}}, {"$": "complex", "v": ["a"]}, {1}):
        with pytest.raises(ValueError, match=r"not (a value|JSON)"):
            tool_calls.decode(data)


OTHER_TAGS: list[Any] = ["bytes", "timedelta", "complex", "image", "ndarray", "dict", "object"]
TAGS: list[Any] = [*tool_calls.SEQUENCES, *tool_calls.TEXTS, *OTHER_TAGS, "", None, 5, []]
LEAVES: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    float("nan"),
    10**30,
    "",
    "2026-01-02",
    "1e999999999",
    "é",
    "$",
]


def crafted(choose: random.Random, depth: int) -> Any:
    """A JSON value, often one that looks like an encoded value."""
    if depth == 0 or choose.random() < 0.2:
        return choose.choice(LEAVES)
    if choose.random() < 0.3:
        return [crafted(choose, depth - 1) for _ in range(choose.randrange(4))]
    names = ["$", "v", "dtype", "a"]
    made = {name: crafted(choose, depth - 1) for name in names if choose.random() < 0.7}
    if "$" in made:
        made["$"] = choose.choice(TAGS)
    return made


def test_crafted_values_are_plain_or_refused() -> None:
    choose = random.Random(7)
    outcomes = {"refused": 0, "plain": 0}
    for _ in range(5_000):
        data = crafted(choose, 4)
        try:
            value = tool_calls.decode(data)
        except ValueError:
            outcomes["refused"] += 1
            continue
        outcomes["plain"] += 1
        assert tool_calls.decode(tool_calls.encode(value)) == value or "nan" in str(value).lower()
    assert min(outcomes.values()) > 500
