//! A file's authors as an Agent Trace 0.1.0 record, a format that tools
//! exchange.

use serde_json::{Value, json};
use touchmark_client::blocking::Client;
use touchmark_client::find::Workspace;
use touchmark_client::proto::history::{Blame, BlameLine};
use touchmark_client::proto::models::ModelList;
use touchmark_client::proto::{Author, AuthorKind, Hash, SessionId};

use crate::blame;
use crate::context::{Connection, pages};
use crate::daemon::WorkTree;
use crate::output::Outcome;

/// Returns the record of one file.
pub(crate) fn record(connection: &Connection<'_>, blame: &Blame) -> Outcome<Value> {
    let mut authors: Vec<&Author> = Vec::new();
    for line in &blame.lines {
        if !authors.contains(&&line.author) {
            authors.push(&line.author);
        }
    }
    let conversations: Vec<Value> = authors
        .into_iter()
        .map(|author| conversation(&connection.client, blame, author))
        .collect();
    let mut record = json!({
        "version": "0.1.0",
        "id": id(blame),
        "timestamp": jiff::Timestamp::now().to_string(),
        "tool": {"name": "touchmark", "version": env!("CARGO_PKG_VERSION")},
        "files": [{"path": blame.path.to_string_lossy(), "conversations": conversations}],
        "metadata": {"dev.touchmark": {
            "clock": blame.clock.map(|clock| clock.to_string()),
            "contentHash": format!("sha256:{}", blame.hash),
        }},
    });
    if let Some(revision) = revision(&connection.workspace) {
        record["vcs"] = json!({"type": "git", "revision": revision});
    }
    Ok(record)
}

fn conversation(client: &Client, blame: &Blame, author: &Author) -> Value {
    let kind = match author.kind {
        AuthorKind::Agent => "ai",
        AuthorKind::User => "human",
        // A commit does not say whether a person typed the line.
        AuthorKind::Unknown | AuthorKind::Committed => "unknown",
    };
    let mut contributor = json!({ "type": kind });
    let mut related = Vec::new();
    if let Some(session) = &author.session {
        if let Some(model) = model(client, session) {
            contributor["model_id"] = model.into();
        }
        related.push(json!({"type": "session", "url": format!("urn:touchmark:session:{}", escaped(session))}));
    }
    let mut told =
        json!({"contributor": contributor, "ranges": ranges(&blame.lines, blame.start, author)});
    if !related.is_empty() {
        told["related"] = related.into();
    }
    told
}

/// Returns a session's last model, as `provider/model`.
pub(crate) fn model(client: &Client, session: &SessionId) -> Option<String> {
    let entries = pages(|cursor| {
        let page = client.call(ModelList {
            cursor,
            ..ModelList::new(session.clone())
        })?;
        Ok((page.entries, page.more))
    });
    let entry = entries.ok()?.pop()?;
    Some(format!("{}/{}", entry.provider_id, entry.model_id))
}

/// Returns the ranges of consecutive lines of one author.
fn ranges(lines: &[BlameLine], start: u32, author: &Author) -> Vec<Value> {
    let own = lines.iter().zip(start..);
    let own = own.filter_map(|(line, number)| (line.author == *author).then_some(number));
    let told = blame::ranges(own).into_iter();
    told.map(|(start, end)| json!({"start_line": start, "end_line": end}))
        .collect()
}

/// Returns the commit that is checked out; `None` if the workspace is in no
/// repository.
fn revision(workspace: &Workspace) -> Option<String> {
    let tree = WorkTree::of(&workspace.root, &workspace.places)?;
    let git = tree.git(&workspace.root).ok()?;
    let revision = git
        .args(["rev-parse", "-q", "--verify", "HEAD"])
        .printed()?;
    let revision = String::from_utf8(revision).ok()?;
    Some(revision.trim().to_owned())
}

/// Returns a UUID (version 8) of the record's content. The same content has the
/// same UUID.
fn id(blame: &Blame) -> String {
    let said = format!("{} {:?} {}", blame.path, blame.clock, blame.hash);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Hash::of(said.as_bytes()).0[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

/// Returns a session's id as a part of a URN.
fn escaped(session: &SessionId) -> String {
    let bytes = session.as_str().bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    });
    bytes.collect()
}
