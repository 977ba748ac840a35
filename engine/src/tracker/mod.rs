//! What is known now: which file a name leads to, what is being written, which
//! reads are owed, and what has still to be compared with the disk.

pub(crate) mod carry;
pub(crate) mod live;
mod observe;
pub(crate) mod reading;
pub(crate) mod reconcile;
pub(crate) mod resolve;
pub(crate) mod spoken;
pub(crate) mod stamps;
pub(crate) mod ways;
