//! Moves within an undo: files that get an earlier name back, and files that
//! others have replaced (HIST-9).

use std::path::Path;
use std::sync::Arc;

use touchmark_engine::{Fact, Held, VersionFact};
use touchmark_proto::files::FileSnapshot;
use touchmark_proto::undo::UndoOutcome;
use touchmark_proto::{
    Author, Error, Evidence, FileMode, Hash, RelPath, Version, VersionKind, native,
};

use super::Undoer;
use super::journal::Journal;
use super::plan::{self, Plan};
use super::whose::Chosen;
use crate::history::Chain;
use crate::past::entry::{Entry, FileEntry};
use crate::system::stat::{MetadataExt as _, modified_ms};

/// Plans the moves back. A file that was moved gets its old name back, with
/// what other authors have written in it since. If another file has the old
/// name by now, the file keeps its current name. The file that had the current
/// name before comes back.
///
/// # Errors
/// `storage`, `shuttingDown`.
pub(super) async fn join(
    undoer: &Undoer,
    plans: &mut Vec<Plan>,
    chosen: &Chosen,
) -> Result<(), Error> {
    for at in 0..plans.len() {
        let from = plans[at].from.take();
        let stays = plans[at].outcome == UndoOutcome::NotKept;
        let Some(from) = from.filter(|_| plans[at].after.is_some() && !stays) else {
            continue;
        };
        let Some(old) = free(undoer, plans, &from).await? else {
            plans[at].cause = Some("its old name is another file's".into());
            continue;
        };
        plans[old].after = plans[at].after.take();
        plans[old].outcome = written(&plans[old]);
        plans[old].mode = plans[at].mode.or(plans[at].was).or(plans[old].mode);
        let by = plans[at].by.clone();
        plans[old].by.extend(by);
        plans[at].hunks += 1;
        plans[at].outcome = UndoOutcome::Renamed;
        plans[at].to = Some(from);
    }
    replaced(undoer, plans, chosen).await
}

/// Returns the plan for a name that is free, or is going to be; `None` if it is
/// another file's.
async fn free(
    undoer: &Undoer,
    plans: &mut Vec<Plan>,
    name: &RelPath,
) -> Result<Option<usize>, Error> {
    if let Some(at) = plans.iter().position(|plan| plan.path == *name) {
        return Ok(Some(at).filter(|at| plans[*at].after.is_none()));
    }
    // What is found at the name through a link that replaced a directory above
    // it is another file.
    let chain = undoer.chain(name).await?;
    let now = match chain.versions.last() {
        Some(last) => last.hash,
        None => {
            undoer
                .cx
                .inside
                .ask(FileSnapshot { path: name.into() })
                .await?
                .hash
        }
    };
    if now.is_some() {
        return Ok(None);
    }
    plans.push(Plan::nothing(name, UndoOutcome::Unchanged, None));
    Ok(Some(plans.len() - 1))
}

/// Returns the outcome of a file that is to be written.
fn written(plan: &Plan) -> UndoOutcome {
    match plan.before {
        None => UndoOutcome::Restored,
        Some(_) => UndoOutcome::Undone,
    }
}

