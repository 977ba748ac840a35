//! Comments to agents on their changes (REV-5).

use touchmark_client::blocking::Client;
use touchmark_client::proto::Millis;
use touchmark_client::proto::review::{
    Comment, CommentState, CommentTo, ReviewComment, ReviewHunks,
};

use super::queue::{QueuedChange, changes};
use crate::output::{self, Failure, Outcome};
use crate::style::{self, paint};
use crate::system::terminal;
use crate::text::{self, ago, called, escaped, folded, now, path, zone};

/// The maximum length of a comment that is printed, in characters.
const TEXT: usize = 1_000;

/// Writes a comment on a change, or withdraws it if the text is empty. Prints who
/// receives it.
pub(super) fn write(client: &Client, change: &QueuedChange<'_>, text: &str) -> Outcome {
    let ask = ReviewComment::new(change.path, change.id, text);
    match client.call(ask)?.comment {
        Some(comment) => output::lines(&lines(&comment, false)),
        None => output::line("the comment is withdrawn"),
    }
}

/// Withdraws the comments on the changes of a queue that no session has received;
/// with `is_all`, also those on changes that have left the queue.
pub(super) fn withdraw(client: &Client, queue: &ReviewHunks, is_all: bool) -> Outcome {
    let is_told = |to: &CommentTo| to.state == CommentState::Told;
    let queued = changes(queue);
    let is_on = |comment: &Comment| {
        let mut queued = queued.iter();
        queued.any(|change| comment.path == *change.path && comment.id == change.id)
    };
    let all = queue.comments.iter().flatten();
    let meant = all.filter(|comment| is_all || is_on(comment));
    let waiting = meant.filter(|comment| !comment.to.iter().any(is_told));
    let mut withdrawn = 0;
    for comment in waiting {
        client.call(ReviewComment::new(&comment.path, &comment.id, ""))?;
        withdrawn += 1;
    }
    match withdrawn {
        0 => Err(Failure::Usage(
            "no comment waits there; `touchmark review --comments` lists all".into(),
        )),
        many => output::line(&format!("withdrawn: {}", text::count(many, "comment"))),
    }
}

/// Prints all comments of a queue.
pub(super) fn list(queue: &ReviewHunks) -> Outcome {
    let mut all = queue.comments.iter().flatten().peekable();
    if all.peek().is_none() {
        return output::line("there are no comments");
    }
    all.try_for_each(|comment| output::lines(&lines(comment, true)))
}

/// Returns a comment as lines: the text, and who has received it. With
/// `is_named`, it begins with the file.
pub(super) fn lines(comment: &Comment, is_named: bool) -> Vec<String> {
    let columns = terminal::room();
    let place = match (is_named, comment.lines) {
        (false, _) => String::new(),
        (true, None) => format!("{}: ", path(&comment.path)),
        (true, Some(range)) => format!("{}: {}: ", path(&comment.path), text::lines(range)),
    };
    let words = escaped(&comment.text.replace('\n', " "), TEXT);
    let mut lines = folded(&format!("{place}\u{201c}{words}\u{201d}"), columns, "  ");
    let to: Vec<String> = comment.to.iter().map(|to| state(to, now())).collect();
    let to = folded(&format!("  {}", to.join("; ")), columns, "  ");
    lines.extend(to.iter().map(|line| paint(style::DIM, line)));
    lines
}

/// Returns whether a session has received a comment, for people.
fn state(to: &CommentTo, now: Millis) -> String {
    let name = called(&to.session, to.label.as_deref());
    match (to.state, to.told) {
        (CommentState::Told, Some(told)) => {
            format!("{name} received it {}", ago(told, now, &zone()))
        }
        (CommentState::Told, None) => format!("{name} received it"),
        (CommentState::Ended, _) => {
            format!("waits: {name} has ended, and receives it if it is continued")
        }
        (CommentState::WaitingForEvent, _) => format!(
            "waits for the next event of {name} that can carry text: its agent takes none with a prompt"
        ),
        (CommentState::Waiting, _) => format!("waits for the next prompt of {name}"),
    }
}
