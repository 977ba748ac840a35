//! `file/blame`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use touchmark_engine::history::{Step, Undos};
use touchmark_proto::history::{Blame, FileBlame};
use touchmark_proto::{
    At, AuthorKind, ClientPath, Error, ErrorCode, Hash, LineRange, Places, RelPath, Version,
};

use super::blamed::{Blamed, Part, Subject};
use super::chain::{self, Chain};
use super::look::{MOST_LINES, too_many};
use super::writers::{Writer, Writers};
use super::{Past, clock};
use crate::context::aside;
use crate::past::committed::{Found, Wanted, committed};
use crate::past::undos::Recorded;

/// Of how many lines git is asked before it is known which of them need it.
const AHEAD: u32 = 1_000;

/// All lines of a file.
const ALL: LineRange = LineRange {
    start: 1,
    end: u32::MAX,
};

impl Past {
    /// Answers `file/blame`.
    pub(crate) async fn blame(&self, ask: FileBlame) -> Result<Blame, Error> {
        let at = ask.at.clone().unwrap_or(At::Now);
        let meant = self.meant(&at).await?;
        let lineages = Arc::clone(&self.origins.lineages);
        let undos = aside(move || lineages.undone()).await?;
        // What an undo brought back may be of a file that the name stood for
        // before.
        let joins = |before: &Version, _| undos.wrote(&before.path, before.time);
        let which = |all: &[Version]| meant.number(all);
        let outline = Chain::outline(self.sources(), &ask.path, &which, &joins);
        let mut chain = outline.await?;
        let is_tracked = !chain.versions.is_empty();
        if !is_tracked {
            // Its only version is on disk.
            chain = self.read(chain, &ask.path).await?;
        }
        let range = ask.range.unwrap_or(ALL);
        let (from, to) = (range.start.max(1), range.end);
        // As many lines as fit one answer: the rest is asked for next.
        let goes_on = to.saturating_sub(from) as usize == MOST_LINES - 1;
        let of = goes_on.then(|| Subject::new(&ask, &chain));
        if let Some(of) = &of
            && let Some((all, part)) = self.blamed.take(of, from).await
        {
            return Ok(self.part(all, part, (from, to), Some(of)));
        }
        let version = self.version(&chain.versions, &ask.path, &at).await?.clone();
        let step = chain.versions.iter().position(|one| *one == version);
        let step = step.unwrap_or(0);
        let Some(hash) = version.hash else {
            return Err(Error::path(
                ErrorCode::NotFound,
                &version.path,
                format!("at {} there was no file", version.clock),
            ));
        };
        let asked = Asked {
            step,
            hash,
            lines: (from, if goes_on { u32::MAX } else { to }),
            exact: ask.exact == Some(true),
            commits: ask.commits != Some(false),
        };
        let ahead = self.ahead(&chain, &ask.path, &asked).await;
        if is_tracked {
            chain = self.read(chain, &ask.path).await?;
        }
        if chain.steps[step] == Step::NotKept {
            let is_secret = self.look(move |contents| contents.is_secret(&hash)).await?;
            return Err(self.not_kept(&version, is_secret));
        }
        let workspace = Arc::clone(&self.cx.workspace);
        let both = aside(move || {
            let (root, places) = (&workspace.root, &workspace.places);
            let all = blamed(&chain, &undos, &asked, ahead, root, places);
            let is_short = goes_on || all.ends.len() <= MOST_LINES;
            let part = is_short.then(|| all.part(from, to));
            (all, part)
        });
        let (all, part) = both.await?;
        let Some(part) = part else {
            return Err(too_many(&all.path));
        };
        Ok(self.part(Arc::new(all), part, (from, to), of.as_ref()))
    }

