"""One target per interface. To add one, write a class and add a row here."""

from __future__ import annotations

from typing import Final

from fuzz.target import Target
from fuzz.targets.archives import Archives, DiskImages
from fuzz.targets.calls import LinuxCalls, WasiCalls
from fuzz.targets.graphs import ObjectGraphs
from fuzz.targets.guest_responses import GuestResponses
from fuzz.targets.http_requests import HttpRequests, McpRequests
from fuzz.targets.inspected import InspectedConnections
from fuzz.targets.json_lines import LineProtocol, McpStdio, RpcLines
from fuzz.targets.modules import Modules
from fuzz.targets.network_rules import NetworkRules
from fuzz.targets.python_messages import PythonMessages
from fuzz.targets.saved_machines import SavedMachines
from fuzz.targets.sdk import SdkCalls
from fuzz.targets.terminal_messages import TerminalMessages
from fuzz.targets.wheels import Wheels

TARGETS: Final[dict[str, type[Target]]] = {
    target.name: target
    for target in (
        LinuxCalls,
        WasiCalls,
        ObjectGraphs,
        Modules,
        Archives,
        DiskImages,
        SavedMachines,
        Wheels,
        NetworkRules,
        SdkCalls,
        PythonMessages,
        RpcLines,
        LineProtocol,
        McpStdio,
        HttpRequests,
        GuestResponses,
        TerminalMessages,
        McpRequests,
        InspectedConnections,
    )
}
