//! How many of the lines that agents wrote are still in the files (SURV).

use serde::{Deserialize, Serialize};

/// A moment after a version at which its lines are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Horizon {
    /// The next commit with the file.
    Commit,
    /// 24 hours later.
    Day,
    /// 7 times 24 hours later.
    Week,
}
