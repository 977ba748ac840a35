//! Measures what is asked about the past of a repository: who wrote which line,
//! what is to be reviewed, what was done, what git brought. Git is the peer.

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Result, ensure};
use touchmark_client::blocking::Client;
use touchmark_proto::commands::CommandEnd;
use touchmark_proto::daemon::Sync;
use touchmark_proto::history::FileBlame;
use touchmark_proto::review::ReviewList;
use touchmark_proto::{LineRange, SessionId};

use crate::commands::{begin, git, git_command};
use crate::goal::{self, Goal};
use crate::part::Part;
use crate::samples::Samples;
use crate::table::Row;
use crate::units;
use crate::world::{World, session};
use crate::{Options, progress};

/// The numbers of files and commits of the repository.
const FILES: usize = 2_000;
const COMMITS: usize = 500;

/// The number of lines of the file of which the authors are asked.
const LINES: usize = 5_000;

/// How many files the agent has changed since the last commit.
const CHANGED: usize = 200;

/// The number of files that a switch changes.
const SWITCHED: usize = 7_000;

const LONG: &str = "long.txt";

/// The number of lines of a very long file, and how many commits there are for
/// each one that changes it.
const MOST_LINES: usize = 200_000;
const SELDOM: usize = 50;

const LONGEST: &str = "longest.txt";

pub(crate) fn part(options: &Options) -> Result<Part> {
    let mut part = Part::new(
        "The past of a repository",
        format!(
            "A repository of {} files and {} commits, in which an agent and a user have worked in \
             turns since the last commits. Each commit changes 10 lines of a file of {} lines and \
             3 other files; of every tenth one, the agent has written the lines. Every {SELDOM}th \
             changes 10 lines of a file of {} lines. Then the agent \
             changes {CHANGED} files, which are not committed. Git's commands are the peers, each \
             a process of its own. `blame` and `log` are commands of touchmark's too; \
             `review/list` is a request, after one more file was changed. The last rows are of \
             another repository, in which a branch has other contents of {} files, which are all \
             tracked: the time from the end of the switch until an answer names an author, \
             without the time in which the daemon reads the files.",
            units::count(FILES),
            COMMITS,
            units::count(LINES),
            units::count(MOST_LINES),
            units::count(SWITCHED),
        ),
    );
    asked(options, &mut part)?;
    switched(options, &mut part)?;
    Ok(part)
}

/// Returns the text of the long file after this number of commits.
fn long(commit: usize) -> String {
    let mut text = String::new();
    for line in 0..LINES {
        // Each commit changes the lines of its number.
        let last = Some(line % COMMITS).filter(|one| *one <= commit);
        let last = last.unwrap_or(0);
        let _ = writeln!(text, "line {line} of the long file, as of {last}");
    }
    text
}

/// Returns the text of the longest file after this number of commits.
fn longest(lines: usize, commit: usize) -> String {
    let mut text = String::new();
    let part = lines / 10;
    for line in 0..lines {
        let last = match line % part / SELDOM {
            at if line % SELDOM == 0 && at * SELDOM <= commit => at * SELDOM,
            _ => 0,
        };
        let _ = writeln!(text, "line {line} of the longest, as of {last}");
    }
    text
}

/// Lets an agent's command write files.
fn by_agent(
    client: &Client,
    session: &SessionId,
    write: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let begun = client.call(begin(session))?;
    write()?;
    client.call(CommandEnd::new().command(begun.command).exit(0))?;
    Ok(())
}

