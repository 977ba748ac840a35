//! Requests about the daemon itself.

use crate::off::OffReport;
use crate::{Clock, Hash, Millis, RelPath, SessionId};

/// A program's name and version.
#[apply(request!)]
pub struct Program {
    /// The program's name.
    pub name: String,
    /// The program's version.
    pub version: String,
}

/// The kind of a client.
#[apply(choice!)]
pub enum Role {
    /// An agent.
    Agent,
    /// An editor.
    Editor,
    /// Any other program.
    Tool,
}

/// Identifies the client to the daemon. Calling it is optional.
#[apply(request!)]
pub struct Initialize {
    /// The client's name and version.
    pub client: Program,
    /// The version of the protocol that the client uses.
    pub protocol: u32,
    /// The session that this connection works for; `None` if it is for no
    /// single one.
    pub session: Option<SessionId>,
    /// The kind of the client; `None` if it does not say.
    pub role: Option<Role>,
}

/// Identifies the daemon to the client.
#[apply(answer!)]
pub struct Initialized {
    /// The daemon's name and version.
    pub server: Program,
    /// The version of the protocol that the daemon uses.
    pub protocol: u32,
    /// The absolute path of the workspace.
    pub workspace: String,
    /// The current clock: the number of the newest fact.
    pub clock: Clock,
    /// Features that this daemon has in addition to those of the first version.
    pub capabilities: Vec<String>,
}

/// Checks that the daemon answers.
#[apply(request!)]
pub struct Ping {}

/// An empty result: the request was carried out.
#[apply(answer!)]
#[derive(Default)]
pub struct Done {}

/// Requests the daemon's condition.
#[apply(request!)]
pub struct Status {}

/// Counts since the daemon started.
#[apply(answer!)]
#[derive(Copy, Default)]
pub struct Counters {
    /// The number of hints from the watcher.
    pub events: u64,
    /// The number of versions recorded.
    pub versions: u64,
    /// The number of fences made.
    pub fences: u64,
    /// The number of overflows of the system's queue of events.
    pub overflows: u64,
    /// The number of comparisons with the disk that were begun because coverage
    /// of some or all tracked paths was lost.
    pub rescans: u64,
    /// The number of requests answered.
    pub requests: u64,
}

/// A place where touchmark sees less than it should, with the cause.
#[apply(answer!)]
pub struct Degraded {
    /// The file or directory that is affected; `None` means everything.
    pub path: Option<RelPath>,
    /// The cause, as a sentence for people.
    pub cause: String,
}

impl Degraded {
    /// The first words of every cause that is about the machine's clock
    /// (LIM-3).
    pub const CLOCK: &str = "the clock";

    /// The cause if a daemon with another store watches the same directory (SEC-1).
    pub const COMPANY: &str = "another daemon, with a store of its own, watches this directory, such as \
                               one in a container or of another user; each takes the writes of the \
                               other's agents for the user's";
}

/// The file in which the state is stored.
#[apply(answer!)]
pub struct StoreStatus {
    /// The absolute path of the store's file.
    pub path: String,
    /// The size in bytes of the store's file and of its write-ahead log.
    pub size_bytes: u64,
    /// How durable a commit is: `process` or `power` (DUR-1).
    pub durability: String,
    /// The stored contents of files. `None` while the daemon starts, and where
    /// nothing can be stored.
    pub contents: Option<KeptContents>,
}

/// How much of files' contents is stored (KEEP).
#[apply(answer!)]
#[derive(Copy)]
pub struct KeptContents {
    /// Bytes in the store, after compression; `contents.total` limits this.
    pub bytes: u64,
    /// The size in bytes of the stored contents before compression.
    pub original_bytes: u64,
    /// Bytes in the store, after compression, of contents that are pinned
    /// (KEEP-2).
    pub pinned_bytes: u64,
    /// The time since which the content of every version is available, except
    /// for contents that are never stored. `None` if no content was ever
    /// removed.
    pub since: Option<Millis>,
}

/// What the configuration's files say that is not in effect.
#[apply(answer!)]
#[derive(Default)]
pub struct Configuration {
    /// The entries that are ignored, each with file, line and reason: keys that
    /// are wrong, unknown, or not for a repository to set (SEC-5). As of the
    /// last time the files were read. `None` if every entry is in effect.
    pub refused: Option<String>,
    /// Keys whose value has changed and takes effect at the next restart.
    pub at_restart: Vec<String>,
}

