// One v86 machine in a Node process.
//
// Owns the emulator, its two disks and the channel to the agent in the guest. Standard input and
// output of this process are the two directions of the channel; their bytes are not interpreted
// here. Lines for people and for the Python side go to standard error.
//
// Rules: the guest is hostile; every number in its 9p requests is checked. The root disk is a file
// that is only read. Writes to disks stay in memory, and never exceed the size of the disk.

import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { pathToFileURL } from "node:url";

const BLOCK = 4096;
const CONSOLE_LIMIT = 16384;

/** Tell the Python side something: one line of JSON on standard error. */
function tell(event, fields = {}) {
    fs.writeSync(2, JSON.stringify({ event, ...fields }) + "\n");
}

/** A disk: a file of the host that is only read, and the blocks that the guest has written. */
class Disk {
    /** `file` is null for a disk that is empty apart from what was written. */
    constructor(file, size) {
        this.fd = file === null ? null : fs.openSync(file, "r");
        this.byteLength = file === null ? size : fs.fstatSync(this.fd).size;
        this.written = new Map();
        this.onload = undefined;
    }

    /** Take the content of a file, as if the guest had written it. */
    fill(file) {
        const fd = fs.openSync(file, "r");
        const piece = new Uint8Array(1 << 20);
        for (let start = 0; start < this.byteLength; start += piece.length) {
            const count = fs.readSync(fd, piece, 0, piece.length, start);
            for (let at = 0; at < count; at += BLOCK) {
                const block = piece.subarray(at, at + BLOCK);
                if (block.some((byte) => byte !== 0)) this.set(start + at, block, () => {});
            }
        }
        fs.closeSync(fd);
    }

    /** Read the file; `data` is zero. */
    read(data, at, count, position) {
        if (this.fd !== null) fs.readSync(this.fd, data, at, count, position);
    }

    load() {
        this.onload?.({});
    }

    get(start, length, done) {
        done(this.get_from_cache(start, length));
    }

    get_and_cache(start, length, done) {
        this.get(start, length, done);
    }

    get_from_cache(start, length) {
        const data = new Uint8Array(length);
        const end = start + length;
        for (let at = start; at < end; ) {
            const inside = at % BLOCK;
            const block = this.written.get((at - inside) / BLOCK);
            let stop = Math.min(at - inside + BLOCK, end);
            if (block) {
                data.set(block.subarray(inside, inside + stop - at), at - start);
            } else {
                while (stop < end && !this.written.has(stop / BLOCK)) stop = Math.min(stop + BLOCK, end);
                this.read(data, at - start, stop - at, at);
            }
            at = stop;
        }
        return data;
    }

    set(start, data, done) {
        for (let at = start; at < start + data.length; ) {
            const inside = at % BLOCK;
            const count = Math.min(BLOCK - inside, start + data.length - at);
            const number = (at - inside) / BLOCK;
            let block = this.written.get(number);
            if (!block) {
                block = new Uint8Array(BLOCK);
                if (count < BLOCK) this.read(block, 0, BLOCK, at - inside);
                this.written.set(number, block);
            }
            block.set(data.subarray(at - start, at - start + count), inside);
            at += count;
        }
        done();
    }

    get_state() {
        const numbers = new Int32Array([...this.written.keys()]);
        const content = new Uint8Array(numbers.length * BLOCK);
        numbers.forEach((number, i) => content.set(this.written.get(number), i * BLOCK));
        return [numbers, content];
    }

    set_state([numbers, content]) {
        this.written.clear();
        numbers.forEach((number, i) =>
            this.written.set(number, content.slice(i * BLOCK, (i + 1) * BLOCK)),
        );
    }
}

/**
 * The channel: a 9p file system with two files. A read of `in` waits for bytes from the host; a
 * write of `out` passes bytes to the host and is answered when the host has taken them.
 */
class Channel {
    static ROOT = 0;
    static IN = 1;
    static OUT = 2;
    static EBADF = 9;
    static EINVAL = 22;
    static ENOENT = 2;
    static EOPNOTSUPP = 95;
    static MSIZE = 262144;

    constructor() {
        this.fids = new Map();
        this.queue = [];
        this.waiting = null;
        this.msize = 8192;
    }

    /** Begin to read from the host. */
    listen() {
        process.stdin.on("data", (chunk) => {
            this.queue.push(chunk);
            if (this.queue.length > 16) process.stdin.pause();
            this.answerRead();
        });
        process.stdin.on("end", () => process.exit(0));
        process.stdin.on("error", () => process.exit(0));
        process.stdout.on("error", () => process.exit(0));
    }

