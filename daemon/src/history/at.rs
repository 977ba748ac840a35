//! Finds the versions and moments that names like a hash, a clock or a time
//! refer to (HIST-1).

use jiff::tz::TimeZone;
use touchmark_proto::checkpoints::CheckpointList;
use touchmark_proto::daemon::Sync;
use touchmark_proto::files::FileStatus;
use touchmark_proto::sessions::SessionList;
use touchmark_proto::{
    At, ClientPath, Clock, Error, ErrorCode, ErrorData, Hash, Millis, SessionId, Version,
};

use super::Past;
use crate::inside::Inside;

/// A moment in the history of the whole workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// The moment when this fact was the newest.
    Fact(u64),
    /// A time of the wall clock.
    Time(Millis),
}

/// The result of finding a version of a file by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The version with this index.
    Version(usize),
    /// The time before the first version.
    Before,
}

impl Moment {
    /// Returns the version that a file had at this moment.
    fn place(self, versions: &[Version]) -> Place {
        // A version that was overwritten unread may be recorded after the one
        // that overwrote it.
        let named = |version: &Version| version.clock.n > 0 && Self::Fact(version.clock.n) == self;
        if let Some(at) = versions.iter().position(named) {
            return Place::Version(at);
        }
        let had = versions.iter().rposition(|version| match self {
            // An unrecorded version has no known time.
            _ if version.clock.n == 0 => false,
            Self::Fact(n) => version.clock.n <= n,
            Self::Time(time) => version.time <= time,
        });
        had.map_or(Place::Before, Place::Version)
    }
}

/// Which of the files that a name stood for is meant.
#[derive(Clone, Debug)]
pub(super) enum Meant {
    /// The file that has the name now.
    Current,
    /// The file that had the name then. If there was none, the one that has it
    /// now.
    Then(Moment),
    /// The newest file that had a content with a hash that begins with these
    /// digits.
    Hash(String),
}

impl Meant {
    /// Returns the number of a version that the file has, given all versions of
    /// the name; `u64::MAX` for the current file.
    pub(super) fn number(&self, versions: &[Version]) -> u64 {
        let had = match self {
            Self::Current => None,
            Self::Then(moment) => match moment.place(versions) {
                Place::Version(had) => Some(had),
                Place::Before => None,
            },
            Self::Hash(digits) => versions.iter().rposition(|version| {
                let hash = version.hash.map(|hash| hash.to_string());
                hash.is_some_and(|hash| hash.starts_with(digits))
            }),
        };
        let had = had.and_then(|had| versions.get(had));
        let had = had.filter(|had| had.hash.is_some() && had.clock.n > 0);
        had.map_or(u64::MAX, |had| had.clock.n)
    }
}

impl Past {
    /// Returns which of the files that a path stood for a request means (HIST-1).
    ///
    /// # Errors
    /// Those of [`moment`](Self::moment).
    pub(super) async fn meant(&self, at: &At) -> Result<Meant, Error> {
        Ok(match (at, self.moment(at).await?) {
            (_, Some(moment)) => Meant::Then(moment),
            (At::Hash(digits), None) => Meant::Hash(digits.clone()),
            (_, None) => Meant::Current,
        })
    }

    /// Returns the version that a name refers to.
    ///
    /// # Errors
    /// `notFound` for a version that the file never had, `unknownClock`,
    /// `unknownSession`, `invalidParams` if several match.
    pub(super) async fn place(
        &self,
        versions: &[Version],
        path: &ClientPath,
        at: &At,
    ) -> Result<Place, Error> {
        match at {
            At::Now => Ok(versions
                .len()
                .checked_sub(1)
                .map_or(Place::Before, Place::Version)),
            At::Hash(digits) => of_hash(versions, digits).map(Place::Version),
            At::Seen(session) => {
                let seen = self.seen(session, path).await?;
                let held = versions.iter().rposition(|version| version.hash == seen);
                held.map(Place::Version).ok_or_else(|| {
                    missing(format!(
                        "the content that session {session:?} saw is not a recorded version of the file"
                    ))
                })
            }
            at => match self.moment(at).await? {
                Some(moment) => Ok(moment.place(versions)),
                None => Err(Error::invalid("no moment is named")),
            },
        }
    }

