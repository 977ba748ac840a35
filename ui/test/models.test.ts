import assert from "node:assert/strict";
import { test } from "node:test";
import { Authors, COLOURS, markOf } from "../src/model/authors.js";
import { bins, extent, lanes, ticks } from "../src/model/day.js";
import { changeOf, isWaiting, received } from "../src/model/comments.js";
import { claims, commandShown, doubtsIn, doubtsOf, duration, lineCount, mayBeYours } from "../src/model/doubts.js";
import { type By, MANY } from "../src/model/groups.js";
import { spans } from "../src/model/lines.js";
import { filtered, following, itemsOf, listed, waiting } from "../src/model/queue.js";
import { timeline } from "../src/model/timeline.js";
import { sides, what } from "../src/model/whole.js";
import { address, parse } from "../src/router.js";
import { addDays, ago, atTime, bytes, dayName, dayStart } from "../src/times.js";
import { agent, did, hunk, lines, ran, session, user, version, whole } from "./made.js";

test("sessions have their colours by the order in which they were opened, also after a reload", () => {
  const [one, other] = [new Authors(), new Authors()];
  const rows = Array.from({ length: COLOURS + 1 }, (_, n) => session(`claude-${n + 1}`, n));
  one.learn(rows);
  other.learn([...rows].reverse());
  for (const { session } of rows) assert.equal(one.agent(session).colour, other.agent(session).colour);
  assert.equal(one.agent("claude-1").colour, one.agent(`claude-${COLOURS + 1}`).colour);
  assert.notEqual(one.agent("claude-1").mark, one.agent(`claude-${COLOURS + 1}`).mark);
  assert.deepEqual(["claude-1", "codex-12", "fix", "文件-3"].map(markOf), ["cl1", "co12", "fi", "文件3"]);
});

test("a label that comes later keeps the colour", () => {
  const authors = new Authors();
  authors.agent("x");
  const before = authors.agent("7f3a").colour;
  assert.deepEqual([authors.agent("7f3a", "claude-2").name, authors.agent("7f3a").name, authors.agent("7f3a").colour], ["claude-2", "claude-2", before]);
});

test("a correction is merged into the version that it corrects, and the user's lane is the first", () => {
  const rows = [
    version(4, "a", agent("s"), { amends: "1:2" }),
    version(3, "a", user),
    version(2, "a", user),
    version(1, "a", agent("t")),
  ];
  const { stops, lanes } = timeline(rows, new Authors(), true);
  assert.deepEqual(stops.map(({ version, who, lane, corrected, baseline }) => [version.clock, who.key, lane, corrected, baseline]), [
    ["1:1", "t", 1, false, true], ["1:2", "s", 2, true, false], ["1:3", "user", 0, false, false],
  ]);
  assert.deepEqual(lanes.map((who) => who.key), ["user", "t", "s"]);
});

const NONE: ReadonlySet<string> = new Set();
const many = (command: string, by: string, directory = "gen") => Array.from({ length: MANY }, (_, n) => hunk(`${directory}/${n}`, `${command} ${n}`, agent(by), { command }));

test("the queue is grouped by file, directory, command or session, what is left for later comes last", () => {
  const hunks = [hunk("a", "1", agent("s")), hunk("a", "3", agent("t"), { command: "c1" }), hunk("d/b", "2", agent("t"), { command: "c1" })];
  const all = { hunks, files: [whole("a", "4", agent("s")), whole("d/c", "5", agent("t"))] };
  const ids = (by: By, later: string[] = []) => listed(itemsOf(all, new Authors()), by, new Set(later), NONE).map((row) => (row.kind === "group" ? `${row.group.name}${row.isLate ? " later" : ""}` : row.item.id));
  assert.deepEqual(ids("file"), ["a", "1", "3", "4", "d/b", "2", "d/c", "5"]);
  assert.deepEqual(ids("directory"), ["./", "1", "3", "4", "d/", "2", "5"]);
  assert.deepEqual(ids("command"), ["", "1", "4", "5", "c1", "3", "2"]);
  assert.deepEqual(ids("session"), ["s", "1", "4", "t", "3", "2", "5"]);
  assert.deepEqual(ids("file", ["a\u00001"]), ["a", "3", "4", "d/b", "2", "d/c", "5", "a later", "1"]);
  assert.deepEqual([all, { hunks }, undefined].map(waiting), [5, 3, 0]);
});

