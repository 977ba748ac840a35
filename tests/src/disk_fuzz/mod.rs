//! A fuzz on the real file system: from a seed, a user and agents do whatever
//! users and agents do to a few files, by all names that those have. The test
//! writes everything itself, so it knows what is on disk, who wrote it and what
//! each session was shown last. After every few steps every answer of the
//! daemon is compared with that.
//!
//! - [`step`]: what is done; [`seed`] makes a list of it.
//! - [`text`]: contents, whose lines can be told apart.
//! - [`disk`]: the user's steps on the disk, and what names lead to.
//! - [`belief`]: what one session holds of one name, and what that is worth.
//! - [`people`]: who wrote what, and what each session was shown and told;
//!   [`sharing`]: how that goes with the names of a file.
//! - [`play`]: the steps one by one; [`edits`]: those that agents write by.
//! - [`check`]: the comparisons.
//! - [`rows`]: which steps and comparisons are on.
//! - [`shrink`]: the shortest list of steps that still fails.
//!
//! What the contract leaves open is left open here, and said where it is:
//!
//! - In the middle of a save, its writer still at it, an answer may be of
//!   before it ([`Play::half_written`](play::Play::half_written)).
//! - Between two of the daemon's lives, and where a name's way changed, the
//!   author may be `unknown` ([`people::Truth::murky`]).
//! - Who is the author of a content that came by another way (a link, a
//!   directory, a mount) is not compared; of one that was renamed it is who
//!   renamed it, or who wrote it.
//! - Where lines that are no longer in the context stand unchanged in another
//!   content, the copy may be fresh, or stale.
//! - What was held by a name that came to the file, and was not asked about
//!   before the file was read by another name, may make the copy stale (FILE-2).
//! - A content that was replaced before any question was answered may never
//!   have been noticed.
//! - A name that a session never used, of what was a file it knew, and where
//!   there is nothing now, may be `deleted` or `unread`.
//! - Where names were one file for a moment in which nobody asked, what was
//!   known by one may be known by the other, or not.
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
