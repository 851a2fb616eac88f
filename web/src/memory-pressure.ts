// Making the garbage collector see shared memory.
//
// Owns `SharedGarbage`. Rules: an engine does not count shared memory when it decides whether to
// collect garbage. A worker that runs one program after another would keep the memories of hundreds.
// An ordinary buffer, which is never touched and so costs nothing, is counted. A collection takes
// longer than a short command, so it is asked for only when much is free.

export class SharedGarbage {
  private bytes = 0;

  constructor(private readonly most: number) {}

  /** A shared memory of this size is not used any more. */
  add(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes < this.most) return;
    try {
      new ArrayBuffer(this.bytes);
    } catch {
      // There is no room for it: then the engine has just collected garbage.
    }
    this.bytes = 0;
  }
}
