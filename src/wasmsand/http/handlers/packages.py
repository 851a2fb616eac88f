"""Python packages: list, install, uninstall."""

from __future__ import annotations

from functools import partial

from wasmsand.http.messages import Done
from wasmsand.http.package_messages import InstallPackages, PackageList, UninstallPackages
from wasmsand.http.routing import Call
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import PackageRequest


async def installed(call: Call[None, None]) -> PackageList:
    """`GET /v1/sandboxes/{sandbox}/packages`"""
    backend = call.entry.sandbox.backend
    return PackageList(packages=await call.in_file_thread(backend.installed_packages))


async def available(call: Call[None, None]) -> PackageList:
    """`GET /v1/sandboxes/{sandbox}/packages/available`"""
    backend = call.entry.sandbox.backend
    return PackageList(packages=await call.in_file_thread(backend.available_packages))


async def install(call: Call[None, InstallPackages]) -> PackageList:
    """`POST /v1/sandboxes/{sandbox}/packages/install`"""
    backend, settings = call.entry.sandbox.backend, call.service.settings
    seconds = settings.max_command_seconds
    if call.body.timeout_ms is not None:
        seconds = min(seconds, call.body.timeout_ms / 1000)
    request = PackageRequest(
        arguments.requirements("requirements", call.body.requirements),
        from_index=settings.index_installs,
        timeout_seconds=seconds,
    )

    def work() -> PackageList:
        before = {(package.name, package.version) for package in backend.installed_packages()}
        backend.install_packages(request)
        after = backend.installed_packages()
        new = [package for package in after if (package.name, package.version) not in before]
        return PackageList(packages=new)

    return await call.in_command_thread(work, seconds)


async def uninstall(call: Call[None, UninstallPackages]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/packages/uninstall`"""
    names = arguments.requirements("names", call.body.names)
    await call.in_file_thread(partial(call.entry.sandbox.backend.uninstall_packages, names))
    return Done()
