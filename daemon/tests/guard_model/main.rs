//! The guarded write in a model checker: every interleaving of its steps with the
//! saves of two editors and with kills of the daemon, within the bound below.
//!
//! # What is modelled
//!
//! [`writer`] has one step for each system call that another process can see,
//! in the order of the code:
//!
//! | steps | function in `daemon/src/guard` |
//! | --- | --- |
//! | `Begin` to `ListBase` | `Guard::attempt`, `Old::open`, `Guard::keep_copy` |
//! | `Record` to `TakeName` | `Guard::replace`, `Guard::create`, `Temporary::write`, `Recorded::advance` |
//! | `TakeLease` to `DropOld` | `Guard::exchange` |
//! | `ExchangeBack` to `LookBrokenOff` | `Guard::put_back` |
//! | `GiveUp` to `DropCame` | `Guard::give_up`, `Guard::keep_or_leave` |
//! | `CheckWriter` to `CompareAfter` | `Guard::checked`, `write_over` |
//! | `RecordRemoval` to `DropLeaseGiven` | `Guard::take_away`, `Guard::give_back` |
//! | `Resume` to `RestoreCut` | `Guard::resume`, `resume_exchange`, `resume_writing`, `resume_removing` |
//! | `look_at_held` | `Net::look_at_all`, `Moved::look` |
//!
//! [`people`] has the editors, [`state`] the file system and the state directory,
//! [`properties`] what is checked, [`explore`] the search. A lease is as in `daemon/src/system/lease.rs`
//! and in Linux: it is refused while a process has the file open for writing; an
//! `open` looks the name up, and waits for the lease in a later step; the file
//! counts as open for writing while that waits. `O_TRUNC` truncates in a step
//! after the wait.
//!
//! # The bound
//!
//! One guarded write; two editors, each with one save in one of six ways, begun
//! and continued at any moment (so also one editor's two saves, in either order);
//! one or two kills at any moment, the second also of the start that settles the
//! write. The write is an exchange, a creation, a write in place or a removal, with
//! and without leases, with small and large contents. In the ordinary run an
//! exchange and a creation, a write in place and a removal under leases meet all
//! pairs of ways and one kill; they and their variants meet one editor and two
//! kills. `--soak` has all pairs and two kills for all. Each test prints its number
//! of states and its time: about 1.5 million in ten seconds for the ordinary run,
//! unoptimised, on one core.
//!
//! The search is [`explore`] and no library's: it is 60 lines, and Stateright
//! brings 22 packages, an HTTP server among them. The same model in Stateright
//! 0.31 has the same numbers of states.
//!
//! # What is left out
//!
//! - A loss of power. All that was written stays.
//! - Errors of the disk and of permissions, secrets, symlinks, several directories.
//! - A content is at most seven blocks. A read is one step; a write during it is
//!   found by the stamps, as in `content::hash`. A stamp that is compared later
//!   is the size alone, as if all writes were within one tick of the clock.
//! - The copy of a content, its description and its listing are two steps. A copy
//!   that was not listed is no copy.
//! - A record of an intent is whole or not there (`Intents::left` ignores half a
//!   line).
//! - A file that is held is looked at before an editor's open could have been
//!   under way for 250 ms (`FIRST`), and no process has it open for longer than it
//!   is held (`LONGEST`). There is no limit on held or stored bytes.
//! - The kernel ends no lease (it does after 45 s). 64 exchanges in a row
//!   (`MOST_EXCHANGES`) are not reached.
//! - No editor saves the bytes of the agent's new content, which are not unseen,
//!   and none saves the bytes that an interrupted write in place leaves.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub)] // the modules of one test are its own world

mod explore;
mod people;
mod properties;
mod state;
mod writer;

use std::time::Instant;

use touchmark_tests::parts;

use explore::{Found, explore};
use people::{At, Person, WAYS, Way};
use state::{File, Lease, Name, Save, State};
use writer::{Mistake, Path, Pc, Setup, base};

/// One step of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The daemon makes this step. A number from 1 is the editor, counted from 1,
    /// that writes to a file during a read of it.
    Daemon(Pc, u8),
    /// An editor makes its next step from here.
    Editor(usize, Way, At),
    Kill,
    Start,
    LookAtHeld,
}

/// What is explored.
#[derive(Clone, Debug)]
pub struct World {
    setup: Setup,
    ways: Vec<[Way; 2]>,
    kills: u8,
}

impl World {
    fn at_start(&self, ways: [Way; 2]) -> State {
        let mut state = State {
            names: Default::default(),
            files: Default::default(),
            count: 0,
            intent: None,
            kept: Default::default(),
            copy: None,
            lease: Lease::default(),
            daemon: writer::AT_BEGIN,
            net: Default::default(),
            people: [Person::new(0, ways[0]), Person::new(1, ways[1])],
            saves: [None; 3],
            kills: 0,
            limit: false,
            robbed: false,
        };
        if self.setup.reverts {
            state.people[1].content = base();
        }
        if self.setup.path != Path::Create {
            let inode = state.create(Name::File, base());
            if self.setup.path == Path::Checked {
                state.set(Name::Link, inode);
            }
            state.saves[2] = self.setup.keep_base.then_some(Save {
                content: base(),
                inode,
                late: false,
            });
        }
        state
    }

