//! Requests in general: the properties of each method, how requests wait, and
//! how many may be pending.

pub(crate) mod audits;
pub(crate) mod limits;
pub(crate) mod pending;
mod reads;
pub(crate) mod scope;
pub(crate) mod table;
pub(crate) mod waiting;
pub(crate) mod waits;
mod whose;

pub use table::{ForShell, MethodRow, Naming, paths, row, session};
