// Programs for engines that know only the legacy form of WebAssembly's exception handling (Node 20).
//
// Owns `knownForm` and `withLegacyExceptions`, which rewrites the final form, `try_table` and `exnref`,
// to the legacy form, `try` and `catch`. A reference to an exception becomes an i64: the tag's index plus 1 in the
// upper half, and the i32 that the exception carries in the lower half; null is 0. So nothing of the
// engine is kept, and `throw_ref` throws an equal exception. Clauses that catch everything with a
// reference catch the module's own exceptions, but not those of JavaScript, by which programs are left.
// Rules: the bytes may come from a hostile guest, and need not be valid: the engine validates the result
// before anything is added to it. What cannot be said in the legacy form is refused.

import { knowsFinalExceptions } from "../platform/final-exceptions.js";
import { skipInstruction } from "./instructions.js";
import { isNumber, parameterTypes } from "./module-limits.js";
import { CODE, FUNCTION, GLOBAL, IMPORT, Sections, TAG, TYPE } from "./module-sections.js";
import { leb, Output, Reader, Refused } from "./wasm-reader.js";

const FUNCTION_TYPE = 0x60, FUNCTION_KIND = 0, MEMORY_KIND = 2;
const I32 = 0x7f, I64 = 0x7e, EXNREF = 0x69, NULLABLE = 0x63, NOT_NULL = 0x64;
const UNREACHABLE = 0x00, BLOCK = 0x02, LOOP = 0x03, IF = 0x04, TRY = 0x06, CATCH = 0x07, THROW = 0x08,
  THROW_REF = 0x0a, END = 0x0b, BR = 0x0c, CALL = 0x10, DELEGATE = 0x18, CATCH_ALL = 0x19,
  SELECT_OF = 0x1c, TRY_TABLE = 0x1f, LOCAL_GET = 0x20, I32_CONST = 0x41, I64_CONST = 0x42, I32_EQ = 0x46,
  I64_OR = 0x84, I64_SHR_U = 0x88, I32_WRAP = 0xa7, I64_EXTEND_U = 0xad, REF_NULL = 0xd0;
/** The kinds of clauses of `try_table`. */
const WITH_REFERENCE = 1, ALL = 2, ALL_WITH_REFERENCE = 3;

/** C++ has two tags: its own exceptions, and longjmp. */
const TAGS_MAX = 8;
/** Handlers may take as much as the code, and this. */
const HANDLER_BYTES = 65536;

const NEWER = "this needs WebAssembly's final exception handling, which Node 22 and newer have";

/** The module in a form that this engine knows. Throws `Refused`. */
export function knownForm(bytes: Uint8Array): Uint8Array {
  return knowsFinalExceptions() ? bytes : withLegacyExceptions(bytes);
}

/** The module in the legacy form; the same bytes if it handles no exceptions in the final form. Throws
 *  `Refused`. */
export function withLegacyExceptions(bytes: Uint8Array): Uint8Array {
  const sections = new Sections(bytes);
  const code = sections.body(CODE);
  if (!code) return bytes;
  const tags = new Tags(sections);
  const types = withoutReferences(sections.body(TYPE));
  const rewriting = new Rewriting(code, tags, types !== null);
  const rewritten = rewriting.run();
  if (!rewriting.changed && !types) return bytes;
  refuseGlobals(sections.body(GLOBAL));
  if (types) sections.put(TYPE, types);
  sections.put(CODE, rewritten);
  tags.addFunctions(sections);
  return sections.bytes();
}

/** The module's tags, and the functions that are added for exceptions by reference. */
class Tags {
  /** How many numbers the exceptions of each tag carry: 0, 1, or null for anything else than one i32. */
  private readonly carried: (0 | 1 | null)[];
  private readonly firstAdded: number;
  private usesReferences = false;

  constructor(sections: Sections) {
    const types = parameterTypes(sections.body(TYPE));
    const reader = readerOf(sections.body(TAG));
    this.carried = [];
    for (let left = reader.u32(); left; left--) {
      reader.byte();
      const parameters = types[reader.u32()] ?? [];
      if (!parameters.every(isNumber)) throw new Refused("has exceptions that carry references");
      const isOne = parameters.length === 1 && parameters[0] === I32;
      this.carried.push(parameters.length === 0 ? 0 : isOne ? 1 : null);
    }
    this.firstAdded = importedFunctions(sections.body(IMPORT)) +
      readerOf(sections.body(FUNCTION)).u32();
  }

  /** Throw the exception on the stack, by its reference. */
  throwReference(): number[] {
    this.needReferences();
    return [CALL, ...leb(this.firstAdded), UNREACHABLE];
  }

