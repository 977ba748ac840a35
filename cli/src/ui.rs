//! The server of `touchmark ui`: a page for this user's browser (SEC-12).
//!
//! It is a client of the daemon's socket like any other; the daemon has no
//! HTTP.
//!
//! - `serve`: the listener, the routes, and when the server ends.
//! - `peer`: which user's process is at the other end.
//! - `gate`: token, cookie, `Host` and origin of each request.
//! - `assets`: the files of the page, which are built into the program.
//! - `calls`: the daemon's methods that the page may call.
//! - `events`: the daemon's events as server-sent events; `stream`: the body
//!   with them.
//! - `answer`: responses and their headers.
//! - `browser`: opens the page.

mod answer;
mod assets;
pub(crate) mod browser;
mod calls;
mod events;
#[cfg(test)]
#[path = "../../fuzz/page.rs"]
mod fuzzed;
mod gate;
#[cfg_attr(not(target_os = "linux"), path = "ui/peer/fallback.rs")]
mod peer;
mod serve;
mod stream;

pub(crate) use serve::{End, serve};
