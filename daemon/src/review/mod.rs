//! `review/*`: agents' changes that the user has neither kept nor undone (REV).

mod comment;
mod commits;
mod converted;
pub(crate) mod kept;
mod known;
mod made;
mod settled;
mod state;
mod times;
mod viewed;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use touchmark_engine::history::{LineName, Reviewed, Step, Weave};
use touchmark_engine::text::lines;
use touchmark_engine::{Fact, Hunk};
use touchmark_proto::commands::CommandList;
use touchmark_proto::review::{
    ReviewFile, ReviewHunk, ReviewHunks, ReviewKeep, ReviewKept, ReviewList, ReviewNamed,
    ReviewUndo,
};
use touchmark_proto::undo::Undone;
use touchmark_proto::{Author, AuthorKind, Error, ErrorCode, Hash, RelPath, SessionId, Version};

use crate::context::aside;
use crate::guard::Name;
use crate::history::Chain;
use crate::undo::{Plan, Undoer, is_below, is_of, real_of};
use commits::Commits;
pub(crate) use kept::Kept;
use kept::{Moment, Seen};
use state::committed;
use whole::Whole;

/// The default number of rows in a list (LIM-2).
const ROWS: u32 = 1_000;

/// The number of hexadecimal digits in a change's name.
const NAME: usize = 16;

/// The maximum number of recent commands that are searched for one that made a
/// commit.
const COMMANDS: u32 = 1_000;

/// The user's commits, shared with blocking tasks.
type Committed = Arc<Mutex<Commits>>;

/// A file and its changes in the queue.
struct Queued {
    path: RelPath,
    chain: Chain,
    weave: Weave,
    /// The changes in the queue, each with its name.
    hunks: Vec<(String, Reviewed)>,
    /// The change in the queue that has no lines; `None` for none.
    whole: Option<Whole>,
}