  /** In a handler: the exception's numbers are on the stack. Add its reference. */
  withReference(tag: number): number[] {
    this.needReferences();
    if (tag >= this.carried.length) throw new Refused("catches exceptions of an unknown tag");
    if (!this.carried[tag]) return reference(tag);
    return [CALL, ...leb(this.firstAdded + 1 + tag)];
  }

  /** The handlers that catch all tags but these, with a reference, and go to a label. */
  catchAll(caught: ReadonlySet<number>, go: number[]): number[] {
    this.needReferences();
    return this.carried.flatMap((carried, tag) => {
      if (caught.has(tag)) return [];
      const made = carried ? [I64_EXTEND_U, ...reference(tag), I64_OR] : reference(tag);
      return [CATCH, ...leb(tag), ...made, ...go];
    });
  }

  private needReferences(): void {
    this.usesReferences = true;
    if (this.carried.length > TAGS_MAX) {
      throw new Refused(`has more than ${TAGS_MAX} kinds of exceptions: ${NEWER}`);
    }
    if (this.carried.includes(null)) {
      throw new Refused(`refers to exceptions that carry something else than one i32: ${NEWER}`);
    }
  }

  /** Add a function that throws by reference, and for each tag one that adds the reference to the i32. */
  addFunctions(sections: Sections): void {
    if (!this.usesReferences) return;
    const type = sections.append(TYPE, [0x60, 1, I64, 0], [0x60, 1, I32, 2, I32, I64]);
    sections.append(FUNCTION, leb(type), ...this.carried.map(() => leb(type + 1)));
    const throws = this.carried.flatMap((carried, tag) => [
      // If the upper half is the tag's:
      LOCAL_GET, 0, I64_CONST, 32, I64_SHR_U, I32_WRAP, I32_CONST, tag + 1, I32_EQ, IF, 0x40,
      ...(carried ? [LOCAL_GET, 0, I32_WRAP] : []), THROW, tag, END,
    ]);
    const both = this.carried.map((_, tag) =>
      [LOCAL_GET, 0, LOCAL_GET, 0, I64_EXTEND_U, ...reference(tag), I64_OR]);
    const bodies = [[...throws, UNREACHABLE], ...both].map((body) => [0, ...body, END]);
    sections.append(CODE, ...bodies.map((body) => [...leb(body.length), ...body]));
  }
}

/** The reference to an exception that carries 0. */
function reference(tag: number): number[] {
  // i64.const of (tag + 1) * 2 ** 32, as signed LEB128: the first four groups of seven bits are 0.
  const upper = tag + 1;
  return [I64_CONST, 0x80, 0x80, 0x80, 0x80, 0x80 | ((upper << 4) & 0x7f), upper >> 3];
}

/** A part of the code, or what is there instead. */
type Piece = Uint8Array | number[];

class Rewriting {
  changed = false;
  private usesLegacy = false;
  /** How many bytes of handlers may still be added. */
  private room: number;

  /** `everywhere`: functions may be given references to exceptions. Otherwise, a function in whose bytes
   *  neither their type nor `try_table` can be found has none. */
  constructor(
    private readonly code: Uint8Array, private readonly tags: Tags, private readonly everywhere: boolean,
  ) {
    this.room = code.length + HANDLER_BYTES;
  }

  /** The body of the code section, rewritten. */
  run(): Uint8Array {
    const out = new Output(this.code.length + HANDLER_BYTES);
    const reader = new Reader(this.code);
    const count = reader.u32();
    out.add(leb(count));
    for (let left = count; left; left--) {
      const size = reader.u32();
      const begin = reader.at;
      const bytes = reader.take(size);
      const mayHave = this.everywhere || bytes.includes(TRY_TABLE) || bytes.includes(EXNREF);
      const pieces = mayHave ? this.rewritten(new Reader(this.code, begin, begin + size)) : [bytes];
      out.add(leb(pieces.reduce((sum, piece) => sum + piece.length, 0)));
      for (const piece of pieces) out.add(piece);
    }
    if (this.changed && this.usesLegacy) throw new Refused("has both forms of exception handling");
    return out.bytes();
  }

