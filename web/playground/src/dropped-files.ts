// Files and folders that were dropped on the page.
//
// Owns reading them. Rules: names are relative; at most so many files are taken.

const MOST_FILES = 2000;

export interface Dropped {
  /** Relative to where it was dropped: `folder/name`. */
  name: string;
  read(): Promise<Uint8Array>;
}

function fromFile(name: string, file: File): Dropped {
  return { name, read: async () => new Uint8Array(await file.arrayBuffer()) };
}

function children(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  return new Promise((resolve, reject) => {
    const more = () =>
      reader.readEntries((some) => {
        if (some.length === 0 || all.length > MOST_FILES) return resolve(all);
        all.push(...some);
        more();
      }, reject);
    more();
  });
}

async function collect(entry: FileSystemEntry, prefix: string, found: Dropped[]): Promise<void> {
  if (found.length >= MOST_FILES) throw new Error(`more than ${MOST_FILES} files were dropped`);
  const name = prefix + entry.name;
  if (entry.isDirectory) {
    for (const child of await children(entry as FileSystemDirectoryEntry)) {
      await collect(child, `${name}/`, found);
    }
  } else {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    );
    found.push(fromFile(name, file));
  }
}

export function chosenFiles(files: Iterable<File>): Dropped[] {
  return Array.from(files, (file) => fromFile(file.name, file));
}

/** What a drop contains. Its entries have to be taken before the event ends. */
export async function droppedFiles(transfer: DataTransfer): Promise<Dropped[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.() ?? null);
  if (!entries.some((entry) => entry?.isDirectory)) return chosenFiles(transfer.files);
  const found: Dropped[] = [];
  for (const entry of entries) if (entry) await collect(entry, "", found);
  return found;
}
