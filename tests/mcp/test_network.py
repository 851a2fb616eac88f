"""What a model learns about the network of its sandbox, and what it reaches."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp", reason="pip install 'wasmsand[mcp]'")

from tests.mcp.serving import call, run, stdio_client
from wasmsand import Sandbox
from wasmsand.tools import SandboxTools


def test_a_model_is_told_what_the_network_reaches() -> None:
    reaches = (
        "The network reaches only: *.test:443, GET api.example.com/v1/* (but not: evil.test); "
        "everything else is refused."
    )

    async def test() -> None:
        words = ("--allow-net", "*.test:443", "--allow-net", "GET api.example.com/v1/*")
        async with stdio_client(*words, "--deny-net", "evil.test") as client:
            assert reaches in (client.instructions or "")
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert reaches in (tools["sandbox_run"].description or "")
            annotations = tools["sandbox_run"].annotations
            assert annotations is not None
            assert annotations.open_world_hint is True
            script = "exec 3<>/dev/tcp/other.org/80; exec 3<>/dev/tcp/evil.test/443"
            refused = await call(client, "sandbox_run", command=script)
            assert "to allow it, add 'other.org' to network.allow" in refused["stderr"]
            assert "evil.test is denied by 'evil.test'" in refused["stderr"]

    run(test)


def test_a_model_is_told_that_there_is_no_network() -> None:
    async def test() -> None:
        async with stdio_client() as client:
            assert "There is no network." in (client.instructions or "")
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "There is no network." in (tools["sandbox_run"].description or "")
            annotations = tools["sandbox_run"].annotations
            assert annotations is not None
            assert annotations.open_world_hint is False

    run(test)


def test_tools_describe_the_network_as_it_is_now() -> None:
    with Sandbox() as sandbox:
        tools = SandboxTools(sandbox)
        assert "There is no network." in str(tools.anthropic())
        sandbox.network.allow("*")
        assert "The network reaches only: every public host; everything" in str(tools.openai())
        sandbox.network.allow(*(f"host{number}.test" for number in range(60)))
        assert "host48.test and 11 more; everything else" in str(tools.anthropic())
