"""The life of one sandbox: image, kernel and engine; commands, captured output, timeouts."""

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
