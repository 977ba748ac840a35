//! The daemon: a guarded write, step by step, and what the next start does.

use super::people::{self, Person};
use super::state::{A, B, Content, Inode, Lease, NL, Name, Phase, State};

/// What the daemon does, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub path: Path,
    /// The file system has leases.
    pub leases: bool,
    /// The contents are small enough to be looked at under a lease.
    pub small: bool,
    /// The session has not seen the base, so a copy of it has to stay.
    pub keep_base: bool,
    /// Another process has the file open for reading.
    pub reader: bool,
    /// The number of blocks of the new content; the base has three.
    pub length: usize,
    /// The second editor saves the bytes of the base.
    pub reverts: bool,
    /// A mistake in the writer, for the proof that it is found.
    pub mistake: Option<Mistake>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// `guard/exchange.rs`.
    Exchange,
    /// `Guard::create` in `guard/mod.rs`.
    Create,
    /// `guard/checked.rs`.
    Checked,
    /// `guard/remove.rs`.
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Unlinks what came out of the exchange without looking at it.
    DropsUnseen,
    /// Records the exchange after it.
    RecordsLate,
    /// The next start unlinks what came out without looking at it.
    RecoversUnseen,
    /// What came out is given up by what it had earlier.
    TrustsTheBase,
    /// The copy of an unseen base goes although the base was overwritten.
    DropsTheCopy,
    /// A content of the base's length and with its last bytes is a torn one.
    TakesForTorn,
    /// A removal does not ask whether a process waits to open the file.
    RobsWaiters,
    /// A removal does not hold the file that it stores, for a last look.
    ForgetsTheRemoved,
    /// The last look compares with what was looked at, not with what was stored.
    ComparesUnstored,
}

impl Setup {
    pub fn new_content(&self) -> Content {
        let mut content = Content::of(&[A; 7]).cut(self.length - 1);
        content = content.with(self.length - 1, NL);
        content
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }
}

pub fn base() -> Content {
    Content::of(&[B, B, NL])
}

/// The answer to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Done,
    /// Another process has changed the file.
    Changed,
    /// Another process has it open for writing.
    Busy,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pc {
    /// The daemon was killed.
    Dead,
    /// The daemon waits for requests.
    Idle,

    // `Guard::attempt`.
    Begin,
    OpenOld,
    CopyBase,
    ListBase,

    // `Guard::replace`, `Guard::create`, `Temporary::write`.
    Record,
    CreateTemporary,
    WriteRest,
    Advance,
    TakeName,

    // `Guard::exchange`.
    TakeLease,
    LookAgain,
    Exchange,
    Stat,
    Holds,
    IsWhole,
    DropLeaseAndLook,
    LookAside,
    DropLease,
    HoldsLate,
    DropOld,
    AdvanceLate,

    // `Guard::put_back`.
    ExchangeBack,
    DropLeaseBack,
    LookCame,
    BreakOff,
    LookBrokenOff,

    // `Guard::give_up`.
    GiveUp,
    CopyCame,
    ListCame,
    DropCame,

    // `Guard::checked`.
    CheckWriter,
    CopyOld,
    ListOld,
    OpenToWrite,
    RecordWriting,
    TakeWriteLease,
    Compare,
    OverwriteHalf,
    OverwriteRest,
    Cut,
    DropWriteLease,
    CompareAfter,

    // `Guard::remove`.
    RecordRemoval,
    LeaseRemoval,
    TakeAway,
    StatRemoved,
    HoldsRemoved,
    IsWholeRemoved,
    DropRemovalLease,
    LookRemoved,
    DropRemoved,
    GiveBack,
    DropLeaseGiven,

    // All paths.
    AbortTemporary,
    End,
    DropCopy,

    // `Guard::resume`.
    Resume,
    ResumeLook,
    ResumeFound,
    ResumeWriting,
    CompareTorn,
    StoreTorn,
    RestoreHalf,
    RestoreRest,
    RestoreCut,
}

