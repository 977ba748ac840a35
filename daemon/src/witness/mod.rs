//! The marks of witnessed commands, for the engine (ATTR-3).
//!
//! A ring is a file in the state directory in which `touchmark-witness` marks
//! what a command may write, before each write. The loop reads all rings before
//! it passes an input to the engine: so the engine has a mark before it has what
//! the write left.

mod above;
mod family;
mod fences;
mod prior;
mod probe;
mod sightings;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use touchmark_engine::Sighting;
use touchmark_engine::ledger::wire_names::witness_name;
use touchmark_engine::witnesses::Seen;
use touchmark_proto::Places;
use touchmark_witness::{Reader, Record, create};

use crate::event::Event;
use crate::life::private_directory;
use crate::watch::has_other_paths;
pub(crate) use above::above;
pub(crate) use fences::Fences;
pub use probe::probe;
use sightings::Translation;

/// The size of each of a ring's two lanes, in bytes. The file is sparse.
const CAPACITY: u64 = 16 << 20;

/// How long the loop lets marks wait at most while nothing else happens.
const PAUSE: Duration = Duration::from_millis(20);

/// The rings of all witnesses.
pub(crate) struct Rings {
    places: Places,
    root: PathBuf,
    /// The programs of agents: a person types into them.
    agents: Vec<&'static str>,
    events: UnboundedSender<Event>,
    open: Vec<Ring>,
    fences: Fences,
}

struct Ring {
    seen: Seen,
    path: PathBuf,
    reader: Reader,
    /// The number of bytes in the pack that marks have named.
    packed: u64,
    translation: Translation,
    bell: tokio::task::AbortHandle,
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.bell.abort();
        remove(&self.path);
    }
}

impl Rings {
    /// Returns no rings, and removes those of an earlier daemon: its windows are
    /// not witnessed any more. `agents` are the names of agents' programs.
    pub(crate) fn new(
        places: Places,
        root: PathBuf,
        agents: Vec<&'static str>,
        events: UnboundedSender<Event>,
    ) -> Self {
        let _there_are_none = fs::remove_dir_all(places.rings());
        Self {
            places,
            root,
            agents,
            events,
            open: Vec::new(),
            fences: Fences::default(),
        }
    }

    /// Returns the fences for what other threads read.
    pub(crate) fn fences(&self) -> &Fences {
        &self.fences
    }

    /// Makes the ring of a witness. Returns what to tell the engine at once: why
    /// not every write will be seen, if that is so.
    pub(crate) fn add(&mut self, seen: Seen) -> Vec<Sighting> {
        if has_other_paths(&self.root) {
            let why = "a part of the workspace is mounted at another path as well";
            return vec![Sighting::lasting(why)];
        }
        match self.make(seen) {
            Ok(ring) => {
                self.open.push(ring);
                Vec::new()
            }
            Err(error) => vec![Sighting::lasting(format!(
                "the ring cannot be made: {error}"
            ))],
        }
    }

    fn make(&self, seen: Seen) -> io::Result<Ring> {
        let path = self.places.ring(&witness_name(seen));
        private_directory(&self.places.rings()).map_err(io::Error::other)?;
        remove(&path);
        create(&path, CAPACITY)?;
        let mut reader = Reader::open(&path)?;
        let bell = listen(&reader, self.events.clone())?;
        reader.waits(true)?;
        Ok(Ring {
            seen,
            translation: Translation::new(&self.root, &self.agents)?,
            path,
            reader,
            packed: 0,
            bell,
        })
    }

    /// Returns whether no command is witnessed.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Removes the rings whose marks are not needed any more.
    pub(crate) fn retain(&mut self, is_needed: impl Fn(Seen) -> bool) {
        self.open.retain(|ring| is_needed(ring.seen));
    }

    /// Says which witnesses windows need now. What the others have stored may be
    /// written over.
    pub(crate) fn note_needed(&mut self, is_needed: impl Fn(Seen) -> bool) {
        let needed = self.open.iter().filter(|ring| is_needed(ring.seen));
        let needed = needed.map(|ring| (ring.seen, ring.path.clone()));
        self.fences.set(needed.collect());
        let packed = self.open.iter_mut().filter(|ring| ring.packed > 0);
        for ring in packed.filter(|ring| !is_needed(ring.seen)) {
            let _more_stay = ring.reader.release(ring.packed);
            ring.packed = 0;
        }
    }

    /// Returns what was marked since the last call, for each witness.
    pub(crate) fn read(&mut self) -> Vec<(Seen, Vec<Sighting>)> {
        let read = self.open.iter_mut().map(|ring| (ring.seen, ring.read()));
        read.filter(|(_, sightings)| !sightings.is_empty())
            .collect()
    }
}

impl Ring {
    fn read(&mut self) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        loop {
            match self.reader.next() {
                Ok(Some((_, record))) => {
                    self.packed = self.packed.max(packed(&record));
                    self.translation.add(&record, &mut sightings);
                }
                Ok(None) => return sightings,
                Err(error) => {
                    sightings.push(Sighting::lasting(format!(
                        "the ring cannot be read: {error}"
                    )));
                    return sightings;
                }
            }
        }
    }
}

/// Returns the end of the bytes that a mark says are stored.
fn packed(record: &Record) -> u64 {
    let before = match record {
        Record::Mark(mark) => mark.before,
        _ => None,
    };
    let end = before.and_then(|before| Some(before.stored?.at.saturating_add(before.size)));
    end.unwrap_or_default()
}

fn remove(path: &Path) {
    for path in touchmark_witness::files(path) {
        let _it_is_gone = fs::remove_file(path);
    }
}

/// Starts a task that wakes the loop while marks are made.
fn listen(reader: &Reader, events: UnboundedSender<Event>) -> io::Result<tokio::task::AbortHandle> {
    let bell = reader.bell().ok_or(io::ErrorKind::NotFound)?;
    let bell = tokio::net::unix::pipe::Receiver::from_owned_fd(bell.try_clone_to_owned()?)?;
    let task = tokio::spawn(async move {
        let mut rung = [0; 4096];
        while bell.readable().await.is_ok() {
            while bell.try_read(&mut rung).is_ok_and(|got| got > 0) {}
            if events.send(Event::Marked).is_err() {
                return;
            }
            // Many marks cost one turn.
            tokio::time::sleep(PAUSE).await;
        }
    });
    Ok(task.abort_handle())
}
