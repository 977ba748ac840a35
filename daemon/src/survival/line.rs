//! A file's versions under all the names that it had, and what is left of
//! their lines.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use touchmark_engine::Fact;
use touchmark_engine::history::{Left, Step, Weave};
use touchmark_proto::{
    ClientPath, Error, ErrorCode, FileMode, Millis, RelPath, Version, VersionKind,
};

use super::Look;
use crate::context::aside;
use crate::history::Chain;
use crate::store::StoreError;

/// The maximum number of renames that are followed, in either direction.
const RENAMES: usize = 8;

/// The versions of names, as they were read for one look.
pub(super) struct Lines<'a> {
    look: &'a Look,
    chains: HashMap<RelPath, Arc<Chain>>,
}

/// One of the files that a name stood for, one after another: by the name, and
/// the index of its first version among those of the name.
type File = (RelPath, usize);

/// A file's versions and contents, oldest first. Those of its earlier names
/// come first.
#[derive(Clone, Debug, Default)]
pub(super) struct FileLine {
    pub(super) versions: Vec<Version>,
    pub(super) steps: Vec<Step>,
}

/// A question: how many lines of a version are left at a later moment?
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The number of the version.
    pub(super) version: u64,
    /// The moment.
    pub(super) until: Millis,
}

impl<'a> Lines<'a> {
    pub(super) fn new(look: &'a Look) -> Self {
        Self {
            look,
            chains: HashMap::new(),
        }
    }

    /// Returns all versions of a name.
    pub(super) async fn chain(&mut self, name: &RelPath) -> Result<Arc<Chain>, Error> {
        if let Some(chain) = self.chains.get(name) {
            return Ok(Arc::clone(chain));
        }
        let (inside, log) = (&self.look.cx.inside, &self.look.log);
        let chain = match Chain::recorded(inside, log, &ClientPath::from(name)).await {
            Ok(chain) => chain,
            Err(error) if matches!(error.code, ErrorCode::ShuttingDown | ErrorCode::Storage) => {
                return Err(error);
            }
            // The name stands for no file of the workspace any more, as behind a
            // link that leads out of it. This must not stop the look at others.
            Err(_) => Chain::default(),
        };
        let chain = Arc::new(chain);
        self.chains.insert(name.clone(), Arc::clone(&chain));
        Ok(chain)
    }

    /// Answers questions about versions of a name. `None` where it is not
    /// known (SURV-2).
    pub(super) async fn left(
        &mut self,
        name: &RelPath,
        wanted: &[Wanted],
    ) -> Result<Vec<Option<Left>>, Error> {
        // The questions of each file, by their indexes in `wanted`.
        let mut by_file: BTreeMap<File, Vec<usize>> = BTreeMap::new();
        for (at, one) in wanted.iter().enumerate() {
            if let Some(file) = self.file_at(name, one.version, one.until).await? {
                by_file.entry(file).or_default().push(at);
            }
        }
        let mut left = vec![None; wanted.len()];
        for (file, questions) in by_file {
            let line = self.line(&file).await?;
            let asked: Vec<Wanted> = questions.iter().map(|at| wanted[*at].clone()).collect();
            let found = aside(move || line.left(&asked, None)).await?;
            for (at, found) in questions.into_iter().zip(found) {
                left[at] = found;
            }
        }
        Ok(left)
    }

    /// Answers questions about versions of a name, all at the moment of one
    /// commit, which has this content of the file.
    pub(super) async fn left_at_commit(
        &mut self,
        name: &RelPath,
        wanted: &[Wanted],
        content: Step,
    ) -> Result<Vec<Option<Left>>, Error> {
        let Some(last) = wanted.last() else {
            return Ok(Vec::new());
        };
        let Some(file) = self.file_at(name, last.version, last.until).await? else {
            return Ok(vec![None; wanted.len()]);
        };
        let line = self.line(&file).await?;
        let asked = wanted.to_vec();
        aside(move || line.left(&asked, Some(content))).await
    }

    /// Returns the file that has a version's lines at a moment: that of the
    /// version's name, or of the name that it was renamed to. `None` if the
    /// version is not in the log.
    pub(super) async fn file_at(
        &mut self,
        name: &RelPath,
        version: u64,
        until: Millis,
    ) -> Result<Option<File>, Error> {
        let chain = self.chain(name).await?;
        let Some(at) = chain.versions.iter().position(|one| one.clock.n == version) else {
            return Ok(None);
        };
        let mut file = (name.clone(), first_of(&chain, at));
        let mut chain = chain;
        for _ in 0..RENAMES {
            let end = end_of(&chain, file.1);
            let last = chain.versions[..end].partition_point(|one| one.time <= until);
            let is_gone = last > file.1 && chain.steps[last - 1] == Step::Absent;
            if !is_gone {
                break;
            }
            let after = chain.versions[file.1].clock.n.max(version);
            let Some((to, n)) = self.renamed(&file.0, after, until).await? else {
                break;
            };
            let next = self.chain(&to).await?;
            let Some(at) = next.versions.iter().position(|one| one.clock.n == n) else {
                break;
            };
            file = (to, first_of(&next, at));
            chain = next;
        }
        Ok(Some(file))
    }

