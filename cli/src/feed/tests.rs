//! Text in, text out: one event a line in a small notation, and the feed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use jiff::tz::TimeZone;
use touchmark_client::proto::commands::CommandRow;
use touchmark_client::proto::events::{EditPhase, Event, Happening, SessionPhase};
use touchmark_client::proto::files::Verdict;
use touchmark_client::proto::{
    Author, Clock, Evidence, FileState, LineCounts, LineRange, RelPath, SessionId, State, Version,
    VersionKind,
};

use super::entry::Verb;
use super::{Entry, Fold, Layout, Note, Time, Who};
use crate::table::View;
use crate::text::width;

fn path(name: &str) -> RelPath {
    RelPath::new(name.as_bytes()).unwrap()
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// `version PATH KIND AUTHOR [+A -R] [WORD...]`, `stale SESSION PATH [gone]`,
/// `read SESSION PATH VERDICT [A-B]`, `edit SESSION PHASE PATH...`,
/// `session NAME PHASE`, `kept PATH`, `degraded PATH`, `overflow`,
/// `ran COMMAND SESSION VERSIONS BRANCH BRANCH [WHY-NOT-ALL-WRITES-SEEN]`.
fn event(n: u64, line: &str) -> Event {
    let mut words = line.split(' ').map(|word| word.replace("\\n", "\n"));
    let kind = words.next().unwrap();
    let words: Vec<String> = words.collect();
    let word = |at: usize| words[at].as_str();
    let happening = match kind.as_str() {
        "version" => version(n, &words),
        "stale" => Happening::Stale {
            session: session(word(0)),
            file: state(word(1), words.len() > 2),
            label: None,
        },
        "read" => Happening::Read {
            session: session(word(0)),
            path: path(word(1)),
            verdict: match word(2) {
                "first" => Verdict::First,
                "repeat" => Verdict::Repeat,
                "changed" => Verdict::Changed,
                other => panic!("{other}"),
            },
            range: words.get(3).map(|range| {
                let (start, end) = range.split_once('-').unwrap();
                LineRange {
                    start: start.parse().unwrap(),
                    end: end.parse().unwrap(),
                }
            }),
            label: None,
        },
        "edit" => Happening::Edit {
            session: session(word(0)),
            edit: "e1".into(),
            phase: match word(1) {
                "begun" => EditPhase::Begun,
                "committed" => EditPhase::Committed,
                "aborted" => EditPhase::Aborted,
                "lapsed" => EditPhase::Lapsed,
                other => panic!("{other}"),
            },
            paths: words[2..].iter().map(|name| path(name)).collect(),
            label: None,
        },
        "session" => Happening::Session {
            session: session(word(0)),
            phase: SessionPhase::Opened,
            label: None,
        },
        "kept" => Happening::Recovered {
            path: path(word(0)),
            kept: "/state/kept/1".into(),
        },
        "degraded" => Happening::Degraded {
            path: Some(path(word(0))),
            cause: "no watches left".into(),
        },
        "overflow" => Happening::Overflow {},
        "ran" => Happening::Command {
            command: CommandRow {
                command: word(0).into(),
                session: session(word(1)),
                session_label: None,
                label: Some("git checkout".into()),
                begun: Clock { epoch: 1, n },
                begun_at: 0,
                ended: None,
                ended_at: None,
                exit: None,
                branch_before: Some(word(3).into()),
                branch_after: Some(word(4).into()),
                versions: word(2).parse().unwrap(),
                witnessed: false,
                unwitnessed: words.get(5).map(|why| why.replace('-', " ")),
            },
        },
        other => panic!("{other}"),
    };
    Event {
        subscription: 1,
        clock: Clock { epoch: 1, n },
        happening,
    }
}

fn version(n: u64, words: &[String]) -> Happening {
    let mut version = Version {
        clock: Clock { epoch: 1, n },
        path: path(&words[0]),
        kind: match words[1].as_str() {
            "created" => VersionKind::Created,
            "modified" => VersionKind::Modified,
            "deleted" => VersionKind::Deleted,
            "renamed" => VersionKind::Renamed,
            other => panic!("{other}"),
        },
        from: None,
        hash: None,
        size: 1,
        time: n * 1000,
        author: match words[2].as_str() {
            "user" => Author::USER,
            "unknown" => Author::UNKNOWN,
            name => Author::agent(session(name)),
        },
        evidence: Evidence::Declared,
        amends: None,
        overwritten: None,
        unobserved: None,
        provisional: None,
        late: None,
        formatted: None,
        candidates: None,
        edit: None,
        command: None,
        mode: None,
        mode_before: None,
        before_unknown: None,
        real: None,
    };
    let mut lines: Option<LineCounts> = None;
    for word in &words[3..] {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match (name, value) {
            ("from", old) => version.from = Some(path(old)),
            ("amends", n) => {
                version.amends = Some(Clock {
                    epoch: 1,
                    n: n.parse().unwrap(),
                });
            }
            ("lines", counts) => {
                let (added, removed) = counts.split_once('/').unwrap();
                lines = Some(LineCounts {
                    added: added.parse().unwrap(),
                    removed: removed.parse().unwrap(),
                });
            }
            ("marked", _) => version.evidence = Evidence::Marked,
            ("command", name) => {
                version.evidence = Evidence::Command;
                version.command = (!name.is_empty()).then(|| name.to_owned());
            }
            ("gap", _) => version.evidence = Evidence::Gap,
            ("provisional", _) => version.provisional = Some(true),
            ("overwritten", _) => version.overwritten = Some(true),
            other => panic!("{other:?}"),
        }
    }
    Happening::Version { version, lines }
}

fn state(name: &str, gone: bool) -> FileState {
    FileState {
        path: path(name),
        state: if gone { State::Deleted } else { State::Stale },
        may_edit: false,
        resident: false,
        stale_ranges: None,
        hash: None,
        seen_hash: None,
        assumed: None,
        read_count: 1,
        read_at: None,
        line_count: 1,
        size: 1,
        mtime_ms: 0,
        unsaved: None,
        unsaved_lines: None,
        changed_by: None,
        since: None,
    }
}

/// A feed of every kind of entry, by two sessions and the user.
pub(crate) fn sample(one: &str, two: &str, paths: [&str; 5], now: u64) -> Vec<Entry> {
    let [short, long, wide, combined, hidden] = paths;
    let quote = |name: &str| name.replace('\n', "\\n").replace(' ', "_");
    let hidden = quote(hidden);
    let events = [
        format!("session {one}"),
        format!("read {one} {short} first 1-200"),
        format!("read {two} {long} first 1-200"),
        format!("version {long} modified user lines=12/3 overwritten"),
        format!("stale {two} {long}"),
        format!("version {wide} modified {one} lines=1234567/1234567 provisional"),
        format!("stale {two} {wide}"),
        format!("edit {two} begun {combined} {short} {wide}"),
        format!("version {combined} renamed {two} from={long}"),
        format!("version {hidden} deleted unknown gap"),
        format!("read {two} {long} changed"),
        "overflow".to_owned(),
        format!("kept {wide}"),
        format!("degraded {long}"),
    ];
    let mut fold = Fold::default();
    let mut all = Vec::new();
    for (n, line) in (1..).zip(&events) {
        all.extend(fold.push(&event(n, line), n * 60_000));
    }
    for n in 0..400 {
        let burst = format!("version src/ui/f{n} modified {one} command=c1");
        all.extend(fold.push(&event(20, &burst), 20_000));
    }
    let ran = format!("ran c1 {one} 400 main topic/with/a/long/name");
    all.extend(fold.push(&event(20, &ran), 20_000));
    for n in 0..12 {
        let burst = format!("version {long}/{n} created {two} command=c2 lines=3/0");
        all.extend(fold.push(&event(20, &burst), 20_000));
    }
    all.extend(fold.push(&event(20, &format!("ran c2 {two} 12 main main")), 20_000));
    for line in [
        format!("version {long} modified {one} command=c3 lines=12/3"),
        format!(
            "ran c3 {one} 1 main main it-connected-to-/run/build.sock:-the-program-there-may-write-for-it"
        ),
    ] {
        all.extend(fold.push(&event(20, &line), 20_000));
    }
    for n in 0..40 {
        let burst = format!("version {wide}/{n} created user lines=3/0");
        all.extend(fold.push(&event(20, &burst), 20_000));
    }
    all.extend(fold.flush());
    let labels = [(one, "claude-1"), (two, "codex-1")];
    for (age, entry) in all.iter_mut().rev().enumerate() {
        entry.time = now - 7_000 * (age as u64 * age as u64);
        if let Who::Author(author) = &mut entry.who {
            labelled(author, &labels);
        }
        for note in &mut entry.notes {
            if let Note::StaleFor(sessions) | Note::GoneFor(sessions) = note {
                sessions.iter_mut().for_each(|one| labelled(one, &labels));
            }
        }
    }
    all
}

fn labelled(author: &mut Author, labels: &[(&str, &str)]) {
    let id = author.session.as_ref().map(SessionId::as_str);
    let label = labels.iter().find(|(session, _)| Some(*session) == id);
    author.label = label.map(|(_, label)| (*label).to_owned());
}

fn view(columns: Option<usize>) -> View {
    View {
        now: 60_000,
        zone: TimeZone::UTC,
        columns,
    }
}

/// The entries of events, each a second after the one before.
fn entries(events: &str) -> Vec<Entry> {
    let mut fold = Fold::default();
    let mut entries = Vec::new();
    for (n, line) in (1..).zip(events.lines().map(str::trim)) {
        entries.extend(fold.push(&event(n, line), n * 1000));
    }
    entries.extend(fold.flush());
    entries
}

/// The lines of the feed without styles.
fn feed(columns: Option<usize>, time: Time, events: &str) -> String {
    let layout = Layout::new(view(columns));
    let lines = entries(events);
    let lines = lines.iter().map(|entry| layout.line(entry, time) + "\n");
    anstream::adapter::strip_str(&lines.collect::<String>()).to_string()
}

/// The lines in a pipe.
fn plain(events: &str) -> String {
    feed(None, Time::OfDay, events)
}

#[test]
fn one_line_an_event_in_columns() {
    let told = plain(
        "session fix-42
         read fix-42 src/parser.rs first 1-200
         version src/parser.rs modified user lines=3/1
         edit fix-42 begun src/parser.rs src/lib.rs
         version src/lib.rs modified fix-42 lines=12/40
         version new.txt created unknown gap
         kept src/lib.rs
         overflow",
    );
    assert_eq!(
        told,
        "\
00:00:01  fix-42          began
00:00:02  fix-42          read       src/parser.rs                                lines 1-200
00:00:03  you             edited     src/parser.rs                     +3 -1
00:00:04  fix-42          editing    src/parser.rs                                and 1 other file
00:00:05  fix-42          edited     src/lib.rs                        +12 -40
00:00:06  unknown         created    new.txt                                      while not watched
00:00:07  touchmark       kept       src/lib.rs                                   in /state/kept/1
00:00:08  touchmark       overflow   too much at once: all files are compared
"
    );
}

#[test]
fn the_copies_made_stale_stand_on_the_line_of_their_cause() {
    let told = plain(
        "version a modified user lines=1/0
         stale one a
         stale two a
         stale one a
         version b deleted user
         stale one b gone
         version d renamed user from=c
         stale one c gone
         version e modified user
         stale 1 e
         stale 2 e
         stale 3 e
         stale 4 e",
    );
    assert_eq!(
        told,
        "\
00:00:01  you             edited     a                                 +1 -0      stale for one, two
00:00:05  you             deleted    b                                            gone for one
00:00:07  you             renamed    d                                            from c, gone for one
00:00:09  you             edited     e                                            stale for 1, 2, 3, 1 more
"
    );
}

#[test]
fn what_does_not_follow_directly_stands_alone() {
    let told = plain(
        "version a modified user
         read two b first
         stale one a
         read one a changed
         stale two a gone",
    );
    assert_eq!(
        told,
        "\
00:00:01  you             edited     a
00:00:02  two             read       b
00:00:03  one             is stale   a                                            its copy is out of date
00:00:04  one             re-read    a                                            up to date again
00:00:05  two             is stale   a                                            the file was deleted
"
    );
}

#[test]
fn a_commit_belongs_to_what_it_wrote() {
    let told = plain(
        "version a modified one marked provisional
         stale two a
         edit one committed a
         version a modified one
         edit two committed a",
    );
    assert_eq!(
        told,
        "\
00:00:01  one             edited     a                                            marked, stale for two
00:00:04  one             edited     a
00:00:05  two             committed  a
"
    );
}

#[test]
fn a_correction_says_whose_it_was_taken_for() {
    let told = plain(
        "version a modified user
         version a modified one amends=1
         version a modified one amends=1
         version a modified one amends=99",
    );
    assert_eq!(
        told,
        "\
00:00:01  you             edited     a
00:00:02  one             corrected  a                                            an earlier change was not by you
00:00:03  one             confirmed  a
00:00:04  one             corrected  a                                            an earlier change has another author
"
    );
}

#[test]
fn names_write_no_lines_of_their_own() {
    // SEC-4
    let told = plain("version a\\nb\u{1b}[2J modified x\\ny\nstale p\\nq a\\nb\u{1b}[2J");
    assert_eq!(
        told,
        "00:00:01  x\\ny            edited     a\\nb\\u001b[2J                                stale for p\\nq\n"
    );
}

#[test]
fn a_terminal_gets_no_longer_lines_than_it_has_room_for() {
    let long = format!("{}parser.rs", "deep/".repeat(30));
    let events =
        format!("version {long} modified a-session-with-a-long-name lines=1/0\nstale one {long}");
    assert_eq!(
        feed(Some(80), Time::Age, &events),
        "  59 s  a-s…g-name  edited     deep/dee…eep/deep/parser.rs  +1 -0  stale for one\n"
    );
    // A path keeps the room that the other columns leave.
    assert_eq!(
        feed(
            Some(80),
            Time::Age,
            "version src/feed/terminal/render.rs created you"
        ),
        "  59 s  you         created    src/feed/terminal/render.rs\n"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let names = [
        "a",
        "目録/目録/目録/目録/目録/目録/e\u{301}.rs",
        "deep/deep/deep/deep/deep.rs",
    ];
    let sessions = [
        "6f1c2d3e-8a4b-4c5d-9e6f-708192a3b4c5",
        "目録目録目録目録目録",
        "x",
    ];
    let mut events = String::from("overflow\nkept src/lib.rs\nran c9 x 3 main topic\n");
    for (name, session) in names.iter().zip(sessions) {
        events += &format!(
            "session {session}\nread {session} {name} changed 1-200\n\
             version {name} modified {session} lines=123456/1234567 overwritten marked\n\
             stale {session} {name}\nstale x {name}\nstale y {name}\nstale z {name}\n\
             version {name} deleted unknown gap\nedit {session} begun {name} b c\n"
        );
    }
    for number in 0..9 {
        events += &format!(
            "version 目録/目録/{number} created {} command=c1\n",
            sessions[0]
        );
    }
    events += "ran c1 x 9 main/with/a/long/name topic";
    for columns in [40, 60, 80, 120] {
        for time in [Time::Age, Time::OfDay] {
            let told = feed(Some(columns), time, &events);
            for line in told.lines() {
                assert!(width(line) <= columns, "{columns}: {line}\n{told}");
                assert!(!line.ends_with(' '), "{line:?}");
            }
            let burst = "9 files in 目録/目録";
            assert!(columns < 80 || told.contains(burst), "{told}");
        }
    }
}

#[test]
fn what_one_command_did_is_one_line_that_names_the_branches() {
    let told = plain(
        "version a modified x command=c1
         version b created x command=c1
         version c deleted x command=c1
         ran c1 x 3 main topic
         ran c2 x 0 topic topic
         version d modified x command=c3
         version e modified x command=c4
         ran c4 x 1 topic topic
         ran c3 x 1 topic topic
         ran c5 x 7 topic topic io_uring-was-used",
    );
    assert_eq!(
        told,
        "\
00:00:01  x               ran        `git checkout`: 3 files (main to topic)
00:00:06  x               edited     d                                            by a command
00:00:07  x               edited     e                                            by `git checkout`
00:00:10  x               ran        `git checkout`: 7 changes, not all writes seen: io_uring was used
"
    );
}

#[test]
fn many_changes_at_once_are_one_line() {
    let at_once = |many: u64, kind: &str| {
        let mut fold = Fold::default();
        let mut done = Vec::new();
        for n in 1..=many {
            let line = format!("version src/ui/f{n} {kind} user lines=2/1");
            done.extend(fold.push(&event(n, &line), 1000));
            let stale = format!("stale one src/ui/f{n}");
            done.extend(fold.push(&event(n, &stale), 1000));
        }
        done.extend(fold.flush());
        done
    };
    // The times of these versions are a second apart, as their numbers are.
    let many = at_once(1000, "modified");
    let layout = Layout::new(view(Some(80)));
    let line = |entry| anstream::adapter::strip_str(&layout.line(entry, Time::Age)).to_string();
    assert_eq!(many.len(), 1);
    assert_eq!(
        line(&many[0]),
        "  59 s  you         edited     1000 files in src/ui, +2000 -1000, stale for one"
    );
    // Of a long command and a long directory, how many files and lines they are is left.
    let label = "`npm run generate -- --schema ./schema.graphql --with-all`";
    let mut ran = many[0].clone();
    ran.verb = Verb::Ran;
    ran.burst.as_mut().unwrap().label = Some(label.into());
    assert_eq!(
        line(&ran),
        "  59 s  you         ran  `npm ru…phql --with-all`: 1000 files, +2000 -1000"
    );
    // A few are worth a line each.
    assert_eq!(at_once(5, "created").len(), 5);
    assert_eq!(at_once(6, "created").len(), 1);
}

#[test]
fn colours_say_the_same_as_words() {
    let mut fold = Fold::default();
    fold.push(&event(1, "version a modified user lines=1/2"), 0);
    let line = Layout::new(view(None)).line(&fold.flush()[0], Time::OfDay);
    assert!(line.contains("\u{1b}["));
    assert!(line.contains("you"));
}

#[test]
fn long_remarks_lose_their_middle_and_stand_below_on_a_narrow_terminal() {
    let long = "packages/service/src/components/navigation/sidebar/panel.rs";
    let events = format!("read fix-42 {long} changed 1-200\noverflow");
    let many = format!(
        "version {long} modified fix-42 lines=12/3 provisional gap\nstale one {long}\n\
         stale two {long}\nversion b renamed x from={long}\nsession x\n\
         edit fix-42 begun {long} b c"
    );
    let told = feed(Some(80), Time::Age, &many);
    assert_eq!(told.lines().count(), 4, "{told}");
    let told = |columns| feed(Some(columns), Time::OfDay, &events);
    assert_eq!(
        told(80),
        " 00:00  fix-42      re-read    packa…bar/panel.rs  lines 1-200, up to date again
 00:00  touchmark   overflow   too much at once: all files are compared
"
    );
    assert_eq!(
        told(60),
        " 00:00  fix-42      re-read    packages/…on/sidebar/panel.rs
        lines 1-200, up to date again
 00:00  touchmark   overflow
        too much at once: all files are compared
"
    );
}
