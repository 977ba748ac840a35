//! What holds in every state, and what is reached, so that it does not hold for
//! want of anything that happens.

use super::World;
use super::explore::Property;
use super::people::At;
use super::state::{Name, State};
use super::writer::{Answer, Path, Pc, Setup, base};

/// The name of [`no_save_is_lost`].
pub const LOST: &str = "no save is lost";

/// The name of the property that a process that waits for a lease gets the file
/// with the name.
pub const ROBBED: &str = "who waits gets the name";

/// Returns the properties of a write.
pub fn all(setup: &Setup) -> Vec<Property> {
    let mut all = vec![
        always(LOST, |world: &World, s: &State| {
            no_save_is_lost(&world.setup, s)
        }),
        always(ROBBED, |_: &World, s: &State| !s.robbed),
        always("no part is at the name", |world: &World, s: &State| {
            no_part_is_at_the_name(&world.setup, s)
        }),
        always("nothing is left", |_: &World, s: &State| nothing_is_left(s)),
        always("the name stays", |world: &World, s: &State| {
            the_name_stays(&world.setup, s)
        }),
        always("the answer is true", |world: &World, s: &State| {
            the_answer_is_true(&world.setup, s)
        }),
        always("the limit is as said", |world: &World, s: &State| {
            !s.limit || s.kills > 0 || world.setup.path == Path::Checked
        }),
        sometimes("done", |_: &World, s: &State| {
            s.daemon.pc == Pc::Idle && s.daemon.answer == Some(Answer::Done)
        }),
        sometimes("changed", |_: &World, s: &State| {
            s.daemon.pc == Pc::Idle && s.daemon.answer == Some(Answer::Changed)
        }),
    ];
    if setup.path != Path::Create {
        all.push(sometimes("a start reverts", |_: &World, s: &State| {
            let reverts = matches!(
                s.daemon.pc,
                Pc::LookCame | Pc::RestoreCut | Pc::DropLeaseGiven
            );
            s.daemon.is_start && reverts
        }));
    }
    if matches!(setup.path, Path::Exchange | Path::Checked) {
        all.push(sometimes("a start finishes", |_: &World, s: &State| {
            let finishes = match s.daemon.pc {
                Pc::DropCame => s.daemon.came.content == Some(base()),
                Pc::CompareTorn => s.content(s.daemon.old) != base(),
                _ => false,
            };
            s.daemon.is_start && finishes
        }));
    }
    if setup.path == Path::Exchange {
        all.push(sometimes("the limit is reached", |_: &World, s: &State| {
            s.limit
        }));
    }
    all
}

fn always(name: &'static str, holds: fn(&World, &State) -> bool) -> Property {
    Property {
        name,
        is_always: true,
        holds,
    }
}

fn sometimes(name: &'static str, holds: fn(&World, &State) -> bool) -> Property {
    Property {
        name,
        is_always: false,
        holds,
    }
}

/// Returns whether nothing happens any more: the daemon is idle, and has settled
/// what an earlier one left; nothing is held; no editor is within a save.
fn is_at_rest(s: &State) -> bool {
    s.daemon.pc == Pc::Idle
        && s.net.iter().all(|(inode, _)| *inode == 0)
        && s.people.iter().all(|person| person.is_at_rest())
}

/// A completed save is at a name or stored, unless a later save of an editor's
/// replaced it, or it was the base that the session has seen. So is a base that
/// it has not seen.
///
/// The limits, which `docs/semantics.md` names: a save into a file that has lost
/// its name to the write is lost if the daemon is killed before its last look
/// (`writer::kill`, `people::close`); and a save in place during a write in place
/// without a lease (`writer::races`).
fn no_save_is_lost(setup: &Setup, s: &State) -> bool {
    let is_seen = |content| content == base() && !setup.keep_base;
    let mut saves = s.saves.iter().flatten();
    !is_at_rest(s) || saves.all(|save| s.is_safe(save.content) || is_seen(save.content))
}

/// The name never has a part of the new content; after a write in place, once the
/// next start has settled it.
fn no_part_is_at_the_name(setup: &Setup, s: &State) -> bool {
    let inode = s.at(Name::File);
    if inode == 0 || s.file(inode).touched {
        return true;
    }
    let content = s.content(inode);
    match setup.path {
        Path::Checked => !is_at_rest(s) || [base(), setup.new_content()].contains(&content),
        _ => inode != s.daemon.temporary || content == setup.new_content(),
    }
}

/// An idle daemon leaves no temporary name, no record and no lease.
fn nothing_is_left(s: &State) -> bool {
    let is_clean = s.at(Name::Aside) == 0 && s.intent.is_none() && s.lease.inode == 0;
    s.daemon.pc != Pc::Idle || is_clean
}

/// The name has a file, unless an editor is about to make one, or the request was
/// to remove it.
fn the_name_stays(setup: &Setup, s: &State) -> bool {
    let is_away = s.people.iter().any(|person| person.at == At::Away);
    let is_done = s.daemon.answer == Some(Answer::Done);
    let may_lack = match setup.path {
        Path::Create => !is_done,
        // A kill may come between the removal and its answer.
        Path::Remove => s.daemon.pc != Pc::Idle || is_done || s.kills > 0,
        Path::Exchange | Path::Checked => false,
    };
    s.at(Name::File) != 0 || is_away || may_lack
}

/// After `Done`, the name does not have the base, and after a conflict not the new
/// content, unless an editor wrote it.
fn the_answer_is_true(setup: &Setup, s: &State) -> bool {
    let inode = s.at(Name::File);
    if s.daemon.pc != Pc::Idle || inode == 0 || s.file(inode).touched {
        return true;
    }
    let content = s.content(inode);
    match s.daemon.answer {
        Some(Answer::Done) => content != base(),
        Some(Answer::Changed | Answer::Busy) => content != setup.new_content(),
        None => true,
    }
}
