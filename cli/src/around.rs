//! The unchanged lines around a change, of the file as it is now.

use touchmark_client::blocking::Client;
use touchmark_client::proto::files::TextEncoding;
use touchmark_client::proto::history::FileContent;
use touchmark_client::proto::{ClientPath, RelPath};

/// The number of lines on each side of a change, as in a patch of git's.
const LINES: usize = 3;

/// Files as they are now. Only the last one is remembered: changes are sorted by
/// file.
pub(crate) struct Around<'c> {
    client: &'c Client,
    last: Option<(RelPath, Vec<String>)>,
}

/// The lines before a change, and those after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
}

impl<'c> Around<'c> {
    pub(crate) fn new(client: &'c Client) -> Self {
        Self { client, last: None }
    }

    /// Returns the lines around a change of which the file has the lines `now`,
    /// after `above` other lines. There are none if the file has other lines
    /// there by now, or is no text.
    pub(crate) fn of(&mut self, path: &RelPath, above: usize, now: &str) -> Context {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            self.last = Some((path.clone(), self.lines(path)));
        }
        let last = self.last.as_ref();
        last.map_or_else(Context::default, |(_, lines)| around(lines, above, now))
    }

    fn lines(&self, path: &RelPath) -> Vec<String> {
        let ask = FileContent {
            path: ClientPath::from(path),
            at: None,
        };
        match self.client.call(ask) {
            Ok(content) if content.encoding == TextEncoding::Utf8 => {
                content.text.lines().map(str::to_owned).collect()
            }
            // The change is shown without them.
            _ => Vec::new(),
        }
    }
}

fn around(lines: &[String], above: usize, now: &str) -> Context {
    let below = above + now.lines().count();
    let is_there = lines
        .get(above..below)
        .is_some_and(|own| now.lines().eq(own));
    if !is_there {
        return Context::default();
    }
    Context {
        before: lines[above.saturating_sub(LINES)..above].to_vec(),
        after: lines[below..].iter().take(LINES).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_lines_stand_on_each_side_where_the_file_has_them() {
        let lines: Vec<String> = (1..=9).map(|n| n.to_string()).collect();
        let around = |above, now: &str| {
            let Context { before, after } = super::around(&lines, above, now);
            (before.join(" "), after.join(" "))
        };
        let context = |before: &str, after: &str| (before.to_owned(), after.to_owned());
        assert_eq!(around(4, "5\n6\n"), context("2 3 4", "7 8 9"));
        assert_eq!(around(0, "1\n"), context("", "2 3 4"));
        // Lines that were removed, at the end.
        assert_eq!(around(9, ""), context("7 8 9", ""));
        // The file has changed since.
        assert_eq!(around(4, "five\n"), context("", ""));
        assert_eq!(around(12, ""), context("", ""));
    }
}
