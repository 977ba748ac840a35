//! The format in use: CBOR, with a number for each field.
//!
//! A field is added by a line with a new number behind the semicolon of its
//! type; what was stored before is read without it. A number is never given
//! twice, and no field changes its type. What an older touchmark must not
//! ignore (a new kind of fact, a field that changes what others mean) takes a
//! step of the store's schema as well, so that it does not open the store.

mod facts;
mod leaves;
mod session_memory;
pub(super) mod snapshot;
mod state;

pub(super) use facts::Fact;
pub(super) use leaves::{Path, Program, Session};
pub(super) use session_memory::SessionMemory;
pub(super) use snapshot::{Head, SessionHead};
pub(super) use state::{
    Command, Edit, EndedEdit, Knowledge, LostVersion, Names, PastCommand, PathState, SaveReport,
    Stamp,
};
