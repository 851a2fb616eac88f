// The errors of the public API.
//
//   SandboxError                  .errno: the name of the cause, such as "ENOENT"
//   ├── FileError                 .path
//   │   ├── NotFoundError, AlreadyExistsError, NotDirectoryError, IsDirectoryError,
//   │   ├── DirectoryNotEmptyError, PermissionDeniedError, NoSpaceError
//   │   ├── InvalidPathError
//   │   └── MountError            a directory of this machine cannot be mounted
//   ├── CommandError              a command cannot be started or written to
//   ├── InvalidArgumentError      an option or an argument is wrong
//   ├── PackageError              a Python package cannot be had
//   ├── UnsupportedError          this host does not offer it
//   ├── SandboxClosedError        the sandbox was destroyed
//   │   └── SandboxCrashedError   its worker failed
//   ├── ServerError               .status, .code: `wasmsand serve` refuses, or cannot be reached
//   ├── HostError                 the browser or Node lacks something that a sandbox needs
//   └── AssetError                a file of the package is missing or damaged
//
// Owns them, and making one of the description that the service sends. Rules: the messages come
// from the service; the types have the names of the Python package.

import type { Failure } from "./messages.js";

export class SandboxError extends Error {
  override readonly name: string = "SandboxError";

  constructor(message: string, readonly errno: string = "EIO") {
    super(message);
  }
}

export class FileError extends SandboxError {
  override readonly name: string = "FileError";

  constructor(message: string, errno: string, readonly path: string) {
    super(message, errno);
  }
}

export class NotFoundError extends FileError {
  override readonly name = "NotFoundError";
}
export class AlreadyExistsError extends FileError {
  override readonly name = "AlreadyExistsError";
}
export class NotDirectoryError extends FileError {
  override readonly name = "NotDirectoryError";
}
export class IsDirectoryError extends FileError {
  override readonly name = "IsDirectoryError";
}
export class DirectoryNotEmptyError extends FileError {
  override readonly name = "DirectoryNotEmptyError";
}
export class PermissionDeniedError extends FileError {
  override readonly name = "PermissionDeniedError";
}
export class NoSpaceError extends FileError {
  override readonly name = "NoSpaceError";
}
export class InvalidPathError extends FileError {
  override readonly name = "InvalidPathError";
}
export class CommandError extends SandboxError {
  override readonly name = "CommandError";
}
export class InvalidArgumentError extends SandboxError {
  override readonly name = "InvalidArgumentError";
}
export class PackageError extends SandboxError {
  override readonly name = "PackageError";
}
export class MountError extends FileError {
  override readonly name = "MountError";
}
export class UnsupportedError extends SandboxError {
  override readonly name = "UnsupportedError";
}
export class SandboxClosedError extends SandboxError {
  override readonly name: string = "SandboxClosedError";
}
export class SandboxCrashedError extends SandboxClosedError {
  override readonly name = "SandboxCrashedError";
}
export class HostError extends SandboxError {
  override readonly name = "HostError";
}
export class ServerError extends SandboxError {
  override readonly name = "ServerError";

  constructor(message: string, readonly status: number, readonly code: string) {
    super(message, "EIO");
  }
}
export class AssetError extends SandboxError {
  override readonly name = "AssetError";
}

const FILE_ERRORS: Record<string, typeof FileError> = {
  FileError, NotFoundError, AlreadyExistsError, NotDirectoryError, IsDirectoryError,
  DirectoryNotEmptyError, PermissionDeniedError, NoSpaceError, InvalidPathError,
  MountError,
};
const OTHER_ERRORS: Record<string, typeof SandboxError> = {
  CommandError, UnsupportedError, AssetError, PackageError,
  TypeError: InvalidArgumentError,
  ValueError: InvalidArgumentError,
};

/** The error that a failure of the service describes. */
export function errorOf(failure: Failure): SandboxError {
  const { type, errno, message, path } = failure;
  const ofFile = FILE_ERRORS[type];
  if (ofFile) return new ofFile(message, errno, path ?? "");
  return new (OTHER_ERRORS[type] ?? SandboxError)(message, errno);
}