    fn initial(&self) -> Vec<State> {
        self.ways.iter().map(|ways| self.at_start(*ways)).collect()
    }

    /// Returns what may happen next. Not all of it need be possible.
    fn actions(&self, s: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        match s.daemon.pc {
            Pc::Dead => actions.push(Action::Start),
            Pc::Idle if writer::may_look(s) => actions.push(Action::LookAtHeld),
            Pc::Idle => {}
            pc => {
                let most = if writer::reads(pc) { 2 } else { 0 };
                actions.extend((0..=most).map(|choice| Action::Daemon(pc, choice)));
            }
        }
        if s.daemon.pc != Pc::Dead && s.kills < self.kills {
            actions.push(Action::Kill);
        }
        for (who, person) in s.people.iter().enumerate() {
            if person.at != At::Done {
                actions.push(Action::Editor(who, person.way, person.at));
            }
        }
        actions
    }

    /// Returns the state after a step; `None` if it is not possible.
    fn next(&self, s: &State, action: Action) -> Option<State> {
        let next = match action {
            Action::Daemon(_, choice) => writer::step(&self.setup, s, choice),
            Action::Editor(who, ..) => people::step(s, who),
            Action::Kill => Some(writer::kill(s)),
            Action::Start => Some(writer::start(s)),
            Action::LookAtHeld => Some(writer::look_at_held(s)),
        };
        next.map(settle)
    }
}

/// Removes what has no effect any more, so that fewer states are different.
fn settle(mut s: State) -> State {
    for at in 0..s.saves.len() {
        if s.saves[at].is_some_and(|save| s.kept.contains(&save.content)) {
            s.saves[at] = None;
        }
    }
    let d = s.daemon;
    for inode in 1..=s.count {
        let used = s.is_named(inode)
            || s.people.iter().any(|person| person.inode == inode)
            || s.net.iter().any(|(held, _)| *held == inode)
            || s.saves.iter().flatten().any(|save| save.inode == inode)
            || [d.old, d.out.inode, d.came.inode].contains(&inode)
            || d.under.is_some_and(|under| under.inode == inode);
        if !used {
            *s.file_mut(inode) = File::default();
        }
    }
    s
}

/// A write by an exchange of names, of small contents, with leases, on a base
/// that the session has seen.
const EXCHANGE: Setup = Setup {
    path: Path::Exchange,
    leases: true,
    small: true,
    keep_base: false,
    reader: false,
    length: 3,
    reverts: false,
    mistake: None,
};

const CREATE: Setup = Setup {
    path: Path::Create,
    ..EXCHANGE
};

/// An exchange on a base that the session has not seen, while an editor saves the
/// same bytes.
const REVERTS: Setup = Setup {
    keep_base: true,
    reverts: true,
    ..EXCHANGE
};

const CHECKED: Setup = Setup {
    path: Path::Checked,
    ..EXCHANGE
};

const REMOVE: Setup = Setup {
    path: Path::Remove,
    ..EXCHANGE
};

/// Returns all pairs of ways to save.
fn pairs() -> Vec<[Way; 2]> {
    let pairs = WAYS.iter().enumerate();
    let pairs = pairs.flat_map(|(at, one)| WAYS[at..].iter().map(|other| [*one, *other]));
    pairs.collect()
}

/// Returns each way to save, of one editor.
fn alone() -> Vec<[Way; 2]> {
    WAYS.iter().map(|way| [*way, Way::Absent]).collect()
}

/// Explores a write, and prints how much that was.
fn search(setup: Setup, mut ways: Vec<[Way; 2]>, kills: u8, until: Option<&str>) -> (World, Found) {
    if setup.path == Path::Create {
        // There is no file that could be open before.
        ways.retain(|ways| !ways.contains(&Way::Held));
    }
    let began = Instant::now();
    let world = World { setup, ways, kills };
    let found = explore(&world, until);
    let Found { states, steps, .. } = found;
    println!("{setup:?}");
    println!("{states} states, {steps} steps, {:?}", began.elapsed());
    (world, found)
}

/// Checks that each property holds in every state, or in some.
fn holds(setup: Setup, ways: Vec<[Way; 2]>, kills: u8) {
    let (world, found) = search(setup, ways, kills, None);
    for property in properties::all(&world.setup) {
        let path = found.paths.get(property.name);
        match property.is_always {
            true => {
                let steps = path.map(|path| list(path));
                assert!(
                    steps.is_none(),
                    "{}:\n{}",
                    property.name,
                    steps.unwrap_or_default()
                );
            }
            false => assert!(path.is_some(), "never: {}", property.name),
        }
    }
}

