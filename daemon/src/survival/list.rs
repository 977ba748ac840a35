//! `survival/list`: the sums by agent and model.

use std::collections::{BTreeMap, HashMap};

use touchmark_engine::{Fact, State};
use touchmark_proto::survival::{Horizon, SurvivalList, SurvivalRow, SurvivalRows, Survived};
use touchmark_proto::{Error, Millis, SessionId, VersionKind};

use super::line::Lines;
use super::{COMMIT, DAY, Judged, Look, WEEK, agent};

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

impl Look {
    /// Answers `survival/list`.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) async fn list(
        &self,
        ask: &SurvivalList,
        agents: &Agents,
    ) -> Result<SurvivalRows, Error> {
        let versions = self.read(|log| log.versions_after(0)).await??;
        let mut lines = Lines::new(self);
        let mut judged = Judged::new();
        self.by_commits(&versions, &mut lines, &mut judged).await?;
        for (horizon, age) in [(Horizon::Day, DAY), (Horizon::Week, WEEK)] {
            self.by_time(&versions, horizon, age, &mut lines, &mut judged)
                .await?;
        }
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
                    };
                    own.insert(n, version);
                }
                None => drop(own.remove(&n)),
            }
        }
        let mut rows: BTreeMap<Key, SurvivalRow> = BTreeMap::new();
        let is_meant = |session: &SessionId| ask.session.as_ref().is_none_or(|one| one == session);
        let moments = [
            (Horizon::Commit, COMMIT),
            (Horizon::Day, DAY),
            (Horizon::Week, WEEK),
        ];
        for (n, own) in own.iter().filter(|(_, own)| is_meant(&own.session)) {
            let mut added = None;
            for (horizon, age) in moments {
                let is_waiting = own.adds && own.time > self.cx.workspace.time.before(age);
                let left = judged.get(&(*n, horizon));
                if left.is_none() && !is_waiting {
                    continue;
                }
                let row = row(&mut rows, agents.key(&own.session, own.time));
                let sums = sums(row, horizon);
                match left {
                    Some(left) => {
                        sums.added += u64::from(left.added);
                        sums.alive += u64::from(left.alive);
                        added = added.or(Some(left.added));
                    }
                    None => sums.waiting += 1,
                }
            }
            if let Some(added) = added {
                let row = row(&mut rows, agents.key(&own.session, own.time));
                row.versions += 1;
                row.added += u64::from(added);
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