/// Plans what becomes of files that others have replaced. One that the selected
/// versions replaced or removed comes back, if its name gets free.
async fn replaced(undoer: &Undoer, plans: &mut Vec<Plan>, chosen: &Chosen) -> Result<(), Error> {
    let lineage = undoer.lineage().await?;
    let mut all = Vec::new();
    for (path, n) in chosen.versions() {
        all.push((path, n, true));
        // The file in whose place this version put another one.
        let begin = lineage.begin(path, n);
        let is_begin = begin.is_some_and(|begin| begin.version == n);
        all.extend(is_begin.then(|| (path, n.saturating_sub(1), false)));
    }
    for (path, n, is_own) in all {
        let place = lineage.place(path, n);
        let is_planned = |_: &u64| plans.iter().any(|plan| plan.versions.contains(&n));
        let Some(over) = place.over.filter(|over| !is_planned(over)) else {
            continue;
        };
        let chain = undoer.chain_at(&place.name, over.saturating_sub(1)).await?;
        let known = |plan: &Plan| {
            let mut own = chain.versions.iter();
            own.any(|version| plan.versions.contains(&version.clock.n))
        };
        if chain.versions.is_empty() || plans.iter().any(known) {
            continue;
        }
        let is_chosen = |version: &Version| chosen.has(version);
        let is_theirs = chain.versions.last().is_some_and(|last| match last.hash {
            None => is_chosen(last),
            Some(_) => chosen.has_number(over),
        });
        let own = chain.versions.iter().map(|version| version.clock.n);
        let mut planned = plans.iter().position(|plan| plan.path == place.name);
        if planned.is_none() && is_own && is_theirs {
            // The file that replaced it may have moved on.
            planned = free(undoer, plans, &place.name).await?;
        }
        match planned {
            Some(at) => {
                plans[at].versions.extend(own);
                match (is_theirs, plans[at].after.is_some()) {
                    (true, false) => come_back(undoer, &mut plans[at], chain, chosen).await?,
                    (true, true) => {
                        let cause = "another file has its name by now".to_owned();
                        plans[at].cause.get_or_insert(cause);
                    }
                    // Others removed it: nothing of it is left.
                    (false, _) => {}
                }
            }
            None if !is_own => {}
            None => {
                let (outcome, cause) = match is_theirs {
                    true => (UndoOutcome::Conflict, "another file has its name by now"),
                    false => (
                        UndoOutcome::Unchanged,
                        "it was replaced by another file since",
                    ),
                };
                let mut plan = Plan::nothing(&place.name, outcome, Some(cause.into()));
                plan.versions = own.collect();
                plans.push(plan);
            }
        }
    }
    Ok(())
}

/// Plans that a file comes back under a name that gets free.
async fn come_back(
    undoer: &Undoer,
    plan: &mut Plan,
    chain: Chain,
    chosen: &Chosen,
) -> Result<(), Error> {
    let undos = undoer.journal.recorded().among(&chain.versions);
    let (chain, without, _) = plan::without(chain, &undos, chosen).await?;
    let mode = chain.mode_without(&undos, |at| plan::is_meant(&chain, chosen, at));
    plan.after = without.bytes.map(Arc::from);
    plan.mode = mode.or(plan.mode);
    if plan.to.is_none() {
        plan.outcome = written(plan);
    }
    Ok(())
}

/// Returns the versions of the names that files have left in a recorded undo,
/// or have come to, except of those that were `saved` since.
pub(super) fn versions(
    journal: &Journal,
    entry: &Entry,
    saved: &[RelPath],
    root: &Path,
) -> Vec<Fact> {
    let of = |(at, file): (usize, &FileEntry)| {
        if file.to.is_some() {
            return Some(version(&file.path, file.before, None));
        }
        let mut others = entry.files.iter();
        if file.before.is_some() || !others.any(|other| other.to.as_ref() == Some(&file.path)) {
            return None;
        }
        let [_, after] = journal.contents(entry, at).ok()?;
        let after = found(root, &file.path, after.as_deref())?;
        Some(version(&file.path, None, Some(after)))
    };
    let files = entry.files.iter().enumerate();
    let files = files.filter(|(_, file)| !saved.contains(&file.path));
    files.filter_map(of).collect()
}

/// Returns these bytes as the content of the file at a name; `None` if there is
/// none.
pub(super) fn found(root: &Path, path: &RelPath, bytes: Option<&[u8]>) -> Option<Held> {
    let place = root.join(native::name(path.as_bytes()));
    let found = place.symlink_metadata().ok()?;
    let bytes = bytes?;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').count();
    Some(Held {
        hash: Some(Hash::of(bytes)),
        size: bytes.len() as u64,
        lines: u32::try_from(lines).unwrap_or(u32::MAX),
        mtime_ms: modified_ms(&found),
        mode: FileMode::new(found.mode()),
        owner: None,
    })
}

/// Returns the version by which a file leaves a name, or comes to it.
pub(super) fn version(path: &RelPath, before: Option<Hash>, after: Option<Held>) -> Fact {
    let (kind, evidence) = match after {
        Some(_) => (VersionKind::Created, Evidence::Editor),
        None => (VersionKind::Deleted, Evidence::Unmarked),
    };
    let held = after.unwrap_or(Held::ABSENT);
    Fact::Version(VersionFact {
        before,
        ..VersionFact::new(path.clone(), kind, held, Author::USER, evidence)
    })
}
