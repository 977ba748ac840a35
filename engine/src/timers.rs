//! When the engine has to act without an input.

use touchmark_proto::{RelPath, RequestId};

/// What a timer is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// An edit's deadline, or the end of its connection's grace.
    Edit(u64),
    /// A command window's deadline, or the end of its connection's grace.
    Command(u64),
    /// A path with a pending hint has to be read.
    Read(RelPath),
    /// An absence or a copy has to be recorded.
    Settle(RelPath),
    /// A path has to be read, to see whether a mark of a witness has had an
    /// effect.
    Marked(RelPath),
    /// A request's `withinMs` or `waitMs` has passed.
    Request(RequestId),
    /// The comparison after a gap begins although no request needs it.
    Reconcile,
}