    /// Returns the moment that a name refers to, or `None` for now and for a
    /// name that needs a file (a hash, what a session saw).
    pub(super) async fn moment(&self, at: &At) -> Result<Option<Moment>, Error> {
        Ok(Some(match at {
            At::Now | At::Hash(_) | At::Seen(_) => return Ok(None),
            At::Clock { epoch, n } => {
                let newest = self.cx.inside.ask(Sync {}).await?.clock;
                let epoch = epoch.unwrap_or(newest.epoch);
                let wrong = |why: &str| {
                    let clock = Clock { epoch, n: *n };
                    Err(
                        Error::new(ErrorCode::UnknownClock, format!("{clock}: {why}"))
                            .with(ErrorData {
                                clock: Some(clock),
                                ..ErrorData::default()
                            })
                            .hint("`file/log` has the clocks of all versions (`touchmark log`)"),
                    )
                };
                if epoch != newest.epoch {
                    return wrong("a clock of another epoch");
                }
                if *n > newest.n {
                    return wrong("this clock is in the future");
                }
                Moment::Fact(*n)
            }
            At::Time(when) => {
                let time = when.millis(self.cx.now, &TimeZone::system());
                Moment::Time(time.ok_or_else(|| Error::invalid("there is no such time"))?)
            }
            At::Checkpoint { session, number } => {
                Moment::Fact(checkpoint(&self.cx.inside, session.as_ref(), *number).await?)
            }
        }))
    }

    /// Returns the moment that a request names as the beginning or the end.
    pub(super) async fn edge(&self, at: Option<&At>, field: &str) -> Result<Option<Moment>, Error> {
        let Some(at) = at else {
            return Ok(None);
        };
        match self.moment(at).await? {
            Some(moment) => Ok(Some(moment)),
            None => Err(Error::invalid(format!(
                "`{field}` is a time, a clock or a checkpoint"
            ))),
        }
    }

    /// Returns the hash that a session saw of a file last; `None` if the
    /// session removed it.
    async fn seen(&self, session: &SessionId, path: &ClientPath) -> Result<Option<Hash>, Error> {
        let ask = FileStatus::new(session.clone())
            .paths(vec![path.clone()])
            .sync(false);
        let file = self.cx.inside.ask(ask).await?.files.pop();
        match file {
            Some(file) if file.state != touchmark_proto::State::Unread => Ok(file.seen_hash),
            _ => Err(missing(format!(
                "session {session:?} has not seen the file"
            ))),
        }
    }
}

/// Returns the fact at which a checkpoint was made. A checkpoint's number
/// is unique in the workspace.
pub(crate) async fn checkpoint(
    inside: &Inside,
    session: Option<&SessionId>,
    number: u64,
) -> Result<u64, Error> {
    if let Some(session) = session {
        let found = checkpoint_of(inside, session, number).await?;
        return found.ok_or_else(|| {
            missing(format!("session {session:?} has no checkpoint k{number}"))
                .hint("`checkpoint/list` has them")
        });
    }
    let mut cursor = None;
    loop {
        let limit = None;
        let page = inside.ask(SessionList { limit, cursor }).await?;
        for row in page.sessions {
            if let Some(n) = checkpoint_of(inside, &row.session, number).await? {
                return Ok(n);
            }
        }
        cursor = page.more;
        if cursor.is_none() {
            return Err(missing(format!("no session has a checkpoint k{number}"))
                .hint("`checkpoint/list` has a session's"));
        }
    }
}

