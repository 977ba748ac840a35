// Times and numbers as people read them.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Returns how long ago a time was: `now`, `3 s`, `2 min`, `5 h`, `4 d`. */
export function ago(time: number, now: number): string {
  const past = Math.max(0, now - time);
  if (past < 2 * SECOND) return "now";
  if (past < MINUTE) return `${Math.floor(past / SECOND)} s`;
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h`;
  return `${Math.floor(past / DAY)} d`;
}

const pad = (value: number) => String(value).padStart(2, "0");

/** Returns the time of day: `14:03:22`, or `14:03`. */
export function clockTime(time: number, seconds = true): string {
  const date = new Date(time);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}${seconds ? `:${pad(date.getSeconds())}` : ""}`;
}

/** Returns a day as `2026-11-24`. */
export function dayName(time: number): string {
  const date = new Date(time);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

/** Returns date and time: `2026-11-24 14:03:22`. */
export function exact(time: number): string {
  return `${dayName(time)} ${clockTime(time)}`;
}

/** Returns the first moment of a day that is named as `2026-11-24`; undefined for other texts. */
export function dayStart(name: string): number | undefined {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(name);
  if (!parts) return undefined;
  const date = new Date(Number(parts[1]), Number(parts[2]) - 1, Number(parts[3]));
  return dayName(date.getTime()) === name ? date.getTime() : undefined;
}

/** Returns the first moment of the day that is `days` after the one of `time`; days with a change of the clock count as one. */
export function addDays(time: number, days: number): number {
  const date = new Date(time);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime();
}

/** Returns a moment as the daemon reads it, in UTC: `@2026-11-24T13:03:22Z`. */
export function atTime(time: number): string {
  return `@${new Date(time).toISOString().replace(/\.\d+Z$/, "Z")}`;
}

/** Returns a number with its noun: `1 change`, `4,200 changes`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${grouped(number)} ${number === 1 ? one : many}`;
}

export function grouped(number: number): string {
  return number.toLocaleString("en-US");
}

/** Returns a size: `812 B`, `4.2 kB`, `3.1 MB`. */
export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1000).toFixed(size < 10_000 ? 1 : 0)} kB`;
  return `${(size / 1_000_000).toFixed(size < 10_000_000 ? 1 : 0)} MB`;
}
