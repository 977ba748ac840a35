//! Names of versions of a file, and of moments (HIST-1).

use std::fmt;
use std::str::FromStr;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::{Millis, SessionId};

/// The least number of digits that name a content. Fewer digits could be a
/// clock.
const LEAST_DIGITS: usize = 6;

/// The least number of decimal digits that are read as a hash. No clock is that
/// large.
const HASH_OF_DIGITS: usize = 12;

/// The name of a version. It is a string on every wire, in the form that people
/// write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// `now`: the file's current content.
    Now,
    /// `3:17`, or `17` for the current epoch: the version that the file had
    /// when that fact was the newest. So a version's own clock names that
    /// version.
    Clock {
        /// The epoch; `None` means the current one.
        epoch: Option<u64>,
        /// The number of the fact.
        n: u64,
    },
    /// The first digits of a content's hash, in lower case: the newest version
    /// with that content. The digits must match only one content of the file.
    Hash(String),
    /// `@10m`, `@2026-11-22`, `@14:30`: the version that the file had at that
    /// time.
    Time(When),
    /// `k3`, or `claude-1/k3`: the version that the file had at that
    /// checkpoint.
    Checkpoint {
        /// The session: an id, a label, or the beginning of one. It may be
        /// omitted, since checkpoint numbers are unique in a workspace.
        session: Option<SessionId>,
        /// The checkpoint's number.
        number: u64,
    },
    /// `seen:claude-1`: the content of the file that this session saw last.
    Seen(SessionId),
}

/// A moment, in the forms that people write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// This number of seconds ago: `@90s`, `@10m`, `@2h`, `@3d`, `@1w`.
    Ago(u64),
    /// A local date and time, in the time zone of the user who names it:
    /// `@2026-11-22` (the start of that day), `@2026-11-22T14:30`.
    Local(DateTime),
    /// The latest past moment with this local time of day: `@14:30`.
    OfDay(Time),
    /// A moment that does not depend on a time zone: `@2026-11-22T13:30:00Z`.
    Exact(Timestamp),
}

impl When {
    /// Returns the moment in milliseconds since 1970, or `None` if there is no
    /// such moment.
    pub fn millis(self, now: Millis, zone: &TimeZone) -> Option<Millis> {
        let exact = match self {
            Self::Ago(seconds) => return now.checked_sub(seconds.checked_mul(1000)?),
            Self::Exact(exact) => exact,
            Self::Local(local) => local.to_zoned(zone.clone()).ok()?.timestamp(),
            Self::OfDay(time) => {
                let now = Timestamp::from_millisecond(i64::try_from(now).ok()?).ok()?;
                let today = now.to_zoned(zone.clone()).date();
                let on = |date: jiff::civil::Date| {
                    let zoned = date.to_datetime(time).to_zoned(zone.clone());
                    zoned.ok().map(|zoned| zoned.timestamp())
                };
                let of_today = on(today)?;
                match of_today <= now {
                    true => of_today,
                    false => on(today.checked_sub(Span::new().days(1)).ok()?)?,
                }
            }
        };
        u64::try_from(exact.as_millisecond()).ok()
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(ago) = Self::ago(text) {
            return Some(ago);
        }
        if let Ok(exact) = text.parse() {
            return Some(Self::Exact(exact));
        }
        // `parse` would accept a plain number as a time of day.
        match text.contains(['-', 'T', ' ']) {
            true => text.parse().ok().map(Self::Local),
            false => text
                .contains(':')
                .then(|| text.parse().ok())?
                .map(Self::OfDay),
        }
    }

    fn ago(text: &str) -> Option<Self> {
        let unit = match text.chars().next_back()? {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return None,
        };
        let number: u64 = decimal(&text[..text.len() - 1])?;
        number.checked_mul(unit).map(Self::Ago)
    }
}

