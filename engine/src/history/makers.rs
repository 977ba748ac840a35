//! The versions that turned lines on, or off.

/// For each line, the versions that turned it on, or off: a stack for each line,
/// all in one list. A file has 200,000 lines, so none has a list of its own.
#[derive(Debug, Default)]
pub(super) struct Makers {
    /// For each line the place of its newest version in `made`.
    newest: Vec<Option<usize>>,
    /// A version, and the place of the same line's version before it.
    made: Vec<(usize, Option<usize>)>,
}

impl Makers {
    /// Notes a version as the newest of a line.
    pub(super) fn push(&mut self, line: usize, version: usize) {
        if self.newest.len() <= line {
            self.newest.resize(line + 1, None);
        }
        let before = self.newest[line].replace(self.made.len());
        self.made.push((version, before));
    }

    /// Forgets the newest version of a line.
    pub(super) fn pop(&mut self, line: usize) {
        if let Some(at) = self.newest.get(line).copied().flatten() {
            self.newest[line] = self.made[at].1;
        }
    }

    /// Returns the newest version of a line; `None` if it has none.
    pub(super) fn newest(&self, line: usize) -> Option<usize> {
        let at = self.newest.get(line).copied().flatten()?;
        Some(self.made[at].0)
    }
}
