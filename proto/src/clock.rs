//! Time, and the order of facts.

use std::fmt;
use std::str::FromStr;

/// A moment in milliseconds since the Unix epoch, or a length of time in
/// milliseconds.
pub type Millis = u64;

/// The number of a fact: `"<epoch>:<n>"`. `n` grows with every recorded fact.
/// `epoch` changes when facts were lost. Clocks of different epochs cannot be
/// compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clock {
    /// The epoch: one lifetime of the state.
    pub epoch: u64,
    /// The number of facts recorded in that epoch.
    pub n: u64,
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.n)
    }
}

/// The text is not of the form `"<epoch>:<n>"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a clock is \"<epoch>:<n>\", as an earlier answer gave it")]
pub struct ClockError;

impl FromStr for Clock {
    type Err = ClockError;
    fn from_str(text: &str) -> Result<Self, ClockError> {
        let (epoch, n) = text.split_once(':').ok_or(ClockError)?;
        Ok(Self {
            epoch: epoch.parse().map_err(|_| ClockError)?,
            n: n.parse().map_err(|_| ClockError)?,
        })
    }
}

text!(Clock as (u64, u64): |clock| (clock.epoch, clock.n), |(epoch, n)| Ok(Self { epoch, n }));

schema!(Clock: {"type": "string", "pattern": "^[0-9]+:[0-9]+$"});
