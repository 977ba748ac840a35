//! Every case on every backend.
#![allow(clippy::duplicate_mod)]

#[cfg(target_os = "linux")]
#[path = "."]
mod on_inotify {
    const CHOICE: crate::watch::Choice = crate::watch::Choice::Inotify;
    #[path = "cases.rs"]
    mod cases;
}

#[path = "."]
mod on_notify {
    const CHOICE: crate::watch::Choice = crate::watch::Choice::Notify;
    #[path = "cases.rs"]
    mod cases;
}
