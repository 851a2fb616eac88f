// What docs/limitations.md says about pages and Node. On the day a gap is closed, its case fails:
// remove it and the row together.

import { type Case } from "../check.js";

export const limitationCases: Case[] = [
];
