// What docs/limitations.md says about pages and Node. On the day a gap is closed, its case fails:
// remove it and the row together.

import { rejection, type Case } from "../check.js";

export const limitationCases: Case[] = [
  {
    name: "L196: a directory cannot be mounted for writing, and a page has none",
    async run({ shared, api }) {
      const mode = "read-write" as never;
      await rejection(shared.mount("/tmp", "/mnt/host", { mode }), api.MountError);
    },
  },
];
