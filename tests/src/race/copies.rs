//! Checks each session's copies and notices at the end, when all players have
//! stopped: no wrong `fresh`, no missing change, no change reported twice.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::account::Account;
use super::{FILES, Field};
use crate::{Client, paths, text};

/// Returns the errors that were found.
pub fn check(account: &Account, client: &mut Client) -> Vec<String> {
    let mut wrong = Vec::new();
    for session in account.sessions {
        let asked = json!({"session": session, "paths": FILES});
        let states = client.ok("file/status", asked);
        let states = states["files"].as_array().expect("files").clone();
        let taken = take(client, session);
        let listed: HashSet<String> = paths(&taken).into_iter().collect();
        for state in &states {
            let path = text(state, "path");
            if let Err(why) = judge(account, session, state, &listed) {
                wrong.push(format!("{session}: {why}: {state}"));
            }
            if state["state"] == "fresh"
                && taken
                    .iter()
                    .any(|change| change["path"] == path && change["lost"].is_null())
            {
                wrong.push(format!("{session} holds {path}, and is told of it"));
            }
        }
        let again = take(client, session);
        if !again.is_empty() {
            wrong.push(format!("{session} is told twice: {again:?}"));
        }
    }
    wrong
}

fn take(client: &mut Client, session: &str) -> Vec<Value> {
    let taken = client.ok("modified/take", json!({"session": session}));
    assert!(taken["more"].is_null(), "few files: {taken}");
    taken["changes"].as_array().expect("changes").clone()
}

fn judge(
    account: &Account,
    session: &str,
    state: &Value,
    listed: &HashSet<String>,
) -> Result<(), &'static str> {
    let path = text(state, "path");
    let (path, hash) = account
        .disk
        .iter()
        .find(|(known, _)| **known == path)
        .expect("a file of the arena");
    if state["hash"].as_str() != hash.as_deref() {
        return Err("that is not what the disk holds");
    }
    let name = state["state"].as_str().expect("a state");
    let Some(hash) = hash else {
        return match name {
            "fresh" => Err("fresh, and gone"),
            _ => Ok(()),
        };
    };
    // What is found at the end of a mark without a content counts as the
    // session's.
    let assumed = Field::of(path).own();
    if name == "fresh" && !assumed && !account.may_have_seen(session, path, hash) {
        return Err("fresh, and never seen");
    }
    let of_this = |act: &&super::log::Act| act.who == session;
    // A content that was seen earlier and came back does not count: the context
    // has the newer text (SEEN-2).
    let seen = account.of(path).filter(of_this).rfind(|act| {
        matches!(
            act.act.as_str(),
            "tell" | "readText" | "guarded" | "own" | "declare"
        ) && act.text("error").is_none()
    });
    let seen = seen.is_some_and(|act| match act.act.as_str() {
        "tell" => act.flag("ok") && act.text("hash") == Some(hash),
        "guarded" => act.text("written") == Some(hash),
        _ => false,
    });
    let in_part = account
        .of(path)
        .filter(of_this)
        .any(|act| act.flag("partial"));
    if seen && !in_part && name != "fresh" {
        return Err("not fresh, although the session has seen it");
    }
    if !matches!(name, "stale" | "deleted") || listed.contains(*path) {
        return Ok(());
    }
    let told = account.acts.iter().filter(of_this).any(|act| {
        act.act == "take"
            && (act.t1.is_none()
                || act.fields["changes"].as_array().is_some_and(|changes| {
                    // A save that was reported in its middle is reported again
                    // (MOD-2).
                    changes.iter().any(|change| {
                        change["path"] == *path
                            && (change["hash"] == *hash || change["writing"] == true)
                    })
                }))
    });
    if told {
        Ok(())
    } else {
        Err("stale, and the session is never told")
    }
}