/// Checks that a writer with a mistake violates a property, and prints the steps.
fn is_found(mistake: Mistake, setup: Setup, ways: Vec<[Way; 2]>, property: &str) {
    let mistake = Some(mistake);
    let setup = Setup { mistake, ..setup };
    let (_, found) = search(setup, ways, 1, Some(property));
    let path = found.paths.get(property);
    let path = path.unwrap_or_else(|| panic!("{mistake:?}: {property} is not violated"));
    println!("{}", list(path));
}

/// Returns one step a line.
fn list(path: &[Action]) -> String {
    let lines = path.iter().map(|action| format!("    {action:?}\n"));
    lines.collect()
}

#[test]
fn guard1_an_exchange_loses_no_save() {
    holds(EXCHANGE, pairs(), 1);
}

#[test]
fn guard1_a_creation_loses_no_save() {
    holds(CREATE, pairs(), 1);
}

#[test]
fn guard2_a_write_in_place_loses_no_save_but_one_at_the_same_moment() {
    holds(CHECKED, pairs(), 1);
}

#[test]
fn guard7_a_removal_loses_no_save() {
    holds(REMOVE, pairs(), 1);
}

/// Returns the variants that the tests above leave out.
fn variants() -> Vec<Setup> {
    let mut all = Vec::new();
    for of in [EXCHANGE, CHECKED, REMOVE] {
        all.extend([
            Setup { small: false, ..of },
            Setup {
                leases: false,
                ..of
            },
        ]);
    }
    for of in [EXCHANGE, CHECKED] {
        all.push(Setup {
            keep_base: true,
            ..of
        });
    }
    all.push(Setup {
        leases: false,
        small: false,
        ..EXCHANGE
    });
    for length in [2, 5] {
        all.push(Setup { length, ..CHECKED });
    }
    for keep_base in [false, true] {
        all.push(Setup {
            reader: true,
            keep_base,
            ..CHECKED
        });
    }
    all
}

#[test]
fn guard1_no_variant_loses_a_save_to_two_kills() {
    for setup in [EXCHANGE, CREATE, CHECKED, REMOVE] {
        holds(setup, alone(), 2);
    }
    for setup in variants() {
        holds(setup, alone(), 2);
    }
}

/// The base's bytes are unseen, too, if the session has not seen them.
#[test]
fn guard1_a_save_of_the_unseen_bases_bytes_is_not_lost() {
    holds(REVERTS, vec![[Way::InPlace, Way::InPlace]], 1);
}

#[test]
fn guard1_no_two_saves_are_lost_to_two_kills() {
    if !parts::long("the guarded write in the model checker: all pairs of saves, two kills") {
        return;
    }
    for setup in [EXCHANGE, CREATE, CHECKED, REMOVE] {
        holds(setup, pairs(), 2);
    }
    holds(REVERTS, pairs(), 2);
    for setup in variants() {
        holds(setup, pairs(), 2);
    }
}

#[test]
fn a_writer_that_does_not_look_at_what_came_out_is_found() {
    is_found(Mistake::DropsUnseen, EXCHANGE, alone(), properties::LOST);
}

#[test]
fn a_writer_that_records_the_exchange_after_it_is_found() {
    is_found(Mistake::RecordsLate, EXCHANGE, alone(), properties::LOST);
}

#[test]
fn a_start_that_does_not_look_at_what_came_out_is_found() {
    is_found(Mistake::RecoversUnseen, EXCHANGE, alone(), properties::LOST);
}

#[test]
fn a_writer_that_takes_the_old_file_for_the_base_is_found() {
    let ways = vec![[Way::InPlace, Way::Backup]];
    is_found(Mistake::TrustsTheBase, EXCHANGE, ways, properties::LOST);
}

#[test]
fn a_writer_that_drops_the_copy_of_what_it_overwrote_is_found() {
    let setup = Setup {
        keep_base: true,
        ..CHECKED
    };
    is_found(Mistake::DropsTheCopy, setup, alone(), properties::LOST);
}

#[test]
fn a_start_that_takes_a_save_for_a_torn_write_is_found() {
    is_found(Mistake::TakesForTorn, CHECKED, alone(), properties::LOST);
}

#[test]
fn a_removal_that_does_not_ask_who_waits_is_found() {
    is_found(Mistake::RobsWaiters, REMOVE, alone(), properties::ROBBED);
}

#[test]
fn a_removal_that_does_not_hold_what_it_stored_is_found() {
    let setup = Setup {
        leases: false,
        ..REMOVE
    };
    is_found(Mistake::ForgetsTheRemoved, setup, pairs(), properties::LOST);
}

#[test]
fn a_last_look_that_compares_with_what_was_not_stored_is_found() {
    let ways = vec![[Way::InPlace, Way::InPlace]];
    is_found(Mistake::ComparesUnstored, REVERTS, ways, properties::LOST);
}
