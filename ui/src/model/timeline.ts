// The versions of one file, as a timeline with a lane for each author.

import type { Version } from "../protocol.js";
import { type Authors, USER, type Who } from "./authors.js";

export interface Stop {
  version: Version;
  who: Who;
  /** The lane's number. */
  lane: number;
  /** The content is known to be the one the log began with. */
  baseline: boolean;
  /** Another author was named first. */
  corrected: boolean;
}

export interface Timeline {
  /** The oldest first. */
  stops: Stop[];
  lanes: Who[];
}

/**
 * Makes a timeline of the rows of `file/history`, which are the newest first. A
 * correction is merged into the version that it corrects. `whole` says that the
 * last row is the file's baseline.
 */
export function timeline(rows: readonly Version[], authors: Authors, whole: boolean): Timeline {
  const corrections = new Map<string, Version>();
  const versions: Version[] = [];
  // The newest correction comes first, so the first one found holds.
  for (const row of rows) {
    if (!row.amends) versions.push(row);
    else if (!corrections.has(row.amends)) corrections.set(row.amends, row);
  }
  const lanes: Who[] = [];
  const stops = versions.reverse().map((version, index): Stop => {
    const correction = corrections.get(version.clock);
    const who = authors.of((correction ?? version).author);
    let lane = lanes.findIndex((one) => one.key === who.key);
    if (lane < 0) lane = lanes.push(who) - 1;
    return {
      version: correction ? { ...version, author: correction.author, evidence: correction.evidence } : version,
      who,
      lane,
      baseline: whole && index === 0,
      corrected: correction !== undefined && authors.of(version.author).key !== who.key,
    };
  });
  // The user's lane is the first, wherever the user first appears.
  const first = lanes.findIndex((one) => one.key === USER.key);
  if (first > 0) {
    const order = [first, ...lanes.keys()].filter((lane, index) => lane !== first || index === 0);
    const place = new Map(order.map((lane, index) => [lane, index]));
    for (const stop of stops) stop.lane = place.get(stop.lane) ?? stop.lane;
    return { stops, lanes: order.map((lane) => lanes[lane]!) };
  }
  return { stops, lanes };
}

const EVIDENCE: Record<string, string> = {
  declared: "the agent named this content before it wrote it",
  marked: "the agent announced a write of this file",
  command: "written while a command of the session ran",
  editor: "an editor reported the save",
  process: "the kernel named the process",
  unmarked: "no agent announced it",
  gap: "touchmark was not watching",
  claimed: "you said so",
  commit: "a commit has it",
};

/** Says what an attribution rests on. */
export function evidence(version: { evidence: string }): string {
  return EVIDENCE[version.evidence] ?? version.evidence;
}