    /// Returns the name that a file was renamed to, and the version that did
    /// it, between a version and a moment. `None` if it was not renamed.
    async fn renamed(
        &self,
        from: &RelPath,
        after: u64,
        until: Millis,
    ) -> Result<Option<(RelPath, u64)>, Error> {
        let from = from.clone();
        let found = self.look.read(move |log| -> Result<_, StoreError> {
            let mut at = after;
            loop {
                let page = log.versions_from(at, super::STEP)?;
                let Some(last) = page.last().map(|record| record.n) else {
                    return Ok(None);
                };
                for record in page {
                    if record.time > until {
                        return Ok(None);
                    }
                    if let Fact::Version(fact) = record.fact
                        && fact.kind == VersionKind::Renamed
                        && fact.amends.is_none()
                        && fact.from.as_ref() == Some(&from)
                    {
                        return Ok(Some((fact.path, record.n)));
                    }
                }
                at = last;
            }
        });
        Ok(found.await??)
    }

    /// Collects the versions of a file, with those of the names from which it
    /// was renamed.
    pub(super) async fn line(&mut self, file: &File) -> Result<FileLine, Error> {
        let mut line = FileLine::default();
        let (mut name, mut first, mut until) = (file.0.clone(), file.1, None);
        for _ in 0..=RENAMES {
            let chain = self.chain(&name).await?;
            let end = until.unwrap_or_else(|| end_of(&chain, first));
            let range = first.min(end)..end;
            line.versions
                .splice(0..0, chain.versions[range.clone()].iter().cloned());
            line.steps.splice(0..0, chain.steps[range].iter().cloned());
            let came = chain.versions.get(first).filter(|one| came(one));
            let Some((from, n)) = came.and_then(|one| Some((one.from.clone()?, one.clock.n)))
            else {
                break;
            };
            let earlier = self.chain(&from).await?;
            // The last version before the rename that was not the removal.
            let before = earlier.versions.partition_point(|one| one.clock.n < n);
            let Some(last) = (0..before).rfind(|at| earlier.steps[*at] != Step::Absent) else {
                break;
            };
            (name, first, until) = (from, first_of(&earlier, last), Some(last + 1));
        }
        Ok(line)
    }
}

impl FileLine {
    /// Answers questions about these versions. With a `commit`, the moment is
    /// that of the commit, which has this content.
    pub(super) fn left(&self, wanted: &[Wanted], commit: Option<Step>) -> Vec<Option<Left>> {
        let last_at = |until: Millis| {
            let count = self.versions.partition_point(|one| one.time <= until);
            count.checked_sub(1)
        };
        // A symbolic link has no lines (SCOPE-7).
        let has_links = self
            .versions
            .iter()
            .any(|version| version.mode.is_some_and(FileMode::is_link));
        let mut steps = self.steps.clone();
        let committed = commit.map(|commit| {
            let until = wanted.iter().map(|one| one.until).max().unwrap_or(0);
            steps.truncate(last_at(until).map_or(0, |last| last + 1));
            steps.push(commit);
            steps.len() - 1
        });
        let unknown = self.versions.iter().enumerate().filter(|(at, version)| {
            // What was there before the first version of the log is not known
            // unless the file was created by it.
            version.before_unknown == Some(true) || *at == 0 && version.kind != VersionKind::Created
        });
        let weave = Weave::new(&steps).mixed(unknown.map(|(at, _)| at));
        let pairs: Vec<Option<(usize, usize)>> = wanted
            .iter()
            .map(|one| {
                let at = self
                    .versions
                    .iter()
                    .position(|own| own.clock.n == one.version)?;
                let later = match committed {
                    Some(committed) => committed,
                    None => last_at(one.until)?,
                };
                (at <= later && !has_links).then_some((at, later))
            })
            .collect();
        let known: Vec<(usize, usize)> = pairs.iter().copied().flatten().collect();
        let mut found = weave.left(&known).into_iter();
        pairs
            .iter()
            .map(|pair| pair.and_then(|_| found.next().flatten()))
            .collect()
    }
}

/// Returns whether a version gave its name a file that had another name.
fn came(version: &Version) -> bool {
    version.kind == VersionKind::Renamed && version.from.as_ref() != Some(&version.path)
}

/// Returns the index of the first version of the file that a version belongs
/// to. A file that was renamed to a free name begins there.
fn first_of(chain: &Chain, at: usize) -> usize {
    let begins = |at: &usize| is_begin(chain, *at);
    (0..=at).rfind(begins).unwrap_or(0)
}

/// Returns the index after the last version of the file that begins at `first`.
fn end_of(chain: &Chain, first: usize) -> usize {
    let mut later = first + 1..chain.versions.len();
    later
        .find(|at| is_begin(chain, *at))
        .unwrap_or(chain.versions.len())
}

fn is_begin(chain: &Chain, at: usize) -> bool {
    came(&chain.versions[at]) && (at == 0 || chain.steps[at - 1] == Step::Absent)
}