async fn checkpoint_of(
    inside: &Inside,
    session: &SessionId,
    number: u64,
) -> Result<Option<u64>, Error> {
    let ask = CheckpointList {
        session: session.clone(),
        limit: Some(1),
        cursor: number.checked_sub(1).map(|before| before.to_string()),
    };
    let page = inside.ask(ask).await?;
    let name = format!("k{number}");
    let row = page
        .checkpoints
        .into_iter()
        .find(|row| row.checkpoint == name);
    Ok(row.map(|row| row.clock.n))
}

/// The hint of an error about a version that does not exist.
pub(super) const VERSIONS: &str = "`file/log` has a file's versions (`touchmark log PATH`)";

fn missing(message: String) -> Error {
    Error::new(ErrorCode::NotFound, message).hint(VERSIONS)
}

/// Returns the newest version whose hash begins with these digits, if only one
/// content matches.
fn of_hash(versions: &[Version], digits: &str) -> Result<usize, Error> {
    let begins = |version: &Version| {
        let hash = version.hash?;
        hash.to_string().starts_with(digits).then_some(hash)
    };
    let mut hashes: Vec<Hash> = versions.iter().filter_map(begins).collect();
    hashes.sort_unstable();
    hashes.dedup();
    match hashes.as_slice() {
        [one] => {
            let held = versions
                .iter()
                .rposition(|version| version.hash == Some(*one));
            held.ok_or_else(|| Error::new(ErrorCode::InternalError, "a version is gone"))
        }
        [] => Err(missing(format!(
            "no version of the file has the hash {digits}"
        ))),
        _ => Err(Error::invalid(format!(
            "several contents of the file have a hash that begins with {digits}"
        ))
        .with(ErrorData {
            candidates: Some(hashes.iter().map(|hash| hash.to_string()).collect()),
            ..ErrorData::default()
        })
        .hint("give more digits")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use touchmark_proto::RelPath;

    use super::super::unnamed;
    use super::*;

    fn version(n: u64, time: Millis, text: &str) -> Version {
        let path = RelPath::new(b"a").unwrap();
        let bytes = text.as_bytes();
        let mut version = unnamed(path, Hash::of(bytes), bytes, time);
        version.clock = Clock { epoch: 1, n };
        version
    }

    #[test]
    fn a_moment_has_the_version_before_it() {
        let versions = [version(5, 100, "a"), version(9, 200, "b")];
        let at = |n| Moment::Fact(n).place(&versions);
        assert_eq!(at(4), Place::Before);
        assert_eq!((at(5), at(8)), (Place::Version(0), Place::Version(0)));
        assert_eq!((at(9), at(99)), (Place::Version(1), Place::Version(1)));
        let at = |time| Moment::Time(time).place(&versions);
        assert_eq!((at(99), at(199)), (Place::Before, Place::Version(0)));
        assert_eq!(at(200), Place::Version(1));
        let and_unrecorded = [versions[0].clone(), version(0, 100, "c")];
        let of_any = Moment::Fact(99).place(&and_unrecorded);
        assert_eq!(of_any, Place::Version(0));
        // Recorded as 9, but overwritten by 5: each is named by its own number.
        let other_way = [versions[1].clone(), versions[0].clone()];
        let at = |n| Moment::Fact(n).place(&other_way);
        assert_eq!((at(5), at(9)), (Place::Version(1), Place::Version(0)));
        assert_eq!((at(8), at(99)), (Place::Version(1), Place::Version(1)));
    }

    #[test]
    fn a_hash_is_known_by_digits_that_no_other_has() {
        let versions = [version(1, 1, "a"), version(2, 2, "b"), version(3, 3, "a")];
        let a = Hash::of(b"a").to_string();
        assert_eq!(of_hash(&versions, &a[..6]).unwrap(), 2, "the newest");
        assert_eq!(of_hash(&versions, &a).unwrap(), 2);
        assert_eq!(
            of_hash(&versions, "000000").unwrap_err().code,
            ErrorCode::NotFound
        );
        // Every hash begins with no digits.
        let several = of_hash(&versions, "").unwrap_err();
        assert_eq!(several.code, ErrorCode::InvalidParams);
        assert_eq!(several.data.candidates.unwrap().len(), 2);
    }
}
