// What docs/limitations.md says about pages and Node. On the day a gap is closed, its case fails:
// remove it and the row together.

import { rejection, type Case } from "../check.js";

export const limitationCases: Case[] = [
  {
    name: "L180: there is no network",
    async run({ shared, api }) {
      await rejection(shared.allowNetwork(["example.com"]), api.UnsupportedError);
    },
  },
];
