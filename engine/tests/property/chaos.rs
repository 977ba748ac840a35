//! Runs in which everything is late and in any order: hints, reads and answers
//! arrive at random times, reads see half of a write, the daemon is killed.
//! Only what docs/semantics.md promises at all times is asserted.

use std::collections::BTreeSet;

use touchmark_proto::{Author, Evidence, Reply, State};

use crate::asks;
use crate::audit::Audit;
use crate::content::{content, hash};
use crate::op::{ALL_FILES, Ask, Asking, How, Op, SESSIONS};
use crate::script::Script;
use crate::world::{Outcome, Seen, World};

/// Runs a script. Returns the number of steps, or the step that failed and why.
pub fn run(script: &Script) -> Result<u64, (usize, String)> {
    let mut world = World::new(script.tick, &script.initial);
    let mut audit = Audit::default();
    for (index, op) in script.ops.iter().enumerate() {
        world.step(op);
        audit.look(&mut world).map_err(|why| (index, why))?;
        world.seen.clear();
        replay(&world).map_err(|why| (index, why))?;
    }
    let end = script.ops.len();
    finish(&mut world, &mut audit).map_err(|why| (end, why))?;
    replay(&world).map_err(|why| (end, why))?;
    Ok(world.steps)
}

/// Checks that folding the facts gives the engine's state.
pub fn replay(world: &World) -> Result<(), String> {
    match &world.engine {
        Some(engine) if world.folded != *engine.state() => Err(format!(
            "replay: the facts give\n{:?}\nand the engine holds\n{:?}",
            world.folded,
            engine.state()
        )),
        _ => Ok(()),
    }
}

fn go(world: &mut World, audit: &mut Audit, op: Op) -> Result<Vec<Seen>, String> {
    world.step(&op);
    audit.look(world)?;
    Ok(std::mem::take(&mut world.seen))
}

/// Checks the end of a run: when everything is quiet, the next change is the
/// user's, is reported once to each session that tracks the file, and no client
/// waits for an answer.
fn finish(world: &mut World, audit: &mut Audit) -> Result<(), String> {
    go(world, audit, Op::Up { snapshot: false })?;
    for writer in 0..60 {
        world.step(&Op::WClose { writer });
    }
    for _ in 0..3 {
        go(world, audit, Op::Drain)?;
        go(world, audit, Op::Pass(700_000))?;
    }
    go(world, audit, Op::Drain)?;
    if !world.pending.is_empty() {
        return Err(format!("never answered: {:?}", world.pending));
    }
    for path in ALL_FILES {
        if world.disk.exists(path) && world.hash_of(path).is_none() {
            go(world, audit, Op::Chmod { path })?;
        }
    }
    go(world, audit, Op::Drain)?;
    go(world, audit, Op::Pass(100))?;

    go(world, audit, Op::Drain)?;
    let mut last = Vec::new();
    for (index, path) in ALL_FILES.iter().enumerate() {
        let id = 2_000_000 + index as u32;
        let (path, how) = (*path, How::InPlace);
        go(
            world,
            audit,
            Op::Write {
                path,
                content: id,
                how,
            },
        )?;
        last.push((path, id));
    }
    go(world, audit, Op::Drain)?;
    go(world, audit, Op::Pass(1_000))?;
    go(world, audit, Op::Drain)?;
    if audit.open_edits() > 0 {
        return Err(format!("ATTR-9: {} edits never ended", audit.open_edits()));
    }
    for (path, id) in last {
        if !world.tracked.contains(path) {
            continue;
        }
        let wanted = Some(hash(&content(id)));
        match audit.newest_on(path) {
            Some((hash, author, Evidence::Unmarked, _))
                if hash == wanted && *author == Author::USER => {}
            other => return Err(format!("ATTR-9: {path} is the user's, not {other:?}")),
        }
    }
    for session in 0..SESSIONS.len() {
        let asking = |ask| {
            Op::Ask(Asking {
                session,
                connection: 90 + session as u64,
                within: None,
                sync: true,
                ask,
            })
        };
        let take = || {
            asking(Ask::Take {
                peek: false,
                explicit: false,
                paths: None,
            })
        };
        let mut replies = Vec::new();
        for op in [asking(Ask::Status { paths: None }), take(), take()] {
            let mut seen = go(world, audit, op)?;
            seen.extend(go(world, audit, Op::Drain)?);
            for one in seen {
                if let Seen::Answered {
                    outcome: Outcome::Reply(Ok(answer)),
                    ..
                } = one
                {
                    replies.push(answer.reply);
                }
            }
        }
        // A session that never recorded anything is not known (SES-1).
        if replies.is_empty() {
            continue;
        }
        let [
            Reply::FileStatus(states),
            Reply::ModifiedTake(first),
            Reply::ModifiedTake(second),
        ] = &replies[..]
        else {
            return Err(format!("three questions, other answers: {replies:?}"));
        };
        let due: BTreeSet<String> = states
            .files
            .iter()
            .filter(|file| matches!(file.state, State::Stale | State::Deleted))
            .map(|file| file.path.to_string_lossy())
            .collect();
        let told: BTreeSet<String> = first
            .changes
            .iter()
            .filter(|change| change.lost.is_none())
            .map(|change| change.path.to_string_lossy())
            .collect();
        let who = asks::session(session);
        if !due.is_subset(&told) {
            return Err(format!("MOD-1: {who:?} holds {due:?}, was told {told:?}"));
        }
        if !second.changes.is_empty() {
            return Err(format!("MOD-2: {who:?} was told twice: {second:?}"));
        }
        for file in &states.files {
            if matches!(file.state, State::Fresh) {
                return Err(format!("SYNC-1: {who:?} cannot have seen {file:?}"));
            }
        }
    }
    Ok(())
}
