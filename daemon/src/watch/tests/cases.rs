//! Tests on a real file system; the fence is the only synchronisation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fences;
mod links;
mod moves;
#[cfg(target_os = "linux")]
mod saves;
mod tracked;
mod world;

use super::CHOICE;