impl At {
    /// Returns this name with a local time replaced by the exact moment. A
    /// client calls it because the daemon may run in another time zone.
    #[must_use]
    pub fn exact(self, now: Millis, zone: &TimeZone) -> Self {
        match self {
            Self::Time(when @ (When::Local(_) | When::OfDay(_))) => {
                let millis = when.millis(now, zone).and_then(|ms| i64::try_from(ms).ok());
                let exact = millis.and_then(|ms| Timestamp::from_millisecond(ms).ok());
                Self::Time(exact.map_or(when, When::Exact))
            }
            at => at,
        }
    }

    /// Splits `PATH@V` at the last `@` that is followed by a version, or at
    /// `@@` before a time. Returns `None` if there is no version.
    pub fn split(text: &str) -> Option<(&str, Self)> {
        let at = text.rfind('@').filter(|at| *at > 0)?;
        let (path, version) = (&text[..at], &text[at + 1..]);
        if let Some(path) = path.strip_suffix('@').filter(|path| !path.is_empty())
            && let Some(when) = When::parse(version)
        {
            return Some((path, Self::Time(when)));
        }
        match version.parse() {
            Ok(version) => Some((path, version)),
            // The version may contain an `@` itself: in a session's name.
            Err(_) => {
                let at = path.rfind('@').filter(|at| *at > 0)?;
                let version = text[at + 1..].parse().ok()?;
                Some((&text[..at], version))
            }
        }
    }
}

/// Parses a number of decimal digits only, without a sign.
fn decimal(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// The text names no version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a version is a clock (`3:17`, `17`), 6 or more digits of a hash, a time (`@10m`, `@14:30`, \
     `@2026-11-22`), a checkpoint (`k3`, `claude-1/k3`), `seen:SESSION` or `now`"
)]
pub struct AtError;

impl FromStr for At {
    type Err = AtError;

