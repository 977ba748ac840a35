//! Checkpoints as people name them: by an id, or by a label.

use jiff::Zoned;
use touchmark_client::blocking::Client;
use touchmark_client::proto::checkpoints::{CheckpointList, CheckpointRow};
use touchmark_client::proto::{At, SessionId, When};

use crate::context::{all_sessions, pages};
use crate::moments;
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

/// Returns the checkpoints of a session, or of all sessions, each with the name
/// of its session.
fn all(client: &Client, of: Option<&SessionId>) -> Outcome<Vec<(String, CheckpointRow)>> {
    let mut all = Vec::new();
    for row in all_sessions(client)? {
        if of.is_none_or(|of| *of == row.session) {
            let name = called(&row.session, row.label.as_deref());
            let own = checkpoints(client, &row.session)?.into_iter();
            all.extend(own.map(|checkpoint| (name.clone(), checkpoint)));
        }
    }
    Ok(all)
}

/// Returns the id of the checkpoint that a person means, by its id or label: of
/// a session, or of any.
///
/// # Errors
/// If several checkpoints have that label.
pub(crate) fn meant(client: &Client, of: Option<&SessionId>, said: String) -> Outcome<String> {
    let mut all = all(client, of)?;
    if all.iter().any(|(_, row)| row.checkpoint == said) {
        return Ok(said);
    }
    all.retain(|(_, row)| row.label.as_deref() == Some(&said));
    let labelled = only(&said, &all)?;
    // The daemon's error says that there is no such checkpoint.
    Ok(labelled.map_or(said, |row| row.checkpoint.clone()))
}

/// Returns the moment of the checkpoint with a label: `LABEL`, or
/// `SESSION/LABEL`.
///
/// # Errors
/// If no checkpoint has that label, or several have it.
pub(crate) fn labelled(client: &Client, text: &str) -> Outcome<At> {
    let mut all = all(client, None)?;
    all.retain(|(name, row)| {
        let of_session = text.strip_prefix(name.as_str());
        let of_session = of_session.and_then(|rest| rest.strip_prefix('/'));
        let label = row.label.as_deref();
        label.is_some() && (label == Some(text) || label == of_session)
    });
    if let Some(row) = only(text, &all)? {
        return Ok(At::Clock {
            epoch: Some(row.clock.epoch),
            n: row.clock.n,
        });
    }
    if let Some(moment) = moments::worded(text, &Zoned::now()) {
        return Ok(At::Time(When::Exact(moment.timestamp())));
    }
    let wrong = text.parse::<At>().err();
    let wrong = wrong.map_or_else(String::new, |error| format!(": {error}"));
    Err(Failure::Usage(format!(
        "{} names no version, and is no label of a checkpoint{wrong}, or a time in words (`yesterday`, `2 hours ago`)",
        escaped(text, MAX_NAME)
    )))
}

/// Returns the only checkpoint with a label; `None` if there is none.
fn only<'a>(
    label: &str,
    found: &'a [(String, CheckpointRow)],
) -> Outcome<Option<&'a CheckpointRow>> {
    match found {
        [] => Ok(None),
        [(_, row)] => Ok(Some(row)),
        several => {
            let names = several.iter();
            let names = names.map(|(name, row)| format!("{name}/{}", row.checkpoint));
            Err(Failure::Usage(format!(
                "several checkpoints have the label {}: {}",
                escaped(label, MAX_NAME),
                names.collect::<Vec<_>>().join(", ")
            )))
        }
    }
}