impl Undoer {
    /// Handles `review/list`.
    ///
    /// # Errors
    /// `unknownSession`, `storage`.
    pub(crate) async fn review_list(&self, ask: &ReviewList) -> Result<ReviewHunks, Error> {
        let below: Option<Vec<RelPath>> = ask
            .paths
            .as_ref()
            .map(|paths| paths.iter().map(|path| self.place(path)).collect())
            .transpose()?;
        let limit = ask.limit.unwrap_or(ROWS) as usize;
        self.look().await?;
        let commits = self.commits().await?;
        let mut lineage = self.lineage().await?;
        let mut written = self.written_by_agents(&lineage).await?;
        // Files that were moved unobserved are found first.
        let names = written.keys().cloned().collect();
        if self.origins.lineages.find(self.sources(), names).await? {
            lineage = self.lineage().await?;
            written = self.written_by_agents(&lineage).await?;
        }
        let of = self.knowing(lineage.clone());
        let mut settled = BTreeMap::new();
        let mut listed = ReviewHunks::default();
        let mut rows = 0;
        let is_meant = |path: &RelPath| {
            let mut below = below.iter().flatten();
            ask.paths.is_none() || below.any(|one| is_below(path, one))
        };
        let meant = written.iter().filter(|(path, _)| is_meant(path));
        let asked = meant.map(|(path, written)| (path.clone(), written.asked(path, &lineage)));
        let states = committed(&commits, asked.collect()).await?;
        let mut now = self.now_of_seen(states.keys()).await?;
        'files: for (path, committed) in &states {
            let Some(versions) = written.get(path) else {
                continue;
            };
            let moment = committed.moment(versions.newest);
            if self.kept.is_done(path, &moment) {
                continue;
            }
            // Whether the user has committed the file's current content.
            let is_committed =
                matches!(committed.hash, Some(hash @ Some(_)) if hash == versions.hash);
            let told = match is_committed && !versions.has_modes {
                true => Ok((Vec::new(), None)),
                false => {
                    let now = now.remove(path);
                    of.told(path, &commits, &moment, versions.has_modes, now)
                        .await
                }
            };
            // A file that cannot be read does not prevent the review of the
            // others.
            let Ok((hunks, whole)) = told else { continue };
            if hunks.is_empty() && whole.is_none() {
                self.kept.set_done(path, moment);
                settled.insert(path.clone(), BTreeSet::new());
            }
            let is_by = |authors: &[Author]| {
                let session = ask.session.as_ref();
                session.is_none_or(|session| authors.iter().any(|author| is_of(author, session)))
            };
            let has_made =
                |command: &Option<String>| ask.command.is_none() || *command == ask.command;
            let meant = |hunk: &ReviewHunk| is_by(&hunk.authors) && has_made(&hunk.command);
            for mut hunk in hunks.into_iter().filter(meant) {
                if rows >= limit {
                    listed.more = Some(true);
                    break 'files;
                }
                hunk.viewed = self.kept.is_viewed(path, &hunk.id).then_some(true);
                listed.hunks.push(hunk);
                rows += 1;
            }
            let meant = |whole: &ReviewFile| is_by(&whole.authors) && has_made(&whole.command);
            if let Some(mut whole) = whole.filter(meant) {
                if rows >= limit {
                    listed.more = Some(true);
                    break;
                }
                whole.viewed = self.kept.is_viewed(path, &whole.id).then_some(true);
                listed.files.get_or_insert_default().push(whole);
                rows += 1;
            }
        }
        listed.comments = self.comments().await;
        self.kept.write_changed();
        self.let_go(&written, &settled);
        Ok(listed)
    }

    /// Returns the rows of a file's queue. Returns the previous rows if nothing
    /// has changed since. `has_modes`: whether there may be changes that have
    /// no lines. `now`: the hash of the file's current content, if it is known.
    async fn told(
        &self,
        path: &RelPath,
        commits: &Committed,
        moment: &Moment,
        has_modes: bool,
        now: Option<Option<Hash>>,
    ) -> Result<(Vec<ReviewHunk>, Option<ReviewFile>), Error> {
        let kept = self.kept.count(path);
        if !has_modes
            && let Some(seen) = self.kept.seen(path)
            && (&seen.moment, seen.kept) == (moment, kept)
            && now == Some(seen.now)
        {
            return Ok((seen.hunks, None));
        }
        let queued = self.queued(path, commits).await?;
        self.kept.retain_viewed(path, queued.ids());
        let hunks: Vec<ReviewHunk> = queued
            .hunks
            .iter()
            .map(|(id, hunk)| queued.told(id, hunk))
            .collect();
        let seen = Seen {
            moment: moment.clone(),
            now: queued.chain.versions.last().and_then(|last| last.hash),
            kept,
            hunks: hunks.clone(),
        };
        self.kept.set_seen(path, seen);
        let whole = queued.whole.as_ref();
        Ok((hunks, whole.map(|whole| whole.row(path, &queued.chain))))
    }

    /// Handles `review/keep`.
    ///
    /// # Errors
    /// `notFound` if a change is no longer as it was listed: nothing is kept
    /// then. `storage`.
    pub(crate) async fn review_keep(&self, ask: &ReviewKeep) -> Result<ReviewKept, Error> {
        let _one = self.journal.alone().await;
        let mut kept = 0;
        let files = self.named(&ask.hunks).await?;
        for (queued, ids) in &files {
            for (_, hunk) in queued.hunks.iter().filter(|(id, _)| ids.contains(id)) {
                let n = |step: usize| queued.chain.version(step).clock.n;
                let names = hunk
                    .names
                    .iter()
                    .map(|name| (n(name.by), n(name.of), name.place));
                self.kept.add(&queued.path, names);
                kept += 1;
            }
            for whole in queued.whole.iter().filter(|whole| ids.contains(&whole.id)) {
                let name = kept::whole(whole.n);
                self.kept.add(&queued.path, [name].into_iter());
                kept += 1;
            }
        }
        self.kept.write()?;
        self.cx.inside.record(facts(&files));
        let paths = files.into_iter().map(|(queued, _)| queued.path);
        self.settle(paths.collect());
        Ok(ReviewKept { kept })
    }

    /// Handles `review/undo`.
    ///
    /// # Errors
    /// As [`review_keep`](Self::review_keep).
    pub(crate) async fn review_undo(&self, ask: &ReviewUndo) -> Result<Undone, Error> {
        let _one = self.journal.alone().await;
        let mut plans = Vec::new();
        let mut authors = Vec::new();
        for (mut queued, ids) in self.named(&ask.hunks).await? {
            let meant: Vec<&Reviewed> = queued
                .hunks
                .iter()
                .filter(|(id, _)| ids.contains(id))
                .map(|(_, hunk)| hunk)
                .collect();
            let mut by = BTreeSet::new();
            let whole = queued.whole.as_ref();
            let whole = whole.filter(|whole| ids.contains(&whole.id));
            let steps = meant.iter().flat_map(|hunk| &hunk.steps);
            for step in steps.chain(whole.iter().flat_map(|whole| &whole.steps)) {
                let author = &queued.chain.version(*step).author;
                by.insert(author.session.clone());
                if !authors.contains(author) {
                    authors.push(author.clone());
                }
            }
            let after = queued
                .weave
                .without_reviewed(meant.iter().copied(), queued.existed());
            let hunks = u32::try_from(meant.len()).unwrap_or(u32::MAX);
            let steps = meant.iter().flat_map(|hunk| &hunk.steps);
            let steps: BTreeSet<usize> = steps
                .chain(whole.iter().flat_map(|whole| &whole.steps))
                .copied()
                .collect();
            let name = Name {
                path: queued.path.clone(),
                real: real_of(&queued.chain, |at| steps.contains(&at)),
            };
            let not_kept = self.look_at_present(&mut queued.chain, &name).await;
            let mut plan = Plan::of_review(name, &queued.chain, after, hunks, by);
            if let Some(whole) = whole {
                plan.set_whole(&queued.chain, whole.before.bytes.clone(), whole.modes());
                if let Some(from) = &whole.from {
                    plan.set_from(from.clone());
                }
            }
            plan.check_present(self, not_kept);
            plans.push(plan);
        }
        self.carry_out(plans, "review".into(), authors).await
    }

    /// Returns the queues of the files that a request names, each with the
    /// names of the requested changes. Returns `notFound` unless all of these
    /// are as they were listed.
    async fn named(&self, named: &[ReviewNamed]) -> Result<Vec<(Queued, BTreeSet<String>)>, Error> {
        let mut by_path: BTreeMap<RelPath, BTreeSet<String>> = BTreeMap::new();
        for one in named {
            let ids = by_path.entry(self.place(&one.path)?).or_default();
            ids.insert(one.id.clone());
        }
        let commits = self.commits().await?;
        let mut files = Vec::new();
        for (path, ids) in by_path {
            let gone = || {
                Error::path(
                    ErrorCode::NotFound,
                    &path,
                    "the change is not in the queue any more, or not as it was listed",
                )
                .hint("list the changes again with `review/list`")
            };
            let queued = self.queued(&path, &commits).await?;
            if !ids.iter().all(|id| queued.ids().any(|own| own == id)) {
                return Err(gone());
            }
            files.push((queued, ids));
        }
        Ok(files)
    }

    /// Computes the queue of a file.
    async fn queued(&self, path: &RelPath, commits: &Committed) -> Result<Queued, Error> {
        let mut chain = self.chain(path).await?;
        if chain.steps.last() == Some(&Step::NotKept) {
            let agents = |at: usize| chain.versions[at].author.kind == AuthorKind::Agent;
            let real = real_of(&chain, agents);
            let name = Name {
                path: path.clone(),
                real,
            };
            self.look_at_present(&mut chain, &name).await;
        }
        let names: Vec<RelPath> = chain.names(path).cloned().collect();
        // Lines that were kept under an earlier name are kept.
        let of_name = |name| self.kept.of(name, |n| chain.step_of(n));
        let mut given: BTreeSet<LineName> = names.iter().flat_map(of_name).collect();
        let undos = self.journal.recorded().among(&chain.versions);
        let path = path.clone();
        let (commits, kept) = (Arc::clone(commits), Arc::clone(&self.kept));
        aside(move || {
            let committed = {
                let mut commits = commits.lock().unwrap_or_else(PoisonError::into_inner);
                let committed = commits.committed_of(&names);
                commits.as_on_disk(committed, &chain, &names)
            };
            let is_agents = |step: usize| {
                chain.version(step).author.kind == AuthorKind::Agent && !chain.is_carried(step)
            };
            let weave = chain.weave(&undos, is_agents);
            // The user's commit keeps its lines, even if an agent has changed
            // adjacent lines since.
            if let Some(step) = chain.newest_with(&committed) {
                given.extend(weave.names_at(step));
            }
            // A symbolic link has no lines to review.
            let mut found = match chain.has_links() {
                true => Vec::new(),
                false => weave.review(is_agents, &given),
            };
            match (committed, chain.steps.last()) {
                (Step::Held(committed), Some(Step::Held(now))) => {
                    let places = lines::all_places(&committed, now);
                    found.retain(|hunk| !is_in(&committed, places.as_deref(), hunk));
                }
                // A commit that does not contain the file may never have
                // contained it. So the commit counts that deleted it.
                (Step::Absent, Some(Step::Absent)) if !found.is_empty() => {
                    let since = chain.versions.last().map_or(0, |deleted| deleted.time);
                    let mut commits = commits.lock().unwrap_or_else(PoisonError::into_inner);
                    if commits.deleted(&path, since) {
                        found.clear();
                    }
                }
                _ => {}
            }
            let mut seen: BTreeMap<String, u32> = BTreeMap::new();
            let hunks: Vec<(String, Reviewed)> = found
                .into_iter()
                .map(|hunk| {
                    let name = name(&path, &hunk);
                    let times = seen.entry(name.clone()).or_default();
                    *times += 1;
                    let id = match times {
                        1 => name,
                        times => format!("{name}-{times}"),
                    };
                    (id, hunk)
                })
                .collect();
            let whole = Whole::of(&path, &chain, &weave, &undos).filter(|whole| {
                let deleted = chain.versions.last().map_or(0, |last| last.time);
                let mut commits = commits.lock().unwrap_or_else(PoisonError::into_inner);
                let is_kept = names.iter().any(|name| kept.has_whole(name, whole.n));
                !is_kept && !whole.is_in(&mut commits, &path, deleted)
            });
            Queued {
                path,
                chain,
                weave,
                hunks,
                whole,
            }
        })
        .await
    }

    /// Reads which commits are the user's and which are agents'.
    async fn commits(&self) -> Result<Committed, Error> {
        let commands = CommandList::new().limit(COMMANDS);
        let commands = self.cx.inside.ask(commands).await?.commands;
        let (root, places) = (
            self.cx.workspace.root.clone(),
            self.cx.workspace.places.clone(),
        );
        let known = Arc::clone(&self.kept.known);
        let commits = aside(move || Commits::look(&root, &places, &commands, known)).await?;
        Ok(Arc::new(Mutex::new(commits)))
    }
}

