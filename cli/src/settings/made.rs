//! What an installation made, so that taking it back leaves what was there.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::document::{self, Container, Step, Style, Unreadable, find};
use super::json::quoted;

/// What an installation made beside what it put in, so that taking it
/// back leaves what was there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Made {
    /// The text that had no value in it.
    pub(super) document: Option<String>,
    /// Members: `hooks`, `hooks/Stop`, `version`, `mcpServers/touchmark`.
    pub(super) members: BTreeSet<String>,
    /// What stood in objects and lists that were empty: `` is the outermost.
    pub(super) empty: BTreeMap<String, String>,
    /// The text that was put into a file that is no JSON.
    pub(super) put: Option<String>,
}

impl Made {
    /// What stood in a container while it was empty, if that is known.
    pub(super) fn inside(&self, place: &str) -> Option<&str> {
        self.empty.get(place).map(String::as_str)
    }
}

/// The text with an object in it to put things into.
pub(super) fn begun(text: &str, made: &mut Made) -> Result<String, Unreadable> {
    let mut begun = text.to_owned();
    if find(text, &[])?.is_none() {
        made.document = Some(begun.clone());
        let newline = Style::of(text).newline();
        if !begun.is_empty() && !begun.ends_with('\n') {
            begun.push_str(newline);
        }
        begun.push_str("{}");
        begun.push_str(newline);
    }
    Ok(begun)
}

/// The text without that object, if nothing is left in it.
pub(super) fn ended(text: String, made: Option<&Made>) -> Result<String, Unreadable> {
    match made.and_then(|made| made.document.as_ref()) {
        Some(before) => as_before(&text, before),
        None => Ok(text),
    }
}

/// Puts a member in, unless it is there. `place` is its name behind those of
/// what it is in.
pub(super) fn member(
    text: &str,
    steps: &[Step<'_>],
    name: &str,
    place: &str,
    item: &str,
    style: &Style,
    made: &mut Made,
) -> Result<String, Unreadable> {
    let parent = there(find(text, steps)?)?;
    if parent.position(name).is_some() {
        return Ok(text.to_owned());
    }
    let around = place.rsplit_once('/').map_or("", |(around, _)| around);
    note_empty(text, &parent, around, made);
    made.members.insert(place.to_owned());
    let item = format!("{}: {item}", quoted(name));
    Ok(document::insert(text, &parent, &item, steps.len(), style))
}

/// Remembers what stands in a container that is empty and not of this
/// installation.
pub(super) fn note_empty(text: &str, container: &Container, place: &str, made: &mut Made) {
    if container.is_empty() && !made.members.contains(place) {
        made.empty
            .insert(place.to_owned(), container.inside(text).to_owned());
    }
}

pub(super) fn without(text: &str, name: &str, inside: Option<&str>) -> Result<String, Unreadable> {
    let root = there(find(text, &[])?)?;
    Ok(match root.position(name) {
        Some(index) => document::remove(text, &root, index, inside),
        None => text.to_owned(),
    })
}

/// The text without the object that the installation made, if nothing else
/// came into it.
fn as_before(text: &str, before: &str) -> Result<String, Unreadable> {
    let Some(root) = find(text, &[])? else {
        return Ok(text.to_owned());
    };
    let inside = root.inside(text).trim();
    let whole = format!("{{{}}}", root.inside(text));
    let rest = text.replacen(&whole, "", 1);
    let same = rest.split_whitespace().eq(before.split_whitespace());
    Ok(match root.is_empty() && inside.is_empty() && same {
        true => before.to_owned(),
        false => text.to_owned(),
    })
}

pub(super) fn there(container: Option<Container>) -> Result<Container, Unreadable> {
    // It was found or made just before.
    container.ok_or_else(|| Unreadable {
        line: 1,
        reason: "the settings changed while they were read".into(),
    })
}
