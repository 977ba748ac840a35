//! What became of a file's lines, one version after the other: who wrote which
//! of them, where two versions differ, and what the file would hold without
//! the changes of some versions (UNDO-1).

mod hunks;
mod review;
mod weave;
mod without;

pub use hunks::{Hunk, hunks};
pub use review::{LineName, Reviewed};
pub use weave::{Compared, Kind, Step, Weave};
pub use without::{Conflict, Without};

#[cfg(test)]
mod tests;
