"""The life of one sandbox: image, kernel and engine; commands, captured output, timeouts.

The names are loaded when they are first used: a host that needs only some of these modules, such as
a browser, does not import the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wasmsand.kernel.process.captured import CannotCapture
    from wasmsand.machine.archives import export_tar, import_tar
    from wasmsand.machine.at_rest import MachineState, SessionState
    from wasmsand.machine.checkpoint import (
        Checkpoint,
        CheckpointFailed,
        capture_at_checkpoint,
        run_to_checkpoint,
    )
    from wasmsand.machine.command import (
        CapturedOutput,
        CommandRequest,
        Completed,
        Ended,
        Output,
    )
    from wasmsand.machine.disk_image import (
        DiskImageRejected,
        read_disk_image,
        write_disk_image,
    )
    from wasmsand.machine.files import FileEntry, SandboxFiles
    from wasmsand.machine.image import base_image, image_at, image_programs
    from wasmsand.machine.image_directory import ImageMissing
    from wasmsand.machine.machine import Machine, MachineOptions
    from wasmsand.machine.packages.problems import PackageProblem
    from wasmsand.machine.processes import ProcessEntry, list_processes, send_signal
    from wasmsand.machine.sessions import CapturedSession, ForkCapture, capture_at_rest
    from wasmsand.machine.streamed import StreamedProcess
    from wasmsand.machine.tar_format import ArchiveRejected
    from wasmsand.machine.terminal import SandboxTerminal
    from wasmsand.machine.wasm_programs import WasmProgramRejected

_MODULES = {
    "ArchiveRejected": "wasmsand.machine.tar_format",
    "CannotCapture": "wasmsand.kernel.process.captured",
    "CapturedOutput": "wasmsand.machine.command",
    "CapturedSession": "wasmsand.machine.sessions",
    "Checkpoint": "wasmsand.machine.checkpoint",
    "CheckpointFailed": "wasmsand.machine.checkpoint",
    "CommandRequest": "wasmsand.machine.command",
    "Completed": "wasmsand.machine.command",
    "DiskImageRejected": "wasmsand.machine.disk_image",
    "Ended": "wasmsand.machine.command",
    "FileEntry": "wasmsand.machine.files",
    "ForkCapture": "wasmsand.machine.sessions",
    "ImageMissing": "wasmsand.machine.image_directory",
    "Machine": "wasmsand.machine.machine",
    "MachineOptions": "wasmsand.machine.machine",
    "MachineState": "wasmsand.machine.at_rest",
    "Output": "wasmsand.machine.command",
    "PackageProblem": "wasmsand.machine.packages.problems",
    "ProcessEntry": "wasmsand.machine.processes",
    "SandboxFiles": "wasmsand.machine.files",
    "SandboxTerminal": "wasmsand.machine.terminal",
    "SessionState": "wasmsand.machine.at_rest",
    "StreamedProcess": "wasmsand.machine.streamed",
    "WasmProgramRejected": "wasmsand.machine.wasm_programs",
    "base_image": "wasmsand.machine.image",
    "capture_at_checkpoint": "wasmsand.machine.checkpoint",
    "capture_at_rest": "wasmsand.machine.sessions",
    "export_tar": "wasmsand.machine.archives",
    "image_at": "wasmsand.machine.image",
    "image_programs": "wasmsand.machine.image",
    "import_tar": "wasmsand.machine.archives",
    "list_processes": "wasmsand.machine.processes",
    "read_disk_image": "wasmsand.machine.disk_image",
    "run_to_checkpoint": "wasmsand.machine.checkpoint",
    "send_signal": "wasmsand.machine.processes",
    "write_disk_image": "wasmsand.machine.disk_image",
}

__all__ = [
    "ArchiveRejected",
    "CannotCapture",
    "CapturedOutput",
    "CapturedSession",
    "Checkpoint",
    "CheckpointFailed",
    "CommandRequest",
    "Completed",
    "DiskImageRejected",
    "Ended",
    "FileEntry",
    "ForkCapture",
    "ImageMissing",
    "Machine",
    "MachineOptions",
    "MachineState",
    "Output",
    "PackageProblem",
    "ProcessEntry",
    "SandboxFiles",
    "SandboxTerminal",
    "SessionState",
    "StreamedProcess",
    "WasmProgramRejected",
    "base_image",
    "capture_at_checkpoint",
    "capture_at_rest",
    "export_tar",
    "image_at",
    "image_programs",
    "import_tar",
    "list_processes",
    "read_disk_image",
    "run_to_checkpoint",
    "send_signal",
    "write_disk_image",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value
