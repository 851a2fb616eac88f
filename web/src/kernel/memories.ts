// The memories of guests, and the modules that they run.
//
// Owns what `engine/javascript/host.py` asks of the host. Rules: modules, memories and stored images
// are known to Python by numbers. Bytes cross in Python's transfer buffer. Every range that is read
// or written is checked against the memory's size.

import { SharedGarbage } from "../memory-pressure.js";
import { knownForm } from "./legacy-exceptions.js";
import { Refused, reshape, type Driver, type Form, type Segment } from "./module-form.js";

/** How much memory of ended guests may wait to be collected. */
const GARBAGE_BYTES = 256 * 1024 * 1024;

/** A compiled program and what the kernel needs to know of it. */
export interface Loaded {
  module: WebAssembly.Module;
  form: Form;
}

/** What Python learns of a module: tables as lines, because each object costs a proxy. */
export interface ModuleForm {
  id: number;
  imports: string;
  procedures: string;
  addresses: string;
  variables: string;
  starts_threads: boolean;
  first_pages: number;
  most_pages: number;
  problem: string;
}

/** Pyodide's memory, as far as this file needs it. */
export interface PythonHeap {
  _module: { HEAPU8: Uint8Array };
}

export function problemForm(problem: string): { problem: string } {
  return { problem };
}

function lines(pairs: readonly (readonly [string, number | string])[]): string {
  return pairs.map((pair) => pair.join("\t")).join("\n");
}

/** Compile a program in the form in which it runs. */
export async function compiled(form: Form): Promise<Loaded> {
  const module = await WebAssembly.compile(form.bytes as BufferSource);
  return { module, form: withoutBytes(form) };
}

/** The form without the module's bytes, of which the segments may be a part. */
function withoutBytes(form: Form): Form {
  const segments = form.segments.map((segment) => ({ ...segment, bytes: segment.bytes.slice() }));
  return { ...form, segments, bytes: new Uint8Array(0) };
}

export class Memories {
  private readonly modules = new Map<number, Loaded>();
  private readonly memories = new Map<number, WebAssembly.Memory>();
  private readonly views = new Map<number, Uint8Array>();
  /** What `new_memory` has copied into each memory. */
  private readonly data = new Map<number, readonly Segment[]>();
  private readonly images = new Map<number, Uint8Array>();
  private readonly imageNumbers = new Map<string, number>();
  private readonly garbage = new SharedGarbage(GARBAGE_BYTES);
  private fed: Uint8Array[] = [];
  private counter = 0;

  constructor(
    private readonly python: PythonHeap, private readonly transferOffset: number,
    private readonly driver: Driver,
  ) {}

  module(id: number): WebAssembly.Module {
    return this.modules.get(id)!.module;
  }

  memory(id: number): WebAssembly.Memory {
    return this.memories.get(id)!;
  }

  /** Add a compiled program. */
  add(loaded: Loaded): ModuleForm {
    const id = ++this.counter;
    this.modules.set(id, loaded);
    const form = loaded.form;
    return {
      id,
      imports: lines(form.imports),
      procedures: form.procedures.join("\n"),
      addresses: lines(form.addresses),
      variables: lines(form.variables),
      starts_threads: form.startsThreads,
      first_pages: form.firstPages,
      most_pages: form.mostPages,
      problem: "",
    };
  }

  /** The number of a stored memory; undefined if it was not added yet. */
  image(key: string): number | undefined {
    return this.imageNumbers.get(key);
  }

  /** Add the bytes of a stored memory, once: its number. Restored machines use it again. */
  addImage(key: string, bytes: Uint8Array): number {
    const known = this.imageNumbers.get(key);
    if (known !== undefined) return known;
    this.images.set(++this.counter, bytes);
    this.imageNumbers.set(key, this.counter);
    return this.counter;
  }

  /** The memory of Python itself. */
  get kernelBytes(): number {
    return this.python._module.HEAPU8.length;
  }

  // Called by Python.

  feed(count: number): void {
    this.fed.push(this.transfer(count).slice());
  }

  compile(size: number): ModuleForm | { problem: string } {
    const given = new Uint8Array(size);
    let at = 0;
    for (const piece of this.fed) {
      given.set(piece, at);
      at += piece.length;
    }
    this.fed = [];
    try {
      const bytes = knownForm(given) as Uint8Array<ArrayBuffer>;
      // A module that was not valid might refer to what `reshape` adds.
      if (!WebAssembly.validate(bytes)) {
        return problemForm("is not a valid WebAssembly module");
      }
      const form = reshape(bytes, this.driver, true);
      const module = new WebAssembly.Module(form.bytes as BufferSource);
      return this.add({ module, form: withoutBytes(form) });
    } catch (error) {
      if (error instanceof Refused || error instanceof WebAssembly.CompileError) {
        return problemForm(error.message);
      }
      throw error;
    }
  }

  unload(module: number): void {
    this.modules.delete(module);
  }

  new_memory(module: number, first: number, most: number): number {
    let memory: WebAssembly.Memory;
    try {
      const shared = this.driver === "workers";
      memory = new WebAssembly.Memory({ initial: first, maximum: most, shared });
    } catch {
      return -1;
    }
    const number = ++this.counter;
    this.memories.set(number, memory);
    const view = this.view(number);
    const segments = this.modules.get(module)?.form.segments ?? [];
    for (const { address, bytes } of segments) view.set(bytes, address);
    this.data.set(number, segments);
    return number;
  }

  memory_size(memory: number): number {
    // Its guest may have grown it; the buffer is a new one then.
    const buffer = this.memories.get(memory)!.buffer;
    const view = this.views.get(memory)!;
    return view.buffer === buffer ? view.length : this.view(memory).length;
  }

  read(memory: number, address: number, count: number): void {
    this.transfer(count).set(this.part(memory, address, count));
  }

  write(memory: number, address: number, count: number): void {
    this.part(memory, address, count).set(this.transfer(count));
  }

  fill(memory: number, image: number, first: number): void {
    const view = this.view(memory);
    // A new memory is zero, except for the module's data.
    for (const { address, bytes } of this.data.get(memory) ?? []) {
      view.fill(0, address, address + bytes.length);
    }
    view.set(this.images.get(image)!, first);
  }

  copy(source: number, target: number, start: number, end: number): void {
    this.view(target).set(this.view(source).subarray(start, end), start);
  }

  free_memory(memory: number): void {
    this.garbage.add(this.memories.get(memory)?.buffer.byteLength ?? 0);
    this.memories.delete(memory);
    this.views.delete(memory);
    this.data.delete(memory);
  }

  // Helpers.

  private view(memory: number): Uint8Array {
    const view = new Uint8Array(this.memories.get(memory)!.buffer);
    this.views.set(memory, view);
    return view;
  }

  private transfer(count: number): Uint8Array {
    return this.python._module.HEAPU8.subarray(this.transferOffset, this.transferOffset + count);
  }

  private part(memory: number, address: number, count: number): Uint8Array {
    let view = this.views.get(memory)!;
    // The view of a memory that has grown may be too short, or have no bytes at all.
    if (address + count > view.length || !view.length) view = this.view(memory);
    if (address + count > view.length) throw new RangeError("outside the memory");
    return view.subarray(address, address + count);
  }
}
