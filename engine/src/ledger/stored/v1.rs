//! The current format: CBOR, with a number for each field.
//!
//! To add a field, add a line with a new number at the end of its type. Older
//! bytes are read without it. A number is never used twice, and no
//! field changes its type. An older touchmark ignores what it does not
//! understand. If it must not ignore a change (a new kind of fact, or a field
//! that changes the meaning of others), increase the version of the store's
//! schema as well, so that an older touchmark does not open the store.

mod facts;
mod leaves;
mod session_memory;
pub(super) mod snapshot;
mod state;

pub(super) use facts::Fact;
pub(super) use leaves::{Path, Program, Session};
pub(super) use session_memory::SessionMemory;
pub(super) use state::{
    Command, CommandFile, Edit, EndedEdit, Knowledge, LostVersion, Names, PastCommand, PathState,
    SaveReport, Stamp,
};
