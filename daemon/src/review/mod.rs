//! `review/*`: what agents have changed and nobody has kept or undone (REV).

mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use sha2::{Digest as _, Sha256};
use touchmark_engine::Fact;
use touchmark_engine::history::{LineName, Reviewed, Step, Weave};
use touchmark_proto::review::{
    ReviewHunk, ReviewHunks, ReviewKeep, ReviewKept, ReviewList, ReviewNamed, ReviewUndo,
};
use touchmark_proto::undo::Undone;
use touchmark_proto::{AuthorKind, ClientPath, Error, ErrorCode, RelPath, SessionId};

use crate::history::Chain;
use crate::undo::{Plan, Undoer, is_below, is_of};
pub(crate) use kept::Kept;

/// Rows of a list, unless told (LIM-2).
const ROWS: u32 = 1_000;

/// Hex digits of a change's name.
const NAME: usize = 16;

/// A file in the queue.
struct Queued {
    path: RelPath,
    chain: Chain,
    weave: Weave,
    /// Each with its name.
    hunks: Vec<(String, Reviewed)>,
}

impl Undoer {
    /// `review/list`.
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
        let mut listed = ReviewHunks::default();
        for path in self.written_by_agents().await? {
            let is_meant = |below: &Vec<RelPath>| below.iter().any(|one| is_below(&path, one));
            if !below.as_ref().is_none_or(is_meant) {
                continue;
            }
            // What cannot be looked at hides nothing else.
            let Ok(Some(queued)) = self.queued(&path, ask.session.as_ref()).await else {
                continue;
            };
            for (id, hunk) in &queued.hunks {
                if listed.hunks.len() >= limit {
                    listed.more = Some(true);
                    return Ok(listed);
                }
                listed.hunks.push(queued.told(id, hunk));
            }
        }
        Ok(listed)
    }

    /// `review/keep`.
    ///
    /// # Errors
    /// `notFound` for a change that is no longer as it was listed: nothing is
    /// kept then. `storage`.
    pub(crate) async fn review_keep(&self, ask: &ReviewKeep) -> Result<ReviewKept, Error> {
        let _one = self.journal.alone().await;
        let mut kept = 0;
        let files = self.named(&ask.hunks).await?;
        for (queued, ids) in &files {
            for (_, hunk) in queued.hunks.iter().filter(|(id, _)| ids.contains(id)) {
                let n = |step: usize| queued.chain.versions[step].clock.n;
                let names = hunk
                    .names
                    .iter()
                    .map(|name| (n(name.by), n(name.of), name.place));
                self.kept.add(&queued.path, names);
                kept += 1;
            }
        }
        self.kept.write()?;
        Ok(ReviewKept { kept })
    }

    /// `review/undo`.
    ///
    /// # Errors
    /// As [`review_keep`](Self::review_keep).
    pub(crate) async fn review_undo(&self, ask: &ReviewUndo) -> Result<Undone, Error> {
        let _one = self.journal.alone().await;
        let mut plans = Vec::new();
        let mut authors = Vec::new();
        for (queued, ids) in self.named(&ask.hunks).await? {
            let meant: Vec<&Reviewed> = queued
                .hunks
                .iter()
                .filter(|(id, _)| ids.contains(id))
                .map(|(_, hunk)| hunk)
                .collect();
            for step in meant.iter().flat_map(|hunk| &hunk.steps) {
                let author = &queued.chain.versions[*step].author;
                if !authors.contains(author) {
                    authors.push(author.clone());
                }
            }
            let after = queued
                .weave
                .without_reviewed(meant.iter().copied(), queued.existed());
            let hunks = u32::try_from(meant.len()).unwrap_or(u32::MAX);
            plans.push(Plan::of_review(&queued.path, &queued.chain, after, hunks));
        }
        self.carry_out(plans, "review".into(), authors).await
    }

    /// The files that changes are in, with their names; each of them has to be
    /// as it was listed.
    async fn named(&self, named: &[ReviewNamed]) -> Result<Vec<(Queued, BTreeSet<String>)>, Error> {
        let mut by_path: BTreeMap<RelPath, BTreeSet<String>> = BTreeMap::new();
        for one in named {
            let ids = by_path.entry(self.place(&one.path)?).or_default();
            ids.insert(one.id.clone());
        }
        let mut files = Vec::new();
        for (path, ids) in by_path {
            let gone = || {
                Error::path(
                    ErrorCode::NotFound,
                    &path,
                    "the change is not in the queue any more, or not as it was listed",
                )
                .hint("ask for it again by `review/list`")
            };
            let queued = self.queued(&path, None).await?.ok_or_else(gone)?;
            if !ids
                .iter()
                .all(|id| queued.hunks.iter().any(|(own, _)| own == id))
            {
                return Err(gone());
            }
            files.push((queued, ids));
        }
        Ok(files)
    }

    /// What of a file is in the queue; `None` where nothing is.
    async fn queued(
        &self,
        path: &RelPath,
        session: Option<&SessionId>,
    ) -> Result<Option<Queued>, Error> {
        let chain = Chain::of(&self.inside, &self.log, &self.root, &ClientPath::from(path)).await?;
        // There are no lines of a link to look at.
        if chain.has_links() {
            return Ok(None);
        }
        let weave = chain.weave();
        let committed = self.committed(path).await;
        let given: BTreeSet<LineName> = self.kept.of(path, |n| {
            let mut versions = chain.versions.iter();
            versions.position(|version| version.clock.n == n)
        });
        let is_agents = |step: usize| chain.versions[step].author.kind == AuthorKind::Agent;
        let mut found = weave.review(is_agents, &given);
        if let Some(session) = session {
            found.retain(|hunk| {
                let mut steps = hunk.steps.iter();
                steps.any(|step| is_of(&chain.versions[*step].author, session))
            });
        }
        if let (Some(committed), Some(Step::Held(now))) = (committed, chain.steps.last()) {
            found.retain(|hunk| !is_in(&committed, now, hunk));
        }
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let hunks: Vec<(String, Reviewed)> = found
            .into_iter()
            .map(|hunk| {
                let name = name(path, &hunk);
                let times = seen.entry(name.clone()).or_default();
                *times += 1;
                let id = match times {
                    1 => name,
                    times => format!("{name}-{times}"),
                };
                (id, hunk)
            })
            .collect();
        let queued = Queued {
            path: path.clone(),
            chain,
            weave,
            hunks,
        };
        Ok((!queued.hunks.is_empty()).then_some(queued))
    }

    /// The files that agents have written, by name.
    async fn written_by_agents(&self) -> Result<BTreeSet<RelPath>, Error> {
        let log = Arc::clone(&self.log);
        let read = tokio::task::spawn_blocking(move || {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.versions_after(0)
        });
        let records = read
            .await
            .map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))??;
        let paths = records.into_iter().filter_map(|record| match record.fact {
            Fact::Version(version) if version.author.kind == AuthorKind::Agent => {
                Some(version.path)
            }
            _ => None,
        });
        Ok(paths.collect())
    }

    /// What the workspace's last commit has of a file; `None` where there is
    /// none.
    async fn committed(&self, path: &RelPath) -> Option<Vec<u8>> {
        let root = self.root.clone();
        let name = touchmark_proto::native::name(path.as_bytes()).into_owned();
        let read = tokio::task::spawn_blocking(move || {
            if !root.join(".git").exists() {
                return None;
            }
            let mut object = std::ffi::OsString::from("HEAD:./");
            object.push(name);
            let output = std::process::Command::new("git")
                .current_dir(&root)
                .args(["--no-optional-locks", "cat-file", "blob"])
                .arg(object)
                // Nothing is fetched, and no other repository is meant.
                .env("GIT_NO_LAZY_FETCH", "1")
                .env("GIT_TERMINAL_PROMPT", "0")
                .env_remove("GIT_DIR")
                .env_remove("GIT_WORK_TREE")
                .env_remove("GIT_INDEX_FILE")
                .stdin(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .output();
            let output = output.ok().filter(|output| output.status.success())?;
            Some(output.stdout)
        });
        read.await.ok().flatten()
    }
}

