//! Where the terminal tells the command by itself, and nobody else can.

use std::io;
use std::process::{Child, ExitStatus};

/// The key that interrupts is not to end this process before the command.
pub(super) struct Forwarding(tokio::runtime::Runtime);

impl Forwarding {
    pub(super) fn prepare() -> io::Result<Self> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map(Self)
    }

    pub(super) fn start(self, _child: &Child) {
        std::thread::spawn(move || {
            self.0.block_on(async {
                // The command has had it, too.
                while tokio::signal::ctrl_c().await.is_ok() {}
            });
        });
    }
}

/// None ends a process here.
pub(super) fn ended_by(_status: ExitStatus) -> Option<i32> {
    None
}