    /// Begins to ask git about many lines before the file's history is read,
    /// if the author of some of them may be unknown. `None` if git need
    /// not be asked, or is to be asked about fewer lines later.
    async fn ahead(&self, chain: &Chain, path: &ClientPath, asked: &Asked) -> Option<Ahead> {
        let (from, to) = asked.lines;
        let version = chain.versions.get(asked.step)?;
        let is_unknown = |at: usize| {
            chain.versions[at].author.kind == AuthorKind::Unknown || chain.is_from_git(at)
        };
        let is_doubtful = (0..=asked.step).any(is_unknown);
        if !asked.commits || !is_doubtful || version.size < u64::from(AHEAD) {
            return None;
        }
        let hash = asked.hash;
        let content = match self.cx.on_disk(path).await {
            Ok((_, now, bytes, _)) if now == hash => bytes,
            _ => self.look(move |log| chain::held(log, &hash)).await.ok()??,
        };
        let lines = content.split_inclusive(|byte| *byte == b'\n').count();
        let last = to.min(u32::try_from(lines).unwrap_or(u32::MAX));
        if last.saturating_sub(from) < AHEAD {
            return None;
        }
        let newest = &chain.versions.last()?.path;
        let names: Vec<RelPath> = chain.names(newest).cloned().collect();
        let (root, places, exact) = (
            self.cx.workspace.root.clone(),
            self.cx.workspace.places.clone(),
            asked.exact,
        );
        let ask = move || {
            let wanted = Wanted {
                content: &content,
                lines: (from..=last).collect(),
                exact,
            };
            committed(&root, &places, names.iter(), wanted)
        };
        let name = thread::Builder::new().name("git's blame".into());
        name.spawn(ask).ok()
    }

    /// Returns one answer about lines, and keeps those after them for the next
    /// one about `of`.
    fn part(
        &self,
        all: Arc<Blamed>,
        part: Part,
        (from, to): (u32, u32),
        of: Option<&Subject>,
    ) -> Blame {
        if let Some(of) = of.filter(|_| !part.is_last) {
            self.blamed.keep(of.clone(), to, to - from + 1, all);
        }
        part.blame
    }
}

/// What is asked about the authors of lines.
struct Asked {
    /// The index of the version, and the hash of its content.
    step: usize,
    hash: Hash,
    /// The numbers of the first and of the last line.
    lines: (u32, u32),
    /// [`FileBlame::exact`].
    exact: bool,
    /// [`FileBlame::commits`].
    commits: bool,
}

/// A thread that asks git.
type Ahead = thread::JoinHandle<Found>;

/// Finds out who wrote lines. `ahead` asks git about all of them.
fn blamed(
    chain: &Chain,
    undos: &Recorded,
    asked: &Asked,
    ahead: Option<Ahead>,
    root: &Path,
    places: &Places,
) -> Blamed {
    let writers = Writers::of(chain);
    let undos = Undos {
        exact: asked.exact,
        ..undos.among(&chain.versions)
    };
    let (from, to) = asked.lines;
    let content = match &chain.steps[asked.step] {
        Step::Held(content) if asked.commits => Some(&**content),
        _ => None,
    };
    let from_git = |lines: Vec<u32>| match (content, chain.versions.last()) {
        (Some(content), Some(newest)) => {
            let unknown = Wanted {
                content,
                lines,
                exact: asked.exact,
            };
            committed(root, places, chain.names(&newest.path), unknown)
        }
        _ => Found::default(),
    };
    let weave = chain.weave(&undos, |_| false);
    let all = weave.blame(asked.step);
    let version = &chain.versions[asked.step];
    let mut blamed = Blamed {
        path: version.path.clone(),
        clock: clock(version),
        hash: asked.hash,
        cause: None,
        start: from,
        last: u32::try_from(all.len()).unwrap_or(u32::MAX),
        text: Vec::new(),
        ends: Vec::new(),
        by: Vec::new(),
        authors: Vec::new(),
    };
    // The authors of versions, each once.
    let mut known: HashMap<usize, Writer<'_>> = HashMap::new();
    let mut unknown = Vec::new();
    let mut steps = Vec::new();
    // All that can be done before git has answered is done while it runs.
    for ((step, text), at) in all
        .into_iter()
        .zip(1_u32..)
        .skip(from as usize - 1)
        .take((to as usize + 1).saturating_sub(from as usize))
    {
        let writer = known.entry(step).or_insert_with(|| writers.of_line(step));
        if writer.author.kind == AuthorKind::Unknown {
            unknown.push(at);
        }
        blamed.line(text);
        steps.push(step);
    }
    drop(weave);
    let found = match ahead.and_then(|ahead| ahead.join().ok()) {
        Some(found) => found.only(&unknown),
        None => from_git(unknown),
    };
    blamed.cause = found.cause;
    let mut last = None;
    for (step, at) in steps.iter().zip(from..) {
        let of = found.lines.get(at);
        if last != Some((step, of)) {
            last = Some((step, of));
            if let Some(writer) = known.get(step) {
                blamed.author(writer.line(of.map(|(of, by)| (&**of, by.as_ref()))));
            }
        }
        blamed.same_author();
    }
    blamed
}
