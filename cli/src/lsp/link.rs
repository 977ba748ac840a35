//! The connection to one workspace's daemon: made, lost, and made again, without
//! a word to the user.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, sleep_until};
use touchmark_client::aio::{Client, Events, connect, connect_or_start};
use touchmark_client::proto::daemon::{Role, Subscribe};
use touchmark_client::proto::hooks::HookAllow;
use touchmark_client::proto::{Method, Request};
use touchmark_client::{DEFAULT_DEADLINE, Error, Hello, Start, Workspace};

use super::server::Input;
use crate::text::directory;

/// The pauses between attempts to connect. An attempt without a daemon is one
/// failed `connect`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often a daemon is started at most.
const START_AGAIN: Duration = Duration::from_secs(60);

/// Events come in bursts: what is shown is looked up this long after the first.
const BURST: Duration = Duration::from_millis(250);

/// The events after which something else is shown.
const KINDS: [&str; 4] = ["version", "stale", "read", "session"];

/// Who connects, and how.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) workspace: Workspace,
    pub(super) hello: Hello,
    /// How to start a daemon; `None` if none may be started.
    pub(super) start: Option<Start>,
    /// Whether the user wants a daemon to be started.
    pub(super) is_start_wanted: Arc<AtomicBool>,
    pub(super) news: UnboundedSender<Input>,
}

enum Job {
    Report(Box<Request>),
    Flush(oneshot::Sender<()>),
}

/// The connection, as the server sees it.
#[derive(Debug)]
pub(super) struct Link {
    jobs: UnboundedSender<Job>,
    wake: Arc<Notify>,
    /// The connection for questions; `None` while no daemon answers.
    pub(super) client: Option<Client>,
}

impl Link {
    /// Begins to connect, and continues until this is dropped.
    pub(super) fn begin(caller: Caller) -> Self {
        let (jobs, queue) = unbounded_channel();
        let wake = Arc::new(Notify::new());
        tokio::spawn(follow(caller, queue, Arc::clone(&wake)));
        Self {
            jobs,
            wake,
            client: None,
        }
    }

    /// Reports something to the daemon. Reports take effect in their order;
    /// those that a connection has not received are lost with it.
    pub(super) fn report<M: Method>(&self, report: M) {
        if self.client.is_some() {
            let _ = self.jobs.send(Job::Report(Box::new(report.into_request())));
        }
    }

    /// Tries to connect now if there is no connection.
    pub(super) fn wake(&self) {
        if self.client.is_none() {
            self.wake.notify_one();
        }
    }

    /// Returns what completes when the daemon has received all reports so far.
    pub(super) fn flushed(&self) -> oneshot::Receiver<()> {
        let (done, flushed) = oneshot::channel();
        let _ = self.jobs.send(Job::Flush(done));
        flushed
    }
}

/// One connection to a daemon, which consists of two: a report does not wait for
/// the answer to a question.
struct Connected {
    reports: Client,
    questions: Client,
    events: Events,
    /// Whether the editor is the user's: no agent's program runs it (OFF-5).
    is_users: bool,
}

/// How a connection ended.
enum End {
    Lost,
    /// The server ends.
    Over,
}

async fn follow(caller: Caller, mut jobs: UnboundedReceiver<Job>, wake: Arc<Notify>) {
    let root = caller.workspace.root.clone();
    let mut pause = FIRST_PAUSE;
    let mut started: Option<Instant> = None;
    let mut said = HashSet::new();
    loop {
        match caller.connect(&mut started).await {
            Ok(connected) => {
                pause = FIRST_PAUSE;
                if !connected.is_users && said.insert("agent") {
                    caller.log("an agent's program runs this editor, so what it does is not reported as the user's");
                }
                let client = connected.questions.clone();
                let news = Input::Connected(root.clone(), client);
                let _ = caller.news.send(news);
                let end = caller.serve(connected, &mut jobs).await;
                let _ = caller.news.send(Input::Lost(root.clone()));
                if matches!(end, End::Over) {
                    return;
                }
            }
            Err(error) => {
                if said.insert(error.code()) {
                    caller.log(&error.to_string());
                }
            }
        }
        let until = Instant::now() + pause;
        pause = (pause * 2).min(LONGEST_PAUSE);
        loop {
            tokio::select! {
                () = sleep_until(until) => break,
                () = wake.notified() => {
                    pause = FIRST_PAUSE;
                    break;
                }
                job = jobs.recv() => match job {
                    None => return,
                    // No daemon receives it. All is reported to the next one.
                    Some(Job::Report(_)) => {}
                    Some(Job::Flush(done)) => drop(done.send(())),
                },
            }
        }
    }
}

impl Caller {
    fn log(&self, text: &str) {
        let root = directory(&self.workspace.root);
        let _ = self.news.send(Input::Log(format!("{root}: {text}")));
    }

    /// Connects to the daemon. Starts one if the user wants that, in a directory
    /// with a project's mark.
    async fn connect(&self, started: &mut Option<Instant>) -> Result<Connected, Error> {
        let is_wanted = self.is_start_wanted.load(Ordering::Relaxed);
        let is_due = started.is_none_or(|before| before.elapsed() >= START_AGAIN);
        let start = self.start.as_ref().filter(|_| is_wanted && is_due);
        let editor = Hello {
            role: Some(Role::Editor),
            ..self.hello.clone()
        };
        let reports = match start.filter(|_| self.workspace.is_marked()) {
            Some(start) => {
                *started = Some(Instant::now());
                connect_or_start(&self.workspace, &editor, start).await?
            }
            // To connect would make systemd start one.
            None if self.workspace.is_asleep() => {
                let socket = self.workspace.socket();
                return Err(Error::NoDaemon { socket });
            }
            None => connect(&self.workspace, &editor).await?,
        };
        let questions = connect(&self.workspace, &self.hello).await?;
        let kinds = KINDS.map(str::to_owned).to_vec();
        let (_, events) = questions.subscribe(Subscribe::new().kinds(kinds)).await?;
        let asked = reports.call(HookAllow::new()).await;
        let is_users = !asked.is_err_and(|error| error.code() == "denied");
        Ok(Connected {
            reports,
            questions,
            events,
            is_users,
        })
    }

    /// Carries out reports and listens to events until the connection ends.
    async fn serve(&self, mut connected: Connected, jobs: &mut UnboundedReceiver<Job>) -> End {
        let mut due: Option<Instant> = None;
        loop {
            tokio::select! {
                job = jobs.recv() => match job {
                    None => return End::Over,
                    Some(Job::Flush(done)) => drop(done.send(())),
                    Some(Job::Report(_)) if !connected.is_users => {}
                    Some(Job::Report(report)) => {
                        let done = connected.reports.request(*report, DEFAULT_DEADLINE).await;
                        if done.is_err_and(|error| is_end(&error)) {
                            return End::Lost;
                        }
                    }
                },
                event = connected.events.recv() => match event {
                    None => return End::Lost,
                    Some(_) => due = due.or_else(|| Some(Instant::now() + BURST)),
                },
                () = until(due), if due.is_some() => {
                    due = None;
                    let root = self.workspace.root.clone();
                    let _ = self.news.send(Input::Stirred(root));
                }
            }
        }
    }
}

/// Returns at a moment; much later without one.
pub(super) async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => sleep(LONGEST_PAUSE).await,
    }
}

/// Returns whether the daemon may not have received what was reported: all of it
/// is reported again.
fn is_end(error: &Error) -> bool {
    error.is_disconnected() || matches!(error, Error::Deadline { .. })
}