/// A file as it was looked at: `Came` in `guard/exchange.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Came {
    pub inode: Inode,
    /// `None` if the content changed during the look.
    pub content: Option<Content>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Daemon {
    pub pc: Pc,
    /// It runs `Guard::resume`.
    pub is_start: bool,
    /// The answer; sent once the daemon is idle.
    pub answer: Option<Answer>,
    /// The temporary file's inode.
    pub temporary: Inode,
    pub old: Inode,
    pub out: Came,
    /// `None` for the new content.
    pub under: Option<Came>,
    /// What is given up.
    pub came: Came,
    /// The content of a copy that is not listed yet.
    pub copied: Content,
}

pub const AT_BEGIN: Daemon = Daemon {
    pc: Pc::Begin,
    is_start: false,
    answer: None,
    temporary: 0,
    old: 0,
    out: Came {
        inode: 0,
        content: None,
    },
    under: None,
    came: Came {
        inode: 0,
        content: None,
    },
    copied: Content::of_nothing(),
};

/// Reads a file. A `choice` from 1 is that an editor writes to it during the
/// read, which the comparison of stamps then finds: the content is `None`.
/// Returns `None` if there is no such choice.
fn read(s: &mut State, inode: Inode, choice: u8) -> Option<Option<Content>> {
    let Some(who) = (choice as usize).checked_sub(1) else {
        return Some(Some(s.content(inode)));
    };
    let is_writing = s.people[who].has_open(inode);
    let before = s.content(inode);
    let next = people::step(s, who).filter(|_| is_writing)?;
    if next.content(inode) == before {
        return None;
    }
    *s = next;
    Some(None)
}

/// Returns whether a step reads a file, so that it has two choices.
pub fn reads(pc: Pc) -> bool {
    matches!(
        pc,
        Pc::OpenOld
            | Pc::Holds
            | Pc::LookAside
            | Pc::HoldsLate
            | Pc::LookCame
            | Pc::LookBrokenOff
            | Pc::Compare
            | Pc::CompareAfter
            | Pc::LookRemoved
            | Pc::HoldsRemoved
            | Pc::ResumeLook
            | Pc::ResumeFound
    )
}

