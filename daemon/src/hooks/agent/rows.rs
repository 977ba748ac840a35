//! The agents, one file each: its row, and the sources of what the row says.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod droid;
mod gemini;
mod goose;
mod grok;
mod opencode;
mod qwen;
mod windsurf;

use super::super::fields::text;
use super::Does::{Delete, Patch, Read, Replace, Replaces, Rewrite, Shell, ShellOrPatch, Whole};
use super::Is::{
    After, AfterOrFailed, Attached, BatchEnd, Before, ChildEnd, ChildStart, Compacted,
    CompactedByHand, Declined, End, Failed, Interrupted, ModelUsed, Prompt, Start, Stop,
};
use super::settings::{Addition, EntryFormat, Handler, SETTINGS, Servers, Settings, UserFile};
use super::{ARGUMENTS, Agent, Answers, Arguments, BASE, Does, FIELDS, Fields, mute, tells};

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

/// All agents, in the order of lists.
pub(super) static AGENTS: [&Agent; 11] = [
    &claude::ROW,
    &codex::ROW,
    &gemini::ROW,
    &cursor::ROW,
    &opencode::ROW,
    &qwen::ROW,
    &copilot::ROW,
    &droid::ROW,
    &grok::ROW,
    &windsurf::ROW,
    &goose::ROW,
];
