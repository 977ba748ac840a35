//! The witness's base: marks of what a process tree may write, in a ring that
//! outlives every process of the tree. The README says what is missing.

mod marks;
mod ring;

pub use marks::{Gap, Identity, Mark, Operation, Process, ProcessId, Record};
pub use ring::Damaged;
pub use ring::reader::Reader;
