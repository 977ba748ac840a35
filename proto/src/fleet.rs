//! What daemons of one user ask each other: to end, so that others get their
//! watches and their memory (FLEET-2).

use macro_rules_attribute::macro_rules_derive;
use serde::{Deserialize, Serialize};

/// Ends the daemon if nothing needs it (FLEET-3). A daemon sends this to
/// another one that was not used for longer, when both use more than the user
/// allows. It does not count as a use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
#[macro_rules_derive(New!)]
pub struct FleetYield {
    /// The time for which the daemon must not have been used, in milliseconds.
    pub idle_ms: u64,
}

/// Whether the daemon ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct FleetYielded {
    /// Whether the daemon ends. The next client starts it again.
    pub ends: bool,
    /// Why the daemon does not end, as a sentence for people; `None` if it
    /// ends.
    pub because: Option<String>,
}
