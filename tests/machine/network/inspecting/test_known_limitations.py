"""Evidence for rows of docs/limitations.md about inspected hosts."""

from __future__ import annotations

import pytest

from tests.machine.network.inspecting.guests import inspected
from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.pump import pump
from tests.machine.network.inspecting.servers import echo_server
from tests.machine.network.servers import run

SECRET = "sk-2217-known-limitation"


@pytest.mark.xfail(reason="L105: inspected hosts speak HTTP/1.1 only", strict=True)
def test_an_inspected_host_speaks_http_2(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(
            private_authority, "GET api.test", hosts={"api.test": f"127.0.0.1:{echo.port}"}
        ) as machine,
    ):
        script = "curl -s -o /dev/null -w '%{http_version}' --http2 https://api.test/"
        assert run(machine, "bash", "-c", script)[0] == "2"


@pytest.mark.xfail(reason="L106: bodies are not searched for secrets", strict=True)
def test_a_secret_in_a_response_body_is_masked(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(
            echo.port, ca_file=private_authority.ca_file, headers={"Authorization": SECRET}
        ) as joint,
    ):
        client = joint.client()
        client.request("GET", "/headers")
        body = client.getresponse().read()
        client.close()
    assert body.startswith(b"Authorization: ")
    assert SECRET.encode() not in body