/// The events of one agent's hooks since the daemon started.
#[apply(answer!)]
pub struct AgentHeard {
    /// The agent's name, as in `touchmark hook AGENT`.
    pub agent: String,
    /// The number of its events that were understood.
    pub events: u64,
    /// The newest event that was understood, by the agent's name for it; empty
    /// if none was.
    pub last_event: String,
    /// The session of the newest event; `-` if no event has named one.
    pub last_session: SessionId,
    /// The time since the newest event, in milliseconds.
    pub last_ago_ms: u64,
    /// The number of its events about tools that are known and whose arguments
    /// were understood. Tools that do nothing with files do not count.
    #[serde(default)]
    pub tools: u64,
    /// The number of its events in which something was not understood.
    #[serde(default)]
    pub unclear: u64,
    /// How many of these were understood but for their tool: its name is not
    /// known, or an argument is missing.
    #[serde(default)]
    pub unclear_tools: u64,
    /// What was not understood in the newest of these, for people. `None` if
    /// there were none.
    #[serde(default)]
    pub last_unclear: Option<String>,
}

/// The export of records to a collector (TEL).
#[apply(answer!)]
pub struct TelemetryStatus {
    /// The address to which records are sent. `None` if a setting is wrong, so
    /// that nothing is sent.
    pub endpoint: Option<String>,
    /// The newest fact up to which the collector has everything. `None` until
    /// that is known.
    pub acknowledged: Option<Clock>,
    /// The number of records that are still to be sent.
    pub unsent: u64,
    /// The number of records that the log dropped before they were sent, since
    /// telemetry was switched on.
    pub pruned: u64,
    /// The number of records that the collector rejected, since telemetry was
    /// switched on.
    pub rejected: u64,
    /// Why the last request failed, or which setting is wrong. `None` if
    /// neither.
    pub last_error: Option<String>,
}

/// What started the daemon.
#[apply(choice!)]
pub enum StartedBy {
    /// A client that found no daemon. The daemon exits when idle (LIFE-1).
    Client,
    /// A service manager, with the socket that it listens on. It starts the
    /// daemon again when a client connects.
    Socket,
    /// The user, by `touchmark daemon`, or a service without a socket.
    User,
}

/// The daemon's condition.
#[apply(answer!)]
pub struct StatusReport {
    /// The id of the daemon's process.
    pub pid: u32,
    /// The daemon's version.
    pub version: String,
    /// The version of the protocol that the daemon uses.
    pub protocol: u32,
    /// The absolute path of the workspace.
    pub workspace: String,
    /// The current clock: the number of the newest fact.
    pub clock: Clock,
    /// The time since the daemon started, in milliseconds.
    pub uptime_ms: u64,
    /// The number of tracked paths.
    pub tracked_files: u64,
    /// The number of watched directories.
    pub watched_directories: u64,
    /// The number of sessions that are known and not closed.
    pub sessions: u64,
    /// The number of open connections.
    pub connections: u64,
    /// The number of open edits.
    pub open_edits: u64,
    /// Counts since the daemon started.
    pub counters: Counters,
    /// The name of the watch backend in use.
    pub backend: String,
    /// The places where touchmark sees less than it should, with the cause of
    /// each.
    pub degraded: Vec<Degraded>,
    /// The state of the store.
    pub store: StoreStatus,
    /// The daemon's resident memory, in bytes.
    pub rss_bytes: u64,
    /// What the configuration's files say that is not in effect.
    pub configuration: Configuration,
    /// The agents whose hooks have sent events since the daemon started, by
    /// name.
    pub agents: Vec<AgentHeard>,
    /// The export of records to a collector; `None` while it is off.
    pub telemetry: Option<TelemetryStatus>,
    /// What started the daemon.
    pub started_by: StartedBy,
    /// The time since the daemon was last used, in milliseconds: since a
    /// request, or since the end of a connection that had sent one. `status`,
    /// `initialize` and `fleet/yield` are no uses.
    pub idle_ms: u64,
    /// The time without a connection or a use after which the daemon exits, in
    /// milliseconds. `None` if it does not exit when idle.
    pub idle_exit_ms: Option<u64>,
    /// The number of open command windows.
    pub open_commands: u64,
    /// The number of subscriptions.
    pub subscriptions: u64,
    /// The part of the daemon's resident memory that it shares with no file, in
    /// bytes; 0 if the system does not report it.
    pub private_bytes: u64,
    /// What switches touchmark off here, or tried to. `None` if the daemon does
    /// not report it.
    pub off: Option<OffReport>,
    /// The sessions with witnessed commands since the daemon started (ATTR-3).
    #[serde(default)]
    pub witnessed: Vec<SessionWitnessed>,
}

