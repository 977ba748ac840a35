//! The names on the wire of edits, command windows, witnesses and checkpoints.

use crate::witnesses::Seen;

/// Returns an edit's name on the wire.
pub fn edit_name(edit: u64) -> String {
    format!("e{edit}")
}

/// Returns the number of the edit with this name on the wire, or `None` if it
/// is no such name.
pub fn edit_number(name: &str) -> Option<u64> {
    name.strip_prefix('e')?.parse().ok()
}

/// Returns a command window's name on the wire.
pub fn command_name(command: u64) -> String {
    format!("c{command}")
}

/// Returns the number of the command window with this name on the wire, or
/// `None` if it is no such name.
pub fn command_number(name: &str) -> Option<u64> {
    name.strip_prefix('c')?.parse().ok()
}

/// Returns a witness's name on the wire: that of its window, or `a` and the number
/// of its agent.
pub fn witness_name(seen: Seen) -> String {
    match seen {
        Seen::Window(command) => command_name(command),
        Seen::Agent(number) => format!("a{number}"),
    }
}

/// Returns the witness with this name on the wire, or `None` if it is no such
/// name.
pub fn witness_of(name: &str) -> Option<Seen> {
    match name.strip_prefix('a') {
        Some(number) => number.parse().ok().map(Seen::Agent),
        None => command_number(name).map(Seen::Window),
    }
}

/// Returns the name of an undo or a redo on the wire.
pub fn undo_name(number: u64) -> String {
    format!("u{number}")
}

/// Returns a checkpoint's name on the wire.
pub fn checkpoint_name(number: u64) -> String {
    format!("k{number}")
}
