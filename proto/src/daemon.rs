//! Requests about the daemon itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Clock, Hash, Millis, RelPath, SessionId};

/// A program's name and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// An agent.
    Agent,
    /// An editor.
    Editor,
    /// Anything else.
    Tool,
}

/// Says who calls. Optional to call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Initialize {
    /// The client.
    pub client: Program,
    /// The protocol it speaks.
    pub protocol: u32,
    /// The session this connection works for.
    pub session: Option<SessionId>,
    /// What the client is.
    pub role: Option<Role>,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Initialized {
    /// The daemon.
    pub server: Program,
    /// The protocol it speaks.
    pub protocol: u32,
    /// The absolute path of the workspace.
    pub workspace: String,
    /// Now.
    pub clock: Clock,
    /// Names of what this daemon can do beyond the first version.
    pub capabilities: Vec<String>,
}

/// Is anybody there?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ping {}

/// Nothing but "done".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// How is the daemon?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {}

/// Counted since the daemon started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Hints from the watcher.
    pub events: u64,
    /// Versions recorded.
    pub versions: u64,
    /// Fences made.
    pub fences: u64,
    /// Queue overflows.
    pub overflows: u64,
    /// Times everything tracked was compared with the disk.
    pub rescans: u64,
    /// Requests answered.
    pub requests: u64,
}

/// Where touchmark sees less than it should, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Degraded {
    /// What it concerns; everything if absent.
    pub path: Option<RelPath>,
    /// Why.
    pub cause: String,
}

impl Degraded {
    /// How a cause begins that is about the machine's clock (LIM-3).
    pub const CLOCK: &str = "the clock";
}

/// Where the state is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreStatus {
    /// The store's file.
    pub path: String,
    /// Its size with its log.
    pub size_bytes: u64,
    /// `process` or `power`.
    pub durability: String,
    /// What is kept of files' contents; `None` in the first moments of a
    /// daemon, and where nothing can be stored.
    pub contents: Option<KeptContents>,
}

/// How much is kept of files' contents (KEEP).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptContents {
    /// Bytes as they are stored, which `contents.total` counts.
    pub bytes: u64,
    /// Bytes as they were.
    pub original_bytes: u64,
    /// Stored bytes of what does not go before its time.
    pub pinned_bytes: u64,
    /// The content of every version since then can be had, but for those that
    /// are never kept; `None` if none ever had to go.
    pub since: Option<Millis>,
}

/// What the configuration's files say and is not in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// What the files said when they were last read and is not in force, each
    /// with file, line and reason: keys that are wrong, unknown, or not a
    /// repository's to say (SEC-5). `None` if all is.
    pub refused: Option<String>,
    /// Keys that have changed and wait for a restart.
    pub at_restart: Vec<String>,
}

/// What was heard of an agent's hooks since the daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentHeard {
    /// The agent, as in `touchmark hook AGENT`.
    pub agent: String,
    /// Its events that were understood.
    pub events: u64,
    /// The last of them, by the agent's own name for it.
    pub last_event: String,
    /// Whose it was.
    pub last_session: SessionId,
    /// How long ago it came.
    pub last_ago_ms: u64,
}

/// The daemon's condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// The daemon's process.
    pub pid: u32,
    /// The daemon's version.
    pub version: String,
    /// The protocol it speaks.
    pub protocol: u32,
    /// The absolute path of the workspace.
    pub workspace: String,
    /// Now.
    pub clock: Clock,
    /// How long it has run.
    pub uptime_ms: u64,
    /// Paths tracked.
    pub tracked_files: u64,
    /// Directories watched.
    pub watched_directories: u64,
    /// Sessions known and not closed.
    pub sessions: u64,
    /// Connections open.
    pub connections: u64,
    /// Edits open.
    pub open_edits: u64,
    /// Counts.
    pub counters: Counters,
    /// The watcher in use.
    pub backend: String,
    /// Where coverage is reduced.
    pub degraded: Vec<Degraded>,
    /// The store.
    pub store: StoreStatus,
    /// Resident memory.
    pub rss_bytes: u64,
    /// The configuration's files, where they say something else than what is
    /// in force.
    pub configuration: Configuration,
    /// The agents whose hooks were heard since the daemon started, by name.
    pub agents: Vec<AgentHeard>,
}

/// Wait until everything written before this call has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sync {}

/// The clock after a fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Synced {
    /// Now.
    pub clock: Clock,
    /// Paths spoken of that could not be read in time: what is said of them,
    /// or not said, is of before. Ask again (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Compare everything that is believed with the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {}

/// What a path holds, or is believed to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Holds {
    /// A file with this content.
    File(Hash),
    /// No file.
    Absent,
    /// Something that cannot be read.
    Unreadable,
}

/// A path of which something else is believed than is so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Which.
    pub path: RelPath,
    /// What was believed, behind a fence.
    pub believed: Holds,
    /// What the disk holds, although nothing said that it had changed.
    pub disk: Holds,
}

/// What is believed against the disk. What was found is believed from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Audited {
    /// Paths compared: all that are tracked.
    pub checked: u64,
    /// Where belief and disk differ; none, if all is well.
    pub differences: Vec<Difference>,
    /// Paths spoken of that could not be read in time: what is said of them,
    /// or not said, is of before. Ask again (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Remove every content that is kept for line counts and previews. Facts stay,
/// and so does what guarded writes kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentsForget {}

/// End the daemon cleanly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shutdown {}

/// Be told what happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subscribe {
    /// Only what concerns this session.
    pub session: Option<SessionId>,
    /// Only these types of events; all if absent.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// First what was missed since then.
    pub since: Option<Clock>,
}

/// A subscription's number, which its events carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subscribed {
    /// The number.
    pub subscription: u64,
}

/// Be told no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unsubscribe {
    /// The number that `subscribe` answered.
    pub subscription: u64,
}

/// What has been saved so far?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stats {
    /// Whose; all sessions' if absent.
    pub session: Option<SessionId>,
}

/// What has been saved, counted and not estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Savings {
    /// Reads whose lines were in the context already (SEEN-4).
    pub repeats: u64,
    /// The bytes of those lines, where they are known to the byte.
    pub bytes_not_sent: u64,
    /// Edits of out-of-date copies that were refused (GUARD-4).
    pub stale_refused: u64,
    /// Edits of files never read that were refused (GUARD-4).
    pub not_read_refused: u64,
    /// Guarded writes that found bytes nobody had seen (GUARD-1).
    pub conflicts: u64,
    /// Tool calls answered from an earlier one's result.
    pub duplicate_calls: u64,
    /// The bytes of those results.
    pub duplicate_bytes: u64,
    /// Changes of others that were told.
    pub notices: u64,
    /// Hooks that had to let their agent go on before the daemon had answered.
    pub unanswered_hooks: u64,
    /// Events of hooks that were not understood, or something in them: an
    /// event, a tool or a field that touchmark does not know. Those of no
    /// known session count since the daemon's start, and for no session.
    pub unclear_hooks: u64,
}
