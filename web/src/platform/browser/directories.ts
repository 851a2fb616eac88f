// Directories of the host: a page has none.

/** What Python may call; see platform/node/directories.ts. */
export const directories = {
  directory_open: (): string =>
    JSON.stringify({ error: "a page has no directories; Node can mount them" }),
  directory_look: (): string => JSON.stringify({ error: "EBADF" }),
  directory_read: (): string => "EBADF",
  directory_close: (): void => {},
};
