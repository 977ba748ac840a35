//! Hooks and MCP servers together, added in every order and removed to the
//! byte.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use serde_json::json;

use super::{TEXTS, parsed};
use crate::daemon::agent::Addition;
use crate::settings::file::BYTE_ORDER_MARK;
use crate::settings::hooks::Hooks;
use crate::settings::part::{Part, Which};
use crate::settings::plan::changed;
use crate::settings::record::Record;
use crate::settings::server::Server;
use crate::settings::{Agent, Direction};

const CODEX: &[&str] = &[
    "",
    "\n",
    "# nothing yet",
    "model = \"x\"\n",
    "model = \"x\"",
    "# mine\n[projects.\"/w\"]\ntrust_level = \"trusted\" # yes\n\n\n",
    "[mcp_servers.other]\ncommand = \"y\"\nargs = [\n  \"a\", # one\n]\n[mcp_servers.other.env]\nA = \"b\"",
    "mcp_servers.other.command = \"y\"\n",
    "[[list]]\na = 1\n\n[[list]]\na = 2\n\t\n",
];

/// A file's content, with its record.
#[derive(Clone, Debug, PartialEq)]
struct Kept(Option<Vec<u8>>, Option<Record>);

impl Kept {
    fn then(&self, parts: &[Part], action: Direction, which: Which) -> Self {
        let (before, record) = (self.0.as_deref(), self.1.clone());
        let change = changed(Path::new("/f"), parts, action, which, before, record).unwrap();
        Self(change.after, change.record)
    }

    fn text(&self) -> String {
        let bytes = self.0.clone().unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap();
        text.trim_start_matches('\u{feff}').to_owned()
    }

    /// The agent rewrites the file.
    fn with(&self, text: &str) -> Self {
        Self(Some(text.as_bytes().to_vec()), self.1.clone())
    }
}

/// Returns what an agent's files may have: its hooks, its servers, or both in
/// one.
fn files(agent: Agent) -> Vec<Vec<Part>> {
    let Addition::Hooks(_) = agent.settings().adds else {
        return Vec::new();
    };
    let hooks = Part::Hooks(Hooks::of(agent, "touchmark"));
    let Some(servers) = &agent.settings().servers else {
        return vec![vec![hooks]];
    };
    let server = Part::Server(Server::of(servers.entry, PathBuf::new(), "touchmark"));
    match agent.settings().project == servers.project {
        true => vec![vec![hooks, server]],
        false => vec![vec![hooks], vec![server]],
    }
}

fn is_table(parts: &[Part]) -> bool {
    matches!(parts, [Part::Server(server)] if server.is_table())
}

/// Returns the texts that such a file may have, with each kind of line end,
/// with and without a byte order mark.
fn texts(parts: &[Part]) -> Vec<Vec<u8>> {
    let texts = if is_table(parts) { CODEX } else { TEXTS };
    let mut all = Vec::new();
    for text in texts {
        let text = text.replace("EVENT", "Stop");
        let dos = text.replace('\n', "\r\n");
        all.push([BYTE_ORDER_MARK, dos.as_bytes()].concat());
        all.extend([dos, text].map(String::into_bytes));
    }
    all
}

