//! A whole write and a removal destroy lines. A session that was shown only some
//! of a file's lines is denied once, with the number of the others (HOOK-4).

use std::path::Path;

use touchmark_engine::ranges::RangeSet;
use touchmark_engine::text::{form, lines};
use touchmark_engine::{Fact, Refusal};
use touchmark_proto::{ClientPath, Hash, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::destroys;
use super::super::happened::{Change, Verdict, Writing};
use super::super::{edits, notice};
use super::Outcome;

/// Denies a call that removes lines which its session was never shown and did
/// not write. `None` if the call may run.
pub(super) async fn removed(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    files: &[Writing],
) -> Option<Outcome> {
    for Writing { path, change } in files {
        if !matches!(change, Change::Whole(_) | Change::Delete) {
            continue;
        }
        let Some(path) = daemon.place(cwd, path).await else {
            continue;
        };
        if let Some(text) = denial(daemon, session, &path, change).await {
            if let Ok(path) = path.normalise(&daemon.cx.root_bytes()) {
                daemon.cx.inside.record(vec![Fact::Refused {
                    session: session.clone(),
                    path: Some(path),
                    cause: Refusal::NotRead,
                }]);
            }
            return Some(Verdict::Deny(text).into());
        }
    }
    None
}

/// Returns why a tool must not remove the lines of a file.
async fn denial(
    daemon: &DaemonHandle,
    session: &SessionId,
    path: &ClientPath,
    change: &Change,
) -> Option<String> {
    let status = daemon.status(session, path).await?;
    let now = status.hash?;
    let copies = copies(daemon, session, path).await?;
    let all = RangeSet::default().with(1, status.line_count.max(1));
    let of_now = copies.iter().filter(|(hash, _)| *hash == Some(now));
    let mut seen = RangeSet::default();
    of_now.for_each(|(_, ranges)| seen.add(ranges));
    if seen.covers(&all) {
        return None;
    }
    let (hash, bytes) = daemon.bytes(path).await?;
    let text = form::plain(&bytes)?;
    for (older, ranges) in &copies {
        if *older != Some(hash)
            && let Some(older) = older
            && let Some(content) = daemon.content(*older).await
            && let Some(content) = form::plain(&content)
        {
            let changed = lines::places(content.as_bytes(), text.as_bytes())?;
            seen.add(&ranges.carried(&changed));
        }
    }
    let result = match change {
        Change::Delete => String::new(),
        _ => edits::likeliest(change, &bytes)?,
    };
    let removed = lines::removed(text.as_bytes(), result.as_bytes())?;
    let removed: RangeSet = removed.into_iter().collect();
    let unseen = removed.minus(&seen).ranges(status.line_count);
    let all: Vec<&str> = text.lines().collect();
    let says = |number: u32| {
        let line = all.get(number as usize - 1);
        line.is_some_and(|line| destroys::says(line.as_bytes()))
    };
    let numbers = unseen.iter().flat_map(|range| range.start..=range.end);
    let count = numbers.filter(|number| says(*number)).count();
    if count == 0 {
        return None;
    }
    // Lines of a secret are not shown, and nothing brings them back (SEC-3).
    if daemon.content(hash).await.is_none() {
        return Some(notice::unseen(&status, count, None));
    }
    let shown = destroys::shown(&text, &unseen);
    let warns = daemon.memory.warns_of_unseen(session, hash);
    warns.then(|| notice::unseen(&status, count, Some(&shown)))
}

/// A content, and the lines of it that a session was shown or wrote.
type Copy = (Option<Hash>, RangeSet);

/// Returns what a session was ever shown of a file, or wrote; `None` if that is
/// not known (SEEN-9), or nothing.
async fn copies(
    daemon: &DaemonHandle,
    session: &SessionId,
    path: &ClientPath,
) -> Option<Vec<Copy>> {
    let path = path.normalise(&daemon.cx.root_bytes()).ok()?;
    let session = session.clone();
    let look = daemon.cx.inside.look(move |state| {
        let known = state.knowledge(&session, &path)?;
        let is_known = known.any() && !known.uncertain && !known.is_missed();
        let copies = known.seen.iter();
        is_known.then(|| {
            let copies = copies.map(|seen| (seen.hash, seen.ranges.clone()));
            copies.collect()
        })
    });
    look.await.flatten()
}