/// What witnesses have seen of a session's ended commands.
#[apply(answer!)]
pub struct SessionWitnessed {
    /// The session.
    pub session: SessionId,
    /// The session's label; `None` if it has none (SES-2).
    pub session_label: Option<String>,
    /// When the first of these commands began.
    pub since: Millis,
    /// The number of these commands.
    pub commands: u64,
    /// The number of those of which not all writes were seen.
    pub incomplete: u64,
    /// The newest one of those; `None` if there are none.
    pub gap: Option<CommandGap>,
}

/// A command of which not all writes were seen.
#[apply(answer!)]
pub struct CommandGap {
    /// The command's id, such as `c5`.
    pub command: String,
    /// When its window ended.
    pub at: Millis,
    /// Why, as a part of a sentence for people.
    pub why: String,
}

/// Waits until everything that was written before this request has been read.
#[apply(request!)]
pub struct Sync {}

/// The clock after a fence.
#[apply(answer!)]
pub struct Synced {
    /// The current clock: the number of the newest fact.
    pub clock: Clock,
    /// Paths that could not be read in time; `None` if there are none. The
    /// answer describes their previous state. Repeat the request later
    /// (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Compares everything on record with the disk.
#[apply(request!)]
pub struct Audit {}

/// The content of a path, on disk or on record.
#[apply(choice!)]
pub enum Holds {
    /// A regular file with this content.
    File(Hash),
    /// No file.
    Absent,
    /// Something that cannot be read.
    Unreadable,
}

/// A path whose content on disk differs from the one on record.
#[apply(answer!)]
pub struct Difference {
    /// The file.
    pub path: RelPath,
    /// The content on record, after a fence.
    pub believed: Holds,
    /// The content on disk, although no event reported the change.
    pub disk: Holds,
}

/// The result of comparing the record with the disk. What was found on disk is
/// on record from then on.
#[apply(answer!)]
pub struct Audited {
    /// The number of paths compared: all that are tracked.
    pub checked: u64,
    /// The paths that differ; empty if the record was right.
    pub differences: Vec<Difference>,
    /// Paths that could not be read in time; `None` if there are none. The
    /// answer describes their previous state. Repeat the request later
    /// (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Removes every content that is stored for line counts and previews. Facts
/// stay, and so does what guarded writes have kept for recovery.
#[apply(request!)]
pub struct ContentsForget {}

/// Ends the daemon cleanly.
#[apply(request!)]
pub struct Shutdown {}

/// Subscribes to events.
#[apply(request!)]
pub struct Subscribe {
    /// Only events that concern this session; `None` means all.
    pub session: Option<SessionId>,
    /// Only events of these types, such as `version` or `stale`; empty means
    /// all.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Sends first the events since this clock; `None` sends only new ones.
    pub since: Option<Clock>,
}

/// The number of a subscription.
#[apply(answer!)]
pub struct Subscribed {
    /// The number. Each event of the subscription carries it.
    pub subscription: u64,
}

/// Ends a subscription.
#[apply(request!)]
pub struct Unsubscribe {
    /// The number that `subscribe` returned.
    pub subscription: u64,
}

/// Requests how much work touchmark has saved.
#[apply(request!)]
pub struct Stats {
    /// Only this session, by its id or label; `None` means all sessions.
    pub session: Option<SessionId>,
}

/// The work that was saved. All numbers are counted, none is estimated.
#[apply(answer!)]
#[derive(Copy, Default)]
pub struct Savings {
    /// Reads whose lines were already in the context (SEEN-4).
    pub repeats: u64,
    /// The bytes that were not sent again because a read repeated an earlier
    /// one, where the number is known exactly.
    pub bytes_not_sent: u64,
    /// Edits that were refused because the session's copy was out of date
    /// (GUARD-4).
    pub stale_refused: u64,
    /// Edits that were refused because the session had not read the file
    /// (GUARD-4).
    pub not_read_refused: u64,
    /// Guarded writes that found bytes which the session had not seen
    /// (GUARD-1).
    pub conflicts: u64,
    /// Tool calls that were answered with the result of an earlier call.
    pub duplicate_calls: u64,
    /// The bytes of results that were answered from an earlier call.
    pub duplicate_bytes: u64,
    /// Changes by others that were reported to the session.
    pub notices: u64,
    /// Hooks that let their agent continue before the daemon had answered.
    pub unanswered_hooks: u64,
    /// Hook events that were not understood, or only in part: the event, a tool
    /// or a field is unknown to touchmark. Events without a known session are
    /// counted since the daemon's start, and only in the sum over all sessions.
    pub unclear_hooks: u64,
}
