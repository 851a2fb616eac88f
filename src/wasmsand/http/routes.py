"""The table of routes.

Routing, validation and the OpenAPI document are made from it, so they cannot differ. Rules: a
new request is a row here and a handler; only the owner of a sandbox may use paths with
`{sandbox}`.
"""

from __future__ import annotations

from starlette.responses import Response

from wasmsand.http import copy_messages as c
from wasmsand.http import file_messages as f
from wasmsand.http import messages as m
from wasmsand.http import network_messages as n
from wasmsand.http import package_messages as k
from wasmsand.http import port_messages as p
from wasmsand.http.handlers import (
    commands,
    copies,
    files,
    loading,
    network,
    packages,
    ports,
    python,
    sandboxes,
    server,
    shells,
    started,
    terminals,
)
from wasmsand.http.metrics import CONTENT_TYPE
from wasmsand.http.openapi import document
from wasmsand.http.routing import AnyRoute, Call, HttpRoute
from wasmsand.http.streaming import EVENT_STREAM
from wasmsand.sdk.results import FileInfo, NetworkRules, Usage

_SANDBOX = "/v1/sandboxes/{sandbox}"
_COMMAND = _SANDBOX + "/commands/{command}"
_PYTHON = _SANDBOX + "/python/{python}"
_SHELL = _SANDBOX + "/shells/{shell}"


async def _openapi(call: Call[None, None]) -> Response:
    version = call.service.settings.version
    content = await call.in_file_thread(lambda: document(ROUTES, version))
    return Response(content, media_type="application/json")