#[test]
fn whatever_was_put_in_in_whatever_order_comes_out_to_the_byte() {
    use Direction::{Install, Uninstall};
    let (all, hooks) = (Which::ALL, Which::HOOKS);
    let orders: &[&[(Direction, Which)]] = &[
        &[(Install, all), (Uninstall, all)],
        &[
            (Install, hooks),
            (Install, all),
            (Install, all),
            (Uninstall, all),
        ],
        &[(Install, all), (Uninstall, hooks), (Uninstall, all)],
        &[
            (Install, all),
            (Uninstall, hooks),
            (Install, hooks),
            (Uninstall, all),
        ],
    ];
    let mut tried = 0;
    for parts in Agent::value_variants()
        .iter()
        .flat_map(|&agent| files(agent))
    {
        // A single part has only one order.
        let orders = if parts.len() == 1 {
            &orders[..1]
        } else {
            orders
        };
        for before in texts(&parts).into_iter().map(Some).chain([None]) {
            for order in orders {
                let begin = Kept(before.clone(), None);
                let mut now = begin.clone();
                for &(action, which) in *order {
                    now = now.then(&parts, action, which);
                }
                let told = String::from_utf8_lossy(begin.0.as_deref().unwrap_or_default());
                assert_eq!(now.0, begin.0, "{order:?} of {told:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn what_the_agent_writes_in_between_stays() {
    for parts in Agent::value_variants()
        .iter()
        .flat_map(|&agent| files(agent))
    {
        let into = |text: &str| {
            Kept(None, None)
                .with(text)
                .then(&parts, Direction::Install, Which::ALL)
        };
        let out = |kept: Kept| kept.then(&parts, Direction::Uninstall, Which::ALL);
        if is_table(&parts) {
            // Codex appends tables, and one below the entry.
            let with = into("model = \"x\"");
            let more = "[projects.\"/w\"]\ntrust_level = \"trusted\"\n";
            let below = "\n[mcp_servers.touchmark.tools.grep]\nmode = \"a\"\n";
            let grown = format!("{}{more}{below}", with.text());
            let left = out(with.with(&grown)).text();
            assert_eq!(left, format!("model = \"x\"\n{more}"));
            // Codex also rewrites the whole file in its own formatting.
            let anew = with.text().replace(", ", ",").replace(" = ", "=");
            assert_eq!(out(with.with(&anew)).text(), "model=\"x\"\n");
            continue;
        }
        let with = into("{\n  // mine\n  \"model\": \"x\",\n}\n");
        let mut value = parsed(&with.text());
        value["model"] = json!("y");
        value["new"] = json!([1]);
        // Formatted as `JSON.stringify` does.
        let anew = serde_json::to_string_pretty(&value).unwrap();
        let left = out(with.with(&anew)).text();
        let expected = serde_json::to_string_pretty(&json!({"model": "y", "new": [1]})).unwrap();
        assert_eq!(parsed(&left), parsed(&expected), "{left}");
        // Only the entry is removed: in the agent's own formatting the text is
        // as before.
        assert_eq!(left, expected);
    }
}

#[test]
fn a_server_of_the_users_own_stays() {
    for parts in Agent::value_variants()
        .iter()
        .flat_map(|&agent| files(agent))
    {
        let within = match parts.last() {
            Some(Part::Server(server)) if !server.is_table() => server.within(),
            Some(Part::Server(_)) => "",
            _ => continue,
        };
        let theirs = match within {
            "" => "[mcp_servers.touchmark]\ncommand = \"touchmark\"\nargs = [\"mcp\"]\n".to_owned(),
            within => json!({within: {"touchmark": {"command": "touchmark", "args": ["mcp"]}}})
                .to_string(),
        };
        let begin = Kept(None, None).with(&theirs);
        let with = begin.then(&parts, Direction::Install, Which::ALL);
        assert!(
            with.text().contains(theirs.trim_end_matches('}')),
            "{}",
            with.text()
        );
        let left = with.then(&parts, Direction::Uninstall, Which::ALL);
        assert_eq!(left.text(), theirs);
        // An entry that was touchmark's, and now runs something else.
        let ours = Kept(None, None).then(&parts, Direction::Install, Which::ALL);
        let changed = ours.text().replace("\"mcp\"]", "\"other\"]");
        let left = ours
            .with(&changed)
            .then(&parts, Direction::Uninstall, Which::ALL);
        assert!(left.text().contains("other"), "{}", left.text());
    }
}

#[test]
fn a_table_that_is_closed_is_left_to_the_user() {
    let codex = Agent::from_str("codex", false).unwrap();
    let parts = files(codex).remove(1);
    let refused = |text: &str| {
        let bytes = Some(text.as_bytes());
        let (install, all) = (Direction::Install, Which::ALL);
        changed(Path::new("/f"), &parts, install, all, bytes, None)
            .unwrap_err()
            .to_string()
    };
    let said = refused("a = 1\nmcp_servers = { other = { command = \"x\" } }\n");
    assert!(
        said.contains("line 2") && said.contains("by hand"),
        "{said}"
    );
    assert!(refused("a = 1\nb = \n").contains("line 2"));
}
