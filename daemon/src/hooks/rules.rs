//! What each event does, in the same way for all agents.

mod commands;
mod described;
mod formatted;
mod gate;
mod late;
mod others;
mod prints;
mod reads;
mod taken_back;
mod turns;
mod unsaved;
mod unseen;
mod worktrees;
mod writes;
mod written;

use touchmark_engine::Input;
use touchmark_proto::changes::{Ack, ModifiedAck, ModifiedTake, ModifiedTaken};
use touchmark_proto::checkpoints::WarningTake;
use touchmark_proto::edits::EditAbort;
use touchmark_proto::sessions::{SessionClose, SessionCompacted, SessionOpen, Warning};
use touchmark_proto::{Change, ClientPath, Error, Request, SessionId, State};

use super::daemon_handle::DaemonHandle;
use super::details::Details;
use super::happened::{Happened, Tool, Verdict, What};
use super::memory::Call;
use super::{allowed, notice, running, whose};

pub(super) use late::{make_up, with_late};
pub(super) use others::by_commands;

/// The beginning of the acknowledgement of a denial that has shown lines.
const DENIAL: &str = "denial ";

/// The result of the rules.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    /// The token that the client returns once the verdict was delivered; `None`
    /// if no acknowledgement is needed.
    pub(super) ack: Option<String>,
    /// The requests that revert what was begun.
    pub(super) undo: Vec<Request>,
    /// A text for the agent's user; `None` if there is none.
    pub(super) shown: Option<String>,
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        Self {
            verdict,
            ..Self::default()
        }
    }
}

impl Outcome {
    /// Adds a text for the model that needs no acknowledgement.
    fn tell_too(&mut self, text: String) {
        self.verdict = match std::mem::take(&mut self.verdict) {
            Verdict::Nothing => Verdict::Tell(text),
            Verdict::Tell(before) => Verdict::Tell(format!("{before}\n{text}")),
            other => other,
        };
    }
}

/// Texts for the model, and what is acknowledged once they were delivered.
#[derive(Debug, Default)]
struct Told {
    texts: Vec<String>,
    cursor: Option<String>,
    warned: bool,
    /// Whether the texts name the session's own label.
    labelled: bool,
    /// The numbers under which the lines in the texts are remembered.
    shown: Vec<u64>,
    /// A text for the agent's user; `None` if there is none.
    for_user: Option<String>,
}

impl Told {
    fn ack(&self, session: &SessionId) -> Option<String> {
        (self.warned || self.cursor.is_some()).then(|| {
            let warned = if self.warned { "w" } else { "-" };
            let labelled = if self.labelled { "l" } else { "" };
            let shown: String = self.shown.iter().map(|n| format!(",{n}")).collect();
            let cursor = self.cursor.as_deref().unwrap_or("-");
            format!("{warned}{labelled}{shown} {cursor} {session}")
        })
    }

    fn outcome(self, session: &SessionId) -> Outcome {
        if self.texts.is_empty() {
            return Outcome::default();
        }
        let ack = self.ack(session);
        Outcome {
            verdict: Verdict::Tell(self.texts.join("\n")),
            ack,
            undo: Vec::new(),
            shown: self.for_user,
        }
    }
}