impl Queued {
    /// There was a file before agents changed it.
    fn existed(&self) -> bool {
        let steps = self.chain.versions.iter().zip(&self.chain.steps);
        let mut others = steps.filter(|(version, _)| version.author.kind != AuthorKind::Agent);
        others.any(|(_, step)| *step != Step::Absent)
    }

    fn told(&self, id: &str, hunk: &Reviewed) -> ReviewHunk {
        let versions: Vec<_> = hunk
            .steps
            .iter()
            .map(|step| &self.chain.versions[*step])
            .collect();
        let mut authors = Vec::new();
        for version in &versions {
            if !authors.contains(&version.author) {
                authors.push(version.author.clone());
            }
        }
        let exists = self.chain.steps.last() != Some(&Step::Absent);
        ReviewHunk {
            id: id.to_owned(),
            path: self.path.clone(),
            lines: hunk.lines,
            before: String::from_utf8_lossy(&hunk.before).into_owned(),
            after: String::from_utf8_lossy(&hunk.after).into_owned(),
            created: (!self.existed()).then_some(true),
            deleted: (!exists).then_some(true),
            authors,
            time: versions
                .iter()
                .map(|version| version.time)
                .max()
                .unwrap_or_default(),
        }
    }
}

/// A change is known by what it takes away and what it brings.
fn name(path: &RelPath, hunk: &Reviewed) -> String {
    let mut hasher = Sha256::new();
    for part in [path.as_bytes(), &hunk.before, &hunk.after] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let hash = touchmark_proto::Hash(hasher.finalize().into());
    let mut name = hash.to_string();
    name.truncate(NAME);
    name
}

/// Whether a commit holds a change: it has the lines that came, and not those
/// that went.
fn is_in(committed: &[u8], now: &[u8], hunk: &Reviewed) -> bool {
    let Some(places) = touchmark_engine::text::lines::places(committed, now) else {
        return false;
    };
    places.iter().all(|place| {
        let (start, end) = (place.new_start, place.new_start + place.new_lines);
        // An empty place touches the line before it.
        let touches = |from: u32, to: u32| start <= to && from < end.max(start + 1);
        !touches(hunk.lines.start, hunk.lines.end)
    })
}
