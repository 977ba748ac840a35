//! Which commits lines belong to whose author the history does not know
//! (HIST-11).
//!
//! Git says so, when blame is asked for: `git blame` of the content, with the
//! numbers of these lines. It gets the content on its input, so it recognises
//! lines that are in no commit. The repository may come from anywhere: what git
//! prints is untrusted input, as are the names of authors.

use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use touchmark_engine::text::lines::is_binary;
use touchmark_proto::history::LineCommit;
use touchmark_proto::{LineRange, Millis, Places, RelPath, SessionId, native};

use super::neighbours::Neighbours;
use super::notes::Notes;
use super::place::top_of;
use crate::git::{LATEST, WorkTree};
use crate::links::absolute;
use crate::system::open::read_regular;

/// How long git may take for one answer. Clients wait 10 s by default.
const TIME: Duration = Duration::from_secs(5);

/// The most bytes that it may print: a million places.
const PRINTED: u64 = 64 << 20;

/// The largest content that git is asked about. It compares no larger ones.
const MOST_BYTES: usize = 64 << 20;

/// The most ranges of lines in one question. More are asked for as one.
const MOST_RANGES: usize = 1_000;

/// The most names of a file that are tried, the newest first. The last commit
/// has an earlier one if the move is not committed.
const MOST_NAMES: usize = 4;

/// The longest name of an author, in characters.
const MOST_NAME: usize = 200;

/// The most bytes read of the list of commits where a shallow clone ends.
const MOST_SHALLOW: u64 = 1 << 20;

/// A commit that lines belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) commit: LineCommit,
    /// When its author made it first.
    pub(crate) time: Millis,
}

/// A content, and the lines of it to look for.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) content: &'a [u8],
    /// The numbers of the lines, from 1, in ascending order.
    pub(crate) lines: Vec<u32>,
    /// Whether a change of white space alone counts.
    pub(crate) exact: bool,
}

/// A commit that a line belongs to, and the session that wrote the line according
/// to a note of the commit, or to the daemon of the worktree in which it was made.
pub(crate) type Of = (Arc<Committed>, Option<SessionId>);

/// The lines that belong to commits. A file has 200,000 lines.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<Option<Of>>);

impl Lines {
    /// Returns what is known of the line with this number.
    pub(crate) fn get(&self, line: u32) -> Option<&Of> {
        self.0.get(line as usize)?.as_ref()
    }

    fn insert(&mut self, line: u32, of: Of) {
        let at = line as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(of);
    }
}

/// What git has said.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) lines: Lines,
    /// Why git did not say it of all lines; `None` if it did.
    pub(crate) cause: Option<String>,
}

impl Found {
    /// Returns the same about these lines alone, in ascending order.
    pub(crate) fn only(mut self, lines: &[u32]) -> Self {
        let mut own = lines.iter().peekable();
        for (of, line) in self.lines.0.iter_mut().zip(0..) {
            if own.next_if(|own| **own == line).is_none() {
                *of = None;
            }
        }
        self.cause = self.cause.filter(|_| !lines.is_empty());
        self
    }
}

/// Asks git which commits lines of a file belong to. `names` are those that the
/// file had, the newest first; `root` is the workspace's path.
pub(crate) fn committed<'n>(
    root: &Path,
    places: &Places,
    names: impl Iterator<Item = &'n RelPath>,
    mut wanted: Wanted<'_>,
) -> Found {
    let mut found = Found::default();
    if wanted.lines.is_empty() || is_binary(wanted.content) {
        return found;
    }
    if wanted.content.len() > MOST_BYTES {
        found.cause = Some("the file is too large to ask git about it".into());
        return found;
    }
    let until = Instant::now() + TIME;
    for name in names.take(MOST_NAMES) {
        let Some((top, path)) = top_of(&absolute(root, name)) else {
            continue;
        };
        let Some(tree) = WorkTree::at(&top, places) else {
            continue;
        };
        let neighbours = || Neighbours::of(&tree, root, places);
        if let Err(cause) = asked(&tree, &path, &wanted, until, neighbours, &mut found.lines) {
            found.cause = Some(cause);
            break;
        }
        wanted.lines.retain(|line| found.lines.get(*line).is_none());
        if wanted.lines.is_empty() {
            break;
        }
    }
    found
}