/// The next step of the daemon; `None` if it has none, or not this choice.
pub fn step(setup: &Setup, state: &State, choice: u8) -> Option<State> {
    let mut next = state.clone();
    let s = &mut next;
    let new = setup.new_content();
    let d = state.daemon;
    let to = match d.pc {
        Pc::Dead | Pc::Idle => return None,

        Pc::Begin => match setup.path {
            // `create` looks whether the name exists.
            Path::Create if s.at(Name::File) != 0 => answer(s, Answer::Changed),
            Path::Create => Pc::Record,
            _ => Pc::OpenOld,
        },
        Pc::OpenOld => match s.at(Name::File) {
            0 => answer(s, Answer::Changed),
            inode => {
                s.daemon.old = inode;
                match read(s, inode, choice)? {
                    None => answer(s, Answer::Busy),
                    Some(content) if content != base() => answer(s, Answer::Changed),
                    Some(_) => match setup.path {
                        Path::Remove => Pc::RecordRemoval,
                        _ if setup.keep_base => Pc::CopyBase,
                        Path::Checked => Pc::CheckWriter,
                        _ => Pc::Record,
                    },
                }
            }
        },
        Pc::CopyBase => {
            s.daemon.copied = s.content(d.old);
            Pc::ListBase
        }
        Pc::ListBase => {
            s.copy = Some(d.copied);
            if d.copied != base() {
                s.daemon.answer = Some(Answer::Changed);
                Pc::DropCopy
            } else if setup.path == Path::Checked {
                Pc::CheckWriter
            } else {
                Pc::Record
            }
        }

        Pc::Record => {
            s.intent = Some(Phase::Preparing);
            Pc::CreateTemporary
        }
        Pc::CreateTemporary => {
            s.daemon.temporary = s.create(Name::Aside, new.cut(1));
            Pc::WriteRest
        }
        Pc::WriteRest => {
            s.file_mut(d.temporary).content = new;
            match setup.is(Mistake::RecordsLate) {
                true => Pc::TakeLease,
                false => Pc::Advance,
            }
        }
        Pc::Advance if setup.path == Path::Create => {
            s.intent = Some(Phase::Creating);
            Pc::TakeName
        }
        Pc::Advance => {
            s.intent = Some(Phase::Exchanging);
            Pc::TakeLease
        }
        Pc::TakeName => match s.rename(Name::Aside, Name::File) {
            true => {
                s.daemon.answer = Some(Answer::Done);
                Pc::End
            }
            false => abort(s, Answer::Changed),
        },

        Pc::TakeLease if setup.leases && s.has_writer(d.old) => abort(s, Answer::Busy),
        Pc::TakeLease => {
            take_lease(setup, s, d.old);
            Pc::LookAgain
        }
        Pc::LookAgain => {
            // Of the stamp, only the size: two writes may have the same time.
            let is_same = s.content(d.old).len() == base().len() && s.at(Name::File) == d.old;
            match is_same {
                true => Pc::Exchange,
                false => {
                    s.lease = Lease::default();
                    abort(s, Answer::Changed)
                }
            }
        }
        Pc::Exchange => match s.exchange(Name::File, Name::Aside) {
            true if setup.is(Mistake::RecordsLate) => Pc::AdvanceLate,
            true if setup.is(Mistake::DropsUnseen) => Pc::DropLease,
            true => Pc::Stat,
            false => {
                s.lease = Lease::default();
                abort(s, Answer::Changed)
            }
        },
        Pc::AdvanceLate => {
            s.intent = Some(Phase::Exchanging);
            Pc::Stat
        }
        Pc::Stat if s.at(Name::Aside) != d.old => Pc::DropLeaseAndLook,
        Pc::Stat => {
            s.daemon.out = Came {
                inode: d.old,
                content: Some(base()),
            };
            match setup.small {
                true => Pc::Holds,
                false => Pc::IsWhole,
            }
        }
        Pc::Holds => {
            let seen = read(s, d.old, choice)?;
            s.daemon.out.content = seen;
            match seen == Some(base()) {
                false if setup.is(Mistake::TrustsTheBase) => {
                    s.daemon.out.content = Some(base());
                    disturbed(setup)
                }
                true => Pc::IsWhole,
                false => disturbed(setup),
            }
        }
        Pc::IsWhole if s.lease.broken => disturbed(setup),
        Pc::IsWhole => Pc::DropLease,
        Pc::DropLeaseAndLook => {
            s.lease = Lease::default();
            Pc::LookAside
        }
        Pc::LookAside => {
            s.daemon.out = look(s, choice)?;
            Pc::ExchangeBack
        }
        Pc::DropLease => {
            s.lease = Lease::default();
            match setup.small || setup.is(Mistake::DropsUnseen) {
                true => Pc::DropOld,
                false => Pc::HoldsLate,
            }
        }
        Pc::HoldsLate => match read(s, d.old, choice)? == Some(base()) {
            true => Pc::DropOld,
            false => Pc::LookAside,
        },
        Pc::DropOld => {
            s.set(Name::Aside, 0);
            hold(s, d.old, Some(base()));
            s.daemon.answer = Some(Answer::Done);
            Pc::End
        }

        Pc::ExchangeBack => {
            s.daemon.answer = Some(Answer::Changed);
            match s.exchange(Name::File, Name::Aside) {
                true if s.lease.inode != 0 => Pc::DropLeaseBack,
                true => Pc::LookCame,
                false => Pc::BreakOff,
            }
        }
        Pc::DropLeaseBack => {
            s.lease = Lease::default();
            Pc::LookCame
        }
        Pc::LookCame => {
            let came = look(s, choice)?;
            let is_expected = match d.under {
                None => came.content == Some(new),
                Some(under) => came.is(under),
            };
            match is_expected {
                true => {
                    s.daemon.came = came;
                    Pc::GiveUp
                }
                false => {
                    s.daemon.under = Some(d.out);
                    s.daemon.out = came;
                    Pc::ExchangeBack
                }
            }
        }
        Pc::BreakOff => {
            s.lease = Lease::default();
            match setup.is(Mistake::TrustsTheBase) {
                true => {
                    s.daemon.came = d.out;
                    Pc::GiveUp
                }
                false => Pc::LookBrokenOff,
            }
        }
        Pc::LookBrokenOff => {
            s.daemon.came = look(s, choice)?;
            Pc::GiveUp
        }

        Pc::GiveUp => {
            let keep_base = setup.keep_base && !d.is_start;
            let known = d.came.content == Some(new) || d.came.content == Some(base()) && !keep_base;
            match known {
                true => Pc::DropCame,
                false => Pc::CopyCame,
            }
        }
        Pc::CopyCame => {
            s.daemon.copied = s.content(d.came.inode);
            Pc::ListCame
        }
        Pc::ListCame => {
            s.keep(d.copied);
            if !setup.is(Mistake::ComparesUnstored) {
                s.daemon.came.content = Some(d.copied);
            }
            Pc::DropCame
        }
        Pc::DropCame => {
            s.set(Name::Aside, 0);
            let forgets = setup.is(Mistake::ForgetsTheRemoved) && setup.path == Path::Remove;
            if !forgets {
                hold(s, d.came.inode, d.came.content);
            }
            Pc::End
        }

        Pc::CheckWriter if setup.leases && s.has_writer(d.old) => {
            s.daemon.answer = Some(Answer::Busy);
            match s.copy {
                Some(_) => Pc::DropCopy,
                None => Pc::Idle,
            }
        }
        Pc::CheckWriter if setup.keep_base => Pc::OpenToWrite,
        Pc::CheckWriter => Pc::CopyOld,
        Pc::CopyOld => {
            s.daemon.copied = s.content(d.old);
            Pc::ListOld
        }
        Pc::ListOld => {
            s.copy = Some(d.copied);
            match d.copied == base() {
                true => Pc::OpenToWrite,
                false => {
                    s.daemon.answer = Some(Answer::Changed);
                    Pc::DropCopy
                }
            }
        }
        Pc::OpenToWrite if s.at(Name::File) == d.old => Pc::RecordWriting,
        Pc::OpenToWrite => {
            s.daemon.answer = Some(Answer::Changed);
            Pc::DropCopy
        }
        Pc::RecordWriting => {
            s.intent = Some(Phase::Writing);
            Pc::TakeWriteLease
        }
        Pc::TakeWriteLease => {
            if setup.small && !setup.reader && !s.has_writer(d.old) {
                take_lease(setup, s, d.old);
            }
            Pc::Compare
        }
        Pc::Compare => match read(s, d.old, choice)? == Some(base()) {
            true => {
                s.daemon.copied = base();
                Pc::OverwriteHalf
            }
            false => {
                s.lease = Lease::default();
                s.daemon.answer = Some(Answer::Changed);
                Pc::End
            }
        },
        Pc::OverwriteHalf => {
            overwrite(s, d.old, 0..1, new);
            Pc::OverwriteRest
        }
        Pc::OverwriteRest => {
            overwrite(s, d.old, 1..new.len(), new);
            Pc::Cut
        }
        Pc::Cut => {
            cut(s, d.old, new);
            match s.lease.inode {
                0 => Pc::CompareAfter,
                _ => Pc::DropWriteLease,
            }
        }
        Pc::DropWriteLease => {
            s.lease = Lease::default();
            Pc::CompareAfter
        }
        Pc::CompareAfter => {
            match read(s, d.old, choice)? == Some(new) {
                true => {
                    s.daemon.answer = Some(Answer::Done);
                    match setup.keep_base {
                        true => Pc::End,
                        // The copy is dropped before the intent is ended.
                        false => Pc::DropCopy,
                    }
                }
                false => {
                    s.daemon.answer = Some(Answer::Changed);
                    if !setup.keep_base || !setup.is(Mistake::DropsTheCopy) {
                        // It is named by the answer, and stays.
                        let copy = s.copy.take().unwrap();
                        s.keep(copy);
                    }
                    Pc::End
                }
            }
        }

        Pc::RecordRemoval => {
            s.intent = Some(Phase::Removing);
            Pc::LeaseRemoval
        }
        Pc::LeaseRemoval if setup.leases && s.has_writer(d.old) => {
            s.daemon.answer = Some(Answer::Busy);
            Pc::End
        }
        Pc::LeaseRemoval => {
            take_lease(setup, s, d.old);
            Pc::TakeAway
        }
        Pc::TakeAway => match s.rename(Name::File, Name::Aside) {
            true if setup.is(Mistake::RobsWaiters) => Pc::DropRemovalLease,
            true => Pc::StatRemoved,
            false => {
                s.lease = Lease::default();
                s.daemon.answer = Some(Answer::Changed);
                Pc::End
            }
        },
        Pc::StatRemoved if s.at(Name::Aside) != d.old => Pc::GiveBack,
        Pc::StatRemoved if setup.small => Pc::HoldsRemoved,
        Pc::StatRemoved => Pc::IsWholeRemoved,
        Pc::HoldsRemoved => match read(s, d.old, choice)? == Some(base()) {
            true => Pc::IsWholeRemoved,
            false => Pc::GiveBack,
        },
        Pc::IsWholeRemoved if s.lease.broken => Pc::GiveBack,
        Pc::IsWholeRemoved => Pc::DropRemovalLease,
        Pc::DropRemovalLease => {
            s.lease = Lease::default();
            match setup.small && !setup.is(Mistake::RobsWaiters) {
                true => Pc::DropRemoved,
                false => Pc::LookRemoved,
            }
        }
        Pc::LookRemoved => match read(s, s.at(Name::Aside), choice)? == Some(base()) {
            true => Pc::DropRemoved,
            false => Pc::GiveBack,
        },
        Pc::DropRemoved => {
            s.set(Name::Aside, 0);
            hold(s, d.old, Some(base()));
            s.daemon.answer = Some(Answer::Done);
            Pc::End
        }
        Pc::GiveBack => {
            s.daemon.answer = Some(Answer::Changed);
            match s.at(Name::Aside) {
                0 => Pc::DropLeaseGiven,
                _ if s.rename(Name::Aside, Name::File) => Pc::DropLeaseGiven,
                inode => {
                    s.lease = Lease::default();
                    s.daemon.came = Came {
                        inode,
                        content: None,
                    };
                    Pc::CopyCame
                }
            }
        }

        Pc::DropLeaseGiven => {
            s.lease = Lease::default();
            Pc::End
        }

        Pc::AbortTemporary => {
            s.set(Name::Aside, 0);
            Pc::End
        }
        Pc::End => {
            s.intent = None;
            let is_done = d.answer == Some(Answer::Done);
            match s.copy.is_some() && !is_done && !d.is_start {
                true => Pc::DropCopy,
                false => Pc::Idle,
            }
        }
        Pc::DropCopy => {
            s.copy = None;
            match s.intent {
                Some(_) => Pc::End,
                None => Pc::Idle,
            }
        }

        Pc::Resume => match s.intent {
            None => Pc::Idle,
            Some(Phase::Preparing | Phase::Creating) => Pc::AbortTemporary,
            Some(Phase::Exchanging) => Pc::ResumeLook,
            Some(Phase::Writing) => Pc::ResumeWriting,
            Some(Phase::Removing) => Pc::GiveBack,
        },
        Pc::ResumeLook if s.at(Name::Aside) == 0 => Pc::End,
        Pc::ResumeLook => {
            s.daemon.out = look(s, choice)?;
            match setup.is(Mistake::RecoversUnseen) {
                true => Pc::AbortTemporary,
                false => Pc::ResumeFound,
            }
        }
        Pc::ResumeFound => {
            let found = match s.at(Name::File) {
                0 => None,
                inode => read(s, inode, choice)?,
            };
            let done_or_not_begun = [Some(new), Some(base())].contains(&d.out.content);
            match done_or_not_begun || found != Some(new) {
                true => {
                    s.daemon.came = d.out;
                    Pc::GiveUp
                }
                false => Pc::ExchangeBack,
            }
        }
        Pc::ResumeWriting => match s.copy {
            None => Pc::End,
            Some(_) if s.at(Name::File) == 0 => Pc::End,
            Some(_) => {
                let inode = s.at(Name::File);
                s.daemon.old = inode;
                if setup.small && !setup.reader && !s.has_writer(inode) {
                    take_lease(setup, s, inode);
                }
                Pc::CompareTorn
            }
        },
        Pc::CompareTorn => {
            let now = s.content(d.old);
            let before = s.copy.unwrap();
            s.daemon.copied = now;
            if now == new || now == base() {
                s.lease = Lease::default();
                match setup.keep_base {
                    true => Pc::End,
                    false => Pc::DropCopy,
                }
            } else if is_torn(setup, now, before) {
                Pc::RestoreHalf
            } else if is_half_restored(setup, now, before) {
                Pc::StoreTorn
            } else {
                s.lease = Lease::default();
                Pc::End
            }
        }
        Pc::StoreTorn => {
            s.keep(d.copied);
            Pc::RestoreHalf
        }
        Pc::RestoreHalf => {
            overwrite(s, d.old, 0..1, s.copy.unwrap());
            Pc::RestoreRest
        }
        Pc::RestoreRest => {
            let before = s.copy.unwrap();
            overwrite(s, d.old, 1..before.len(), before);
            Pc::RestoreCut
        }
        Pc::RestoreCut => {
            let before = s.copy.unwrap();
            cut(s, d.old, before);
            s.lease = Lease::default();
            match setup.keep_base {
                true => Pc::End,
                false => Pc::DropCopy,
            }
        }
    };
    if choice > 0 && !reads(d.pc) {
        return None;
    }
    s.daemon.pc = to;
    if to == Pc::Idle {
        // Its variables are gone.
        s.daemon = Daemon {
            pc: Pc::Idle,
            answer: s.daemon.answer.filter(|_| !d.is_start),
            temporary: d.temporary,
            ..AT_BEGIN
        };
    }
    Some(next)
}

