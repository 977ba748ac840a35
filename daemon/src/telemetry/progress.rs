//! How far the facts were sent, as it is stored (TEL-2).

use serde::{Deserialize, Serialize};

use super::identity::{hex, random};
use crate::store;

/// What is stored with the position in the log. Fields that are missing have
/// their defaults, unknown ones are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Progress {
    /// The number of the newest fact that was acknowledged. It is stored by the
    /// store.
    #[serde(skip)]
    pub(super) n: u64,
    /// The epochs of facts.
    pub(super) uids: Uids,
    /// The random name of this store.
    pub(super) instance: String,
    /// The number of records that were acknowledged or given up.
    pub(super) records: u64,
    /// The number of records that the collector refused for good, in an answer
    /// that took the others or by calling a single one malformed repeatedly.
    pub(super) rejected: u64,
}

impl Progress {
    /// Begins at fact `n`: earlier facts are not sent.
    pub(super) fn begin(n: u64, epoch: u64) -> Self {
        let mut instance = [0; 16];
        if let Err(error) = random(&mut instance) {
            tracing::warn!("no random bytes: {error}");
        }
        Self {
            n,
            uids: Uids {
                epoch,
                earlier: None,
            },
            instance: hex(&instance),
            records: 0,
            rejected: 0,
        }
    }

    /// Continues from what is stored. `newest` is the number of the newest fact
    /// when the store was opened. `None` if it cannot be read.
    pub(super) fn stored(stored: &store::Progress, newest: u64, epoch: u64) -> Option<Self> {
        let mut progress: Self = serde_json::from_slice(&stored.state).ok()?;
        // Facts may have been lost, and their numbers given out again.
        progress.n = stored.n.min(newest);
        progress.uids.enter(epoch, newest);
        Some(progress)
    }

    /// Returns the form in which it is stored.
    pub(super) fn to_store(&self) -> store::Progress {
        store::Progress {
            n: self.n,
            state: serde_json::to_vec(self).unwrap_or_default(),
        }
    }
}

/// The identities of facts: `epoch:n`. A fact has the epoch in which it was
/// recorded, so that a record that is sent again later has the same identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Uids {
    epoch: u64,
    /// The last fact of the epoch before, and that epoch.
    earlier: Option<(u64, u64)>,
}

impl Uids {
    /// Returns the identity of a fact.
    pub(super) fn of(&self, n: u64) -> String {
        let epoch = match self.earlier {
            Some((last, epoch)) if n <= last => epoch,
            _ => self.epoch,
        };
        format!("{epoch}:{n}")
    }

    /// Begins an epoch after fact `newest`.
    fn enter(&mut self, epoch: u64, newest: u64) {
        if self.epoch != epoch {
            self.earlier = Some((newest, self.epoch));
            self.epoch = epoch;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_keeps_its_identity_in_a_new_epoch() {
        let mut progress = Progress::begin(5, 1);
        progress.rejected = 3;
        let again = Progress::stored(&progress.to_store(), 9, 1).unwrap();
        assert_eq!(again, progress);
        let after = Progress::stored(&progress.to_store(), 9, 2).unwrap();
        let uids: Vec<String> = (8..=10).map(|n| after.uids.of(n)).collect();
        assert_eq!(uids, ["1:8", "1:9", "2:10"]);
        // Facts that were lost: their numbers mean other facts now.
        let lost = Progress::stored(&progress.to_store(), 3, 2).unwrap();
        assert_eq!((lost.n, &*lost.uids.of(4)), (3, "2:4"));
    }

    #[test]
    fn what_is_stored_by_another_version_is_read() {
        let stored = store::Progress {
            n: 4,
            state: br#"{"instance":"a","later":[1]}"#.to_vec(),
        };
        let read = Progress::stored(&stored, 9, 1).unwrap();
        assert_eq!((read.n, &*read.instance), (4, "a"));
        let nonsense = store::Progress {
            n: 4,
            state: b"nonsense".to_vec(),
        };
        assert_eq!(Progress::stored(&nonsense, 9, 1), None);
    }
}