    answerRead() {
        if (!this.waiting || this.queue.length === 0) return;
        const { tag, most, reply } = this.waiting;
        this.waiting = null;
        const parts = [];
        let total = 0;
        while (this.queue.length && total < most) {
            const chunk = this.queue[0];
            const taken = chunk.subarray(0, most - total);
            parts.push(taken);
            total += taken.length;
            if (taken.length === chunk.length) this.queue.shift();
            else this.queue[0] = chunk.subarray(taken.length);
        }
        if (this.queue.length <= 16) process.stdin.resume();
        const body = Buffer.alloc(4 + total);
        body.writeUInt32LE(total, 0);
        Buffer.concat(parts).copy(body, 4);
        reply(message(117, tag, body));
    }

    handle(request, reply) {
        const bytes = Buffer.from(request.buffer, request.byteOffset, request.length);
        const tag = bytes.length >= 7 ? bytes.readUInt16LE(5) : 0;
        try {
            this.dispatch(bytes, tag, reply);
        } catch (error) {
            if (!(error instanceof RangeError)) throw error;
            reply(failure(tag, Channel.EINVAL)); // a request that is too short
        }
    }

    dispatch(bytes, tag, reply) {
        const kind = bytes.readUInt8(4);
        const fid = bytes.length >= 11 ? bytes.readUInt32LE(7) : 0;
        switch (kind) {
            case 100: {
                // Tversion
                this.msize = Math.min(bytes.readUInt32LE(7), Channel.MSIZE);
                this.fids.clear();
                const name = Buffer.from("9P2000.L");
                const body = Buffer.alloc(6 + name.length);
                body.writeUInt32LE(this.msize, 0);
                body.writeUInt16LE(name.length, 4);
                name.copy(body, 6);
                return reply(message(101, tag, body));
            }
            case 104: // Tattach
                this.remember(fid, Channel.ROOT);
                return reply(message(105, tag, qid(Channel.ROOT)));
            case 110:
                return this.walk(bytes, fid, tag, reply);
            case 12: {
                // Tlopen
                if (!this.fids.has(fid)) return reply(failure(tag, Channel.EBADF));
                return reply(message(13, tag, Buffer.concat([qid(this.fids.get(fid)), zeros(4)])));
            }
            case 24:
                return this.getattr(fid, tag, reply);
            case 26: // Tsetattr
                return reply(message(27, tag, zeros(0)));
            case 116: {
                // Tread
                if (this.fids.get(fid) !== Channel.IN || this.waiting)
                    return reply(failure(tag, Channel.EBADF));
                const most = Math.min(bytes.readUInt32LE(19), this.msize - 24);
                this.waiting = { tag, most, reply };
                return this.answerRead();
            }
            case 118: {
                // Twrite
                const count = bytes.readUInt32LE(19);
                if (this.fids.get(fid) !== Channel.OUT || count > bytes.length - 23)
                    return reply(failure(tag, Channel.EBADF));
                const body = zeros(4);
                body.writeUInt32LE(count, 0);
                const data = Buffer.from(bytes.subarray(23, 23 + count));
                if (process.stdout.write(data)) return reply(message(119, tag, body));
                return process.stdout.once("drain", () => reply(message(119, tag, body)));
            }
            case 120: // Tclunk
                this.fids.delete(fid);
                return reply(message(121, tag, zeros(0)));
            case 108: // Tflush
                return reply(message(109, tag, zeros(0)));
            default:
                return reply(failure(tag, Channel.EOPNOTSUPP));
        }
    }

    remember(fid, file) {
        if (this.fids.size > 64) throw new RangeError("too many fids");
        this.fids.set(fid, file);
    }

    walk(bytes, fid, tag, reply) {
        const target = bytes.readUInt32LE(11);
        const names = bytes.readUInt16LE(15);
        if (!this.fids.has(fid)) return reply(failure(tag, Channel.EBADF));
        if (names === 0) {
            this.remember(target, this.fids.get(fid));
            return reply(message(111, tag, zeros(2)));
        }
        const length = bytes.readUInt16LE(17);
        const name = bytes.toString("latin1", 19, 19 + length);
        const file = { in: Channel.IN, out: Channel.OUT }[name];
        if (names !== 1 || file === undefined || this.fids.get(fid) !== Channel.ROOT)
            return reply(failure(tag, Channel.ENOENT));
        this.remember(target, file);
        const count = zeros(2);
        count.writeUInt16LE(1, 0);
        return reply(message(111, tag, Buffer.concat([count, qid(file)])));
    }

