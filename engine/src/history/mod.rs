//! The history of a file's lines over its versions: which version wrote each
//! line, how two versions differ, and the file's content without the changes of
//! some versions (UNDO-1).

mod compared;
mod hunks;
mod indents;
mod kept;
mod likeness;
pub mod lineage;
mod makers;
mod placed;
mod review;
mod sides;
mod spared;
mod survival;
mod weave;
mod without;

pub use compared::{Compared, Kind};
pub use hunks::{Hunk, hunks};
pub use review::{LineName, Reviewed};
pub use spared::{Decided, Likely};
pub use survival::Left;
pub use weave::{Claim, Step, Undos, Weave};
pub use without::{Conflict, Remaining};

#[cfg(test)]
mod large;
#[cfg(test)]
mod tests;