    fn from_str(text: &str) -> Result<Self, AtError> {
        if text == "now" {
            return Ok(Self::Now);
        }
        if let Some(time) = text.strip_prefix('@') {
            return When::parse(time).map(Self::Time).ok_or(AtError);
        }
        if let Some(session) = text.strip_prefix("seen:") {
            return SessionId::new(session).map(Self::Seen).map_err(|_| AtError);
        }
        let (session, last) = match text.rsplit_once('/') {
            Some((session, last)) => (Some(session), last),
            None => (None, text),
        };
        if let Some(number) = last.strip_prefix('k').and_then(decimal) {
            let session = session.map(SessionId::new).transpose();
            let session = session.map_err(|_| AtError)?;
            return Ok(Self::Checkpoint { session, number });
        }
        if let Some((epoch, n)) = text.split_once(':')
            && let (Some(epoch), Some(n)) = (decimal(epoch), decimal(n))
        {
            let epoch = Some(epoch);
            return Ok(Self::Clock { epoch, n });
        }
        if text.len() < HASH_OF_DIGITS
            && let Some(n) = decimal(text)
        {
            return Ok(Self::Clock { epoch: None, n });
        }
        let is_hash = (LEAST_DIGITS..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash {
            return Ok(Self::Hash(text.to_ascii_lowercase()));
        }
        match When::parse(text) {
            Some(when) => Ok(Self::Time(when)),
            None => Err(AtError),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => f.write_str("now"),
            Self::Clock { epoch: None, n } => write!(f, "{n}"),
            Self::Clock {
                epoch: Some(epoch),
                n,
            } => write!(f, "{epoch}:{n}"),
            Self::Hash(digits) => f.write_str(digits),
            Self::Time(When::Ago(seconds)) => write!(f, "@{seconds}s"),
            Self::Time(When::Local(local)) => write!(f, "@{local}"),
            Self::Time(When::OfDay(time)) => write!(f, "@{time}"),
            Self::Time(When::Exact(exact)) => write!(f, "@{exact}"),
            Self::Checkpoint {
                session: Some(session),
                number,
            } => write!(f, "{session}/k{number}"),
            Self::Checkpoint {
                session: None,
                number,
            } => write!(f, "k{number}"),
            Self::Seen(session) => write!(f, "seen:{session}"),
        }
    }
}

text!(At as String: |at| at.to_string(), |text| text.parse());

schema!(At: {"type": "string", "minLength": 1, "examples": ["now"]});

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn at(text: &str) -> At {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_told_apart_by_their_shape() {
        let clock = |epoch, n| At::Clock { epoch, n };
        assert_eq!(at("3:17"), clock(Some(3), 17));
        assert_eq!(at("17"), clock(None, 17));
        assert_eq!(at("14:30"), clock(Some(14), 30));
        assert_eq!(at("1234567"), clock(None, 1_234_567));
        assert_eq!(at("A1b2c3"), At::Hash("a1b2c3".into()));
        assert_eq!(at("123456789012"), At::Hash("123456789012".into()));
        assert_eq!(at("10d"), At::Time(When::Ago(864_000)));
        assert_eq!(at("@2h"), at("2h"));
        assert!(matches!(at("@14:30"), At::Time(When::OfDay(_))));
        assert!(matches!(at("2026-11-22"), At::Time(When::Local(_))));
        assert!(matches!(at("@2026-11-22T14:30"), At::Time(When::Local(_))));
        assert!(matches!(at("@2026-11-22 14:30"), At::Time(When::Local(_))));
        assert!(matches!(at("@2026-11-22T13:30Z"), At::Time(When::Exact(_))));
        let session = |name: &str| SessionId::new(name).unwrap();
        assert_eq!(at("seen:a/k3"), At::Seen(session("a/k3")));
        let checkpoint = |whose: Option<&str>, number| At::Checkpoint {
            session: whose.map(session),
            number,
        };
        assert_eq!(at("k3"), checkpoint(None, 3));
        assert_eq!(at("a/b/k3"), checkpoint(Some("a/b"), 3));
        for wrong in [
            "", "@", "@17", "17x", "abc", "k", "kx", "seen:", "+3", "1:+3", "@-5m", "x.rs",
        ] {
            assert!(wrong.parse::<At>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = [
            "now",
            "3:17",
            "17",
            "abcdef12",
            "@600s",
            "@2026-11-22T14:30:00",
            "@14:30:00",
            "@2026-11-22T13:30:00Z",
            "k3",
            "claude-1/k3",
            "seen:claude-1",
        ];
        for text in all {
            assert_eq!(at(text).to_string(), text);
        }
    }

    #[test]
    fn a_path_ends_at_the_last_at_that_a_version_follows() {
        let split = |text| At::split(text).map(|(path, at)| (path, at.to_string()));
        let some = |path, version: &str| Some((path, version.to_owned()));
        assert_eq!(split("src/a.rs@1:17"), some("src/a.rs", "1:17"));
        assert_eq!(split("a@b.rs@10m"), some("a@b.rs", "@600s"));
        assert_eq!(split("a.rs@@14:30"), some("a.rs", "@14:30:00"));
        assert_eq!(split("a.rs@@10m"), some("a.rs", "@600s"));
        assert_eq!(split("a@b.rs"), None);
        assert_eq!(split("a.rs"), None);
        assert_eq!(split("@10m"), None);
        assert_eq!(split("a.rs@seen:me@home"), some("a.rs", "seen:me@home"));
        assert_eq!(split("node@17"), some("node", "17"));
    }

    #[test]
    fn moments_are_of_the_zone_of_whoever_asks() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        // The local time is 2026-11-22T12:00:00+02:00.
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        let now = u64::try_from(now.as_millisecond()).unwrap();
        let exact = |text: &str| at(text).exact(now, &zone).to_string();
        assert_eq!(exact("@11:30"), "@2026-11-22T09:30:00Z");
        assert_eq!(exact("@14:30"), "@2026-11-21T12:30:00Z", "yesterday's");
        assert_eq!(exact("2026-11-22"), "@2026-11-21T22:00:00Z");
        assert_eq!(exact("@10m"), "@600s");
        let At::Time(when) = at("@10m") else {
            unreachable!()
        };
        assert_eq!(when.millis(now, &zone), Some(now - 600_000));
        assert_eq!(When::Ago(u64::MAX).millis(now, &zone), None);
    }
}
