//! The lines that an undo would change, for its dry run.

use touchmark_engine::text::lines;
use touchmark_proto::undo::UndoneLines;

/// The maximum number of bytes of text in the answer to a dry run.
const MOST: usize = 64 << 10;

/// How much text an answer may still contain.
#[derive(Debug)]
pub(crate) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MOST)
    }
}

impl Room {
    /// Returns the lines that differ between a file's content and its content
    /// after an undo; `None` for no file. Lines for which no room is left are
    /// left out. `None` if nothing differs, or if one of the two is not text.
    pub(crate) fn lines(
        &mut self,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Option<Vec<UndoneLines>> {
        let [before, after] = [before, after].map(Option::unwrap_or_default);
        let [old, new] = [before, after].map(|bytes| std::str::from_utf8(bytes).ok());
        let [old, new] = [old?, new?].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
        let part = |all: &[&str], start: u32, count: u32| -> String {
            let from = start.saturating_sub(1) as usize;
            let lines = all.iter().skip(from).take(count as usize);
            lines.copied().collect()
        };
        let mut found = Vec::new();
        for hunk in lines::all_places(before, after)? {
            let lines = UndoneLines {
                start: hunk.old_start.max(1),
                before: part(&old, hunk.old_start, hunk.old_lines),
                after: part(&new, hunk.new_start, hunk.new_lines),
            };
            let size = lines.before.len() + lines.after.len();
            let Some(left) = self.0.checked_sub(size) else {
                break;
            };
            self.0 = left;
            found.push(lines);
        }
        (!found.is_empty()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_of_an_undo_are_those_that_differ_within_the_room() {
        let mut room = Room::default();
        let found = room
            .lines(Some(b"a\nB\nc\nd\n"), Some(b"a\nb\nc\n"))
            .unwrap();
        let told: Vec<_> = found
            .iter()
            .map(|lines| (lines.start, &*lines.before, &*lines.after))
            .collect();
        assert_eq!(told, [(2, "B\n", "b\n"), (4, "d\n", "")]);
        // A file that is removed, one that comes back, and no difference.
        let removed = room.lines(Some(b"a\n"), None).unwrap();
        assert_eq!((&*removed[0].before, &*removed[0].after), ("a\n", ""));
        let back = room.lines(None, Some(b"a\n")).unwrap();
        assert_eq!((&*back[0].before, &*back[0].after), ("", "a\n"));
        assert_eq!(room.lines(Some(b"a\n"), Some(b"a\n")), None);
        assert_eq!(room.lines(Some(b"\xff\n"), Some(b"a\n")), None);
        let long = "x\n".repeat(MOST);
        assert_eq!(room.lines(Some(b""), Some(long.as_bytes())), None);
    }
}