ROUTES: tuple[AnyRoute, ...] = (
    # The server.
    HttpRoute("GET", "/healthz", server.health, "Check the server's health", m.Health, public=True),
    HttpRoute("GET", "/openapi.json", _openapi, "This document", "application/json", public=True),
    HttpRoute("GET", "/metrics", server.metrics, "Metrics for Prometheus", CONTENT_TYPE),
    # Sandboxes.
    HttpRoute(
        "POST",
        "/v1/sandboxes",
        sandboxes.create,
        "Create a sandbox; with `snapshot`, the response is a CopiedSandbox",
        m.SandboxState,
        body=m.CreateSandbox,
        status=201,
    ),
    HttpRoute(
        "POST",
        "/v1/sandboxes/load",
        loading.load,
        "Create a sandbox from a file that `Sandbox.save` wrote",
        c.CopiedSandbox,
        query=m.LoadSandbox,
        body=bytes,
        status=201,
    ),
    HttpRoute(
        "GET",
        "/v1/sandboxes",
        sandboxes.listing,
        "List your sandboxes",
        m.SandboxList,
        query=m.ListSandboxes,
    ),
    HttpRoute("GET", _SANDBOX, sandboxes.state, "Show a sandbox", m.SandboxState, wakes=False),
    HttpRoute(
        "DELETE",
        _SANDBOX,
        sandboxes.kill,
        "Kill a sandbox and drop its files",
        m.Killed,
        wakes=False,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/timeout",
        sandboxes.set_timeout,
        "Let a sandbox end in some seconds from now",
        m.SandboxState,
        body=m.SetTimeout,
        wakes=False,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/pause",
        sandboxes.pause,
        "Put a sandbox to the server's disk",
        m.SandboxState,
        body=m.PauseSandbox,
        wakes=False,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/resume",
        sandboxes.resume,
        "Resume a paused sandbox; any request that needs it does so too",
        m.SandboxState,
        body=m.ResumeSandbox,
        wakes=False,
    ),
    HttpRoute("GET", _SANDBOX + "/usage", sandboxes.usage, "Show what a sandbox uses", Usage),
    HttpRoute("GET", _SANDBOX + "/env", sandboxes.variables, "Show all variables", m.Variables),
    HttpRoute(
        "PATCH",
        _SANDBOX + "/env",
        sandboxes.change_variables,
        "Set and unset variables",
        m.Variables,
        body=m.ChangeVariables,
    ),
    # Copies.
    HttpRoute(
        "POST",
        _SANDBOX + "/snapshots",
        copies.take,
        "Take a snapshot of a sandbox with its Python sessions",
        c.SnapshotState,
        body=c.TakeSnapshot,
        status=201,
    ),
    HttpRoute(
        "GET",
        _SANDBOX + "/snapshots",
        copies.listing,
        "List the snapshots of a sandbox",
        c.SnapshotList,
        wakes=False,
    ),
    HttpRoute(
        "DELETE",
        _SANDBOX + "/snapshots/{snapshot}",
        copies.delete,
        "Delete a snapshot",
        m.Done,
        wakes=False,
    ),
    HttpRoute("GET", "/v1/snapshots", copies.listing_all, "List all snapshots", c.SnapshotList),
    HttpRoute("DELETE", "/v1/snapshots/{snapshot}", copies.delete, "Delete a snapshot", m.Done),
    HttpRoute(
        "POST",
        "/v1/snapshots/{snapshot}/save",
        copies.save,
        "Download a snapshot as a file that `Sandbox.load` reads",
        copies.SAVED,
        body=c.SaveSnapshot,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/snapshots/{snapshot}/save",
        copies.save,
        "Download a snapshot as a file that `Sandbox.load` reads",
        copies.SAVED,
        body=c.SaveSnapshot,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/restore",
        copies.restore,
        "Make a sandbox what it was when a snapshot was taken",
        c.CopiedSandbox,
        body=c.RestoreSandbox,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/fork",
        copies.fork,
        "Copy a sandbox with its Python sessions",
        c.CopiedSandboxes,
        body=c.ForkSandbox,
        status=201,
    ),
    HttpRoute("GET", _SANDBOX + "/sessions", copies.sessions, "List sessions", c.SessionList),
    HttpRoute(
        "POST",
        _COMMAND + "/capture",
        copies.capture,
        "Capture a started command, for the next copy that names it",
        m.Done,
        body=c.CaptureCommand,
    ),
    HttpRoute(
        "POST",
        _COMMAND + "/captured",
        copies.captured,
        "Finish the capture of a started command that has forked",
        m.Done,
    ),
    # Packages.
    HttpRoute(
        "GET",
        _SANDBOX + "/packages",
        packages.installed,
        "List installed Python packages",
        k.PackageList,
    ),
    HttpRoute(
        "GET",
        _SANDBOX + "/packages/available",
        packages.available,
        "List the Python packages of the image",
        k.PackageList,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/packages/install",
        packages.install,
        "Install Python packages; the response lists those that are new",
        k.PackageList,
        body=k.InstallPackages,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/packages/uninstall",
        packages.uninstall,
        "Uninstall Python packages",
        m.Done,
        body=k.UninstallPackages,
    ),
    # The network.
    HttpRoute(
        "GET", _SANDBOX + "/network", network.rules, "Show the network's rules", NetworkRules
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/network/allow",
        network.allow,
        "Allow more hosts, within what your token may allow",
        NetworkRules,
        body=n.ChangeNetwork,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/network/deny",
        network.deny,
        "Deny hosts",
        NetworkRules,
        body=n.ChangeNetwork,
    ),
    HttpRoute(
        "GET",
        _SANDBOX + "/network/log",
        network.log,
        "Show what the sandbox did on the network",
        n.NetworkLog,
    ),
    # Commands.
    HttpRoute(
        "POST",
        _SANDBOX + "/run",
        commands.run,
        "Run a command to its end",
        m.CommandOutcome,
        body=m.RunCommand,
        also=EVENT_STREAM,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/commands",
        started.start,
        "Start a command in the background",
        m.CommandState,
        body=m.StartCommand,
        status=201,
    ),
    HttpRoute(
        "GET", _SANDBOX + "/commands", started.listing, "List started commands", m.StartedCommands
    ),
    HttpRoute(
        "GET",
        _COMMAND,
        started.wait,
        "Show a started command, or wait for its end",
        m.CommandState,
        query=m.WaitCommand,
    ),
    HttpRoute("DELETE", _COMMAND, started.forget, "Forget a command; it keeps running", m.Done),
    HttpRoute("POST", _COMMAND + "/kill", started.kill, "Kill a started command", m.Done),
    HttpRoute(
        "GET",
        _COMMAND + "/output",
        started.output,
        "Read the next output of a started command",
        m.OutputBatch,
        query=m.ReadOutput,
    ),
    HttpRoute(
        "POST",
        _COMMAND + "/input",
        started.write_input,
        "Write to an input of a started command",
        m.Written,
        query=m.WriteInput,
        body=bytes,
    ),
    HttpRoute(
        "DELETE",
        _COMMAND + "/input",
        started.close_input,
        "Close an input of a started command",
        m.Done,
        query=m.InputDescriptor,
    ),
    HttpRoute("GET", _SANDBOX + "/processes", started.processes, "List processes", m.ProcessList),
    HttpRoute(
        "POST",
        _SANDBOX + "/processes/{pid}/signal",
        started.signal,
        "Send a signal to a process",
        m.Done,
        body=m.SendSignal,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/processes/{pid}/kill",
        started.kill_process,
        "Kill a process, or a command with all its processes",
        m.KilledProcess,
    ),
    # Python sessions.
    HttpRoute(
        "POST",
        _SANDBOX + "/python",
        python.open_session,
        "Open a Python session",
        m.SessionOpened,
        body=m.OpenPython,
        status=201,
    ),
    HttpRoute(
        "POST",
        _PYTHON + "/run",
        python.run,
        "Run code in a Python session",
        m.PythonOutcome,
        body=m.RunPython,
        also=EVENT_STREAM,
    ),
    HttpRoute(
        "POST",
        _PYTHON + "/interrupt",
        python.interrupt,
        "Interrupt the code that a Python session runs",
        m.Done,
    ),
    HttpRoute("DELETE", _PYTHON, python.close, "Close a Python session", m.Done),
    # Shell sessions.
    HttpRoute(
        "POST",
        _SANDBOX + "/shells",
        shells.open_session,
        "Open a shell session",
        m.SessionOpened,
        body=m.OpenShell,
        status=201,
    ),
    HttpRoute(
        "POST",
        _SHELL + "/run",
        shells.run,
        "Run a script in a shell session",
        m.CommandOutcome,
        body=m.RunShell,
        also=EVENT_STREAM,
    ),
    HttpRoute(
        "POST",
        _SHELL + "/interrupt",
        shells.interrupt,
        "Interrupt the script that a shell session runs",
        m.Done,
    ),
    HttpRoute("DELETE", _SHELL, shells.close, "Close a shell session", m.Done),
    # Servers in the sandbox.
    HttpRoute(
        "GET", _SANDBOX + "/listening", ports.listing, "List the ports with servers", p.PortList
    ),
    HttpRoute(
        "GET",
        _SANDBOX + "/listening/{port}",
        ports.wait,
        "Show whether a program listens on a port, or wait for one",
        p.PortState,
        query=p.WaitPort,
    ),
    *(
        HttpRoute(
            method,
            path,
            ports.proxy,
            "Send a request to a server in the sandbox; WebSockets too",
            "*/*",
            passes_through=True,
        )
        for path in (_SANDBOX + "/ports/{port}", _SANDBOX + "/ports/{port}/{path}")
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/tunnels/{port}",
        ports.tunnel,
        "Open a stream to a server in the sandbox, with `Upgrade: wasmsand-stream`",
        files.BYTES,
        status=101,
    ),
    # Terminals.
    HttpRoute(
        "GET",
        _SANDBOX + "/terminal",
        terminals.terminal,
        "Start a program on a pseudo-terminal, over a WebSocket",
        files.BYTES,
        status=101,
        is_websocket=True,
    ),
    # Files.
    HttpRoute("GET", _SANDBOX + "/files", files.read, "Read a file", files.BYTES, query=f.ReadFile),
    HttpRoute(
        "PUT",
        _SANDBOX + "/files",
        files.write,
        "Create or replace a file",
        m.Done,
        query=f.WriteFile,
        body=bytes,
    ),
    HttpRoute(
        "DELETE",
        _SANDBOX + "/files",
        files.remove,
        "Remove a file or directory",
        m.Done,
        query=f.RemoveFile,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/files/batch",
        files.write_many,
        "Create or replace several files: all of them, or none",
        m.Done,
        body=f.WriteFiles,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/files/append",
        files.append,
        "Append to a file",
        m.Done,
        query=f.FilePath,
        body=bytes,
    ),
    HttpRoute(
        "GET", _SANDBOX + "/files/stat", files.stat, "Show a file", FileInfo, query=f.StatFile
    ),
    HttpRoute(
        "GET",
        _SANDBOX + "/files/list",
        files.listing,
        "List a directory",
        f.FileList,
        query=f.ListDirectory,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/files/mkdir",
        files.mkdir,
        "Create a directory",
        m.Done,
        body=f.MakeDirectory,
    ),
    HttpRoute(
        "POST", _SANDBOX + "/files/rename", files.rename, "Rename or move", m.Done, body=f.TwoPaths
    ),
    HttpRoute(
        "POST", _SANDBOX + "/files/copy", files.copy, "Copy a file or tree", m.Done, body=f.TwoPaths
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/files/chmod",
        files.chmod,
        "Set permission bits",
        m.Done,
        body=f.ChangeMode,
    ),
    HttpRoute(
        "POST",
        _SANDBOX + "/files/symlink",
        files.symlink,
        "Create a symbolic link",
        m.Done,
        body=f.MakeLink,
    ),
    HttpRoute(
        "GET",
        _SANDBOX + "/files/link",
        files.read_link,
        "Read a symbolic link",
        f.LinkTarget,
        query=f.FilePath,
    ),
    HttpRoute(
        "GET",
        _SANDBOX + "/files/tar",
        files.export_tar,
        "Download a tree as a tar archive",
        files.TAR,
        query=f.FilePath,
    ),
    HttpRoute(
        "PUT",
        _SANDBOX + "/files/tar",
        files.import_tar,
        "Unpack a tar archive, optionally compressed with gzip",
        m.Done,
        query=f.FilePath,
        body=bytes,
    ),
)
