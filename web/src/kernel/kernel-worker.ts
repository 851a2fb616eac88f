// The worker in which the kernel runs: Python in Pyodide, and this file between it and the page.
//
// Owns the host object that Python calls, and the messages of the page. Rules: only numbers and
// strings pass between Python and JavaScript, and bytes in buffers. Every request is answered once.

import type { FunctionOffer } from "../guest/channel.js";
import type { BootMessage, Failure, FromKernel, ToKernel } from "../messages.js";
import type { ImageAccess } from "./asset-files.js";
import type { GuestHost } from "./guest-host.js";
import { knownForm } from "./legacy-exceptions.js";
import { Refused, reshape, type Driver, type Form } from "./module-form.js";
import { compiled, Memories, problemForm } from "./memories.js";
import { Outside } from "./network/outside.js";
import { IMAGE_PATH, startPython, type Python } from "./python.js";
import { readForm } from "./stored-form.js";
import { SuspendedGuests } from "./suspended-guests.js";
import { WorkerGuests } from "./worker-guests.js";
import { copyOf, type Pyodide, type PythonBuffer, type Service } from "./service.js";
import { directories } from "#platform/directories";
import { onMessage, openAssets, readAsset, send } from "#platform/kernel";

/** How often Python looks at guests that compute. */
const TICK_MS = 100;

function failureOf(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error);
  return { type: error instanceof Error ? error.name : "Error", errno: "EIO", message };
}

function report(error: unknown): void {
  console.warn(`wasmsand: ${failureOf(error).message.slice(0, 2000)}`);
}

/** The functions that programs may import beside those of the Linux ABI. */
function offeredFunctions(pyodide: Pyodide): FunctionOffer[] {
  const offers = pyodide.runPython(
    "from wasmsand.abi.wasi.table import HOST_FUNCTIONS as functions\n" +
      "'\\n'.join(f'{f.module}\\t{f.name}\\t{f.parameters}' for f in functions)",
  ) as string;
  return offers.split("\n").map((line) => {
    const [module, name, parameters] = line.split("\t") as [string, string, string];
    return { module, name, parameters };
  });
}

class Kernel {
  private service!: Service;
  private readonly outside = new Outside(() => this.service);
  private forms: Record<string, string> = {};
  private driver: Driver = "workers";
  private images!: Python["images"];
  private showPackages!: Python["showPackages"];
  private timer: ReturnType<typeof setTimeout> | undefined;

  async boot(message: BootMessage): Promise<void> {
    const began = performance.now();
    const index = await openAssets(message.assets);
    const { layout, pyodide, boot, fromSnapshot, showPackages, images } = await startPython(
      index, message.snapshot, report,
    );
    this.forms = layout.forms;
    this.driver = message.driver;
    const transfer = boot.transfer.getBuffer("u8");
    const memories = new Memories(pyodide, transfer.data.byteOffset, message.driver);
    const inWorkers = message.driver === "workers";
    const guests = inWorkers ? new WorkerGuests(memories) : new SuspendedGuests(memories);
    this.showPackages = showPackages;
    this.images = images;
    this.service = boot.boot(this.host(memories, guests), IMAGE_PATH);
    guests.serveWith(this.service, offeredFunctions(pyodide));
    setInterval(() => {
      if (guests.computing) this.service.tick();
    }, TICK_MS);
    const milliseconds = performance.now() - began;
    send({ kind: "booted", report: { fromSnapshot, milliseconds, driver: message.driver } });
  }

  request(number: number, method: string, params: string, data: Uint8Array | null): void {
    try {
      this.service.request(number, method, params, data ?? undefined);
    } catch (error) {
      send({ kind: "failed", number, failure: failureOf(error) });
    }
  }

  taken(handle: number, bytes: number): void {
    this.service.taken(handle, bytes);
  }

