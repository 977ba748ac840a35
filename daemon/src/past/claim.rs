//! `claim`: the user says who wrote a change (ATTR-18).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use touchmark_engine::history::Undos;
use touchmark_engine::recall::command_name;
use touchmark_engine::{Fact, VersionFact};
use touchmark_proto::claim::{Claim, Claimed};
use touchmark_proto::daemon::{Ping, Sync};
use touchmark_proto::{Author, Error, ErrorCode, Evidence, LineRange, RelPath};

use crate::undo::{Undoer, is_below};

impl Undoer {
    /// Handles `claim`.
    ///
    /// # Errors
    /// `invalidParams`, `notFound` if no change is selected, `storage`.
    pub(crate) async fn claim(&self, ask: &Claim) -> Result<Claimed, Error> {
        let _one = self.journal.alone().await;
        // All earlier writes are recorded when this returns (SYNC-1).
        self.cx.inside.ask(Sync {}).await?;
        let below: Vec<RelPath> = ask
            .paths
            .iter()
            .flatten()
            .map(|path| self.place(path))
            .collect::<Result<_, _>>()?;
        let (facts, claimed) = match (ask.lines, &*below) {
            (Some(lines), [path]) => self.lines(ask, path, lines).await?,
            (Some(_), _) => {
                return Err(Error::invalid("lines are of one file").hint("name one file"));
            }
            (None, []) if ask.command.is_none() => {
                return Err(Error::invalid("the request selects no changes")
                    .hint("name a command, or files"));
            }
            (None, below) => self.versions(ask, below).await?,
        };
        if facts.is_empty() {
            return Err(Error::new(
                ErrorCode::NotFound,
                "no change with a likely author is selected",
            )
            .hint("name the lines, as in `touchmark claim PATH:10-12 --by you`"));
        }
        self.cx.inside.record(facts);
        // The answer is sent once the facts are committed.
        self.cx.inside.ask(Ping {}).await?;
        Ok(claimed)
    }

    /// Returns the corrections of the selected versions that have another
    /// author so far.
    async fn versions(
        &self,
        ask: &Claim,
        below: &[RelPath],
    ) -> Result<(Vec<Fact>, Claimed), Error> {
        let log = Arc::clone(&self.log);
        let read = tokio::task::spawn_blocking(move || {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.versions_after(0)
        });
        let records = read
            .await
            .map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))??;
        // Each version with its newest correction.
        let mut newest: BTreeMap<u64, VersionFact> = BTreeMap::new();
        // The session in whose command's time each version was made.
        let mut runs: HashMap<u64, Author> = HashMap::new();
        for record in records {
            let Fact::Version(fact) = record.fact else {
                continue;
            };
            let n = fact.amends.unwrap_or(record.n);
            if fact.evidence == Evidence::Command {
                runs.insert(n, fact.author.clone());
            }
            newest.insert(n, fact);
        }
        let author = ask.session.clone().map_or(Author::USER, Author::agent);
        let is_meant = |n: &u64, fact: &VersionFact| {
            let is_likely = { fact.evidence }.is_likely(fact.command.is_some(), fact.formatted);
            let command = fact.command.map(command_name);
            (is_likely || fact.evidence == Evidence::Claimed && runs.contains_key(n))
                && ask
                    .command
                    .as_ref()
                    .is_none_or(|asked| command.as_ref() == Some(asked))
                && (below.is_empty() || below.iter().any(|path| is_below(&fact.path, path)))
        };
        let mut found = 0;
        let mut facts = Vec::new();
        for (n, fact) in newest {
            if !is_meant(&n, &fact) {
                continue;
            }
            found += 1;
            if fact.author == author && fact.evidence == Evidence::Claimed {
                continue;
            }
            facts.push(Fact::Version(VersionFact {
                author: author.clone(),
                evidence: Evidence::Claimed,
                amends: Some(n),
                edit: None,
                late: false,
                candidates: Vec::new(),
                ..fact
            }));
        }
        let claimed = Claimed {
            versions: u32::try_from(found).unwrap_or(u32::MAX),
            lines: 0,
        };
        Ok((facts, claimed))
    }

    /// Returns the corrections of lines of a file's current content.
    async fn lines(
        &self,
        ask: &Claim,
        path: &RelPath,
        lines: LineRange,
    ) -> Result<(Vec<Fact>, Claimed), Error> {
        let chain = self.chain(path).await?;
        let read = tokio::task::spawn_blocking(move || {
            let weave = chain.weave(&Undos::default(), |_| false);
            let last = chain.versions.len().saturating_sub(1);
            let named = weave.name_lines(last, lines);
            (chain, named)
        });
        let (chain, named) = read
            .await
            .map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))?;
        let mut by: BTreeMap<usize, Vec<(u32, u64)>> = BTreeMap::new();
        for (step, place, mark) in &named {
            by.entry(*step).or_default().push((*place, *mark));
        }
        let facts = by.into_iter().filter_map(|(step, lines)| {
            let version = &chain.versions[step];
            // A content that is not recorded yet has no number.
            (version.clock.n > 0).then(|| Fact::Claimed {
                path: version.path.clone(),
                version: version.clock.n,
                lines,
                session: ask.session.clone(),
            })
        });
        let claimed = Claimed {
            versions: 0,
            lines: u32::try_from(named.len()).unwrap_or(u32::MAX),
        };
        Ok((facts.collect(), claimed))
    }
}
