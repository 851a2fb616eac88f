"""The table of routes.

Routing, validation and the OpenAPI document are made from it, so they cannot differ. Rules: a
new request is a row here and a handler; only the owner of a sandbox may use paths with
`{sandbox}`.
"""

from __future__ import annotations

from starlette.responses import HTMLResponse, RedirectResponse, Response

from wasmsand.http import file_messages as f
from wasmsand.http import messages as m
from wasmsand.http import network_messages as n
from wasmsand.http import package_messages as k
from wasmsand.http import port_messages as p
from wasmsand.http import session_messages as s
from wasmsand.http.handlers import (
    commands,
    files,
    network,
    packages,
    playground,
    ports,
    python,
    server,
    shells,
    started,
    terminals,
)
from wasmsand.http.metrics import CONTENT_TYPE
from wasmsand.http.openapi import document
from wasmsand.http.reference_page import HEADERS, reference_page
from wasmsand.http.routes_sandboxes import COMMAND, SANDBOX, SANDBOX_ROUTES
from wasmsand.http.routing import AnyRoute, HttpRoute, PublicCall
from wasmsand.http.streaming import EVENT_STREAM
from wasmsand.sdk.results import FileInfo, NetworkRules

_PYTHON = SANDBOX + "/python/{python}"
_SHELL = SANDBOX + "/shells/{shell}"


async def _openapi(call: PublicCall) -> Response:
    # Made once, in less than a tenth of a second.
    return Response(document(ROUTES, call.service.settings.version), media_type="application/json")


async def _docs(call: PublicCall) -> Response:
    version, host = call.service.settings.version, call.request.headers.get("host", "")
    return HTMLResponse(reference_page(document(ROUTES, version), host), headers=HEADERS)


async def _to_docs(_call: PublicCall) -> Response:
    return RedirectResponse("/docs", 307)