fn asked(options: &Options, part: &mut Part) -> Result<()> {
    let (files, commits) = (
        options.pick(FILES / 10, FILES),
        options.pick(COMMITS / 10, COMMITS),
    );
    progress(&format!("a repository of {commits} commits"));
    let world = World::new(&options.binary, files)?;
    let root = &world.tree.root;
    let most_lines = options.pick(MOST_LINES / 4, MOST_LINES);
    fs::write(root.join(LONG), long(0))?;
    fs::write(root.join(LONGEST), longest(most_lines, 0))?;
    git(&world, &["init", "--quiet"])?;
    git(&world, &["add", "--all"])?;
    git(&world, &["commit", "--quiet", "--message", "all files"])?;
    let (_daemon, client) = world.start()?;
    let session = session("bench")?;
    world.read(&client, &session, &[LONG.to_owned(), LONGEST.to_owned()])?;
    for commit in 1..=commits {
        let write = || -> Result<()> {
            fs::write(root.join(LONG), long(commit))?;
            if commit % SELDOM == 0 {
                fs::write(root.join(LONGEST), longest(most_lines, commit))?;
            }
            for n in 0..3 {
                let file = &world.tree.files[(commit * 3 + n) % files];
                fs::write(file, format!("file {n} as of {commit}\n").repeat(20))?;
            }
            Ok(())
        };
        match commit % 10 {
            0 => by_agent(&client, &session, write)?,
            _ => write()?,
        }
        let message = format!("change {commit}");
        git(
            &world,
            &["commit", "--quiet", "--all", "--message", &message],
        )?;
    }
    let changed = CHANGED.min(files / 2);
    let change = |round: usize, file: usize| -> Result<()> {
        let file = &world.tree.files[file];
        let text = fs::read_to_string(file)?;
        let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
        Ok(fs::write(
            file,
            format!("the agent's line of {round}\n{rest}"),
        )?)
    };
    by_agent(&client, &session, || {
        (0..changed).try_for_each(|file| change(0, file))
    })?;

    let review = || {
        let queue = client.call(ReviewList::default())?;
        let found = queue.hunks.len();
        ensure!(found >= changed, "{found} changes are in the queue");
        Ok(())
    };
    let blame = || touchmark(&world, &["blame", LONG]);
    let most = || touchmark(&world, &["blame", LONGEST]);
    let log = || touchmark(&world, &["log"]);
    let mut compared = [
        Compared::new(
            ("blame of 5,000 lines, 500 commits", 1.2),
            ("touchmark blame", &blame),
            ("git blame", &["blame", LONG]),
        ),
        Compared::new(
            ("blame of 200,000 lines", 1.2),
            ("touchmark blame, 200,000 lines", &most),
            ("git blame, 200,000 lines", &["blame", LONGEST]),
        ),
        Compared::new(
            ("review/list, 200 changed files", 1.5),
            ("review/list", &review),
            ("git diff", &["diff"]),
        ),
        Compared::new(
            ("log, 500 commits", 0.2),
            ("touchmark log", &log),
            ("git log --stat", &["log", "--stat"]),
        ),
    ];
    let rounds = options.pick(3, 15);
    for round in 0..=rounds {
        progress(&format!(
            "the past of a repository, round {round} of {rounds}"
        ));
        by_agent(&client, &session, || change(round + 1, round % changed))?;
        for one in &mut compared {
            let (mut took, mut gits) = (Samples::default(), Samples::default());
            gits.time(|| git(&world, one.git))?;
            took.time(one.ask)?;
            // The first round warms up and is not counted.
            if round > 0 {
                one.gits.add(gits.last());
                one.took.add(took.last());
            }
        }
    }
    for one in &compared {
        let (took, gits) = (one.took.p50(), one.gits.p50());
        part.rows.push(Row::of(one.peer, &one.gits));
        let row = Row::of(one.what, &one.took);
        part.rows.push(row.beside(one.peer, took, gits));
        part.goals.push(
            Goal::new(one.goal.0, units::duration(took))
                .beside(&format!("`{}`", one.peer), units::duration(gits))
                .at_most(
                    one.goal.1,
                    &format!("x `{}`", one.peer),
                    goal::times(took, gits),
                ),
        );
    }
    Ok(())
}

/// A question, and the command of git's that it is compared with.
struct Compared<'a> {
    /// What is asked, and the goal.
    goal: (&'static str, f64),
    what: &'static str,
    ask: &'a dyn Fn() -> Result<()>,
    peer: &'static str,
    git: &'a [&'a str],
    took: Samples,
    gits: Samples,
}

impl<'a> Compared<'a> {
    fn new(
        goal: (&'static str, f64),
        (what, ask): (&'static str, &'a dyn Fn() -> Result<()>),
        (peer, git): (&'static str, &'a [&'a str]),
    ) -> Self {
        Self {
            goal,
            what,
            ask,
            peer,
            git,
            took: Samples::default(),
            gits: Samples::default(),
        }
    }
}

/// Runs a command of touchmark's in the workspace.
fn touchmark(world: &World, arguments: &[&str]) -> Result<()> {
    let mut command = world.bare_command();
    let status = command
        .current_dir(&world.tree.root)
        .args(arguments)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Measures how long it takes to find out what git brought by a switch.
fn switched(options: &Options, part: &mut Part) -> Result<()> {
    let count = options.pick(SWITCHED / 10, SWITCHED);
    progress(&format!("two branches of {} files", units::count(count)));
    let world = World::new(&options.binary, count)?;
    git(&world, &["init", "--quiet", "--initial-branch", "main"])?;
    git(&world, &["add", "--all"])?;
    git(&world, &["commit", "--quiet", "--message", "one"])?;
    git(&world, &["switch", "--quiet", "--create", "other"])?;
    for (n, file) in world.tree.files.iter().enumerate() {
        fs::write(file, format!("line of the other branch {n}\n").repeat(30))?;
    }
    git(&world, &["commit", "--quiet", "--all", "--message", "two"])?;
    let (_daemon, client) = world.start()?;
    let session = session("bench")?;
    world.read(&client, &session, &world.tree.names)?;
    let (mut switch, mut look) = (Samples::default(), Samples::default());
    let rounds = options.pick(2, 6);
    for round in 0..=rounds {
        progress(&format!("a switch of branches, round {round} of {rounds}"));
        let to = if round % 2 == 0 { "main" } else { "other" };
        let started = Instant::now();
        ensure!(
            git_command(&world, &["switch", "--quiet", to])
                .status()?
                .success(),
            "no switch"
        );
        let switching = started.elapsed();
        client.call(Sync {})?;
        let started = Instant::now();
        client.call(
            FileBlame::new(world.tree.names[0].as_str())
                .range(LineRange { start: 1, end: 1 })
                .commits(false),
        )?;
        if round > 0 {
            switch.add(switching);
            look.add(started.elapsed());
        }
    }
    part.rows.push(Row::of(
        format!("git switch, {} files", units::count(count)),
        &switch,
    ));
    part.rows
        .push(Row::of("the look at .git after it", &look).beside(
            "git switch",
            look.p50(),
            switch.p50(),
        ));
    let said = |samples: &Samples| units::duration(samples.p50());
    part.goals.push(
        Goal::new(
            "the look at .git after a switch of 7,000 files",
            said(&look),
        )
        .beside("`git switch`", said(&switch))
        .at_most(0.5, "x the switch", goal::times(look.p50(), switch.p50())),
    );
    Ok(())
}
