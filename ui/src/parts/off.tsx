// What switches touchmark off in this workspace, or tried to: a line below the
// heading, on every view.

import { status } from "../live.js";
import { shown } from "../names.js";
import type { OffCause, OffReport, UsersOnly } from "../protocol.js";
import { Ago, Command } from "./basics.js";
import { exact } from "../times.js";

const TRIED: Record<UsersOnly, string> = {
  pause: "touchmark pause", resume: "touchmark resume", allow: "touchmark allow",
  config: "touchmark config", bypass: "TOUCHMARK_BYPASS", comment: "touchmark review --comment",
};

/** The most runs, permissions and attempts that are shown; the newest ones. */
const SHOWN = 3;

export function Off() {
  const report = status.value.value?.off;
  if (!report) return null;
  const { off } = report;
  const rest = rows(report);
  if (!off && rest.length === 0) return null;
  return (
    <div class="banner" role="status">
      {off && <span><strong>off</strong> {why(off.cause)}{off.until != null && <> Ends {exact(off.until)}.</>} {ends(off.cause)}</span>}
      {rest}
    </div>
  );
}

function why(cause: OffCause): string {
  if (cause === "listed") return "`off` in your configuration has this directory: hooks do nothing.";
  return `You have paused touchmark ${cause === "paused" ? "here" : "in all workspaces"}: hooks do nothing.`;
}

function ends(cause: OffCause) {
  if (cause === "listed") return null;
  return <Command text={cause === "paused" ? "touchmark resume" : "touchmark resume --all"} />;
}

function rows({ bypassed, allowed, refused }: OffReport) {
  return [
    ...bypassed.slice(-SHOWN).map((one) => <span key={`b${one.pid}`}><strong>bypassed</strong> {shown(one.agent)} ({one.pid}) was started with TOUCHMARK_BYPASS</span>),
    ...allowed.slice(-SHOWN).map((one) => <span key={`a${one.session}${shown(one.path)}`}><strong>allowed</strong> the next write of {shown(one.session)} to {shown(one.path)}</span>),
    ...refused.slice(-SHOWN).map((one) => <span key={`r${one.time}${one.what}`}><strong>refused</strong> {TRIED[one.what]}, <Ago time={one.time} />: {shown(one.why)}</span>),
  ];
}
