//! Forwards signals that this process receives to a command that it runs.

#[cfg_attr(not(target_os = "linux"), path = "forwarding/target/fallback.rs")]
mod target;

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

use target::{Target, ignored_signals};

/// The signals that end a command, unless it handles them.
const ENDING: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// The other signals that are forwarded.
const OTHER: [Signal; 2] = [Signal::USR1, Signal::USR2];

/// The signals that are received, from now on until this process ends.
pub(crate) struct Forwarding {
    received: Arc<Mutex<Received>>,
    /// Asks the thread that receives them to answer.
    ask: UnboundedSender<mpsc::Sender<()>>,
}

#[derive(Default)]
struct Received {
    /// The command; `None` before it runs.
    target: Option<Target>,
    /// The signals so far, oldest first.
    signals: Vec<OneSignal>,
}

#[derive(Clone, Copy)]
struct OneSignal {
    signal: Signal,
    /// The terminal has sent it to the whole foreground group, which includes
    /// a command that runs.
    to_the_group: bool,
}

impl Forwarding {
    /// Registers the handlers, so that no signal ends this process before the
    /// command. Ignored signals stay ignored, for the command too.
    pub(crate) fn prepare() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let ignored = ignored_signals();
        let entered = runtime.enter();
        let mut streams = Vec::new();
        for forwarded in ENDING.into_iter().chain(OTHER) {
            if ignored & (1 << (forwarded.as_raw() - 1)) == 0 {
                let stream = signal(SignalKind::from_raw(forwarded.as_raw()))?;
                streams.push((forwarded, stream));
            }
        }
        drop(entered);
        let received = Arc::new(Mutex::new(Received::default()));
        let (ask, mut asked) = tokio::sync::mpsc::unbounded_channel::<mpsc::Sender<()>>();
        let shared = Arc::clone(&received);
        std::thread::spawn(move || {
            runtime.block_on(async move {
                for (signal, mut stream) in streams {
                    let shared = Arc::clone(&shared);
                    tokio::spawn(async move {
                        while stream.recv().await.is_some() {
                            let one = OneSignal {
                                signal,
                                to_the_group: matches!(signal, Signal::INT | Signal::QUIT)
                                    && in_the_foreground(),
                            };
                            let mut received = lock(&shared);
                            received.signals.push(one);
                            if let Some(target) = &received.target
                                && !one.to_the_group
                            {
                                target.send(signal);
                            }
                        }
                    });
                }
                while let Some(answer) = asked.recv().await {
                    // The tasks that the same poll has woken run first.
                    for _ in 0..2 {
                        tokio::task::yield_now().await;
                    }
                    let _receiver_is_gone = answer.send(());
                }
                // Signals are received until the process ends.
                std::future::pending::<()>().await;
            });
        });
        Ok(Self { received, ask })
    }

    /// Starts the command and forwards signals to it until this process ends,
    /// also those that were received before.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        self.look();
        let before = lock(&self.received).signals.len();
        let child = command.spawn()?;
        if let Some(target) = Target::of(&child) {
            let mut received = lock(&self.received);
            for (at, one) in received.signals.iter().enumerate() {
                // While the command starts, the terminal may have sent it the
                // signal. A second interrupt makes some programs exit at once;
                // a user repeats one that did not arrive.
                if at < before || !one.to_the_group {
                    target.send(one.signal);
                }
            }
            received.target = Some(target);
        }
        Ok(child)
    }

    /// Waits until all signals count that the system has delivered by now.
    pub(crate) fn look(&self) {
        let (answer, answered) = mpsc::channel();
        if self.ask.send(answer).is_ok() {
            let _it_has_looked = answered.recv();
        }
    }

    /// Returns the first signal to end that this process has received; `None`
    /// if it has received none.
    pub(crate) fn told_to_end(&self) -> Option<Signal> {
        let received = lock(&self.received);
        let mut signals = received.signals.iter().map(|one| one.signal);
        signals.find(|signal| ENDING.contains(signal))
    }
}

fn lock(received: &Mutex<Received>) -> std::sync::MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of the signal that killed the command; `None` if none
/// did.
pub(crate) fn ended_by(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Returns whether this process's group is the terminal's foreground group.
fn in_the_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return false;
    };
    // This process's group has no number in a container that was entered from
    // outside. Its terminal's group has none then either, which is an error.
    rustix::termios::tcgetpgrp(terminal)
        .is_ok_and(|foreground| foreground == rustix::process::getpgrp())
}
