//! Finds where files went whose removal was not observed: while the daemon was
//! off, or while no window was open (ATTR-13).

use std::collections::{BTreeSet, HashMap};
use std::fs::Metadata;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use touchmark_engine::Fact;
use touchmark_engine::history::lineage::{Change, Gone, Name, decide};
use touchmark_proto::daemon::Ping;
use touchmark_proto::{Error, ErrorCode, Hash, RelPath, native};

use super::decide::{Known, Last, Lineages, is_gone};
use super::judge::{OnDisk, on_disk};
use super::lineage::Lineage;
use super::undos::Recorded;
use super::versions::Sources;
use crate::store::Reader;
use crate::system::open::trust;
use crate::system::stat::MetadataExt as _;
use crate::tools::unignored;

/// The most files on each side that are compared.
const MOST: usize = 1_000;

/// The largest file, in bytes, that is read.
const LARGE: u64 = 8 << 20;

/// The most earlier versions of a name among which one with a stored content is
/// looked for.
const EARLIER: usize = 32;

/// What is looked for.
#[derive(Clone, Debug)]
enum Wanted {
    /// Where these files are now.
    Places(BTreeSet<RelPath>),
    /// Which file this name, which has no version, stands for.
    File(RelPath),
}

impl Lineages {
    /// Looks, once for each, for the new names of files that are not on disk and
    /// whose removal was not observed. Records the names and returns whether
    /// there are any.
    ///
    /// # Errors
    /// `storage`, `shuttingDown`.
    pub(crate) async fn find(
        &self,
        sources: Sources<'_>,
        names: BTreeSet<RelPath>,
    ) -> Result<bool, Error> {
        self.search(sources, Wanted::Places(names)).await
    }

    /// Looks for the file that a name without versions stands for: one that is
    /// gone from its own name, and whose removal was not observed.
    ///
    /// # Errors
    /// `storage`, `shuttingDown`.
    pub(crate) async fn adopt(&self, sources: Sources<'_>, name: RelPath) -> Result<(), Error> {
        self.search(sources, Wanted::File(name)).await.map(drop)
    }

    async fn search(&self, sources: Sources<'_>, wanted: Wanted) -> Result<bool, Error> {
        let lineage = self.now(sources.inside, sources.log).await?;
        let mut known = self.known.lock().await;
        let (log, root) = (Arc::clone(sources.log), sources.root.to_owned());
        let trusted = sources.trusted.to_owned();
        let undone = self.undone();
        let mut taken = std::mem::take(&mut *known);
        let search = tokio::task::spawn_blocking(move || {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let facts = taken.search(&log, &root, &trusted, &lineage, &undone, &wanted);
            (taken, facts)
        });
        let (taken, facts) = search
            .await
            .map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))?;
        *known = taken;
        let is_found = !facts.is_empty();
        if is_found {
            sources.inside.record(facts);
            sources.inside.ask(Ping {}).await?;
            // The facts are read from the log, which numbers them.
            known.begin_anew();
        }
        Ok(is_found)
    }
}

/// Returns the last content of a file that is gone, or the last one that is
/// stored, as after a kill: its lines tell as well where the file is. `None` if
/// none is stored.
fn last_stored(log: &Reader, gone: &Gone) -> Option<(Hash, Arc<[u8]>)> {
    let stored = |hash: Hash| Some((hash, log.peek(&hash).ok().flatten()?));
    stored(gone.last).or_else(|| {
        let earlier = log.history(&gone.path, Some(gone.ends), EARLIER);
        let earlier = earlier.unwrap_or_default();
        let mut contents = earlier.iter().filter_map(|record| record.fact.held()?.hash);
        contents.find_map(stored)
    })
}

/// Returns the file that a name stood for before version `ends`, which another
/// file has; `None` if a command or an undo removed it.
fn replaced_at(log: &Reader, undone: &Recorded, name: &RelPath, ends: u64) -> Option<Gone> {
    let earlier = log.history(name, Some(ends), EARLIER).unwrap_or_default();
    let mut ends = ends;
    for record in earlier {
        let Some(held) = record.fact.held() else {
            continue;
        };
        let is_commands = matches!(&record.fact, Fact::Version(one) if one.command.is_some());
        match held.hash {
            Some(last) if undone.removed(name, record.time, last) => return None,
            Some(last) => {
                return Some(Gone {
                    path: name.clone(),
                    last,
                    ends,
                    command: None,
                });
            }
            None if is_commands => return None,
            None => ends = record.n,
        }
    }
    None
}