/// Returns whether a content is one of a write that was cut short.
fn is_torn(setup: &Setup, now: Content, before: Content) -> bool {
    if setup.is(Mistake::TakesForTorn) {
        let last = |content: Content| content.block(content.len() - 1);
        return now.len() == before.len() && last(now) == last(before);
    }
    let new = setup.new_content();
    (0..=new.len()).any(|written| {
        let mut torn = before;
        for at in 0..written {
            torn = torn.with(at, new.block(at));
        }
        now == torn
    })
}

/// Returns whether a content is one of a restore that was cut short.
fn is_half_restored(setup: &Setup, now: Content, before: Content) -> bool {
    let new = setup.new_content();
    (0..=before.len()).any(|restored| {
        let mut half = now;
        for at in 0..restored.min(new.len()) {
            half = half.with(at, new.block(at));
        }
        let is_back = (0..restored).all(|at| now.block(at) == before.block(at));
        is_back && (half == new || is_torn(setup, half, before))
    })
}

impl Came {
    fn is(self, other: Self) -> bool {
        match (self.content, other.content) {
            (Some(content), Some(other)) => content == other,
            _ => false,
        }
    }
}

fn answer(s: &mut State, answer: Answer) -> Pc {
    s.daemon.answer = Some(answer);
    Pc::Idle
}

