// Requests to `wasmsand serve`.
//
// Owns the address, the token, and turning the server's errors into ours. Rules: the token travels
// only in a header, and never to another address: redirects are errors.

import {
  AlreadyExistsError, CommandError, DirectoryNotEmptyError, FileError, InvalidArgumentError,
  InvalidPathError, IsDirectoryError, NoSpaceError, NotDirectoryError, NotFoundError,
  PackageError, PermissionDeniedError, SandboxClosedError, SandboxError, ServerError, UnsupportedError,
} from "../errors.js";

const FILE_ERRORS: Record<string, typeof FileError> = {
  not_found: NotFoundError, already_exists: AlreadyExistsError, not_directory: NotDirectoryError,
  is_directory: IsDirectoryError, directory_not_empty: DirectoryNotEmptyError,
  permission_denied: PermissionDeniedError, no_space: NoSpaceError, invalid_path: InvalidPathError,
  file_error: FileError, bad_archive: FileError,
};
const OTHER_ERRORS: Record<string, [kind: typeof SandboxError, errno: string]> = {
  command_error: [CommandError, "EIO"], unsupported: [UnsupportedError, "ENOSYS"],
  invalid_value: [InvalidArgumentError, "EINVAL"], sandbox_closed: [SandboxClosedError, "EBADF"],
  sandbox_not_found: [SandboxClosedError, "EBADF"],
};
const PACKAGE_ERRORS = [
  "package_error", "package_not_found", "package_version", "package_not_built", "native_package",
  "package_conflict", "index_not_allowed", "package_index_failed",
];

/** What a request carries beside its path. */
export interface Sent {
  query?: Record<string, string | number | boolean | null | undefined>;
  value?: object;
  bytes?: Uint8Array;
}

interface FailureBody {
  error?: { code?: string; errno?: string | null; message?: string; path?: string | null };
}

async function failure(response: Response): Promise<SandboxError> {
  const body = (await response.json().catch(() => ({}))) as FailureBody;
  const { code = "", errno, message, path } = body.error ?? {};
  const text = message ?? `the server answered ${response.status}`;
  const ofFile = FILE_ERRORS[code];
  if (ofFile && errno) return new ofFile(text, errno, path ?? "");
  const other = OTHER_ERRORS[code];
  if (other) return new other[0](text, errno ?? other[1]);
  if (PACKAGE_ERRORS.includes(code)) return new PackageError(text, errno ?? "ENOENT");
  return new ServerError(text, response.status, code);
}

export class Transport {
  readonly base: URL;

  constructor(address: string | URL, private readonly token: string | undefined) {
    try {
      this.base = new URL(address, globalThis.location?.href);
    } catch {
      throw new InvalidArgumentError(`${String(address)} is not a URL of a server`, "EINVAL");
    }
    const { protocol, username, password, search } = this.base;
    if (protocol !== "http:" && protocol !== "https:") {
      throw new InvalidArgumentError(`the URL of a server begins with http or https`, "EINVAL");
    }
    if (username || password || search) {
      throw new InvalidArgumentError("the token belongs into the option token, not the URL", "EINVAL");
    }
    if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
      throw new InvalidArgumentError("a token is printable ASCII without spaces", "EINVAL");
    }
  }

  private url(path: string, query: Sent["query"] = {}): URL {
    const url = new URL(this.base.href.replace(/[#?].*$/, "").replace(/\/$/, "") + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    return url;
  }

  async send(
    method: string, path: string, sent: Sent = {}, further: RequestInit = {},
  ): Promise<Response> {
    const headers: Record<string, string> = {};
    if (this.token !== undefined) headers["authorization"] = `Bearer ${this.token}`;
    if (sent.value) headers["content-type"] = "application/json";
    const body = sent.value ? JSON.stringify(sent.value) : (sent.bytes as BodyInit | undefined);
    let response: Response;
    try {
      response = await fetch(this.url(path, sent.query), {
        method, headers, body: body ?? null, credentials: "omit", redirect: "error",
        cache: "no-store", referrerPolicy: "no-referrer", ...further,
      });
    } catch (error) {
      if (further.signal?.aborted) throw error;
      throw new ServerError(
        `the server ${this.base.origin} cannot be reached (${String((error as Error).message)}): is ` +
          "`wasmsand serve` running there?",
        0, "unreachable",
      );
    }
    if (!response.ok) throw await failure(response);
    return response;
  }

  async json<Result>(method: string, path: string, sent: Sent = {}): Promise<Result> {
    return (await (await this.send(method, path, sent)).json()) as Result;
  }

  async bytes(method: string, path: string, sent: Sent = {}): Promise<Uint8Array> {
    return new Uint8Array(await (await this.send(method, path, sent)).arrayBuffer());
  }

  /** A WebSocket. A page cannot set headers, so the token is offered as a subprotocol. */
  socket(path: string, protocol: string): WebSocket {
    const url = this.url(path);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const protocols = [protocol];
    if (this.token !== undefined) {
      const encoded = btoa(this.token).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
      protocols.push(`wasmsand.bearer.${encoded}`);
    }
    return new WebSocket(url, protocols);
  }
}
