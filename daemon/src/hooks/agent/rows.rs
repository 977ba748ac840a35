//! The agents, one file each: its row, and the sources of what the row says.

mod claude;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod droid;
mod gemini;
mod goose;
mod grok;
mod opencode;
mod pi;
mod qwen;
mod vibe;
mod windsurf;

use super::super::fields::text;
use super::Does::{Delete, Patch, Read, Replace, Replaces, Rewrite, Shell, ShellOrPatch, Whole};
use super::Is::{
    After, AfterOrFailed, Attached, BatchEnd, Before, ChildEnd, ChildStart, Compacted,
    CompactedByHand, Declined, End, Failed, Interrupted, ModelUsed, Prompt, Start, Stop,
};
use super::settings::{
    Addition, EntryFormat, Handler, SETTINGS, Servers, Settings, ShellPrefix, Switch, UserFile,
};
use super::{ARGUMENTS, Agent, Answers, Arguments, BASE, Does, Event, FIELDS, Fields, mute, tells};

/// A read of 2,000 lines by default, with `offset` counted from 1.
const READ: Does = Read {
    first: 1,
    lines: Some(2_000),
};

/// A read of 2,000 lines by default, with `offset` counted from 0.
const READ_FROM_0: Does = Read {
    first: 0,
    lines: Some(2_000),
};

/// A read of the whole file by default, with `offset` counted from 0.
const READ_ALL_FROM_0: Does = Read {
    first: 0,
    lines: None,
};

/// A read of the whole file by default, with `offset` counted from 1.
const READ_ALL: Does = Read {
    first: 1,
    lines: None,
};

/// The events that touchmark's plug-ins send.
const PLUGIN_EVENTS: &[Event] = &[
    mute("session.created", Start),
    mute("session.deleted", End),
    tells("prompt", Prompt),
    mute("before", Before),
    tells("after", After),
    mute("failed", Failed),
    mute("session.compacted", Compacted),
    mute("session.idle", Stop),
];

/// The names of these events' fields.
const PLUGIN_FIELDS: Fields = Fields {
    event: &["phase"],
    session: &["sessionID"],
    child: &[],
    parent: &["parentID"],
    mode: &["agent"],
    prompt: &["prompt", "text"],
    turn: &["messageID"],
    tool: &["tool"],
    call: &["callID"],
    arguments: &["args"],
    output: &["output", "metadata"],
    ..FIELDS
};

/// All agents, in the order of lists.
pub(super) static AGENTS: [&Agent; 14] = [
    &claude::ROW,
    &codex::ROW,
    &gemini::ROW,
    &cursor::ROW,
    &opencode::ROW,
    &qwen::ROW,
    &copilot::ROW,
    &pi::ROW,
    &cline::ROW,
    &vibe::ROW,
    &droid::ROW,
    &grok::ROW,
    &windsurf::ROW,
    &goose::ROW,
];
