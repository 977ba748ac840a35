//! Runs that have failed once, shrunk. Each test is named after what it showed.

mod copies;
mod names;
mod writers;

use touchmark_proto::files::FileHistory;
use touchmark_proto::{Reply, Request};

use crate::disk::Name;
use crate::op::{How, Kind, Op, Script};
use crate::people::SESSIONS;
use crate::play::{self, Play, session};
use crate::text::Make;

fn holds(initial: &[(Name, Make)], ops: &[Op]) {
    ends(initial, ops, |_| ());
}

/// Plays a story and checks its end. Used where the model leaves the result
/// open.
fn ends(initial: &[(Name, Make)], ops: &[Op], so: impl Fn(&mut Play)) {
    for (tick, turned, texts) in [(1, false, false), (1_000, true, false), (1, false, true)] {
        let script = Script {
            tick,
            turned,
            texts,
            initial: initial.to_vec(),
            ops: ops.to_vec(),
        };
        so(&mut play::play(&script).unwrap());
    }
}

/// Returns the session that is named as the author of a file's current content,
/// or `None`.
fn writer(play: &mut Play, name: Name) -> Option<usize> {
    let history = Request::FileHistory(FileHistory {
        path: name.into(),
        limit: None,
        before: None,
        sync: None,
        verify: None,
    });
    let Ok(Reply::FileHistory(told)) = play.ask(0, history) else {
        panic!("no history");
    };
    let author = told
        .versions
        .first()
        .and_then(|row| row.author.session.clone());
    author.and_then(|id| (0..SESSIONS).find(|who| session(*who) == id))
}

fn read(session: usize, name: Name) -> Op {
    Op::Read {
        session,
        name,
        range: None,
        hash: false,
    }
}

fn save(name: Name, make: Make, how: How) -> Op {
    Op::Save { name, make, how }
}

fn begin(slot: usize, session: usize, name: Name, make: Make, declared: bool) -> Op {
    Op::Begin {
        slot,
        session,
        name,
        make,
        declared,
        kind: Kind::Hook,
        guarded: false,
    }
}

fn saves(slot: usize) -> Op {
    Op::AgentSave {
        slot,
        how: How::Replace,
        alias: false,
    }
}

fn commit(slot: usize, named: bool) -> Op {
    Op::Commit { slot, named }
}

const CHECK: Op = Op::Check { order: 0 };
