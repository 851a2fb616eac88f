"""Tools for directories of the host that are mounted as overlays: see the changes, write them back.

Owns `sandbox_diff`, which is offered if the sandbox has an overlay, and `sandbox_apply`, which is
offered only if the operator allows it: it changes files of the host. Rules: lists and patches in
answers are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from wasmsand.sdk.errors import MountConflictError
from wasmsand.sdk.results import MountDiff
from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.parameters import InvalidToolInput, Parameter
from wasmsand.tools.workbench import Workbench, shortened

_LISTED_MAX: Final = 500
_PATH = Parameter(
    "path", "string", "The directory; needed only if there are several.", may_be_empty=False
)

DIFF = ToolDefinition(
    name="sandbox_diff",
    title="Show changes of the project",
    description=(
        "Show how you have changed a directory of the user's machine in the sandbox ({overlays}). "
        "The directory itself is unchanged. Returns the paths that were added, changed and "
        "removed, conflicts (changed on the user's machine too), and patch, in the format of git "
        "diff."
    ),
    parameters=(
        _PATH,
        Parameter("patch", "boolean", "Whether to return the patch.", default=True),
    ),
    read_only=True,
    needs_overlay=True,
)

APPLY = ToolDefinition(
    name="sandbox_apply",
    title="Write changes to the user's machine",
    description=(
        "Write your changes of a directory of the user's machine ({overlays}) to that machine. "
        "Look at sandbox_diff first. If files were changed there too, nothing is written. Returns "
        "the paths that were added, changed and removed."
    ),
    parameters=(_PATH,),
    needs_overlay=True,
    changes_host=True,
)


def diff(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_diff`."""
    found = bench.sandbox.diff(_overlay(bench, given["path"]), patch=given["patch"])
    described = _described(found)
    if given["patch"]:
        content = found.patch.encode("utf-8", "replace")
        described["patch"] = shortened(bench, content.decode(), content, "patch")
    return described


def apply(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_apply`."""
    try:
        return _described(bench.sandbox.apply(_overlay(bench, given["path"])))
    except MountConflictError as error:
        raise InvalidToolInput(
            f"nothing was written: {error}; tell the user, who has to decide"
        ) from None


OVERLAY_ACTIONS: Final[Mapping[str, Callable[[Workbench, Mapping[str, Any]], dict[str, Any]]]] = {
    DIFF.name: diff,
    APPLY.name: apply,
}


def _overlay(bench: Workbench, path: str | None) -> str:
    overlays = [mount.path for mount in bench.sandbox.mounts if mount.mode == "overlay"]
    if path is None and len(overlays) == 1:
        return overlays[0]
    if path is not None and path.rstrip("/") in overlays:
        return path.rstrip("/")
    problem = "path is missing" if path is None else f"{path!r:.80} is not such a directory"
    raise InvalidToolInput(f"{problem}; use one of: {', '.join(overlays) or 'none'}")


def _described(found: MountDiff) -> dict[str, Any]:
    described: dict[str, Any] = {"path": found.path}
    for name in ("added", "changed", "removed", "conflicts"):
        paths = [path.encode("utf-8", "replace").decode() for path in getattr(found, name)]
        described[name] = paths[:_LISTED_MAX]
        if len(paths) > _LISTED_MAX:
            described[name].append(f"... and {len(paths) - _LISTED_MAX} more")
    return described