/// Asks git about one name, relative to the top of the work tree, and adds what
/// it says to `lines`. Git may take until `until`.
///
/// # Errors
/// Why git did not answer, for people.
fn asked(
    tree: &WorkTree,
    path: &[u8],
    wanted: &Wanted<'_>,
    until: Instant,
    neighbours: impl FnOnce() -> Neighbours,
    lines: &mut Lines,
) -> Result<(), String> {
    let cannot = |error: io::Error| match error.kind() {
        ErrorKind::TimedOut => format!("git took longer than {} s", TIME.as_secs()),
        _ => format!("git cannot be run: {error}"),
    };
    let mut git = tree
        .git(&tree.top)
        .map_err(cannot)?
        // With CRLF on the disk git compares LF, unless its own content has CRLF.
        .args(["-c", "core.autocrlf=input", "-c", "core.safecrlf=false"])
        .args(["-c", "core.quotePath=false"])
        .args(["blame", "--incremental", "--no-textconv"]);
    if !wanted.exact {
        git = git.args(["-w"]);
    }
    for (start, end) in ranges(&wanted.lines) {
        git = git.arg(format!("-L{start},{end}"));
    }
    let git = git
        .args(["--contents", "-", "--"])
        .arg(&*native::name(path))
        .input(wanted.content)
        .within(until.saturating_duration_since(Instant::now()), PRINTED);
    let output = git.output().map_err(cannot)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        // The last commit does not have the file, or there is no commit.
        if ["no such path", "no such ref"]
            .iter()
            .any(|why| said.contains(why))
        {
            return Ok(());
        }
        tracing::debug!("git blame: {}", said.trim_end());
        return Err("git could not read the history of the file".into());
    }
    let mut runs = parsed(&output.stdout, &Shallow::of(tree));
    if runs.is_empty() {
        return Ok(());
    }
    let mut notes = Notes::of(tree);
    let mut neighbours = neighbours();
    // The runs of one commit together: its note is read once.
    runs.sort_by(|one, other| one.of.commit.id.cmp(&other.of.commit.id));
    for runs in runs.chunk_by(|one, other| Arc::ptr_eq(&one.of, &other.of)) {
        let note = runs.first().and_then(|run| notes.note(&run.of.commit.id));
        for run in runs {
            let from = wanted.lines.partition_point(|line| *line < run.start);
            let own = wanted.lines[from..].iter();
            let there = |line: u32| run.there.saturating_add(line - run.start);
            let made = match note {
                Some(_) => Vec::new(),
                None => {
                    let start = run.there;
                    let end = start.saturating_add(run.count.saturating_sub(1));
                    neighbours.authors(&run.of.commit.id, &run.file, LineRange { start, end })
                }
            };
            for line in own.take_while(|line| **line - run.start < run.count) {
                let noted = note.as_ref();
                let noted = noted.and_then(|note| note.author(&run.file, there(*line)));
                let by = noted.or_else(|| made.get((*line - run.start) as usize)?.as_ref());
                lines.insert(*line, (Arc::clone(&run.of), by.cloned()));
            }
        }
    }
    Ok(())
}

/// Returns lines as ranges, inclusive.
fn ranges(lines: &[u32]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == *line => *end = *line,
            _ => ranges.push((*line, *line)),
        }
    }
    match (ranges.first(), ranges.last()) {
        (Some((start, _)), Some((_, end))) if ranges.len() > MOST_RANGES => vec![(*start, *end)],
        _ => ranges,
    }
}

/// The commits whose parents the repository does not have.
pub(super) enum Shallow {
    /// Their ids.
    These(HashSet<String>),
    /// The list is not readable: each commit without parents may be one.
    Unclear,
}

impl Shallow {
    fn of(tree: &WorkTree) -> Self {
        match read_regular(&tree.common.join("shallow"), MOST_SHALLOW) {
            Ok(list) => Self::listed(&String::from_utf8_lossy(&list)),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::listed(""),
            Err(_) => Self::Unclear,
        }
    }

    /// Returns the commits of a list with one id in each line.
    pub(super) fn listed(list: &str) -> Self {
        Self::These(list.lines().map(str::to_owned).collect())
    }

    fn has(&self, id: &str) -> bool {
        match self {
            Self::These(ids) => ids.contains(id),
            Self::Unclear => true,
        }
    }
}

/// Consecutive lines that belong to one commit.
pub(super) struct Run {
    pub(super) of: Arc<Committed>,
    /// The first line, in the content.
    start: u32,
    /// The first line, in the commit.
    there: u32,
    count: u32,
    /// The file's name in the commit, as git prints it.
    file: String,
}