  /** A function, in pieces. */
  private rewritten(reader: Reader): Piece[] {
    const { code } = this;
    const pieces: Piece[] = [];
    let from = reader.at;
    /** Put something in the place of what was read since `at`. */
    const replace = (at: number, by: number[]) => {
      this.changed = true;
      pieces.push(code.subarray(from, at), by);
      from = reader.at;
    };
    for (let left = reader.u32(); left; left--) {
      reader.u32();
      const at = reader.at;
      reader.skipType();
      if (isException(code, at)) replace(at, [I64]);
    }
    /** The handlers of each open block, or null. */
    const open: (number[] | null)[] = [];
    while (reader.at < reader.end) {
      const at = reader.at;
      const instruction = skipInstruction(reader);
      switch (instruction) {
        case null:
          throw new Refused("has an instruction that is not known here");
        case TRY_TABLE: {
          const { begin, handlers } = this.tryTable(new Reader(code, at + 1, reader.at));
          replace(at, begin);
          open.push(handlers);
          break;
        }
        case TRY:
          this.usesLegacy = true;
          open.push(null);
          break;
        case BLOCK: case LOOP: case IF:
          if (isException(code, at + 1)) replace(at, [instruction, I64]);
          open.push(null);
          break;
        case END: case DELEGATE: {
          const handlers = open.pop();
          if (handlers?.length) replace(at, [...handlers, END]);
          break;
        }
        case THROW_REF:
          replace(at, this.tags.throwReference());
          break;
        case REF_NULL:
          if (code[at + 1] === EXNREF) replace(at, [I64_CONST, 0]);
          break;
        case SELECT_OF:
          if (code[at + 1] === 1 && isException(code, at + 2)) replace(at, [SELECT_OF, 1, I64]);
          break;
      }
    }
    pieces.push(code.subarray(from, reader.end));
    return pieces;
  }

  /** What `try_table` becomes, and the handlers before its end. */
  private tryTable(reader: Reader): { begin: number[]; handlers: number[] } {
    const start = reader.at;
    reader.skipBlockType();
    const type = isException(this.code, start) ? [I64] : this.code.subarray(start, reader.at);
    const handlers: number[] = [];
    const caught = new Set<number>();
    for (let left = reader.u32(); left; left--) {
      const kind = reader.byte();
      const tag = kind < ALL ? reader.u32() : 0;
      // Labels of clauses count from outside of the block, those in handlers from inside.
      const go = [BR, ...leb(reader.u32() + 1)];
      if (kind === ALL) handlers.push(CATCH_ALL, ...go);
      else if (kind === ALL_WITH_REFERENCE) handlers.push(...this.tags.catchAll(caught, go));
      else if (kind > ALL_WITH_REFERENCE) throw new Refused("has a handler of exceptions of an unknown kind");
      else {
        const further = kind === WITH_REFERENCE ? this.tags.withReference(tag) : [];
        handlers.push(CATCH, ...leb(tag), ...further, ...go);
        caught.add(tag);
      }
      if (handlers.length > this.room) throw new Refused(`has too many handlers of exceptions: ${NEWER}`);
      if (kind >= ALL) break; // clauses after it catch nothing
    }
    this.room -= handlers.length;
    return { begin: [handlers.length ? TRY : BLOCK, ...type], handlers };
  }
}

/** Whether there is the type of references to exceptions. */
function isException(bytes: Uint8Array, at: number): boolean {
  const first = bytes[at];
  return first === EXNREF || ((first === NULLABLE || first === NOT_NULL) && bytes[at + 1] === EXNREF);
}

/** The section of types, with numbers instead of references to exceptions; null if there are none. */
function withoutReferences(body: Uint8Array | undefined): Uint8Array | null {
  const reader = readerOf(body);
  const out = new Output(reader.bytes.length);
  let from = 0;
  const values = () => {
    for (let left = reader.u32(); left; left--) {
      const at = reader.at;
      reader.skipType();
      if (!isException(reader.bytes, at)) continue;
      out.add(reader.bytes.subarray(from, at));
      out.add([I64]);
      from = reader.at;
    }
  };
  for (let left = reader.u32(); left; left--) {
    if (reader.byte() !== FUNCTION_TYPE) throw new Refused("has types that are not of functions");
    values();
    values();
  }
  if (!from) return null;
  out.add(reader.bytes.subarray(from));
  return out.bytes();
}

/** How many functions are imported. */
function importedFunctions(body: Uint8Array | undefined): number {
  const reader = readerOf(body);
  let found = 0;
  for (let left = reader.u32(); left; left--) {
    const name = `${reader.name()}.${reader.name()}`;
    const kind = reader.byte();
    if (kind === FUNCTION_KIND) {
      reader.u32();
      found++;
    } else if (kind === MEMORY_KIND) reader.limits();
    else throw new Refused(`imports ${name}, which is not a function`);
  }
  return found;
}

/** No global keeps exceptions. The engine refuses tables of them. */
function refuseGlobals(body: Uint8Array | undefined): void {
  const reader = readerOf(body);
  for (let left = reader.u32(); left; left--) {
    if (isException(reader.bytes, reader.at)) throw new Refused("has a global that keeps a reference");
    reader.globalType();
    reader.skipConstant();
  }
}

function readerOf(body: Uint8Array | undefined): Reader {
  return new Reader(body ?? Uint8Array.of(0));
}