ROUTES: tuple[AnyRoute, ...] = (
    # The server.
    HttpRoute("GET", "/healthz", server.health, "Check the server's health", m.Health, public=True),
    HttpRoute("GET", "/openapi.json", _openapi, "This document", "application/json", public=True),
    HttpRoute("GET", "/docs", _docs, "This document as a page", "text/html", public=True),
    HttpRoute("GET", "/", _to_docs, "Go to the page", "*/*", status=307, public=True),
    HttpRoute("GET", "/metrics", server.metrics, "Metrics for Prometheus", CONTENT_TYPE),
    HttpRoute(
        "GET",
        "/playground",
        playground.page,
        "Go to the playground",
        "*/*",
        status=308,
        public=True,
    ),
    HttpRoute(
        "GET",
        "/playground/{path}",
        playground.file,
        "A file of the playground's page",
        playground.ANY_FILE,
        public=True,
    ),
    *SANDBOX_ROUTES,
    # Packages.
    HttpRoute(
        "GET",
        SANDBOX + "/packages",
        packages.installed,
        "List installed Python packages",
        k.PackageList,
    ),
    HttpRoute(
        "GET",
        SANDBOX + "/packages/available",
        packages.available,
        "List the Python packages of the image",
        k.PackageList,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/packages/install",
        packages.install,
        "Install Python packages; the response lists those that are new",
        k.PackageList,
        body=k.InstallPackages,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/packages/uninstall",
        packages.uninstall,
        "Uninstall Python packages",
        m.Done,
        body=k.UninstallPackages,
    ),
    # The network.
    HttpRoute("GET", SANDBOX + "/network", network.rules, "Show the network's rules", NetworkRules),
    HttpRoute(
        "POST",
        SANDBOX + "/network/allow",
        network.allow,
        "Allow more hosts, within what your token may allow",
        NetworkRules,
        body=n.ChangeNetwork,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/network/deny",
        network.deny,
        "Deny hosts",
        NetworkRules,
        body=n.ChangeNetwork,
    ),
    HttpRoute(
        "GET",
        SANDBOX + "/network/log",
        network.log,
        "Show what the sandbox did on the network",
        n.NetworkLog,
    ),
    # Commands.
    HttpRoute(
        "POST",
        SANDBOX + "/run",
        commands.run,
        "Run a command to its end",
        m.CommandOutcome,
        body=m.RunCommand,
        also=EVENT_STREAM,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/commands",
        started.start,
        "Start a command in the background",
        m.CommandState,
        body=m.StartCommand,
        status=201,
    ),
    HttpRoute(
        "GET", SANDBOX + "/commands", started.listing, "List started commands", m.StartedCommands
    ),
    HttpRoute(
        "GET",
        COMMAND,
        started.wait,
        "Show a started command, or wait for its end",
        m.CommandState,
        query=m.WaitCommand,
    ),
    HttpRoute("DELETE", COMMAND, started.forget, "Forget a command; it keeps running", m.Done),
    HttpRoute("POST", COMMAND + "/kill", started.kill, "Kill a started command", m.Done),
    HttpRoute(
        "GET",
        COMMAND + "/output",
        started.output,
        "Read the next output of a started command",
        m.OutputBatch,
        query=m.ReadOutput,
    ),
    HttpRoute(
        "POST",
        COMMAND + "/input",
        started.write_input,
        "Write to an input of a started command",
        m.Written,
        query=m.WriteInput,
        body=bytes,
    ),
    HttpRoute(
        "DELETE",
        COMMAND + "/input",
        started.close_input,
        "Close an input of a started command",
        m.Done,
        query=m.InputDescriptor,
    ),
    HttpRoute("GET", SANDBOX + "/processes", started.processes, "List processes", m.ProcessList),
    HttpRoute(
        "POST",
        SANDBOX + "/processes/{pid}/signal",
        started.signal,
        "Send a signal to a process",
        m.Done,
        body=m.SendSignal,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/processes/{pid}/kill",
        started.kill_process,
        "Kill a process, or a command with all its processes",
        m.KilledProcess,
    ),
    # Python sessions.
    HttpRoute(
        "POST",
        SANDBOX + "/python",
        python.open_session,
        "Open a Python session",
        s.SessionOpened,
        body=s.OpenPython,
        status=201,
    ),
    HttpRoute(
        "POST",
        _PYTHON + "/run",
        python.run,
        "Run code in a Python session",
        s.PythonOutcome,
        body=s.RunPython,
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
        SANDBOX + "/shells",
        shells.open_session,
        "Open a shell session",
        s.SessionOpened,
        body=s.OpenShell,
        status=201,
    ),
    HttpRoute(
        "POST",
        _SHELL + "/run",
        shells.run,
        "Run a script in a shell session",
        m.CommandOutcome,
        body=s.RunShell,
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
        "GET", SANDBOX + "/listening", ports.listing, "List the ports with servers", p.PortList
    ),
    HttpRoute(
        "GET",
        SANDBOX + "/listening/{port}",
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
        for path in (SANDBOX + "/ports/{port}", SANDBOX + "/ports/{port}/{path}")
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/tunnels/{port}",
        ports.tunnel,
        "Open a stream to a server in the sandbox, with `Upgrade: wasmsand-stream`",
        files.BYTES,
        status=101,
    ),
    # Terminals.
    HttpRoute(
        "GET",
        SANDBOX + "/terminal",
        terminals.terminal,
        "Start a program on a pseudo-terminal, over a WebSocket",
        files.BYTES,
        status=101,
        is_websocket=True,
    ),
    # Files.
    HttpRoute("GET", SANDBOX + "/files", files.read, "Read a file", files.BYTES, query=f.ReadFile),
    HttpRoute(
        "PUT",
        SANDBOX + "/files",
        files.write,
        "Create or replace a file",
        m.Done,
        query=f.WriteFile,
        body=bytes,
    ),
    HttpRoute(
        "DELETE",
        SANDBOX + "/files",
        files.remove,
        "Remove a file or directory",
        m.Done,
        query=f.RemoveFile,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/files/batch",
        files.write_many,
        "Create or replace several files: all of them, or none",
        m.Done,
        body=f.WriteFiles,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/files/append",
        files.append,
        "Append to a file",
        m.Done,
        query=f.FilePath,
        body=bytes,
    ),
    HttpRoute(
        "GET", SANDBOX + "/files/stat", files.stat, "Show a file", FileInfo, query=f.StatFile
    ),
    HttpRoute(
        "GET",
        SANDBOX + "/files/list",
        files.listing,
        "List a directory",
        f.FileList,
        query=f.ListDirectory,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/files/mkdir",
        files.mkdir,
        "Create a directory",
        m.Done,
        body=f.MakeDirectory,
    ),
    HttpRoute(
        "POST", SANDBOX + "/files/rename", files.rename, "Rename or move", m.Done, body=f.TwoPaths
    ),
    HttpRoute(
        "POST", SANDBOX + "/files/copy", files.copy, "Copy a file or tree", m.Done, body=f.TwoPaths
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/files/chmod",
        files.chmod,
        "Set permission bits",
        m.Done,
        body=f.ChangeMode,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/files/symlink",
        files.symlink,
        "Create a symbolic link",
        m.Done,
        body=f.MakeLink,
    ),
    HttpRoute(
        "GET",
        SANDBOX + "/files/link",
        files.read_link,
        "Read a symbolic link",
        f.LinkTarget,
        query=f.FilePath,
    ),
    HttpRoute(
        "GET",
        SANDBOX + "/files/tar",
        files.export_tar,
        "Download a tree as a tar archive",
        files.TAR,
        query=f.FilePath,
    ),
    HttpRoute(
        "PUT",
        SANDBOX + "/files/tar",
        files.import_tar,
        "Unpack a tar archive, optionally compressed with gzip",
        m.Done,
        query=f.FilePath,
        body=bytes,
    ),
)
