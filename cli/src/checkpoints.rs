//! Checkpoints as people name them: by an id, or by a label.

use touchmark_client::blocking::Client;
use touchmark_client::proto::checkpoints::{CheckpointList, CheckpointRow};
use touchmark_client::proto::{At, Clock, SessionId};

use crate::context::{all_sessions, pages};
use crate::output::{Failure, Outcome};
use crate::text::{MAX_NAME, called, escaped};

/// Returns all checkpoints of a session, oldest first.
pub(crate) fn checkpoints(client: &Client, session: &SessionId) -> Outcome<Vec<CheckpointRow>> {
    pages(|cursor| {
        let answer = client.call(CheckpointList {
            cursor,
            ..CheckpointList::new(session.clone())
        })?;
        Ok((answer.checkpoints, answer.more))
    })
}

/// Returns the id of the checkpoint of any session that a person means, by its
/// id or label.
///
/// # Errors
/// If several checkpoints have that label.
pub(crate) fn meant_of_any(client: &Client, said: String) -> Outcome<String> {
    let mut found: Vec<String> = Vec::new();
    for row in all_sessions(client)? {
        for checkpoint in checkpoints(client, &row.session)? {
            if checkpoint.checkpoint == said {
                return Ok(said);
            }
            if checkpoint.label.as_deref() == Some(&said) {
                found.push(checkpoint.checkpoint);
            }
        }
    }
    one(said, &found)
}

/// Returns the id of the checkpoint that a person means, by its id or label.
///
/// # Errors
/// If several of the session's checkpoints have that label.
pub(crate) fn meant(client: &Client, session: &SessionId, said: String) -> Outcome<String> {
    let rows = checkpoints(client, session)?;
    if rows.iter().any(|row| row.checkpoint == said) {
        return Ok(said);
    }
    let labelled = rows
        .into_iter()
        .filter(|row| row.label.as_deref() == Some(&said));
    let ids: Vec<String> = labelled.map(|row| row.checkpoint).collect();
    one(said, &ids)
}

/// Returns the checkpoint that a person means by a label that these have.
fn one(said: String, ids: &[String]) -> Outcome<String> {
    match ids {
        // The daemon's error says that there is no such checkpoint.
        [] => Ok(said),
        [only] => Ok(only.clone()),
        several => Err(Failure::Usage(format!(
            "several checkpoints have the label {}: {}",
            escaped(&said, MAX_NAME),
            several.join(", ")
        ))),
    }
}

/// Returns the moment of the checkpoint with a label.
///
/// # Errors
/// If no checkpoint has that label, or several have it.
pub(crate) fn labelled(client: &Client, text: &str) -> Outcome<At> {
    let mut found: Vec<(String, Clock)> = Vec::new();
    for row in all_sessions(client)? {
        let name = called(&row.session, row.label.as_deref());
        let of_session = text.strip_prefix(name.as_str());
        let label = of_session.and_then(|rest| rest.strip_prefix('/'));
        for checkpoint in checkpoints(client, &row.session)? {
            let own = checkpoint.label.as_deref();
            if own == Some(text) || (own.is_some() && own == label) {
                let id = escaped(&checkpoint.checkpoint, MAX_NAME);
                found.push((format!("{name}/{id}"), checkpoint.clock));
            }
        }
    }
    let said = escaped(text, MAX_NAME);
    match found.as_slice() {
        [(_, clock)] => Ok(At::Clock {
            epoch: Some(clock.epoch),
            n: clock.n,
        }),
        [] => {
            let wrong = text.parse::<At>().err();
            let wrong = wrong.map_or_else(String::new, |error| format!(": {error}"));
            Err(Failure::Usage(format!(
                "{said} names no version, and is no label of a checkpoint{wrong}"
            )))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
            Err(Failure::Usage(format!(
                "several checkpoints have the label {said}: {}",
                names.join(", ")
            )))
        }
    }
}
