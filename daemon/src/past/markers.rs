//! Conflict markers, as a merge writes them.

use touchmark_engine::history::Conflict;

/// Returns the text with markers around each change that stays, or `None`
/// if the place of a change in the text cannot be determined.
pub(crate) fn put(before: &[u8], after: &[u8], conflicts: &[Conflict]) -> Option<Vec<u8>> {
    let places = touchmark_engine::text::lines::places(before, after)?;
    let lines: Vec<&[u8]> = after.split_inclusive(|byte| *byte == b'\n').collect();
    // Maps a line number of the older text to the newer text.
    let now = |line: u32| {
        let moved = places
            .iter()
            .take_while(|hunk| hunk.old_start + hunk.old_lines <= line);
        moved.fold(i64::from(line), |at, hunk| {
            at + i64::from(hunk.new_lines) - i64::from(hunk.old_lines)
        })
    };
    let mut out: Vec<u8> = Vec::new();
    let mut copied = 0;
    for conflict in conflicts {
        let start = usize::try_from(now(conflict.lines.start))
            .ok()?
            .saturating_sub(1);
        let end = usize::try_from(now(conflict.lines.end)).ok()?;
        if start < copied || end > lines.len() || start > end {
            return None;
        }
        out.extend(lines[copied..start].concat());
        line(&mut out, b"<<<<<<< now\n");
        out.extend(lines[start..end].concat());
        line(&mut out, b"=======\n");
        out.extend(&conflict.before);
        line(&mut out, b">>>>>>> before\n");
        copied = end;
    }
    out.extend(lines[copied..].concat());
    Some(out)
}

/// Appends a marker at the beginning of a line.
fn line(out: &mut Vec<u8>, marker: &[u8]) {
    if !matches!(out.last(), None | Some(b'\n')) {
        out.push(b'\n');
    }
    out.extend(marker);
}
