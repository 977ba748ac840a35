//! A fuzz test on the real file system. From a seed, a user and agents do what
//! users and agents do to a few files, by all names of these files. The test
//! writes everything itself, so it has a record of what is on disk, who wrote
//! it and what each session was shown last. After every few steps all answers
//! of the daemon are compared with that.
//!
//! - [`step`]: the steps; [`seed`] makes a list of them.
//! - [`text`]: contents with distinguishable lines.
//! - [`disk`]: the user's steps on the disk, and what names resolve to.
//! - [`belief`]: what one session was shown of one name, and the state that
//!   follows from it.
//! - [`people`]: who wrote what, and what each session was shown and told;
//!   [`sharing`]: how that is shared between the names of a file.
//! - [`play`]: runs the steps one by one; [`edits`]: the steps by which agents
//!   write.
//! - [`check`]: the comparisons.
//! - [`rows`]: which steps and comparisons are switched on.
//! - [`shrink`]: finds the shortest list of steps that still fails.
//!
//! What the contract does not specify is not compared here:
//!
//! - In the middle of a save, an answer may have the content from before it
//!   ([`Play::half_written`](play::Play::half_written)).
//! - While the daemon was stopped, and where the way to a name changed, the
//!   author may be `unknown` ([`people::Truth::murky`]).
//! - The author of a content that appeared through a changed link, directory or
//!   mount is not compared. The author of a renamed content is the user who
//!   renamed it or the author who wrote it.
//! - Where lines that are no longer in the context are unchanged in another
//!   content, the copy may be fresh or stale.
//! - A name may come to a file that the session has by another name. If no
//!   question covered that name before the file was read by the other one, the
//!   copy may be stale (FILE-2).
//! - A content that was replaced before any question was answered may never
//!   have been noticed.
//! - A name that a session never used, of a known file that no longer exists,
//!   may be `deleted` or `unread`.
//! - Where names were one file for a moment, and no question was sent in that
//!   moment, what a session has by one name may or may not count for the other.
//! - While a mark that declares nothing is open, what it covers may be the
//!   user's or the session's.

pub mod belief;
pub mod check;
pub mod disk;
pub mod edits;
pub mod people;
pub mod play;
pub mod rows;
pub mod seed;
pub mod sharing;
pub mod shrink;
pub mod step;
pub mod text;
