//! The witness: the kernel stops each call of a process tree that may write a
//! file, a supervisor appends a mark to a ring, and the call continues.
//!
//! [`Witness::spawn`] starts a command below a witness. [`Reader`] reads its
//! marks from the ring, a file that outlives every process of the tree. The
//! README says how it works and what it cannot see.

#[cfg(target_os = "linux")]
mod linux;
mod marks;
mod ring;
#[cfg_attr(not(target_os = "linux"), path = "witness/unsupported.rs")]
mod witness;

pub use marks::{Gap, Identity, Mark, Operation, Process, ProcessId, Record};
pub use ring::Damaged;
pub use ring::reader::Reader;
pub use witness::{Spawned, Target, Unwitnessed, Witness, guardian};
