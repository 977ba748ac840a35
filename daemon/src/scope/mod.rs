//! What commands do to untracked files (SCOPE-1). When a window with the scope
//! `workspace` opens or ends, a *sweep* compares the stats of all files with
//! those at the last sweep, and files that differ are read. Nothing is watched
//! for this. Between two sweeps there is only the index.

mod difference;
mod index;
mod known;
mod listing;
mod repository;
mod rules;
#[cfg(test)]
mod tests;
mod walk;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use touchmark_engine::patterns::Patterns;
use touchmark_engine::{Input, Learned, Sweep};
use touchmark_proto::{Error, ErrorCode, Places, RequestId};

use crate::content::Reader;
use crate::event::Event;
use crate::guard::Guard;
use crate::witness::Fences;
use known::Workspace;

/// The longest time of a sweep that a command waits for. Directories that were
/// not looked at by then are reported, and looked at after the answer.
const LONGEST: Duration = Duration::from_millis(120);

/// The longest time that a request for all changes waits for the rest of a
/// sweep. Below [`HANGS`], since what was found then has to be recorded.
const REST: Duration = Duration::from_secs(3);

/// A sweep that takes longer hangs. Requests that wait for it are answered
/// without its result.
const HANGS: Duration = Duration::from_secs(5);

/// How long files that were found changed are read before a command may begin.
const READ_ON: Duration = Duration::from_millis(10);

/// The number of these files that are read before it also on a busy machine, as
/// long as that takes no longer than [`LONGEST`].
const READ_FIRST: usize = 64;

/// The number of files that are read before the time is looked at again.
const FEW: usize = 8;

/// The most contents that are passed to the loop together.
const BATCH: usize = 64;

/// The settings of sweeps.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The workspace's directory.
    pub(crate) root: PathBuf,
    /// Reads its files.
    pub(crate) reader: Reader,
    /// Where the daemon keeps its files, and the list of trusted directories.
    pub(crate) places: Places,
    /// `scope.exclude`.
    pub(crate) exclude: Patterns,
    /// The size limit of a stored content, in bytes.
    pub(crate) keep_file: u64,
    /// The limit, in bytes, for all stored contents that did not change yet.
    pub(crate) keep_total: u64,
    /// Fences between what was read and what witnesses have recorded.
    pub(crate) fences: Fences,
    /// Keeps what commands destroy of ignored files; `None` keeps nothing.
    pub(crate) guard: Option<Arc<Guard>>,
}

/// Sweeps the workspace, on a thread that starts with the first sweep.
#[derive(Debug)]
pub(crate) struct Sweeper {
    settings: Settings,
    events: UnboundedSender<Event>,
    orders: Mutex<Option<Sender<Order>>>,
    /// The number of orders that are not completed.
    waiting: Arc<AtomicUsize>,
}

/// An order to sweep the workspace.
struct Order {
    /// The request that waits for it; `None` if the sweep only records the
    /// current files for later.
    request: Option<RequestId>,
    sweep: Sweep,
    done: oneshot::Sender<()>,
}

impl Sweeper {
    pub(crate) fn new(settings: Settings, events: UnboundedSender<Event>) -> Self {
        Self {
            settings,
            events,
            orders: Mutex::default(),
            waiting: Arc::default(),
        }
    }

    /// Orders a sweep of the workspace for a request.
    pub(crate) fn sweep(&self, request: Option<RequestId>, sweep: Sweep) {
        let (done, is_done) = oneshot::channel();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let order = Order {
            request,
            sweep,
            done,
        };
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if orders.is_none() {
            *orders = self.begin();
        }
        let sent = orders.as_ref().map(|orders| orders.send(order));
        let unheard = !matches!(sent, Some(Ok(())));
        let Some(request) = request else { return };
        let events = self.events.clone();
        tokio::spawn(async move {
            let ended = match unheard {
                true => false,
                false => tokio::time::timeout(HANGS, is_done).await == Ok(Ok(())),
            };
            if !ended {
                let why = "the files of the workspace could not be read in time";
                let _loop_has_ended = events.send(Event::Feed(Input::Learned {
                    request,
                    learned: Err(Error::new(ErrorCode::Unreadable, why)),
                }));
            }
        });
    }

    /// Starts the thread. `None` if the system refuses.
    fn begin(&self) -> Option<Sender<Order>> {
        let (sender, receiver) = channel();
        let (settings, events) = (self.settings.clone(), self.events.clone());
        let waiting = Arc::clone(&self.waiting);
        let thread = thread::Builder::new().name("scope".into());
        let started = thread.spawn(move || serve(&settings, &events, &receiver, &waiting));
        started
            .inspect_err(|error| tracing::error!("no thread for commands: {error}"))
            .ok()?;
        Some(sender)
    }
}

/// Executes orders as they arrive. Between them, completes a sweep that had no
/// time, unless a command has begun, and reads the files that were met.
fn serve(
    settings: &Settings,
    events: &UnboundedSender<Event>,
    orders: &Receiver<Order>,
    waiting: &AtomicUsize,
) {
    let mut workspace = Workspace::new(settings);
    let send = |event: Event| events.send(event).is_ok();
    for order in orders {
        let most = match order.sweep {
            Sweep::Named(_) => REST,
            _ => longest(),
        };
        let until = Instant::now() + most;
        let (swept, met) = workspace.look(&order.sweep, until);
        waiting.fetch_sub(1, Ordering::SeqCst);
        let mut there = met.is_empty() || send(Event::Met(met));
        // What was saved right before the command has to be read before the
        // command can change it. Only a first look finds more than a few files.
        let (began, mut read) = (Instant::now(), 0);
        while there && !workspace.has_read_all() {
            let most = if read < READ_FIRST {
                longest()
            } else {
                READ_ON
            };
            if began.elapsed() >= most {
                break;
            }
            there = send(Event::Met(workspace.read_on(FEW)));
            read += FEW;
        }
        there &= send(Event::Feed(match order.request {
            Some(request) => Input::Learned {
                request,
                learned: Ok(Learned::Swept(swept)),
            },
            None => Input::Swept(swept),
        }));
        let _nobody_waits = order.done.send(());
        // The command runs meanwhile. A file that it changes before it was read
        // here is recognised by its stat.
        let is_wanted = || waiting.load(Ordering::SeqCst) > 0;
        let opens = matches!(order.sweep, Sweep::Between(_) | Sweep::Opening(_));
        let begins = opens && order.request.is_some();
        if begins {
            workspace.go_on_meeting(&is_wanted);
        }
        while there && !is_wanted() {
            if workspace.is_behind() && !begins {
                let (swept, met) = workspace.go_on(true, &is_wanted);
                there = send(Event::Met(met)) && send(Event::Feed(Input::Swept(swept)));
                continue;
            }
            let met = workspace.read_on(BATCH);
            if met.is_empty() && workspace.has_read_all() {
                break;
            }
            there = met.is_empty() || send(Event::Met(met));
        }
        if !there {
            return;
        }
    }
}

fn longest() -> Duration {
    // For tests with a slow build.
    #[cfg(debug_assertions)]
    if let Ok(told) = std::env::var("TOUCHMARK_TEST_SCOPE_MS") {
        return told.parse().map_or(LONGEST, Duration::from_millis);
    }
    LONGEST
}