impl Queued {
    /// Returns whether the file existed before agents changed it.
    fn existed(&self) -> bool {
        let steps = self.chain.versions.iter().zip(&self.chain.steps);
        let mut steps = steps.enumerate();
        steps.any(|(at, (version, step))| {
            let is_others = version.author.kind != AuthorKind::Agent || self.chain.is_carried(at);
            is_others && *step != Step::Absent
        })
    }

    /// Returns the names of all changes.
    fn ids(&self) -> impl Iterator<Item = &String> {
        let hunks = self.hunks.iter().map(|(id, _)| id);
        hunks.chain(self.whole.iter().map(|whole| &whole.id))
    }

    fn told(&self, id: &str, hunk: &Reviewed) -> ReviewHunk {
        let steps = hunk.steps.iter();
        let versions = steps.map(|step| self.chain.version(*step));
        let exists = self.chain.steps.last() != Some(&Step::Absent);
        ReviewHunk {
            id: id.to_owned(),
            path: self.path.clone(),
            lines: hunk.lines,
            before: String::from_utf8_lossy(&hunk.before).into_owned(),
            after: String::from_utf8_lossy(&hunk.after).into_owned(),
            created: (!self.existed()).then_some(true),
            deleted: (!exists).then_some(true),
            authors: authors(versions.clone()),
            likely: versions.clone().any(Version::is_likely).then_some(true),
            time: versions
                .clone()
                .map(|version| version.time)
                .max()
                .unwrap_or_default(),
            command: command(versions),
            viewed: None,
        }
    }
}