fn abort(s: &mut State, answer: Answer) -> Pc {
    s.daemon.answer = Some(answer);
    Pc::AbortTemporary
}

fn take_lease(setup: &Setup, s: &mut State, inode: Inode) {
    if setup.leases {
        s.lease = Lease {
            inode,
            broken: false,
        };
    }
}

/// `Came::look` at the aside name.
fn look(s: &mut State, choice: u8) -> Option<Came> {
    let inode = s.at(Name::Aside);
    assert_ne!(inode, 0);
    let content = read(s, inode, choice)?;
    Some(Came { inode, content })
}

/// With a lease, it stays until the file has its name again.
fn disturbed(setup: &Setup) -> Pc {
    match setup.leases {
        true => Pc::ExchangeBack,
        false => Pc::DropLeaseAndLook,
    }
}

/// `Net::hold`.
fn hold(s: &mut State, inode: Inode, content: Option<Content>) {
    let free = s.net.iter().position(|(inode, _)| *inode == 0);
    s.net[free.unwrap()] = (inode, content);
}

/// Writes some blocks in place.
fn overwrite(s: &mut State, inode: Inode, blocks: std::ops::Range<usize>, from: Content) {
    races(s, inode);
    let mut content = s.content(inode);
    for at in blocks {
        content = content.with(at, from.block(at));
    }
    s.file_mut(inode).content = content;
    s.daemon.copied = content;
}

