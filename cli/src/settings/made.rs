//! What an installation created, so that removing it restores the previous
//! settings.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::document::{self, Container, Step, Style, Unreadable, find};
use super::json::quoted;

/// What an installation created in addition to its own items, so that removing
/// it restores the previous settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Made {
    /// The previous text, if it had no value in it.
    pub(super) document: Option<String>,
    /// The members that were created: `hooks`, `hooks/Stop`, `version`,
    /// `mcpServers/touchmark`.
    pub(super) members: BTreeSet<String>,
    /// The texts of objects and lists that were empty, by their place. The
    /// outermost is the empty string.
    pub(super) empty: BTreeMap<String, String>,
    /// The text that was added to a file that is not JSON.
    pub(super) put: Option<String>,
}

impl Made {
    /// Returns the text that a container had while it was empty, if that is
    /// known.
    pub(super) fn inside(&self, place: &str) -> Option<&str> {
        self.empty.get(place).map(String::as_str)
    }
}

/// Returns the text with an object at the top, which is created if there is no
/// value.
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

/// Returns the text without the created top object, if that is empty.
pub(super) fn ended(text: String, made: Option<&Made>) -> Result<String, Unreadable> {
    match made.and_then(|made| made.document.as_ref()) {
        Some(before) => as_before(&text, before),
        None => Ok(text),
    }
}

/// Adds a member, unless it exists. `place` is its name after those of its
/// containers.
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

/// Records the text inside a container that is empty and that this installation
/// has not created.
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

/// Returns the text without the object that the installation created, if
/// nothing else was added to it.
fn as_before(text: &str, before: &str) -> Result<String, Unreadable> {
    let Some(root) = find(text, &[])? else {
        return Ok(text.to_owned());
    };
    let inside = root.inside(text).trim();
    let rest = root.around(text);
    let same = rest.split_whitespace().eq(before.split_whitespace());
    Ok(match root.is_empty() && inside.is_empty() && same {
        true => before.to_owned(),
        false => text.to_owned(),
    })
}

pub(super) fn there(container: Option<Container>) -> Result<Container, Unreadable> {
    // It was found or created just before.
    container.ok_or_else(|| Unreadable {
        line: 1,
        reason: "the settings changed while they were read".into(),
    })
}