/// Returns the command that made all of these versions; `None` if there are
/// several, or if one of the versions has another origin.
fn command<'a>(mut versions: impl Iterator<Item = &'a Version>) -> Option<String> {
    let first = versions.next()?.command.as_ref()?;
    versions
        .all(|version| version.command.as_ref() == Some(first))
        .then(|| first.clone())
}

/// Returns the authors of versions, each once.
fn authors<'a>(versions: impl Iterator<Item = &'a Version>) -> Vec<Author> {
    let mut authors = Vec::new();
    for version in versions {
        if !authors.contains(&version.author) {
            authors.push(version.author.clone());
        }
    }
    authors
}

/// Returns the facts about changes that were kept: one for each session with
/// changes among them.
fn facts(files: &[(Queued, BTreeSet<String>)]) -> Vec<Fact> {
    let mut counts: BTreeMap<Option<SessionId>, (BTreeSet<&RelPath>, u32)> = BTreeMap::new();
    for (queued, ids) in files {
        let hunks = queued.hunks.iter().filter(|(id, _)| ids.contains(id));
        let whole = queued.whole.iter().filter(|whole| ids.contains(&whole.id));
        let steps = hunks.map(|(_, hunk)| &hunk.steps);
        for steps in steps.chain(whole.map(|whole| &whole.steps)) {
            let author = |step: &usize| queued.chain.version(*step).author.session.clone();
            let sessions: BTreeSet<Option<SessionId>> = steps.iter().map(author).collect();
            for session in sessions {
                let (paths, changes) = counts.entry(session).or_default();
                paths.insert(&queued.path);
                *changes += 1;
            }
        }
    }
    let facts = counts.into_iter();
    facts
        .map(|(session, (paths, changes))| Fact::Kept {
            session,
            files: u32::try_from(paths.len()).unwrap_or(u32::MAX),
            changes,
        })
        .collect()
}

