//! What each event does, the same for all agents.

mod gate;
mod late;
mod prints;
mod reads;
mod turns;
mod unsaved;
mod writes;

use touchmark_engine::text::tokens;
use touchmark_proto::changes::{Ack, ModifiedAck, ModifiedTake, ModifiedTaken};
use touchmark_proto::checkpoints::WarningTake;
use touchmark_proto::commands::{CommandBegin, CommandEnd, CommandScope};
use touchmark_proto::edits::EditAbort;
use touchmark_proto::files::FileMention;
use touchmark_proto::sessions::{SessionClose, SessionCompacted, SessionOpen, Warning};
use touchmark_proto::{ClientPath, Error, Hash, Request, SessionId};

use super::daemon_handle::DaemonHandle;
use super::memory::{Call, InDenial};
use super::{Happened, Tool, Verdict, What, notice, running};

pub(super) use late::{make_up, with_late};

/// Bytes of a command that are kept as its window's label.
const LABEL: usize = 200;

/// What the acknowledgement of a denial begins with that has shown lines.
const DENIAL: &str = "denial ";

/// What the rules came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    /// Comes back once the verdict has been delivered.
    pub(super) ack: Option<String>,
    /// What takes back what was begun.
    pub(super) undo: Vec<Request>,
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        Self {
            verdict,
            ..Self::default()
        }
    }
}

/// Texts for the model, and what they have to be acknowledged by.
#[derive(Debug, Default)]
struct Told {
    texts: Vec<String>,
    cursor: Option<String>,
    warned: bool,
}

impl Told {
    fn ack(&self, session: &SessionId) -> Option<String> {
        (self.warned || self.cursor.is_some()).then(|| {
            let warned = if self.warned { "w" } else { "-" };
            let cursor = self.cursor.as_deref().unwrap_or("-");
            format!("{warned} {cursor} {session}")
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
        }
    }
}

/// Lets an event take effect.
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
    // A tool that has run has run: only what is asked before it is worthless
    // once the agent has gone on.
    let leisure = daemon.at_leisure();
    let daemon = match what {
        What::Before { .. } => daemon,
        _ => &leisure,
    };
    let cwd = cwd.as_deref();
    let standing = daemon.standing(&session).await;
    // A late event does not open a session again; a word of the user's does.
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
            session: session.clone(),
            agent: Some(program),
            parent,
            pid: None,
        };
        match daemon.ask(open).await {
            Ok(opened) => warning = opened.warning,
            // Nothing can be kept: nothing is claimed (LOSS-3).
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
    match what {
        What::Prompt { .. } | What::ChildStart => {
            daemon.memory.turn(&daemon.inside, &session, true)
        }
        What::Stop { .. } | What::Interrupted | What::End | What::ChildEnd => {
            daemon.memory.turn(&daemon.inside, &session, false);
        }
        _ => {}
    }
    match what {
        What::Start { kept } => {
            daemon.look_around();
            if !kept {
                compacted(daemon, &session).await;
            }
            tell(daemon, &session, warning, can_tell).await
        }
        What::Prompt { id, text } => {
            abort_left(daemon, &session, &standing).await;
            writes::formatted(daemon, &session, false).await;
            turns::checkpoint(daemon, &session, &standing, id).await;
            turns::mentions(daemon, &session, cwd, &text).await;
            tell(daemon, &session, warning, can_tell).await
        }
        What::ChildStart => tell(daemon, &session, warning, can_tell).await,
        What::BatchEnd => {
            // Whatever has run has had an event of its own end before: what is
            // still open was declined.
            never_ran(daemon, &session, &standing, |_| true).await;
            writes::formatted(daemon, &session, false).await;
            tell(daemon, &session, warning, can_tell).await
        }
        What::Before { call, tool } => match tool {
            Tool::Read(reading) => {
                reads::before(daemon, &session, cwd, &call, &reading.path).await;
                Outcome::default()
            }
            Tool::Write { name, files } => {
                writes::formatted(daemon, &session, false).await;
                writes::begin(daemon, &session, cwd, &call, &name, &files).await
            }
            Tool::Shell { command } => before_command(daemon, &session, cwd, &call, &command).await,
            Tool::Other => Outcome::default(),
        },
        What::After {
            call,
            tool,
            output,
            batch_end,
        } => {
            // Where the agent itself works elsewhere, its turns are told to
            // another daemon, and this is the only place to tell.
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
                    writes::commit(daemon, &session, cwd, &call, &files).await;
                    // One may still run beside this.
                    writes::formatted(daemon, &session, true).await;
                }
                Tool::Shell { command } => {
                    prints::after(daemon, &session, cwd, &call, &command, &output).await;
                    told.texts
                        .extend(end_command(daemon, &session, &call).await);
                }
                Tool::Other => {}
            }
            if can_tell && (batch_end || !home) {
                take(daemon, &session, &mut told).await;
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
                // One that ends with an error has printed all the same.
                Tool::Shell { command } => {
                    prints::after(daemon, &session, cwd, &call, &command, &output).await;
                    told.texts
                        .extend(end_command(daemon, &session, &call).await);
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
            writes::formatted(daemon, &session, false).await;
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
            let close = SessionClose {
                session: session.clone(),
                forget: false,
            };
            let _closed_already = daemon.ask(close).await;
            Outcome::default()
        }
        What::Attached { path, content } => {
            attached(daemon, &session, cwd, &path, content.as_deref()).await;
            Outcome::default()
        }
        What::ModelUsed | What::Nothing => Outcome::default(),
    }
}

