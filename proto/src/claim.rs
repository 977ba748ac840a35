//! The request by which the user says who wrote a change (ATTR-18).

use macro_rules_attribute::macro_rules_derive;
use serde::{Deserialize, Serialize};

use crate::{ClientPath, LineRange, SessionId};

/// Says who wrote changes. Without `lines` these are changes whose author is
/// only likely, or was claimed before (UNDO-7); `command` or `paths` selects
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
#[macro_rules_derive(New!)]
pub struct Claim {
    /// The session that wrote them; `None` for the user.
    pub session: Option<SessionId>,
    /// Only changes while this command ran (`c5`); `None` means any.
    pub command: Option<String>,
    /// Only these files, and files below these directories; `None` means all.
    pub paths: Option<Vec<ClientPath>>,
    /// These lines of the current content of the one file in `paths`, whoever
    /// wrote them; `None` for whole changes.
    pub lines: Option<LineRange>,
}

/// What a claim has corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Claimed {
    /// The number of versions whose author was corrected.
    pub versions: u32,
    /// The number of lines whose author was corrected.
    pub lines: u32,
}
