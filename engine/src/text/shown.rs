//! Names and texts from outside, in the form for sentences.

use touchmark_proto::quoting::quoted;
use touchmark_proto::{Author, AuthorKind, RelPath};

/// The maximum number of characters of a text from outside that a sentence
/// shows.
const MOST_SHOWN: usize = 300;

/// Returns a path in the form for sentences: quoted and escaped (SEC-4).
pub(crate) fn show(path: &RelPath) -> String {
    show_text(&path.to_string_lossy())
}

/// Returns any text from outside in the form for sentences: quoted and escaped
/// (SEC-4).
pub(crate) fn show_text(text: &str) -> String {
    quoted(text, MOST_SHOWN)
}

/// Returns a name for a text that replaces a result, where it is in brackets or
/// alone on a line. The name has no quotes, unless it contains characters that
/// are unusual in names of files and tools.
pub(crate) fn show_bare(name: &str) -> String {
    let usual = |c: char| c.is_alphanumeric() || "/._-+@".contains(c);
    match name.chars().all(usual) && name.chars().count() <= MOST_SHOWN {
        true => name.to_owned(),
        false => show_text(name),
    }
}

/// Returns the authors of a change for a sentence, such as `by agent
/// "claude-1"`. For the user it returns `outside any agent`, since the evidence
/// that it was the user is not known here.
pub(crate) fn show_authors(authors: &[Author]) -> String {
    let names: Vec<String> = authors
        .iter()
        .map(|author| match (author.kind, &author.session) {
            (AuthorKind::Agent, Some(session)) => {
                let name = author.label.as_deref().unwrap_or_else(|| session.as_str());
                format!("by agent {}", quoted(name, 80))
            }
            (AuthorKind::Agent, None) => "by an agent".to_owned(),
            (AuthorKind::User, _) => "outside any agent".to_owned(),
            (AuthorKind::Unknown, _) => "by an unknown author".to_owned(),
            (AuthorKind::Committed, _) => "by a commit".to_owned(),
        })
        .collect();
    names.join(", ")
}
