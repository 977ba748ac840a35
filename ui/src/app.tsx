// The frame: heading, navigation, banner, and the view that the address names.

import { useEffect, useState } from "preact/hooks";
import { again, connection, lostAt } from "./stream.js";
import { place, refresh, review } from "./live.js";
import { waiting } from "./model/queue.js";
import { Command, Dialog } from "./parts/basics.js";
import { Off } from "./parts/off.js";
import { Toasts, takeBack } from "./parts/toast.js";
import { WORDS } from "./parts/words.js";
import { shown } from "./names.js";
import { address, go, type Route, route } from "./router.js";
import { setTheme, type Theme, theme } from "./theme.js";
import { clockTime } from "./times.js";
import { Day } from "./views/day.js";
import { FileView } from "./views/file.js";
import { Files } from "./views/files.js";
import { Now } from "./views/now.js";
import { Review } from "./views/review.js";

const TABS: ReadonlyArray<readonly [view: Route["view"], text: string, key: string]> = [
  ["now", "Now", "1"], ["review", "Review", "2"], ["files", "Files", "3"], ["day", "Day", "4"],
];

const KEYS: ReadonlyArray<readonly [keys: string, what: string]> = [
  ["1 2 3 4", "Now, Review, Files, Day"],
  ["j  k", "Review: next, previous change"],
  ["a", "Review: keep (accept) the change, or the group"],
  ["u", "Review: undo the change, or the group"],
  ["A U", "Review: keep, undo all of the group that the change is in"],
  ["s", "Review: show a group’s changes one by one, or fold them"],
  ["l", "Review: leave it for later"],
  ["v", "Review: mark the change, or the group, as viewed, or take the mark away"],
  ["c", "Review: write a comment, which the agent receives with its next prompt"],
  ["/", "Review: search in paths, lines, sessions and commands"],
  ["o", "Review: show the file's history"],
  ["z", "take back the undo of the newest message"],
  ["← →", "File: older, newer version (on the slider); Day: along the plot"],
  ["?", "this help"],
];

export function App() {
  const [help, setHelp] = useState(false);
  const { view } = route.value;
  useEffect(() => again.subscribe((times) => void (times > 0 && refresh())), []);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const tab = TABS.find(([, , key]) => key === event.key);
      if (tab) go(address(tab[0]));
      else if (event.key === "?") setHelp(true);
      else if (event.key === "z") takeBack();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  const current = connection.value === "live";
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the content</a>
      <header>
        <div class="title">
          <a class="mark" href="#/now">touchmark</a>
          <span class="workspace" title={place.value && shown(place.value.workspace)}>{place.value && homely(place.value)}</span>
        </div>
        <nav aria-label="Views">
          {TABS.map(([name, text]) => (
            <a key={name} href={address(name)} aria-current={isAt(view, name) ? "page" : undefined}>
              {text}
              {name === "review" && <Waiting />}
            </a>
          ))}
        </nav>
        <div class="tools">
          <span class={`state ${current ? "live" : "off"}`}>{current ? "live" : connection.value === "connecting" ? "connecting" : "not current"}</span>
          <label class="theme">
            <span class="unseen">Theme</span>
            <select value={theme.value} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
              <option value="auto">Auto</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
          </label>
          <button type="button" class="quiet" onClick={() => setHelp(true)} aria-label="Help: keys and words">?</button>
        </div>
      </header>
      <Banner />
      <Off />
      <main id="main" tabIndex={-1} class={current || connection.value === "connecting" ? "" : "not-current"}>
        {view === "now" && <Now />}
        {view === "review" && <Review />}
        {view === "files" && <Files />}
        {view === "file" && <FileView key={route.value.rest} file={route.value.rest} />}
        {view === "day" && <Day />}
      </main>
      <Toasts />
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

const isAt = (view: Route["view"], tab: Route["view"]) => view === tab || (view === "file" && tab === "files");

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (/^(input|select|textarea)$/i.test(target.tagName) && (target as HTMLInputElement).type !== "radio" || target.closest("dialog") !== null);
}

function homely({ workspace, home }: { workspace: string; home?: string }): string {
  return shown(home && workspace.startsWith(`${home}/`) ? `~${workspace.slice(home.length)}` : workspace);
}

function Waiting() {
  const found = review.value.value;
  const number = waiting(found);
  if (!found || number === 0) return null;
  return <span class="number">{number}{found.more ? "+" : ""}<span class="unseen"> changes to review</span></span>;
}

function Banner() {
  const state = connection.value;
  if (state === "live" || state === "connecting") return null;
  const what = {
    lost: <>The daemon does not answer. The page goes on by itself when it is back; an agent&rsquo;s next call starts it, or <Command text="touchmark start" /></>,
    ended: <>The page&rsquo;s server has ended. Run <Command text="touchmark ui" /> again.</>,
    forbidden: <>This page belongs to a server that has ended. Run <Command text="touchmark ui" /> again and use the address that it prints.</>,
  }[state];
  return (
    <div class="banner" role="alert">
      <span>{what}</span>
      {lostAt.value > 0 && <span class="soft">Shown as of {clockTime(lostAt.value)}.</span>}
    </div>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys and words" onClose={onClose}>
      <div class="help">
        <table>
          <caption class="unseen">Keys</caption>
          <tbody>
            {KEYS.map(([keys, what]) => (
              <tr key={keys}>
                <th scope="row">{keys.split(" ").filter(Boolean).map((key) => <kbd key={key}>{key}</kbd>)}</th>
                <td>{what}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <dl>
          {WORDS.map(([word, meaning]) => (
            <div key={word}>
              <dt>{word}</dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </div>
      <p class="soft">touchmark {place.value?.version ?? ""}. Built with Preact and CodeMirror: <a href="./licenses.txt" target="_blank" rel="noreferrer">their licences</a>.</p>
      <p class="actions"><button type="button" onClick={onClose} autofocus>Close</button></p>
    </Dialog>
  );
}
