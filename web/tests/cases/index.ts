// All cases.

import type { Case } from "../check.js";
import { commandCases } from "./commands.js";
import { fileCases } from "./files.js";
import { hostileCases } from "./hostile.js";
import { limitationCases } from "./limitations.js";
import { networkCases } from "./network.js";
import { programCases } from "./programs.js";
import { sessionCases } from "./sessions.js";
import { stateCases } from "./state.js";

export const cases: Case[] = [
  ...commandCases, ...fileCases, ...programCases, ...hostileCases, ...sessionCases,
  ...networkCases, ...stateCases, ...limitationCases,
];

/** Those that depend on how the engine runs programs, and one that uses the network. */
export const engineCases: Case[] = [
  ...commandCases, ...programCases, ...hostileCases, ...sessionCases,
  ...networkCases.filter(({ name }) => name === "programs reach an allowed host by http and https"),
];
