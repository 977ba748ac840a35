//! The witness: marks of what a process tree may write, made before each write,
//! without privileges. Linux only: elsewhere a command runs unwitnessed.

mod checksum;
mod encoding;
mod marks;
mod ring;
mod stored;

#[cfg(target_os = "linux")]
mod address;
#[cfg(target_os = "linux")]
mod callers;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod packing;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod proc_stat;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod resolve;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
mod watches;
#[cfg(target_os = "linux")]
mod witness;

pub use marks::{
    Before, Chance, Event, Gap, Identity, Mark, Operation, Process, ProcessId, Record, Refusal,
    Stored,
};
pub use ring::fence::fence;
pub use ring::reader::Reader;
pub use ring::{Damaged, files};
pub use stored::{pack, stored};

#[cfg(target_os = "linux")]
pub use place::device;
#[cfg(target_os = "linux")]
pub use processes::{Launch, run};
#[cfg(target_os = "linux")]
pub use ring::create;
#[cfg(target_os = "linux")]
pub use tree::{Held, holders};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{Held, Launch, create, device, holders, run};