/// What git prints about a commit, once.
#[derive(Default)]
struct About {
    author: String,
    time: Millis,
    /// It has no parents.
    is_first: bool,
    told: Option<Arc<Committed>>,
}

/// Parses the output of `git blame --incremental`: for each run of lines the
/// commit and the numbers, then what is known of the commit, then the file's
/// name there.
pub(super) fn parsed(printed: &[u8], shallow: &Shallow) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut commits: HashMap<String, About> = HashMap::new();
    let mut run: Option<(String, [u32; 3])> = None;
    for line in printed.split(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let Some((id, [there, start, count])) = &run else {
            run = head(word, rest);
            continue;
        };
        let about = commits.entry(id.clone()).or_default();
        match word {
            "author" => about.author = rest.chars().take(MOST_NAME).collect(),
            "author-time" => {
                let seconds: u64 = rest.parse().unwrap_or_default();
                about.time = seconds.min(LATEST) * 1_000;
            }
            "boundary" => about.is_first = true,
            "filename" => {
                // No commit has the line.
                if !id.bytes().all(|digit| digit == b'0') {
                    let told = about.told.get_or_insert_with(|| {
                        let is_end = about.is_first && shallow.has(id);
                        Arc::new(Committed {
                            commit: LineCommit {
                                id: id.clone(),
                                author: (!is_end).then(|| std::mem::take(&mut about.author)),
                            },
                            time: about.time,
                        })
                    });
                    runs.push(Run {
                        of: Arc::clone(told),
                        start: *start,
                        there: *there,
                        count: *count,
                        file: rest.to_owned(),
                    });
                }
                run = None;
            }
            _ => {}
        }
    }
    runs
}

/// Parses the first line of a run: the commit's id, the line in the commit, the
/// line in the content, and the number of lines.
fn head(id: &str, numbers: &str) -> Option<(String, [u32; 3])> {
    let is_id = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut numbers = numbers.split(' ');
    let mut number = || numbers.next()?.parse().ok();
    let numbers = [number()?, number()?, number()?];
    is_id.then(|| (id.to_owned(), numbers))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ONE: &str = "713601f75433724ec8c54d36396fd0b93bd3afd8";
    const TWO: &str = "b02e2467bab781cd53bc811c3f8265a0d585e920";

    fn said(printed: &str, shallow: &Shallow) -> Vec<(u32, String, Option<String>, Millis)> {
        let mut all: Vec<_> = parsed(printed.as_bytes(), shallow)
            .into_iter()
            .flat_map(
                |Run {
                     of, start, count, ..
                 }| {
                    let LineCommit { id, author } = of.commit.clone();
                    let lines = start..start + count;
                    lines.map(move |line| (line, id[..4].to_owned(), author.clone(), of.time))
                },
            )
            .collect();
        all.sort();
        all
    }

    #[test]
    fn what_git_prints_is_read_as_text_of_strangers() {
        let zeros = "0".repeat(40);
        // The name of the author looks like another line.
        let printed = format!(
            "{zeros} 2 2 1\nauthor x\nauthor-time 1\nfilename f\n\
             {TWO} 9 3 2\nauthor {ONE} 1 1 1\nauthor-time 7\nsummary filename x\nfilename \"a b\"\n\
             {ONE} 1 1 1\nauthor \nauthor-time -5\nboundary\nfilename f\n\
             {TWO} 5 6 1\nfilename f\n{TWO} 5\n{ONE} 1 8 1\nauthor cut off"
        );
        let two = |line| (line, "b02e".to_owned(), Some(format!("{ONE} 1 1 1")), 7_000);
        let one = |author: Option<&str>| (1, "7136".to_owned(), author.map(str::to_owned), 0);
        let nothing = Shallow::listed("");
        assert_eq!(
            said(&printed, &nothing),
            [one(Some("")), two(3), two(4), two(6)]
        );
        // The history ends at the commit, or may do so.
        for shallow in [Shallow::listed(&format!("{ONE}\n")), Shallow::Unclear] {
            assert_eq!(said(&printed, &shallow)[0], one(None));
        }
    }

    #[test]
    fn many_ranges_are_one() {
        assert_eq!(ranges(&[]), []);
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), [(1, 3), (7, 7), (9, 10)]);
        let odd: Vec<u32> = (0..2_000).map(|n| 2 * n + 1).collect();
        assert_eq!(ranges(&odd), [(1, 3_999)]);
        assert_eq!(ranges(&odd[..1_000]).len(), 1_000);
    }
}