/// Executes the rules for an event and returns the outcome.
pub(super) async fn follow(daemon: &DaemonHandle, happened: Happened) -> Outcome {
    let Happened {
        session,
        parent,
        program,
        cwd,
        model,
        can_tell,
        what,
        ..
    } = happened;
    // What a tool did takes effect however late. Only what happens before a
    // tool runs has no effect any more once the agent has continued.
    let leisure = daemon.at_leisure();
    let patience = daemon.left();
    let daemon = match what {
        What::Before { .. } => daemon,
        _ => &leisure,
    };
    let cwd = cwd.as_deref();
    let standing = daemon.standing(&session).await;
    // A late event does not open a session again; a prompt of the user does.
    let opens = matches!(
        what,
        What::Start { .. } | What::Prompt { .. } | What::ChildStart
    );
    let ends = matches!(what, What::End | What::ChildEnd | What::Compacted);
    if (standing.known && !standing.open && !opens) || (!standing.known && ends) {
        return Outcome::default();
    }
    let mut warning: Option<Warning> = None;
    if !standing.open || opens {
        let open = SessionOpen {
            agent: Some(program),
            parent,
            ..SessionOpen::new(session.clone())
        };
        match daemon.ask(open).await {
            Ok(opened) => warning = opened.warning,
            // Nothing can be stored, so nothing is claimed (LOSS-3).
            Err(_) => return Outcome::default(),
        }
    }
    if let Some(model) = model
        && matches!(
            what,
            What::Start { .. } | What::Prompt { .. } | What::ModelUsed
        )
    {
        turns::used(daemon, &session, model).await;
    }
    let mut held = Vec::new();
    match what {
        What::Prompt { .. } | What::ChildStart => {
            held = daemon.memory.notices().begin(&session);
            daemon.memory.turn(&daemon.cx.inside, &session, true)
        }
        What::Stop { .. } | What::Interrupted | What::End | What::ChildEnd => {
            daemon.memory.turn(&daemon.cx.inside, &session, false);
        }
        _ => {}
    }
    match what {
        What::Start { kept } => {
            daemon.look_around().await;
            if !kept {
                compacted(daemon, &session).await;
            }
            tell(daemon, &session, warning, can_tell, held, true).await
        }
        What::Prompt { id, text } => {
            abort_left(daemon, &session, &standing).await;
            formatted::find(daemon, &session, false).await;
            turns::checkpoint(daemon, &session, &standing, id, &text).await;
            turns::mentions(daemon, &session, cwd, &text).await;
            worktrees::turn(daemon, &session).await;
            let mut outcome = tell(daemon, &session, warning, can_tell, held, true).await;
            if can_tell
                && standing.checkpoints == 0
                && let Some(text) = others::at_work(daemon, &session).await
            {
                outcome.tell_too(text);
            }
            outcome
        }
        What::ChildStart => tell(daemon, &session, warning, can_tell, held, true).await,
        What::BatchEnd => {
            // Each tool that ran has reported its own end before this event.
            // Edits and windows that are still open belong to tools that were
            // declined.
            never_ran(daemon, &session, &standing, |_| true).await;
            formatted::find(daemon, &session, false).await;
            tell(daemon, &session, warning, can_tell, held, false).await
        }
        What::Before { call, tool } => match tool {
            Tool::Read(reading) => {
                reads::before(daemon, &session, cwd, &call, &reading.path).await;
                Outcome::default()
            }
            Tool::Write { name, files } => {
                formatted::find(daemon, &session, false).await;
                let wanted = allowed::wanted(daemon, &session, cwd, &files).await;
                let handle = wanted.handle(daemon);
                let mut outcome = writes::begin(&handle, &session, cwd, &call, &name, &files).await;
                wanted.settle(daemon, &session, &mut outcome.verdict);
                outcome
            }
            Tool::Shell { command } => {
                commands::begin(daemon, &session, cwd, &call, &command).await
            }
            Tool::Other => Outcome::default(),
        },
        What::After {
            call,
            tool,
            output,
            batch_end,
        } => {
            // If the agent works in another workspace, its turns are reported
            // to another daemon. Then the answer to this event is the only
            // place for a notice.
            let home = daemon.is_home(cwd).await;
            let mut told = Told::default();
            let mut verdict = Verdict::Nothing;
            match tool {
                Tool::Read(reading) => {
                    verdict = reads::after(daemon, &session, cwd, &call, &reading, &output, home)
                        .await
                        .map_or(Verdict::Nothing, Verdict::Replace);
                }
                Tool::Write { files, .. } => {
                    let links = writes::commit(daemon, &session, cwd, &call, &files).await;
                    told.texts.extend(links);
                    worktrees::after(daemon, &session, cwd, &files).await;
                    // A formatter may still be running.
                    formatted::find(daemon, &session, true).await;
                }
                Tool::Shell { command } => {
                    prints::after(daemon, &session, cwd, &call, &command, &output).await;
                    commands::end(daemon, &session, &call, patience, &mut told).await;
                }
                Tool::Other => {}
            }
            if can_tell && (batch_end || !home) {
                take(daemon, &session, &mut told, held).await;
            }
            match told.texts.is_empty() {
                true => verdict.into(),
                false if can_tell => told.outcome(&session),
                false => Outcome::default(),
            }
        }
        What::Declined { call } => {
            never_ran(daemon, &session, &standing, |known| *known == call).await;
            Outcome::default()
        }
        What::Failed { call, tool, output } => {
            let mut told = Told::default();
            match tool {
                Tool::Write { .. } => abort(daemon, &session, &call).await,
                // A command that ends with an error has printed as well.
                Tool::Shell { command } => {
                    prints::after(daemon, &session, cwd, &call, &command, &output).await;
                    commands::end(daemon, &session, &call, patience, &mut told).await;
                }
                Tool::Read(_) | Tool::Other => {}
            }
            daemon.memory.recall(&session, &call);
            match can_tell {
                true => told.outcome(&session),
                false => Outcome::default(),
            }
        }
        What::Compacted => {
            compacted(daemon, &session).await;
            Outcome::default()
        }
        What::Stop { tasks } => {
            abort_left(daemon, &session, &standing).await;
            formatted::find(daemon, &session, false).await;
            if let Some(tasks) = tasks {
                turns::tasks(daemon, &session, cwd, tasks).await;
            }
            Outcome::default()
        }
        What::Interrupted => {
            abort_left(daemon, &session, &standing).await;
            Outcome::default()
        }
        What::End | What::ChildEnd => {
            let close = SessionClose::new(session.clone());
            let _closed_already = daemon.ask(close).await;
            Outcome::default()
        }
        What::Attached { path, content } => {
            turns::attach(daemon, &session, cwd, &path, content.as_deref()).await;
            Outcome::default()
        }
        What::ModelUsed | What::Nothing => Outcome::default(),
    }
}