fn cut(s: &mut State, inode: Inode, to: Content) {
    races(s, inode);
    let content = s.content(inode).cut(to.len());
    s.file_mut(inode).content = content;
    s.daemon.copied = content;
}

/// The limit of a write in place without a lease: an editor that has the file
/// open during it, or that has saved since the content was compared.
fn races(s: &mut State, inode: Inode) {
    if s.lease.inode == inode {
        return;
    }
    let now = s.content(inode);
    for save in &mut s.saves[..2] {
        if now != s.daemon.copied
            && save.is_some_and(|save| save.inode == inode && save.content == now)
        {
            *save = None;
            s.limit = true;
        }
    }
    for person in &mut s.people {
        person.raced |= person.is_about(inode);
    }
}

/// `kill -9`: all that is volatile is gone.
pub fn kill(state: &State) -> State {
    let mut next = state.clone();
    let s = &mut next;
    s.kills += 1;
    s.lease = Lease::default();
    s.daemon = Daemon {
        pc: Pc::Dead,
        answer: state.daemon.answer.filter(|_| state.daemon.pc == Pc::Idle),
        temporary: state.daemon.temporary,
        ..AT_BEGIN
    };
    s.net = Default::default();
    for inode in 1..=s.count {
        let is_named = s.is_named(inode);
        s.file_mut(inode).forgotten |= !is_named;
    }
    for at in 0..s.saves.len() {
        if let Some(save) = s.saves[at]
            && save.late
            && !s.is_named(save.inode)
        {
            s.saves[at] = None;
            s.limit = true;
        }
    }
    next
}

/// The next start.
pub fn start(state: &State) -> State {
    let mut next = state.clone();
    next.daemon.pc = Pc::Resume;
    next.daemon.is_start = true;
    next
}

/// Returns whether held files may be looked at for the last time. Only a kill
/// depends on when that is, and before a kill the latest moment is the worst. So
/// it is when no editor is within a save, and none has such a file open.
pub fn may_look(s: &State) -> bool {
    let held = || s.net.iter().filter(|(inode, _)| *inode != 0);
    let is_ready =
        |person: &Person| person.is_at_rest() && !held().any(|(inode, _)| person.has_open(*inode));
    held().next().is_some() && s.people.iter().all(is_ready)
}

/// The last looks at held files (`Moved::look`).
pub fn look_at_held(state: &State) -> State {
    let mut next = state.clone();
    for (inode, content) in state.net.iter().filter(|(inode, _)| *inode != 0) {
        let now = state.content(*inode);
        if *content != Some(now) {
            next.keep(now);
        }
    }
    next.net = Default::default();
    next
}
