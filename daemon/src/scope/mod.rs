//! What commands do to files that nobody tracks (SCOPE-1). Whenever a window
//! with the scope of the workspace opens or ends, its files are compared by
//! stat with what they were at the last look; what differs is read. Nothing is
//! watched for it, and between two looks there is nothing but the index.

mod index;
mod known;
mod repository;
mod rules;
#[cfg(test)]
mod tests;
mod walk;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use touchmark_engine::patterns::Patterns;
use touchmark_engine::{Learned, Swept};
use touchmark_proto::trust::Trust;
use touchmark_proto::{Hash, RequestId};

use crate::content::Reader;
use crate::event::Event;
use known::Workspace;

/// How long a look may take that a command waits for; what has not been looked
/// at by then is said.
const LONGEST: Duration = Duration::from_millis(120);

/// One that takes longer hangs: whoever waits for it is answered without.
const HANGS: Duration = Duration::from_secs(5);

/// Contents that are handed over together, at most.
const BATCH: usize = 64;

/// A content that was met: its bytes, if they are to be kept; `None` where they
/// may not be (SEC-3).
pub(crate) type Met = (Hash, Option<Arc<[u8]>>);

/// What is to be looked at, and how.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The workspace's directory.
    pub(crate) root: PathBuf,
    /// Reads its files.
    pub(crate) reader: Reader,
    /// Whose ignore files count.
    pub(crate) trust: Trust,
    /// `scope.exclude`.
    pub(crate) exclude: Patterns,
    /// Contents of at most so many bytes are kept.
    pub(crate) keep_file: u64,
    /// So many bytes are kept in all of what nobody has changed yet.
    pub(crate) keep_total: u64,
}

/// Looks at the workspace, on a thread that begins with the first look.
#[derive(Debug)]
pub(crate) struct Sweeper {
    settings: Settings,
    events: UnboundedSender<Event>,
    orders: Option<Sender<Order>>,
    /// Orders that are not carried out yet.
    waiting: Arc<AtomicUsize>,
}

/// An order to look.
struct Order {
    /// Who waits for it; nobody where it is only to be known later what
    /// was there.
    request: Option<RequestId>,
    /// A window is open in which something may have been changed.
    claims: bool,
    done: oneshot::Sender<()>,
}

impl Sweeper {
    pub(crate) fn new(settings: Settings, events: UnboundedSender<Event>) -> Self {
        Self {
            settings,
            events,
            orders: None,
            waiting: Arc::default(),
        }
    }

    /// Has the workspace looked at for a request.
    pub(crate) fn sweep(&mut self, request: Option<RequestId>, claims: bool) {
        let (done, is_done) = oneshot::channel();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let order = Order {
            request,
            claims,
            done,
        };
        let sent = self.orders().map(|orders| orders.send(order));
        let unheard = !matches!(sent, Some(Ok(())));
        let Some(request) = request else { return };
        let events = self.events.clone();
        tokio::spawn(async move {
            let ended = match unheard {
                true => false,
                false => tokio::time::timeout(HANGS, is_done).await == Ok(Ok(())),
            };
            if !ended {
                let why = "the files of the workspace could not be looked at in time".to_owned();
                let _loop_has_ended = events.send(Event::Learned {
                    request,
                    learned: Ok(Learned::Swept(Swept {
                        partial: Some(why),
                        ..Swept::default()
                    })),
                });
            }
        });
    }

    fn orders(&mut self) -> Option<&Sender<Order>> {
        if self.orders.is_none() {
            let (sender, receiver) = channel();
            let (settings, events) = (self.settings.clone(), self.events.clone());
            let waiting = Arc::clone(&self.waiting);
            let thread = thread::Builder::new().name("scope".into());
            let started = thread.spawn(move || serve(&settings, &events, &receiver, &waiting));
            started
                .inspect_err(|error| tracing::error!("no thread for commands: {error}"))
                .ok()?;
            self.orders = Some(sender);
        }
        self.orders.as_ref()
    }
}

/// Carries out orders as they come; between them, reads what was met.
fn serve(
    settings: &Settings,
    events: &UnboundedSender<Event>,
    orders: &Receiver<Order>,
    waiting: &AtomicUsize,
) {
    let mut workspace = Workspace::new(settings);
    let send = |event: Event| events.send(event).is_ok();
    for order in orders {
        let until = Instant::now() + longest();
        let (swept, met) = workspace.sweep(order.claims, until);
        waiting.fetch_sub(1, Ordering::SeqCst);
        let mut there = met.is_empty() || send(Event::Met(met));
        if let Some(request) = order.request {
            let learned = Ok(Learned::Swept(swept));
            there &= send(Event::Learned { request, learned });
        }
        let _nobody_waits = order.done.send(());
        // The command runs meanwhile: what it changes before it was read is
        // known by its stat.
        while there && waiting.load(Ordering::SeqCst) == 0 {
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
    // A test of a slow build says how long a look may take.
    #[cfg(debug_assertions)]
    if let Ok(told) = std::env::var("TOUCHMARK_TEST_SCOPE_MS") {
        return told.parse().map_or(LONGEST, Duration::from_millis);
    }
    LONGEST
}