/// What was printed has arrived: what it told is not told again (MOD-2).
pub(super) async fn acknowledge(daemon: &DaemonHandle, ack: &str) -> Result<(), Error> {
    let wrong = || Error::invalid("`ack` is not one that a hook's answer named");
    if let Some(number) = ack.strip_prefix(DENIAL) {
        let number = number.parse().map_err(|_| wrong())?;
        if let Some(InDenial {
            session,
            path,
            hash,
            lines,
        }) = daemon.memory.denied(number)
        {
            reads::seen(daemon, &session, &path, hash, &lines).await;
        }
        return Ok(());
    }
    // Before the rest, how many late words were among it.
    let rest = ack.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let late = ack.strip_suffix(rest).unwrap_or_default();
    let mut parts = rest.splitn(3, ' ');
    let (Some(warned), Some(cursor), Some(session)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    let session = SessionId::new(session).map_err(|_| wrong())?;
    if let Ok(count) = late.parse() {
        daemon.memory.said(&daemon.inside, &session, count);
    }
    if cursor != "-" {
        let ack = ModifiedAck {
            session: session.clone(),
            cursor: cursor.to_owned(),
        };
        daemon.ask(ack).await?;
    }
    if warned == "w" {
        daemon.ask(WarningTake { session }).await?;
    }
    Ok(())
}

/// The warning that waits, and what others changed.
async fn tell(
    daemon: &DaemonHandle,
    session: &SessionId,
    warning: Option<Warning>,
    can_tell: bool,
) -> Outcome {
    if !can_tell {
        return Outcome::default();
    }
    let mut told = Told::default();
    if let Some(warning) = warning {
        told.texts.push(notice::warning(&warning));
        told.warned = true;
    }
    take(daemon, session, &mut told).await;
    told.outcome(session)
}

/// What others changed, of one file or of all that the session holds.
async fn changed(
    daemon: &DaemonHandle,
    session: &SessionId,
    path: Option<ClientPath>,
) -> Option<ModifiedTaken> {
    let take = ModifiedTake {
        session: session.clone(),
        peek: false,
        ack: Ack::Explicit,
        paths: path.map(|path| vec![path]),
        sync: None,
        verify: None,
        limit: u32::try_from(notice::FILES).ok(),
    };
    let mut taken = daemon.ask(take).await.ok()?;
    for change in &mut taken.changes {
        notice::without_own(&mut change.changed_by, session);
    }
    Some(taken)
}

/// Comes back once a denial has arrived that says what others did to this
/// file: no notice tells it a second time.
async fn said(daemon: &DaemonHandle, session: &SessionId, path: ClientPath) -> Option<String> {
    let taken = changed(daemon, session, Some(path)).await?;
    let told = Told {
        cursor: (!taken.changes.is_empty() && taken.reset != Some(true)).then_some(taken.cursor),
        ..Told::default()
    };
    told.ack(session)
}

/// One notice of all that others changed.
async fn take(daemon: &DaemonHandle, session: &SessionId, told: &mut Told) {
    let Some(taken) = changed(daemon, session, None).await else {
        return;
    };
    let more = taken.more == Some(true);
    if let Some(text) = notice::changes(&taken.changes, more, taken.reset == Some(true)) {
        told.texts.push(text);
        told.cursor = Some(taken.cursor);
    }
}

async fn compacted(daemon: &DaemonHandle, session: &SessionId) {
    let ask = SessionCompacted {
        session: session.clone(),
        keep: Vec::new(),
    };
    let _nothing_read = daemon.ask(ask).await;
}

/// A window for a command, and a look at the files that it may print.
async fn before_command(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&std::path::Path>,
    call: &str,
    command: &str,
) -> Outcome {
    let begin = CommandBegin {
        session: session.clone(),
        label: Some(cut(&tokens::masked(command), LABEL)),
        paths: None,
        pid: None,
        bind: false,
        call_id: Some(call.to_owned()),
        ttl_ms: None,
        formatter: false,
        scope: Some(CommandScope::Workspace),
    };
    let label = begin.label.clone();
    let Ok(begun) = daemon.ask(begin).await else {
        return Outcome::default();
    };
    running::await_begin(daemon, session, call, &begun.command, label);
    prints::before(daemon, session, cwd, call, command).await;
    Outcome {
        undo: vec![Request::CommandEnd(CommandEnd {
            command: None,
            session: Some(session.clone()),
            call_id: Some(call.to_owned()),
            exit: None,
        })],
        ..Outcome::default()
    }
}

/// Ends a window; what was done in it is told nowhere else (MOD-1).
async fn end_command(daemon: &DaemonHandle, session: &SessionId, call: &str) -> Option<String> {
    running::came_back(daemon, session, call).await;
    let end = CommandEnd {
        command: None,
        session: Some(session.clone()),
        call_id: Some(call.to_owned()),
        exit: None,
    };
    let ended = daemon.ask(end).await.ok()?;
    notice::by_command(&ended.changes, ended.more == Some(true))
}

async fn abort(daemon: &DaemonHandle, session: &SessionId, call: &str) {
    let abort = EditAbort {
        edit: None,
        session: Some(session.clone()),
        call_id: Some(call.to_owned()),
    };
    let _ended_already = daemon.ask(abort).await;
}

/// Tools that never came back are over when the next turn begins.
async fn abort_left(daemon: &DaemonHandle, session: &SessionId, standing: &super::Standing) {
    for call in &standing.edits {
        daemon.memory.recall(session, call);
        abort(daemon, session, call).await;
    }
    for (call, window) in &standing.windows {
        if running::never_ran(daemon, session, call) {
            daemon.withdraw_window(window.clone());
            continue;
        }
        running::came_back(daemon, session, call).await;
        // Not by `command/end`: what it answers would be told to nobody.
        daemon.end_window(window.clone());
    }
}

/// Calls that were announced and nobody permitted: what was begun for them
/// ends, and has claimed nothing.
async fn never_ran(
    daemon: &DaemonHandle,
    session: &SessionId,
    standing: &super::Standing,
    is_one: impl Fn(&String) -> bool,
) {
    for call in standing.edits.iter().filter(|call| is_one(call)) {
        daemon.memory.recall(session, call);
        abort(daemon, session, call).await;
    }
    for (call, window) in standing.windows.iter().filter(|(call, _)| is_one(call)) {
        running::forget(daemon, session, call);
        daemon.withdraw_window(window.clone());
    }
}

/// The agent's process is gone: what its tools had begun ends with it
/// (HOOK-3).
pub(super) async fn agent_ended(daemon: &DaemonHandle, session: &SessionId) {
    daemon.memory.turn(&daemon.inside, session, false);
    let standing = daemon.standing(session).await;
    abort_left(daemon, session, &standing).await;
}

/// A file's content goes to the model without a tool: it is seen if it is
/// what the file holds, else only named.
async fn attached(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&std::path::Path>,
    path: &str,
    content: Option<&str>,
) {
    let Some(path) = daemon.place(cwd, path).await else {
        return;
    };
    let Some(now) = reads::look(daemon, session, &path).await else {
        return;
    };
    let hash = content
        .map(|content| Hash::of(content.as_bytes()))
        .filter(|hash| *hash == now.hash);
    let mention = FileMention {
        session: session.clone(),
        path,
        hash,
        range: None,
        step: None,
        missed: false,
    };
    let _not_a_file = daemon.ask(mention).await;
}

/// The beginning of a text.
pub(super) fn cut(text: &str, most: usize) -> String {
    let mut cut = most.min(text.len());
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    text.get(..cut).unwrap_or_default().to_owned()
}

/// Remembers something of a call beside what is remembered of it already.
fn remember(daemon: &DaemonHandle, session: &SessionId, call: &str, add: impl FnOnce(&mut Call)) {
    let mut known = daemon.memory.recall(session, call).unwrap_or_default();
    add(&mut known);
    daemon.memory.remember(session, call, known);
}