    getattr(fid, tag, reply) {
        if (!this.fids.has(fid)) return reply(failure(tag, Channel.EBADF));
        const file = this.fids.get(fid);
        const body = zeros(8 + 13 + 4 + 4 + 4 + 8 * 15);
        body.writeUInt32LE(0x7ff, 0);
        qid(file).copy(body, 8);
        body.writeUInt32LE(file === Channel.ROOT ? 0o040700 : 0o100600, 21);
        body.writeBigUInt64LE(1n, 33);
        body.writeBigUInt64LE(4096n, 57);
        return reply(message(25, tag, body));
    }
}

const zeros = (count) => Buffer.alloc(count);

function message(kind, tag, body) {
    const bytes = Buffer.alloc(7 + body.length);
    bytes.writeUInt32LE(bytes.length, 0);
    bytes.writeUInt8(kind, 4);
    bytes.writeUInt16LE(tag, 5);
    body.copy(bytes, 7);
    return bytes;
}

function failure(tag, errno) {
    const body = zeros(4);
    body.writeUInt32LE(errno, 0);
    return message(7, tag, body);
}

function qid(file) {
    const bytes = zeros(13);
    bytes.writeUInt8(file === Channel.ROOT ? 0x80 : 0, 0);
    bytes.writeBigUInt64LE(BigInt(file + 1), 5);
    return bytes;
}

/** Watches the serial console: the kernel's last words, and the agent's first. */
class Console {
    constructor(machine, onLine) {
        this.text = "";
        this.line = "";
        machine.add_listener("serial0-output-byte", (byte) => {
            const char = String.fromCharCode(byte);
            if (this.text.length < CONSOLE_LIMIT) this.text += char;
            if (char === "\n") {
                onLine(this.line);
                this.line = "";
            } else if (char !== "\r" && this.line.length < 500) {
                this.line += char;
            }
        });
    }
}

const settings = JSON.parse(process.argv[2]);
const { V86 } = await import(pathToFileURL(path.join(settings.v86, "libv86.mjs")).href);
const buffer = (file) => ({ buffer: new Uint8Array(fs.readFileSync(file)).buffer });
const channel = new Channel();
const scratch = new Disk(null, settings.scratch_bytes);
if (settings.boot) scratch.fill(settings.boot.scratch);
const options = {
    wasm_path: path.join(settings.v86, "v86.wasm"),
    memory_size: settings.memory_bytes,
    vga_memory_size: 1024 * 1024,
    disable_keyboard: true,
    disable_mouse: true,
    disable_speaker: true,
    autostart: false,
    hda: new Disk(settings.root),
    hdb: scratch,
    filesystem: { handle9p: (request, reply) => channel.handle(request, reply) },
};
if (settings.boot) {
    options.bios = buffer(settings.boot.bios);
    options.vga_bios = buffer(settings.boot.vga_bios);
    options.bzimage = buffer(settings.boot.kernel);
    options.initrd = buffer(settings.boot.initrd);
    options.cmdline = settings.boot.command_line;
}
const machine = new V86(options);
await new Promise((resolve) => machine.add_listener("emulator-ready", resolve));

new Console(machine, (line) => {
    if (settings.boot) tell("console", { line });
    if (line.includes("Kernel panic")) tell("panic", { line });
    if (line === "agent waits" && settings.boot) setTimeout(save, 3000);
});

async function save() {
    await machine.stop();
    const state = new Uint8Array(await machine.save_state());
    const packed = zlib.zstdCompressSync(state, {
        params: { [zlib.constants.ZSTD_c_compressionLevel]: 10 },
    });
    fs.writeFileSync(settings.boot.state, packed);
    const { user, system } = process.cpuUsage();
    const cpu_seconds = (user + system) / 1e6;
    tell("saved", { bytes: state.length, packed: packed.length, cpu_seconds });
    process.exit(0);
}

if (settings.boot) {
    await machine.run();
} else {
    const state = zlib.zstdDecompressSync(fs.readFileSync(settings.state));
    // The memory of a new machine is zero. Filling it again would only take the host's memory.
    const cpu = machine.v86.cpu;
    const { zero_memory } = cpu;
    cpu.zero_memory = () => {};
    await machine.restore_state(state.buffer.slice(state.byteOffset, state.byteOffset + state.length));
    cpu.zero_memory = zero_memory;
    channel.listen();
    await machine.run();
    machine.serial0_send("\n");
    tell("restored");
}
