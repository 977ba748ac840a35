//! `survival/list`: the sums by agent and model.

use std::collections::{BTreeMap, HashMap, HashSet};

use touchmark_engine::{Fact, State};
use touchmark_proto::survival::{Horizon, SurvivalList, SurvivalRow, SurvivalRows, Survived};
use touchmark_proto::{Error, Millis, SessionId, VersionKind};

use super::{COMMIT, Look, View, agent};
use crate::store::StoreError;

/// Which agent and which models each session is.
#[derive(Debug, Default)]
pub(crate) struct Agents(HashMap<SessionId, Agent>);

#[derive(Debug, Default)]
struct Agent {
    name: Option<String>,
    /// From when on it used each model, oldest first.
    models: Vec<(Millis, String)>,
}

/// A version of an agent.
struct Own {
    session: SessionId,
    time: Millis,
    /// Whether it can have added lines.
    adds: bool,
    /// The lines that it added; `None` if it was not judged yet.
    added: Option<u32>,
}

/// What rows are distinguished by: agent and model.
type Key = (Option<String>, Option<String>);

impl Agents {
    pub(crate) fn of(state: &State) -> Self {
        let sessions = state.sessions.iter().map(|(session, known)| {
            let models = known.memory.models.iter();
            let agent = Agent {
                name: known.agent.as_ref().map(|agent| agent.name.clone()),
                models: models.map(|one| (one.time, one.model.clone())).collect(),
            };
            (session.clone(), agent)
        });
        Self(sessions.collect())
    }

    /// Returns a session's agent, and its model at a time.
    fn key(&self, session: &SessionId, time: Millis) -> Key {
        let Some(agent) = self.0.get(session) else {
            return (None, None);
        };
        let model = agent.models.iter().rfind(|(from, _)| *from <= time);
        (agent.name.clone(), model.map(|(_, model)| model.clone()))
    }
}

impl View {
    /// Answers `survival/list`, after everything was judged that can be by now.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) async fn list(
        &self,
        ask: &SurvivalList,
        agents: &Agents,
    ) -> Result<SurvivalRows, Error> {
        let look = Look::open(self)?;
        let progress = look.whole().await?;
        let oldest = self.cx.workspace.time.before(COMMIT);
        let (versions, facts) = look
            .read(|log| Ok::<_, StoreError>((log.versions_after(0)?, log.survivals_after(0)?)))
            .await??;
        let mut own: BTreeMap<u64, Own> = BTreeMap::new();
        for record in versions {
            let Fact::Version(fact) = record.fact else {
                continue;
            };
            let n = fact.amends.unwrap_or(record.n);
            let time = own.get(&n).map_or(record.time, |own| own.time);
            match agent(&fact.author) {
                Some(session) => {
                    let version = Own {
                        session,
                        time,
                        adds: fact.kind != VersionKind::Deleted,
                        added: None,
                    };
                    own.insert(n, version);
                }
                None => drop(own.remove(&n)),
            }
        }
        let mut rows: BTreeMap<Key, SurvivalRow> = BTreeMap::new();
        let mut judged: HashSet<(u64, Horizon)> = HashSet::new();
        let is_meant = |session: &SessionId| ask.session.as_ref().is_none_or(|one| one == session);
        for record in &facts {
            let Fact::Survival {
                version,
                session,
                horizon,
                added,
                alive,
                ..
            } = &record.fact
            else {
                continue;
            };
            judged.insert((*version, *horizon));
            if !is_meant(session) {
                continue;
            }
            // The version itself may be in the log no longer.
            let own = own.entry(*version).or_insert_with(|| Own {
                session: session.clone(),
                time: record.time,
                adds: true,
                added: None,
            });
            let row = row(&mut rows, agents.key(session, own.time));
            if own.added.replace(*added).is_none() {
                row.versions += 1;
                row.added += u64::from(*added);
            }
            let sums = sums(row, *horizon);
            sums.added += u64::from(*added);
            sums.alive += u64::from(*alive);
        }
        for (n, own) in &own {
            if !own.adds || !is_meant(&own.session) {
                continue;
            }
            let is_waiting = |horizon| {
                let is_in_time = match horizon {
                    Horizon::Commit => own.time >= oldest,
                    Horizon::Day | Horizon::Week => *n > progress.mark(horizon),
                };
                is_in_time && !judged.contains(&(*n, horizon))
            };
            let horizons = [Horizon::Commit, Horizon::Day, Horizon::Week];
            for horizon in horizons.into_iter().filter(|one| is_waiting(*one)) {
                let row = row(&mut rows, agents.key(&own.session, own.time));
                sums(row, horizon).waiting += 1;
            }
        }
        let mut rows: Vec<SurvivalRow> = rows.into_values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.added));
        Ok(SurvivalRows { rows })
    }
}

fn row(rows: &mut BTreeMap<Key, SurvivalRow>, key: Key) -> &mut SurvivalRow {
    rows.entry(key)
        .or_insert_with_key(|(agent, model)| SurvivalRow {
            agent: agent.clone(),
            model: model.clone(),
            ..SurvivalRow::default()
        })
}

fn sums(row: &mut SurvivalRow, horizon: Horizon) -> &mut Survived {
    match horizon {
        Horizon::Commit => &mut row.commit,
        Horizon::Day => &mut row.day,
        Horizon::Week => &mut row.week,
    }
}