impl Known {
    fn search(
        &mut self,
        log: &Reader,
        root: &Path,
        trusted: &Path,
        // With what is not decided for good yet.
        lineage: &Lineage,
        undone: &Recorded,
        wanted: &Wanted,
    ) -> Vec<Fact> {
        let names = match wanted {
            Wanted::Places(names) => names.clone(),
            Wanted::File(name) => self.alike(root, name),
        };
        let is_wide = matches!(wanted, Wanted::Places(_));
        let others = lineage.replaced();
        let others = others.filter(|(name, _)| !is_wide || names.contains(*name));
        let mut replaced = Vec::new();
        for (name, ends) in others.take(MOST) {
            if !is_wide || self.searched.insert((name.clone(), ends)) {
                replaced.extend(replaced_at(log, undone, name, ends));
            }
        }
        let mut gone = Vec::new();
        for name in names {
            let Some(last) = self
                .last(&name)
                .filter(|last| last.is_there || last.is_outside)
            else {
                continue;
            };
            let ends = last.n + u64::from(last.is_there);
            let Some(content) = last.content else {
                continue;
            };
            // What an undo has removed went nowhere.
            let is_undone = undone.removed(&name, last.was_there, content);
            if is_undone || lineage.has_left(&name) || !is_gone(root, &name) {
                continue;
            }
            if is_wide && !self.searched.insert((name.clone(), last.n)) {
                continue;
            }
            gone.push(Gone {
                path: name,
                last: content,
                ends,
                command: None,
            });
        }
        gone.extend(replaced);
        gone.truncate(MOST);
        if gone.is_empty() {
            return Vec::new();
        }
        let mut texts: HashMap<Hash, Arc<[u8]>> = HashMap::new();
        for one in &mut gone {
            if let Some((last, text)) = last_stored(log, one) {
                one.last = last;
                texts.insert(last, text);
            }
        }
        let places = match wanted {
            Wanted::File(name) => vec![name.clone()],
            Wanted::Places(_) => self.candidates(root, trusted, &gone, &texts),
        };
        let mut new = Vec::new();
        for path in places {
            let place = root.join(native::name(path.as_bytes()));
            let Some(OnDisk { hash, bytes, .. }) = on_disk(&place, LARGE) else {
                continue;
            };
            texts.insert(hash, bytes.into());
            new.push(Name {
                path,
                earlier: None,
                is_there: false,
                was_moved: false,
                known: Vec::new(),
                // All of them began after the files that are gone.
                versions: vec![Change {
                    n: 1,
                    hash: Some(hash),
                    command: None,
                    hint: None,
                    is_certain: false,
                    is_edit: false,
                }],
            });
        }
        let decided = decide(&new, &gone, &mut |hash| texts.get(hash).cloned());
        let facts = decided.begins.into_iter().filter_map(|begins| {
            let (from, until) = begins.from?;
            Some(Fact::Lineage {
                path: begins.path,
                version: None,
                from: Some(from),
                until,
            })
        });
        facts.collect()
    }

    /// Returns the names with versions whose file may have this name now: free
    /// ones, those of which nothing says when their file leaves, and those with
    /// the same content or the same base name.
    fn alike(&self, root: &Path, name: &RelPath) -> BTreeSet<RelPath> {
        let place = root.join(native::name(name.as_bytes()));
        let Some(OnDisk { hash, .. }) = on_disk(&place, LARGE) else {
            return BTreeSet::new();
        };
        let is_alike = |(other, last): &(&RelPath, &Last)| {
            let is_alike = last.content == Some(hash) || other.file_name() == name.file_name();
            is_alike || !last.is_there || self.places.contains(*other)
        };
        let all = self.all().filter(is_alike);
        all.map(|(other, _)| other.clone()).collect()
    }

    /// Returns the files without versions that may be one of those which are
    /// gone: with the same base name or the same size, or changed since with a
    /// similar size.
    fn candidates(
        &self,
        root: &Path,
        trusted: &Path,
        gone: &[Gone],
        texts: &HashMap<Hash, Arc<[u8]>>,
    ) -> Vec<RelPath> {
        let since = gone
            .iter()
            .filter_map(|one| Some(self.last(&one.path)?.was_there));
        let since = since.min().unwrap_or_default() / 1_000;
        let is_alike = |name: &RelPath, found: &Metadata| {
            let size = found.len();
            // A file in a directory that was moved has no new time.
            let is_new = u64::try_from(found.ctime()).is_ok_and(|changed| changed >= since);
            gone.iter().any(|one| {
                let text = texts.get(&one.last);
                let before = text.map_or(0, |text| text.len() as u64);
                let is_near = before.min(size).saturating_mul(2) >= before.max(size);
                one.path.file_name() == name.file_name() || before == size || is_new && is_near
            })
        };
        let files = unignored(root, root, true, trust(trusted)).build();
        let mut found = Vec::new();
        for entry in files.flatten() {
            let Some(below) = entry.path().strip_prefix(root).ok() else {
                continue;
            };
            let Ok(name) = RelPath::new(&native::bytes(below)) else {
                continue;
            };
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if !is_file || self.last(&name).is_some_and(|last| !last.is_first) {
                continue;
            }
            if let Ok(known) = entry.metadata()
                && is_alike(&name, &known)
            {
                found.push(name);
            }
        }
        found.sort();
        found.truncate(MOST);
        found
    }
}
