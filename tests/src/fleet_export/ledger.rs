//! What scripts did, kept by the scripts themselves: no number in it comes from
//! a record.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// A session: its id, its agent and its model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// The session's id.
    pub session: String,
    /// The agent's name.
    pub agent: String,
    /// The model.
    pub model: String,
}

/// A version of a file.
#[derive(Clone, Debug)]
pub struct Wrote {
    /// The session; `None` for the user.
    pub who: Option<Who>,
    /// The file.
    pub path: String,
    /// The command in which it was written.
    pub command: Option<u64>,
    /// Lines that it added.
    pub added: u64,
    /// Lines that it removed.
    pub removed: u64,
}

/// What happened to a session, besides versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A write was refused, since the copy was stale.
    Stale,
    /// A write was refused, since the file had not been read.
    NotRead,
    /// A guarded write was refused, since the file had another content.
    Conflict,
    /// A write was let through in spite of unseen changes.
    Passed,
    /// A version was overwritten unseen.
    Lost,
    /// A version that had been overwritten was brought back.
    BroughtBack,
}

/// An undo.
#[derive(Clone, Debug)]
pub struct Undone {
    /// The session whose changes were undone.
    pub who: Who,
    /// Changed files.
    pub files: u64,
    /// Changed places.
    pub hunks: u64,
}

/// What was done in one workspace.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The number of the repository; workspaces of one repository are its work
    /// trees.
    pub repository: usize,
    /// Versions.
    pub wrote: Vec<Wrote>,
    /// What else happened, with the session to which it happened.
    pub events: Vec<(Event, Who)>,
    /// Undos.
    pub undone: Vec<Undone>,
}

/// Sums by a key.
type Sums<const N: usize> = BTreeMap<Vec<String>, [u64; N]>;

fn add<const N: usize>(sums: &mut Sums<N>, key: Vec<String>, more: [u64; N]) {
    let sum = sums.entry(key).or_insert([0; N]);
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

fn rows<const N: usize>(sums: Sums<N>) -> Vec<Vec<Value>> {
    let row = |(key, sums): (Vec<String>, [u64; N])| {
        let key = key.into_iter().map(Value::from);
        key.chain(sums.map(Value::from)).collect()
    };
    sums.into_iter().map(row).collect()
}

/// Ledgers of a whole fleet, and the names that the daemons gave to
/// repositories.
pub struct Fleet<'a> {
    /// One for each workspace.
    pub ledgers: Vec<&'a Ledger>,
    /// The value of `touchmark.repository`, by the repository's number.
    pub repositories: BTreeMap<usize, String>,
}

