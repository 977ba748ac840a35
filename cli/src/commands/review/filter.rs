//! Which changes of the queue are meant: by words, and by the viewed mark.

use std::collections::HashMap;

use touchmark_client::blocking::Client;
use touchmark_client::proto::commands::CommandList;
use touchmark_client::proto::review::{ReviewHunks, ReviewList};
use touchmark_client::proto::{Author, RelPath};

use crate::output::Outcome;
use crate::text::author;

/// The number of recent commands of which the lines are searched.
const COMMANDS: u32 = 1_000;

/// What is meant of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    /// The words that a change must have in its path, its lines, its authors or
    /// its command, in lower case.
    words: Vec<String>,
    /// Whether it must have been viewed; `None` if that does not matter.
    pub(super) viewed: Option<bool>,
}

impl Filter {
    pub(super) fn new(text: &str, viewed: Option<bool>) -> Self {
        let mut filter = Self {
            words: Vec::new(),
            viewed,
        };
        filter.search(text);
        filter
    }

    /// Sets the words.
    pub(super) fn search(&mut self, text: &str) {
        self.words = text.split_whitespace().map(str::to_lowercase).collect();
    }

    /// Returns whether it leaves out nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.viewed.is_none()
    }

    /// Returns what is meant of a queue. All of the queue is read: further
    /// changes may have the words.
    pub(super) fn list(&self, client: &Client, ask: &ReviewList) -> Outcome<ReviewHunks> {
        let mut ask = ask.clone();
        if !self.is_empty() {
            ask.limit = Some(u32::MAX);
        }
        let mut queue = client.call(ask)?;
        let is_viewed = |viewed: Option<bool>| {
            self.viewed
                .is_none_or(|wanted| wanted == (viewed == Some(true)))
        };
        queue.hunks.retain(|hunk| is_viewed(hunk.viewed));
        let files = queue.files.get_or_insert_default();
        files.retain(|file| is_viewed(file.viewed));
        if !self.words.is_empty() {
            let commands = commands(client, &queue)?;
            let has = |path: &RelPath, authors: &[Author], command: &Option<String>, lines| {
                let line = command.as_ref().and_then(|one| commands.get(one));
                let authors: Vec<String> = authors.iter().map(author).collect();
                let all = [
                    path.to_string_lossy(),
                    authors.join(" "),
                    command.clone().unwrap_or_default(),
                    line.cloned().unwrap_or_default(),
                    lines,
                ];
                let all = all.join("\n").to_lowercase();
                self.words.iter().all(|word| all.contains(word))
            };
            queue.hunks.retain(|hunk| {
                let lines = format!("{}\n{}", hunk.before, hunk.after);
                has(&hunk.path, &hunk.authors, &hunk.command, lines)
            });
            let files = queue.files.get_or_insert_default();
            files.retain(|file| {
                let targets = [&file.target_before, &file.target];
                let targets: Vec<&str> = targets
                    .into_iter()
                    .filter_map(|one| one.as_deref())
                    .collect();
                has(&file.path, &file.authors, &file.command, targets.join("\n"))
            });
        }
        queue.files = queue.files.filter(|files| !files.is_empty());
        Ok(queue)
    }
}

/// Returns the lines of the commands that a queue names, by their ids.
fn commands(client: &Client, queue: &ReviewHunks) -> Outcome<HashMap<String, String>> {
    if queue.hunks.iter().all(|hunk| hunk.command.is_none()) {
        return Ok(HashMap::new());
    }
    let rows = client.call(CommandList::new().limit(COMMANDS))?.commands;
    let lines = rows.into_iter();
    Ok(lines
        .filter_map(|row| Some((row.command, row.label?)))
        .collect())
}