test("a command that changed many files is one entry, which can be unfolded", () => {
  const hunks = [hunk("a", "1", agent("s")), ...many("c7", "s"), hunk("gen/0", "2", agent("t")), ...many("c8", "t").slice(1)];
  const items = itemsOf({ hunks }, new Authors());
  const rows = (by: By, turned = NONE) => listed(items, by, NONE, turned).map((row) => (row.kind === "group" ? `${row.depth} ${row.group.name} ${row.group.files}${row.isOpen ? "" : " folded"}` : row.item.id));
  const rest = Array.from({ length: MANY - 1 }, (_, n) => `c8 ${n + 1}`);
  assert.deepEqual(rows("file").slice(0, 4), ["0 a 1", "1", "0 c7 8 folded", "0 gen/0 1"]);
  assert.deepEqual(rows("session"), ["0 s 9", "1 c7 8 folded", "1", "0 t 8", "2", ...rest]);
  assert.deepEqual(rows("directory"), ["0 ./ 1", "1", "0 gen/ 8", "1 c7 8 folded", "2", ...rest]);
  const key = listed(items, "file", NONE, NONE).find((row) => row.kind === "group" && row.group.isMany)!.key;
  assert.deepEqual(rows("file", new Set([key])).slice(2, 5), ["0 c7 8", "c7 0", "c7 1"]);
});

test("changes are found by their path, their lines, their session and their command", () => {
  const items = itemsOf({ hunks: [hunk("src/a.rs", "1", agent("s", "claude-1"), { before: "Retry(2)\n" }), hunk("docs/b.md", "2", agent("t", "codex-1"), { command: "c5" })] }, new Authors());
  const commands = new Map([["c5", ran("c5", "t", "npm run Docs").command]]);
  const ids = (text: string) => filtered(items, text, commands).map(({ id }) => id);
  assert.deepEqual(["", "SRC", "claude", "c5", "npm docs", "src codex", "retry( claude"].map(ids), [["1", "2"], ["1"], ["1"], ["2"], ["2"], [], ["1"]]);
});

test("a mark that was just set counts before the daemon has answered", () => {
  const hunks = [hunk("a", "1", agent("s")), hunk("a", "2", agent("s"), { viewed: true })];
  const viewed = (marks?: ReadonlyMap<string, boolean>) => itemsOf({ hunks }, new Authors(), marks).map(({ isViewed }) => isViewed);
  assert.deepEqual(viewed(), [false, true]);
  assert.deepEqual(viewed(new Map([["a\u00001", true], ["a\u00002", false]])), [true, false]);
});

test("a comment says who has received it, and who not yet", () => {
  const to = (state: "waiting" | "waitingForEvent" | "ended" | "told", told?: number) => ({ session: "s", label: "claude-1", state, ...(told === undefined ? {} : { told }) });
  const comment = (...all: ReturnType<typeof to>[]) => ({ path: "a", id: "1", text: "why?", time: 1, to: all });
  const said = (...all: ReturnType<typeof to>[]) => received(comment(...all), new Authors(), 61_000);
  assert.equal(said(to("waiting")), "waits for the next prompt of claude-1");
  assert.equal(said(to("told", 1000)), "claude-1 received it 1 min ago");
  assert.match(said(to("ended")), /has ended/);
  assert.match(said(to("waitingForEvent")), /next event/);
  assert.deepEqual([isWaiting(comment(to("waiting"))), isWaiting(comment(to("waiting"), to("told", 1)))], [true, false]);
  assert.equal(changeOf(comment()), "a\u00001");
});

