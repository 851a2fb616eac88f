"""Requests about directories of the host, on Node.

Rules: as in JSON-RPC, where the option `mounts` of `create` describes them. A mount stays when the
sandbox is restored or loaded; the changes of an overlay do not.
"""

from __future__ import annotations

from typing import Final

from wasmsand.machine.mounts.table import MountProblem, MountRequest
from wasmsand.rpc.params import Params
from wasmsand.sdk.errors import MountError, file_errors
from wasmsand.sdk.local_mounts import mount_request
from wasmsand.sdk.mounts import Mount, mount_point
from wasmsand.web.machine import WebMachine
from wasmsand.web.service import OK, Answer, Call, Handler, Service


def mount(machine: WebMachine, request: MountRequest) -> None:
    """Mount a directory. `MountError` or a file's error if that fails."""
    try:
        with file_errors(request.path):
            machine.mounts.mount(request)
    except MountProblem as problem:
        raise MountError(str(problem), request.path) from None


def _mount(service: Service, call: Call) -> Answer:
    params = call.params
    mode = params.text("mode")
    source = params.optional(Params.text, "source")
    described = Mount(source, mode)  # type: ignore[arg-type] # it checks the mode
    request = mount_request(mount_point("path", params.text("path")), described)
    mount(service.machine, request)
    service.mounts[request.path] = request
    return OK


def _unmount(service: Service, call: Call) -> Answer:
    path = call.params.text("path")
    with file_errors(path):
        service.machine.mounts.unmount(path, force=call.params.flag("force"))
    service.mounts.pop(path, None)
    return OK


MOUNT_METHODS: Final[dict[str, Handler]] = {"mount": _mount, "unmount": _unmount}