  /** What Python calls (web/host.py). */
  private host(memories: Memories, guests: GuestHost): object {
    return {
      feed: memories.feed.bind(memories),
      compile: memories.compile.bind(memories),
      unload: memories.unload.bind(memories),
      new_memory: memories.new_memory.bind(memories),
      memory_size: memories.memory_size.bind(memories),
      read: memories.read.bind(memories),
      write: memories.write.bind(memories),
      fill: memories.fill.bind(memories),
      copy: memories.copy.bind(memories),
      free_memory: memories.free_memory.bind(memories),
      start_guest: guests.start_guest.bind(guests),
      answer: guests.answer.bind(guests),
      end_guest: guests.end_guest.bind(guests),
      show_packages: () => {
        const shown = this.showPackages();
        Object.assign(this.forms, shown?.forms);
        return shown?.path ?? "";
      },
      has_bytes: (path: string, start: number, count: number) => {
        const [image, name] = this.imageOf(path);
        return !image || image.has(name, start, count);
      },
      fetch_bytes: (key: string, path: string, start: number, count: number) =>
        void this.fetchBytes(key, path, start, count),
      kernel_bytes: () => memories.kernelBytes,
      wake_at: (milliseconds: number) => this.wakeAt(milliseconds),
      fetch_module: (key: string) => void this.fetchModule(key, memories),
      fetch_memory: (key: string) => void this.fetchMemory(key, memories),
      ...this.outside.functions(),
      ...directories,
      reply: (number: number, result: string, data: PythonBuffer | null) =>
        sendWith({ kind: "reply", number, result, data: copyOf(data) }),
      fail: (number: number, error: string) =>
        send({ kind: "failed", number, failure: JSON.parse(error) as Failure }),
      notify: (handle: number, event: string, data: PythonBuffer | null) =>
        sendWith({ kind: "event", handle, event, data: copyOf(data) }),
    };
  }

  private wakeAt(milliseconds: number): void {
    clearTimeout(this.timer);
    if (milliseconds >= 0) {
      this.timer = setTimeout(() => this.service.time_passed(), milliseconds);
    }
  }

  private async fetchModule(key: string, memories: Memories): Promise<void> {
    try {
      const form = await this.fetchForm(key);
      this.service.module_fetched(key, memories.add(await compiled(form)));
    } catch (error) {
      if (error instanceof Refused) this.service.module_fetched(key, problemForm(error.message));
      else this.fetchFailed(key, error);
    }
  }

  /** A program in the form in which it runs. The assets have the form for workers. */
  private async fetchForm(key: string): Promise<Form> {
    const stored = this.driver === "workers" ? this.forms[key] : undefined;
    if (!stored) return reshape(knownForm(await readAsset(key)), this.driver);
    const form = readForm(await readAsset(stored));
    return { ...form, bytes: knownForm(form.bytes) };
  }

  private async fetchMemory(key: string, memories: Memories): Promise<void> {
    try {
      await null; // Python is in the middle of the call that asks for it
      const image = memories.image(key) ?? memories.addImage(key, await readAsset(key));
      this.service.memory_fetched(key, image);
    } catch (error) {
      this.fetchFailed(key, error);
    }
  }

  private imageOf(path: string): [ImageAccess | undefined, string] {
    const end = path.lastIndexOf("/");
    return [this.images.get(path.slice(0, end)), path.slice(end + 1)];
  }

  private async fetchBytes(key: string, path: string, start: number, count: number): Promise<void> {
    const [image, name] = this.imageOf(path);
    await null; // Python is still in its call
    try {
      await image!.fetch(name, start, count);
    } catch (error) {
      report(error); // the read fails, and says why
    }
    this.service.bytes_came(key);
  }

  private fetchFailed(key: string, error: unknown): void {
    report(error);
    this.service.fetch_failed(key, failureOf(error).message);
  }
}

function sendWith(message: FromKernel & { data: Uint8Array | null }): void {
  send(message, message.data ? [message.data.buffer as ArrayBuffer] : []);
}

const kernel = new Kernel();
onMessage((message: ToKernel) => {
  if (message.kind === "boot") {
    kernel.boot(message).catch((error: unknown) => {
      send({ kind: "bootFailed", failure: failureOf(error) });
    });
  } else if (message.kind === "taken") kernel.taken(message.handle, message.bytes);
  else kernel.request(message.number, message.method, message.params, message.data);
});
