//! Whether an agent's own settings switch all of its hooks off.

use std::path::{Path, PathBuf};

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

use super::agent::Agent;
use super::file::{self, read};
use super::places::{Places, Scope};
use crate::daemon::doctor::Finding;
use crate::text::directory;

/// What the user can do.
const HINT: &str = "remove it there if touchmark is to work with this agent";

impl Places<'_> {
    /// Returns a finding that an agent runs no hook; `None` if its settings do not
    /// say so. Of the files that have the setting, the first one counts: the
    /// administrator's, the user's in the project, the project's, the user's.
    pub(crate) fn switched_off(&self, agent: Agent, check: String) -> Option<Finding> {
        let switch = agent.settings().switch.as_ref()?;
        let project = self.settings(agent, Scope::Project);
        let mut files = vec![project.clone(), self.settings(agent, Scope::User)];
        if let Some((local, managed)) = switch.before {
            files.insert(0, project.with_file_name(local));
            files.insert(0, PathBuf::from(managed));
        }
        let mut said = files.iter().map(|file| (file, value(file, switch.pointer)));
        let (file, value) = said.find(|(_, value)| value.is_some())?;
        let setting = switch.pointer.trim_start_matches('/').replace('/', ".");
        let file = directory(file);
        (value == Some(switch.off)).then(|| {
            let says = format!(
                "no hook will run, since {file} says \"{setting}\": {}",
                switch.off
            );
            Finding::wrong(check, says, HINT)
        })
    }
}

/// Returns the value of a setting; `None` if the file does not have it.
fn value(file: &Path, pointer: &str) -> Option<bool> {
    let bytes = read(file).ok()?;
    let bytes = bytes.strip_prefix(file::BYTE_ORDER_MARK).unwrap_or(&bytes);
    let text = std::str::from_utf8(bytes).ok()?;
    let settings: Value = parse_to_serde_value(text, &ParseOptions::default()).ok()?;
    settings.pointer(pointer)?.as_bool()
}