impl Fleet<'_> {
    fn repository(&self, ledger: &Ledger) -> String {
        self.repositories[&ledger.repository].clone()
    }

    /// Returns the answer to one of the questions, by its name: rows in any
    /// order, shares left out.
    pub fn answer(&self, question: &str) -> Vec<Vec<Value>> {
        match question {
            "stale" => self.stale(),
            "overwritten" => self.overwritten(),
            "worktrees" => self.worktrees(),
            "refused" => self.refused(),
            "undone" => self.undone(),
            "authors" => self.authors(),
            "commands" => self.commands(),
            "conflicts" => self.conflicts(),
            "missing" => self.missing(),
            other => panic!("no ledger answers {other}"),
        }
    }

    fn events(&self) -> impl Iterator<Item = (&Ledger, Event, &Who)> {
        let ledgers = self.ledgers.iter();
        ledgers.flat_map(|&ledger| ledger.events.iter().map(move |(e, who)| (ledger, *e, who)))
    }

    fn wrote(&self) -> impl Iterator<Item = (&Ledger, &Wrote)> {
        let ledgers = self.ledgers.iter();
        ledgers.flat_map(|&ledger| ledger.wrote.iter().map(move |wrote| (ledger, wrote)))
    }

    fn stale(&self) -> Vec<Vec<Value>> {
        let mut sums = Sums::<3>::new();
        let key = |who: &Who| vec![who.agent.clone(), who.model.clone()];
        for (_, wrote) in self.wrote() {
            if let Some(who) = &wrote.who {
                add(&mut sums, key(who), [1, 0, 0]);
            }
        }
        for (_, event, who) in self.events() {
            let more = match event {
                Event::Stale => [0, 1, 0],
                Event::Lost => [0, 0, 1],
                _ => continue,
            };
            add(&mut sums, key(who), more);
        }
        rows(sums)
    }

    fn overwritten(&self) -> Vec<Vec<Value>> {
        let mut sums = Sums::<2>::new();
        for (_, event, who) in self.events() {
            let more = match event {
                Event::Lost => [1, 0],
                Event::BroughtBack => [0, 1],
                _ => continue,
            };
            add(&mut sums, vec![who.agent.clone(), who.model.clone()], more);
        }
        rows(sums)
    }

    fn worktrees(&self) -> Vec<Vec<Value>> {
        let mut places: BTreeMap<(String, &str), (BTreeSet<usize>, u64)> = BTreeMap::new();
        for (at, &ledger) in self.ledgers.iter().enumerate() {
            for wrote in &ledger.wrote {
                let key = (self.repository(ledger), &*wrote.path);
                let (worktrees, versions) = places.entry(key).or_default();
                worktrees.insert(at);
                *versions += 1;
            }
        }
        let several = places
            .into_iter()
            .filter(|(_, (places, _))| places.len() > 1);
        several
            .map(|((repository, path), (worktrees, versions))| {
                vec![
                    json!(repository),
                    json!(path),
                    json!(worktrees.len()),
                    json!(versions),
                ]
            })
            .collect()
    }

    fn refused(&self) -> Vec<Vec<Value>> {
        let mut sums = Sums::<4>::new();
        for (_, event, who) in self.events() {
            let more = match event {
                Event::Stale => [1, 0, 0, 0],
                Event::NotRead => [0, 1, 0, 0],
                Event::Conflict => [0, 0, 1, 0],
                Event::Passed => [0, 0, 0, 1],
                _ => continue,
            };
            add(&mut sums, vec![who.agent.clone(), who.model.clone()], more);
        }
        rows(sums)
    }

    fn undone(&self) -> Vec<Vec<Value>> {
        let mut sums = Sums::<3>::new();
        for undone in self.ledgers.iter().flat_map(|ledger| &ledger.undone) {
            let key = vec![undone.who.session.clone(), undone.who.agent.clone()];
            add(&mut sums, key, [1, undone.files, undone.hunks]);
        }
        rows(sums)
    }

    fn authors(&self) -> Vec<Vec<Value>> {
        let mut sums = Sums::<2>::new();
        for (_, wrote) in self.wrote() {
            let kind = wrote.who.as_ref().map_or("user", |_| "agent");
            let lines = [wrote.added, wrote.removed];
            add(&mut sums, vec![kind.into()], lines);
        }
        rows(sums)
    }

    fn commands(&self) -> Vec<Vec<Value>> {
        let mut commands: BTreeMap<(&str, u64), (BTreeSet<&str>, u64)> = BTreeMap::new();
        for (_, wrote) in self.wrote() {
            if let (Some(who), Some(command)) = (&wrote.who, wrote.command) {
                let (paths, versions) = commands.entry((&who.session, command)).or_default();
                paths.insert(&wrote.path);
                *versions += 1;
            }
        }
        let commands = commands.into_iter();
        commands
            .map(|((session, command), (paths, versions))| {
                vec![
                    json!(session),
                    json!(command),
                    json!(paths.len()),
                    json!(versions),
                ]
            })
            .collect()
    }

    fn conflicts(&self) -> Vec<Vec<Value>> {
        let mut sums = Sums::<2>::new();
        for (ledger, event, _) in self.events() {
            let more = match event {
                Event::Conflict => [1, 0],
                Event::Lost => [0, 1],
                _ => continue,
            };
            add(&mut sums, vec![self.repository(ledger)], more);
        }
        rows(sums)
    }

    /// Nothing is missing.
    fn missing(&self) -> Vec<Vec<Value>> {
        Vec::new()
    }
}
