"""Methods for Python packages.

Rules: a confined process can neither reach the package index nor run pip, so it installs only
packages of the image, and wheels that another process of this host has unpacked.
"""

from __future__ import annotations

from typing import Final

from wasmsand.rpc import values
from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import PackageRequest
from wasmsand.sdk.errors import UnsupportedError
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.packages import INSTALL_TIMEOUT_MS
from wasmsand.sdk.results import PackageInfo


def _install(session: RpcSession, params: Params) -> Result:
    timeout_ms: object = INSTALL_TIMEOUT_MS
    if params.is_given("timeoutMs"):
        timeout_ms = params.optional(Params.number, "timeoutMs")
    backend = session.backend
    before = {(package.name, package.version) for package in backend.installed_packages()}
    backend.install_packages(
        PackageRequest(
            arguments.requirements("requirements", params.texts("requirements")),
            from_index=not session.family.barriers.names,
            timeout_seconds=arguments.timeout_seconds("timeoutMs", timeout_ms),
        )
    )
    after = backend.installed_packages()
    return _packages([found for found in after if (found.name, found.version) not in before])


def _install_prepared(session: RpcSession, params: Params) -> Result:
    backend = session.backend
    if not isinstance(backend, LocalBackend):
        raise UnsupportedError("the sandbox is not in this process")
    backend.install_prepared(params.texts("names"), params.texts("wheels"))
    return OK


def _uninstall(session: RpcSession, params: Params) -> Result:
    session.backend.uninstall_packages(arguments.requirements("names", params.texts("names")))
    return OK


def _list(session: RpcSession, _: Params) -> Result:
    return _packages(session.backend.installed_packages())


def _available(session: RpcSession, _: Params) -> Result:
    return _packages(session.backend.available_packages())


def _packages(found: list[PackageInfo]) -> Result:
    return {"packages": [values.record_out(package) for package in found]}


PACKAGE_METHODS: Final = (
    Method("packages.install", _install, ("requirements",), ("timeoutMs",), waits=True),
    Method("packages.installPrepared", _install_prepared, ("names", "wheels")),
    Method("packages.uninstall", _uninstall, ("names",)),
    Method("packages.list", _list),
    Method("packages.available", _available),
)
