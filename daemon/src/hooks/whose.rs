//! Who the authors of changes are to the reader of a notice (HOOK-5).

use touchmark_proto::quoting::{escaped, quoted};
use touchmark_proto::{Change, SessionId};

use super::details::Details;
use super::notice;

/// The maximum length of a command in a sentence, in characters.
const COMMAND: usize = 120;

/// Names the authors of changes for their reader: its sub-agents are its own, a
/// change without a command was not made by one, and a command that ran git is
/// named.
pub(super) fn name_for(changes: &mut [Change], own: &SessionId, details: &Details) {
    for change in changes {
        let ran = details.commands.get(&change.path);
        let by_command = { change.evidence.iter() }.any(|evidence| evidence.is_of_command());
        for author in &mut change.changed_by {
            let Some(session) = author.session.clone() else {
                continue;
            };
            let git = ran.filter(|(who, _)| *who == session).map(|(_, ran)| ran);
            let whose = match &author.label {
                _ if session == *own => String::new(),
                label if details.children.contains(&session) => {
                    format!(
                        "your sub-agent {}",
                        notice::name(&session, label.as_deref())
                    )
                }
                label => format!("agent session {}", notice::name(&session, label.as_deref())),
            };
            let by = match (session == *own, git) {
                (true, Some(ran)) => Some(format!("by your {ran} or by another author then")),
                (true, None) if by_command => None,
                (true, None) => Some(notice::A_TOOL.to_owned()),
                (false, Some(ran)) => Some(format!("by {whose}, with {ran}")),
                (false, None) if details.children.contains(&session) => Some(format!("by {whose}")),
                (false, None) => continue,
            };
            (author.session, author.label) = (None, by);
        }
    }
}

/// Returns a command that ran git, with the branches before and after it. `None`
/// for any other command.
pub(super) fn git_command(
    label: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> Option<String> {
    let mut words = label.split(|letter: char| letter.is_whitespace() || ";&|()".contains(letter));
    if !words.any(|word| word == "git" || word.ends_with("/git")) {
        return None;
    }
    let line = escaped(label, COMMAND).replace('`', "'");
    let branches = match (before, after) {
        (Some(before), Some(after)) if before != after => {
            format!(" (branch {} to {})", quoted(before, 80), quoted(after, 80))
        }
        _ => String::new(),
    };
    Some(format!("`{line}`{branches}"))
}

/// Returns by which label others know the reader.
pub(super) fn own_label(label: &str) -> String {
    format!("Others know you as {}.", quoted(label, 80))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_command_is_named_only_if_it_ran_git() {
        let of = |label| git_command(label, Some("a"), Some("main"));
        assert_eq!(
            of("cd x && git switch main").unwrap(),
            "`cd x && git switch main` (branch \"a\" to \"main\")"
        );
        assert_eq!(of("make legit"), None);
        let same = git_command("git stash", Some("a"), Some("a"));
        assert_eq!(same.unwrap(), "`git stash`");
    }
}