/// Returns a change's name: a hash of the path, of the removed lines and of the
/// added lines.
fn name(path: &RelPath, hunk: &Reviewed) -> String {
    hashed([path.as_bytes(), &hunk.before, &hunk.after])
}

/// Returns a name that is computed from these parts.
fn hashed<const N: usize>(parts: [&[u8]; N]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let hash = touchmark_proto::Hash(hasher.finalize().into());
    let mut name = hash.to_string();
    name.truncate(NAME);
    name
}

fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Returns whether a commit contains a change: it has the added lines, and does
/// not have the removed ones. `places` are those where the committed content
/// differs from the file; `None` if that is not known.
fn is_in(committed: &[u8], places: Option<&[Hunk]>, hunk: &Reviewed) -> bool {
    let Some(places) = places else {
        return false;
    };
    // A change that only removed lines is between the line before its place and
    // the next one.
    let (from, to) = match hunk.after.is_empty() {
        true => (hunk.lines.start, hunk.lines.end + 1),
        false => (hunk.lines.start, hunk.lines.end),
    };
    places.iter().all(|place| {
        let (start, end) = (place.new_start, place.new_start + place.new_lines);
        // Where the commit has no removed lines, the removal is in it.
        let removes = !hunk.after.is_empty() || place.old_lines > 0;
        // An empty range touches the line before it.
        let touches = start <= to && from < end.max(start + 1);
        // Lines may be gone right behind those that the commit has.
        let follows = start == to + 1 && place.new_lines == 0;
        let goes_on = || {
            let gone = split(committed).skip(place.old_start as usize - 1);
            let mut gone = gone.take(place.old_lines as usize);
            gone.any(|gone| split(&hunk.before).any(|line| line == gone))
        };
        !(removes && touches || follows && goes_on())
    })
}
