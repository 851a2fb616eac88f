"""Routes of whole sandboxes: their life, and their copies. A part of `routes.ROUTES`."""

from __future__ import annotations

from wasmsand.http import copy_messages as c
from wasmsand.http import life_messages as l
from wasmsand.http import messages as m
from wasmsand.http.handlers import copies, loading, sandboxes
from wasmsand.http.routing import AnyRoute, HttpRoute
from wasmsand.sdk.results import Usage

SANDBOX = "/v1/sandboxes/{sandbox}"
COMMAND = SANDBOX + "/commands/{command}"

SANDBOX_ROUTES: tuple[AnyRoute, ...] = (
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
        query=l.LoadSandbox,
        body=bytes,
        status=201,
    ),
    HttpRoute(
        "GET",
        "/v1/sandboxes",
        sandboxes.listing,
        "List your sandboxes",
        m.SandboxList,
        query=l.ListSandboxes,
    ),
    HttpRoute("GET", SANDBOX, sandboxes.state, "Show a sandbox", m.SandboxState, wakes=False),
    HttpRoute(
        "DELETE",
        SANDBOX,
        sandboxes.kill,
        "Kill a sandbox and drop its files",
        m.Killed,
        wakes=False,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/timeout",
        sandboxes.set_timeout,
        "Let a sandbox end in some seconds from now",
        m.SandboxState,
        body=l.SetTimeout,
        wakes=False,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/pause",
        sandboxes.pause,
        "Put a sandbox to the server's disk",
        m.SandboxState,
        body=l.PauseSandbox,
        wakes=False,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/resume",
        sandboxes.resume,
        "Resume a paused sandbox; any request that needs it does so too",
        m.SandboxState,
        body=l.ResumeSandbox,
        wakes=False,
    ),
    HttpRoute("GET", SANDBOX + "/usage", sandboxes.usage, "Show what a sandbox uses", Usage),
    HttpRoute("GET", SANDBOX + "/env", sandboxes.variables, "Show all variables", m.Variables),
    HttpRoute(
        "PATCH",
        SANDBOX + "/env",
        sandboxes.change_variables,
        "Set and unset variables",
        m.Variables,
        body=m.ChangeVariables,
    ),
    # Copies.
    HttpRoute(
        "POST",
        SANDBOX + "/snapshots",
        copies.take,
        "Take a snapshot of a sandbox with its Python sessions",
        c.SnapshotState,
        body=c.TakeSnapshot,
        status=201,
    ),
    HttpRoute(
        "GET",
        SANDBOX + "/snapshots",
        copies.listing,
        "List the snapshots of a sandbox",
        c.SnapshotList,
        wakes=False,
    ),
    HttpRoute(
        "DELETE",
        SANDBOX + "/snapshots/{snapshot}",
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
        SANDBOX + "/snapshots/{snapshot}/save",
        copies.save,
        "Download a snapshot as a file that `Sandbox.load` reads",
        copies.SAVED,
        body=c.SaveSnapshot,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/restore",
        copies.restore,
        "Make a sandbox what it was when a snapshot was taken",
        c.CopiedSandbox,
        body=c.RestoreSandbox,
    ),
    HttpRoute(
        "POST",
        SANDBOX + "/fork",
        copies.fork,
        "Copy a sandbox with its Python sessions",
        c.CopiedSandboxes,
        body=c.ForkSandbox,
        status=201,
    ),
    HttpRoute("GET", SANDBOX + "/sessions", copies.sessions, "List sessions", c.SessionList),
    HttpRoute(
        "POST",
        COMMAND + "/capture",
        copies.capture,
        "Capture a started command, for the next copy that names it",
        m.Done,
        body=c.CaptureCommand,
    ),
    HttpRoute(
        "POST",
        COMMAND + "/captured",
        copies.captured,
        "Finish the capture of a started command that has forked",
        m.Done,
    ),
)