test("the user is asked by command about text that appeared while one ran", () => {
  const doubtful = (path: string, id: string, more = {}) => hunk(path, id, agent("s"), { likely: true, command: "c5", ...more });
  const [one, other, gone, mixed] = [doubtful("a", "1"), doubtful("a", "2", { lines: { start: 7, end: 7 } }), doubtful("b", "3", { after: "" }), doubtful("c", "4", { command: null })];
  const queue = [one, other, gone, mixed];
  assert.deepEqual(queue.map(mayBeYours), [true, true, false, true]);
  const said = (some: typeof queue, by: "session" | "user") => doubtsOf(some, queue).map((doubt) => claims(doubt, by));
  // All of a version that the queue has: the version. A part of it: these lines.
  assert.deepEqual(said([one, other, gone], "user"), [[{ session: undefined, command: "c5", paths: ["a"] }]]);
  assert.deepEqual(said([other], "session"), [[{ session: "s", paths: ["a"], lines: { start: 7, end: 7 } }]]);
  assert.deepEqual(said([mixed], "session"), [[{ session: "s", paths: ["c"], lines: { start: 1, end: 1 } }]]);
  const left = (cause: string, command?: string) => ({ cause, command, why: "", removed: 1, text: "x\n", lines: { start: 3, end: 3 } });
  const planned = { files: [{ path: "a", outcome: "left", hunks: 0, left: [left("likely", "c5"), left("decided")] }], authors: [], commands: [{ command: "c5", session: "s" }] } as never;
  assert.deepEqual(doubtsIn(planned).map((doubt) => [doubt.command, doubt.places.length, claims(doubt, "session")]), [["c5", 1, [{ session: "s", command: "c5", paths: ["a"] }]]]);
});

test("a command is shown with how long it ran", () => {
  const row = ran("c5", "s", "npm test\nmore", { begunAt: 1000, endedAt: 43_000 }).command;
  assert.equal(commandShown("c5", row), "`npm test` (c5, 42 s)");
  assert.equal(commandShown("c5", undefined), "a command (c5)");
  assert.deepEqual([0, 250, 61_000, 3_600_000].map(duration), ["0 ms", "250 ms", "1 min 1 s", "1 h 0 min"]);
});

test("a change of a mode or a symlink is said in a few words", () => {
  const [file, run, link] = ["100644", "100755", "120777"];
  const said = (more: object) => what(whole("a", "1", user, more));
  assert.equal(said({}), "mode 644 → 755");
  assert.equal(said({ mode: "104755" }), "mode 644 → 4755");
  assert.equal(said({ modeBefore: null, mode: link, target: "b" }), "symlink → b");
  assert.equal(said({ modeBefore: link, mode: link, targetBefore: "a", target: "b" }), "symlink a → b");
  assert.equal(said({ modeBefore: link, mode: null, targetBefore: "a" }), "removed symlink → a");
  assert.equal(said({ modeBefore: file, mode: link, target: "b" }), "file replaced by symlink → b");
  assert.equal(said({ modeBefore: link, mode: file, targetBefore: "a" }), "symlink → a replaced by file");
  assert.equal(said({ modeBefore: file, mode: null }), "removed file");
  assert.equal(said({ modeBefore: file, mode: file }), "content changed");
  assert.equal(said({ modeBefore: null, mode: link, target: "\u202etxt\n" }), "symlink → \\u202etxt\\n");
  const rows = (more: object) => sides(whole("a", "1", user, more)).map((row) => Object.values(row));
  assert.deepEqual(rows({}), [["Mode", "644 rw-r--r--", "755 rwxr-xr-x"]]);
  assert.deepEqual(rows({ modeBefore: "100444", mode: "107644" }), [["Mode", "444 r--r--r--", "7644 rwSr-Sr-T"]]);
  assert.deepEqual(rows({ modeBefore: null, mode: link, target: "b" }), [["Kind", "does not exist", "symlink"], ["Target", "", "b"]]);
  assert.deepEqual(rows({ modeBefore: run, mode: link, target: "b" }), [["Kind", "file", "symlink"], ["Mode", "755 rwxr-xr-x", ""], ["Target", "", "b"]]);
});

test("after a change has left the queue the next one is looked at", () => {
  const rows = (ids: string[]) => listed(itemsOf({ hunks: ids.map((id) => hunk("a", id, agent("s"))) }, new Authors()), "file", NONE, NONE);
  const after = (ids: string[], current: string) => following(rows(["1", "2", "3"]), rows(ids), `a\0${current}`)?.slice(2);
  assert.equal(after(["1", "3"], "2"), "3");
  assert.equal(after(["1", "2"], "3"), "2");
  assert.equal(after(["1", "2", "3"], "2"), "2");
  assert.equal(after([], "2"), undefined);
  // Folded while one of its changes is looked at: another row is.
  const items = itemsOf({ hunks: many("c7", "s") }, new Authors());
  const folded = listed(items, "file", NONE, NONE);
  const open = listed(items, "file", NONE, new Set([folded[0]!.key]));
  assert.equal(following(open, folded, open[3]!.key), folded[0]!.key);
});

