//! Forwards signals that this process receives to the command.

#[cfg_attr(not(target_os = "linux"), path = "forwarding/target/fallback.rs")]
mod target;

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use target::{Target, ignored_signals};

/// The signals that are received.
pub(super) struct Forwarding {
    runtime: tokio::runtime::Runtime,
    signals: Vec<(Signal, tokio::signal::unix::Signal)>,
}

impl Forwarding {
    /// Registers the handlers, so that no signal ends this process before the
    /// command. Ignored signals stay ignored, for the command too.
    pub(super) fn prepare() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let ignored = ignored_signals();
        let entered = runtime.enter();
        let mut signals = Vec::new();
        for forwarded in [
            Signal::HUP,
            Signal::INT,
            Signal::QUIT,
            Signal::TERM,
            Signal::USR1,
            Signal::USR2,
        ] {
            if ignored & (1 << (forwarded.as_raw() - 1)) == 0 {
                let stream = signal(SignalKind::from_raw(forwarded.as_raw()))?;
                signals.push((forwarded, stream));
            }
        }
        drop(entered);
        Ok(Self { runtime, signals })
    }

    /// Forwards signals to the command until this process ends.
    pub(super) fn start(self, child: &Child) {
        let Some(target) = Target::of(child) else {
            return;
        };
        let Self { runtime, signals } = self;
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let target = std::sync::Arc::new(target);
                let mut tasks = Vec::new();
                for (signal, mut stream) in signals {
                    let target = std::sync::Arc::clone(&target);
                    tasks.push(tokio::spawn(async move {
                        while stream.recv().await.is_some() {
                            forward(&target, signal);
                        }
                    }));
                }
                for task in tasks {
                    let _never_ends = task.await;
                }
            });
        });
    }
}

/// Returns the number of the signal that killed the command; `None` if none
/// did.
pub(super) fn ended_by(status: ExitStatus) -> Option<i32> {
    status.signal()
}

fn forward(target: &Target, signal: Signal) {
    // The terminal has sent these signals to the whole group, which includes
    // the command.
    let of_the_terminal = matches!(signal, Signal::INT | Signal::QUIT) && in_the_foreground();
    if !of_the_terminal {
        target.send(signal);
    }
}

/// Returns whether this process's group is the terminal's foreground group.
fn in_the_foreground() -> bool {
    std::fs::File::open("/dev/tty")
        .ok()
        .and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok())
        == Some(rustix::process::getpgrp())
}