/// Processes the acknowledgement that an answer was delivered: what it
/// contained is not reported again (MOD-2).
pub(super) async fn acknowledge(daemon: &DaemonHandle, ack: &str) -> Result<(), Error> {
    let wrong = || Error::invalid("`ack` is not one that a hook's answer named");
    if let Some(number) = ack.strip_prefix(DENIAL) {
        let number = number.parse().map_err(|_| wrong())?;
        reads::shown(daemon, number).await;
        return Ok(());
    }
    // The token begins with the number of late texts that the answer contained,
    // the names of the undos (`u3`), and the numbers of comments (`m2`).
    let (late, rest) = number(ack);
    let (undos, rest) = numbers(rest, 'u');
    let (comments, rest) = numbers(rest, 'm');
    let mut parts = rest.splitn(3, ' ');
    let (Some(warned), Some(cursor), Some(session)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    let session = SessionId::new(session).map_err(|_| wrong())?;
    let mut noticed = warned.split(',');
    let warned = noticed.next().unwrap_or_default();
    if let Ok(count) = late
        && let Ok(count) = usize::try_from(count)
    {
        daemon.memory.said(&daemon.cx.inside, &session, count);
    }
    for undo in undos {
        let memory = &daemon.memory;
        memory.say_of_undo(&daemon.cx.inside, &session, undo, None);
    }
    if !comments.is_empty() {
        let now = daemon.cx.now;
        daemon.memory.comments.told(&session, &comments, now);
    }
    if cursor != "-" {
        daemon.memory.undone(|undone| undone.told(&session));
        daemon.memory.notices().arrive(&session);
        let ack = ModifiedAck {
            session: session.clone(),
            cursor: cursor.to_owned(),
        };
        daemon.ask(ack).await?;
    }
    for number in noticed {
        reads::shown(daemon, number.parse().map_err(|_| wrong())?).await;
    }
    if warned.ends_with('l') {
        daemon.memory.told_label(&session);
    }
    if warned.starts_with('w') {
        daemon.ask(WarningTake { session }).await?;
    }
    Ok(())
}

/// Returns the pending warning and the changes by others, as an outcome. With
/// `names`, the session is told its own label if it was not yet.
async fn tell(
    daemon: &DaemonHandle,
    session: &SessionId,
    warning: Option<Warning>,
    can_tell: bool,
    held: Vec<Change>,
    names: bool,
) -> Outcome {
    if !can_tell {
        return Outcome::default();
    }
    let mut told = Told {
        labelled: names,
        ..Told::default()
    };
    if let Some(warning) = warning {
        told.texts.push(notice::warning(&warning));
        told.warned = true;
    }
    take(daemon, session, &mut told, held).await;
    told.outcome(session)
}

/// Returns what others changed in `path`, or in all files that the session has
/// read if it is `None`.
async fn changed(
    daemon: &DaemonHandle,
    session: &SessionId,
    paths: Option<Vec<ClientPath>>,
) -> Option<(ModifiedTaken, Details)> {
    let take = ModifiedTake {
        ack: Ack::Explicit,
        paths,
        limit: u32::try_from(notice::FILES).ok(),
        ..ModifiedTake::new(session.clone())
    };
    let mut taken = daemon.ask(take).await.ok()?;
    let details = described::of(daemon, session, &taken.changes).await;
    whose::name_for(&mut taken.changes, session, &details);
    taken_back::note(daemon, session, &taken).await;
    Some((taken, details))
}

/// Returns the acknowledgement of a denial that reports what others did to this
/// file, so that no notice reports it a second time.
async fn said(daemon: &DaemonHandle, session: &SessionId, path: ClientPath) -> Option<String> {
    let (taken, _) = changed(daemon, session, Some(vec![path])).await?;
    let told = Told {
        cursor: (!taken.changes.is_empty() && taken.reset != Some(true)).then_some(taken.cursor),
        ..Told::default()
    };
    told.ack(session)
}

/// Adds one notice of the changes by others, of each file once in a turn.
async fn take(daemon: &DaemonHandle, session: &SessionId, told: &mut Told, held: Vec<Change>) {
    let names = std::mem::take(&mut told.labelled);
    taken_back::find_put_back(daemon, session).await;
    let Some((mut taken, mut details)) = changed(daemon, session, None).await else {
        return;
    };
    let is_reset = taken.reset == Some(true);
    notice::without_backups(&mut taken.changes);
    if taken_back::by_undo(daemon, session, &mut taken).await {
        return;
    }
    let is_news = |change: &Change| daemon.memory.notices().is_news(session, change);
    let news = taken.changes.iter().filter(|change| is_news(change));
    let news: Vec<ClientPath> = news.map(|change| ClientPath::from(&change.path)).collect();
    if !is_reset && news.len() < taken.changes.len() {
        if news.is_empty() {
            return;
        }
        // The acknowledgement must cover only the changes that are told.
        let Some(only) = changed(daemon, session, Some(news)).await else {
            return;
        };
        (taken, details) = only;
        if taken_back::by_undo(daemon, session, &mut taken).await {
            return;
        }
    }
    for change in held {
        let listed = taken.changes.iter().any(|one| one.path == change.path);
        let place = ClientPath::from(&change.path);
        let state = daemon.status(session, &place).await.map(|file| file.state);
        if !listed && matches!(state, Some(State::Stale | State::Deleted)) {
            taken.changes.push(change);
        }
    }
    let more = taken.more == Some(true);
    let room = daemon.memory.notices().room(session);
    described::add_lines(&mut details, daemon, session, &taken.changes).await;
    let text = notice::changes(&taken.changes, &details, more, is_reset, room, session);
    if let Some((text, shown)) = text {
        let changes = &taken.changes;
        daemon.memory.notices().send(session, changes, text.len());
        let own = details.label.take();
        let own = own.filter(|_| names && !daemon.memory.knows_label(session));
        told.labelled = own.is_some();
        told.shown = described::remember(&mut details, &daemon.memory, session, changes, &shown);
        told.texts.push(match own {
            Some(label) => format!("{text} {}", whose::own_label(&label)),
            None => text,
        });
        told.cursor = Some(taken.cursor);
    }
}

async fn compacted(daemon: &DaemonHandle, session: &SessionId) {
    let ask = SessionCompacted::new(session.clone());
    let _nothing_read = daemon.ask(ask).await;
}

async fn abort(daemon: &DaemonHandle, session: &SessionId, call: &str) {
    let abort = EditAbort::new().session(session.clone()).call_id(call);
    let _ended_already = daemon.ask(abort).await;
}

/// Ends the edits and windows of tools that never returned, when the turn ends
/// or the next begins.
pub(super) async fn abort_left(
    daemon: &DaemonHandle,
    session: &SessionId,
    standing: &crate::standing::Standing,
) {
    for call in &standing.edits {
        daemon.memory.recall(session, call);
        abort(daemon, session, call).await;
    }
    for (call, window) in &standing.windows {
        if running::never_ran(daemon, session, call) {
            daemon.cx.inside.feed(Input::CommandNeverRan {
                command: window.clone(),
            });
            continue;
        }
        running::came_back(daemon, session, call).await;
        // `command/end` is not used, since its answer would reach no client.
        daemon.cx.inside.feed(Input::CommandUnanswered {
            command: window.clone(),
        });
    }
}

/// Ends what was begun for announced calls that were not permitted. It claims
/// nothing.
async fn never_ran(
    daemon: &DaemonHandle,
    session: &SessionId,
    standing: &crate::standing::Standing,
    is_one: impl Fn(&String) -> bool,
) {
    for call in standing.edits.iter().filter(|call| is_one(call)) {
        daemon.memory.recall(session, call);
        abort(daemon, session, call).await;
    }
    for (call, window) in standing.windows.iter().filter(|(call, _)| is_one(call)) {
        running::forget(daemon, session, call);
        daemon.cx.inside.feed(Input::CommandNeverRan {
            command: window.clone(),
        });
    }
}

/// Splits numbers off the beginning of a text, before each of which is `sign`.
fn numbers(text: &str, sign: char) -> (Vec<u64>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((Ok(one), after)) = rest.strip_prefix(sign).map(number) {
        found.push(one);
        rest = after;
    }
    (found, rest)
}

/// Splits the digits off the beginning of a text.
fn number(text: &str) -> (Result<u64, std::num::ParseIntError>, &str) {
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = text.strip_suffix(rest).unwrap_or_default();
    (digits.parse(), rest)
}

/// Returns the beginning of a text, at most `most` bytes.
pub(super) fn cut(text: &str, most: usize) -> String {
    let mut cut = most.min(text.len());
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    text.get(..cut).unwrap_or_default().to_owned()
}

/// Adds something to what is remembered of a call.
fn remember(daemon: &DaemonHandle, session: &SessionId, call: &str, add: impl FnOnce(&mut Call)) {
    let mut known = daemon.memory.recall(session, call).unwrap_or_default();
    add(&mut known);
    daemon.memory.remember(session, call, known);
}