test("the daemon's hunks are positions in the two texts", () => {
  const [a, b] = ["1\n2\n3\n4\n", "1\ntwo\n3\n4\n5\n"];
  const cut = (found: ReturnType<typeof spans>) => found?.map(({ fromA, toA, fromB, toB }) => [a.slice(fromA, toA), b.slice(fromB, toB)]);
  assert.deepEqual(cut(spans([lines(2, 1, 2, 1), lines(4, 0, 5, 1)], a, b)), [["2\n", "two\n"], ["", "5\n"]]);
  // Of another moment.
  assert.equal(spans([lines(40, 1, 40, 1)], a, b), undefined);
  assert.deepEqual([lineCount(""), lineCount("a"), lineCount("a\n"), lineCount("a\nb")], [0, 1, 1, 2]);
});

test("a day has what was read, changed, refused, overwritten and brought back, by author", () => {
  const authors = new Authors();
  const log = [
    version(5, "a", user, { hash: "x" }),
    version(4, "a", agent("s"), { hash: "y" }),
    version(2, "a", user, { hash: "x" }),
    version(1, "b", user),
  ].map((version) => ({ version, lines: { added: 1, removed: 0 } }));
  const deeds = [did("s", 9000, "read", "a"), did("s", 500, "stale"), did("s", 450, "notRead"), did("s", 400, "overwrote", "a"), did("s", 300, "read", "a")];
  const found = lanes(log, deeds, [], authors, 150, 1000);
  assert.deepEqual(found.map(({ who, counts, files }) => [who.key, counts, files]), [
    ["user", { read: 0, changed: 1, refused: 0, overwrote: 0, back: 1 }, 1],
    ["s", { read: 1, changed: 1, refused: 2, overwrote: 1, back: 0 }, 1],
  ]);
  assert.equal(found[1]!.marks.at(-1)!.cause, "its copy was out of date");
  const [lane] = found;
  assert.deepEqual(Array.from(bins(lane!, 0, 1000, 10), (bin) => bin?.marks.length ?? 0), [0, 0, 1, 0, 0, 1, 0, 0, 0, 0]);
});

test("an undo has brought back one version, not the saves around it", () => {
  const log = [version(5, "a", user), version(4, "a", user, { evidence: "editor" }), version(3, "a", user)].map((version) => ({ version }));
  const undo = { undo: "u1", time: 420, what: "", paths: ["a"] };
  const [lane] = lanes(log, [], [undo], new Authors(), 0, 1000);
  assert.deepEqual(lane!.marks.map(({ kind }) => kind), ["changed", "back", "changed"]);
});

test("the plot shows round moments around what happened", () => {
  const start = dayStart("2026-11-24")!;
  const hour = (n: number) => start + n * 3_600_000;
  const lane = { ...lanes([], [did("s", hour(9) + 5, "read", "a")], [], new Authors(), start, hour(24))[0]! };
  assert.deepEqual(extent([lane], start, hour(24), hour(100)), [hour(9), hour(9.5)]);
  assert.deepEqual(extent([lane], start, hour(24), hour(12) + 9), [hour(9), hour(13)]);
  assert.deepEqual(extent([], start, hour(24), hour(12)), [start, hour(24)]);
  assert.deepEqual(ticks(hour(9), hour(11), 5), [0, 30, 60, 90, 120].map((minutes) => hour(9) + minutes * 60_000));
});

test("addresses are read as they were written", () => {
  const file = "a b/ü?#%.rs";
  const { view, rest, query } = parse(address("file", file, { to: "1:17", from: undefined }));
  assert.deepEqual([view, rest, query.get("to"), query.get("from")], ["file", file, "1:17", null]);
  assert.deepEqual([parse("#/nothing").view, parse("#/file/").view, parse("#/file/%E0%A4%A").view], ["now", "files", "files"]);
});

test("times and sizes are as people read them", () => {
  assert.deepEqual([1000, 30_000, 120_000, 7_200_000, 200_000_000].map((past) => ago(0, past)), ["now", "30 s", "2 min", "2 h", "2 d"]);
  assert.deepEqual([812, 4200, 42_000, 3_100_000].map(bytes), ["812 B", "4.2 kB", "42 kB", "3.1 MB"]);
  assert.equal(atTime(0), "@1970-01-01T00:00:00Z");
  assert.equal(dayStart("2026-02-30"), undefined);
  assert.equal(dayName(addDays(dayStart("2026-02-28")!, 1)), "2026-03-01");
});
