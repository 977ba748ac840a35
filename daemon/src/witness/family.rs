//! The processes of a witnessed command, as far as they have marked anything.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use touchmark_engine::Marker;
use touchmark_proto::Millis;
use touchmark_witness::{Mark, Process, ProcessId};

/// Programs that a person types into, besides agents.
const TYPED: [&str; 24] = [
    "code",
    "codium",
    "emacs",
    "emacsclient",
    "fresh",
    "gedit",
    "helix",
    "hx",
    "joe",
    "kak",
    "kate",
    "mcedit",
    "micro",
    "nano",
    "ne",
    "nvim",
    "pico",
    "screen",
    "tmux",
    "vi",
    "view",
    "vim",
    "vim.basic",
    "zed",
];

/// Programs that a person types into if they are started without a script.
const SHELLS: [&str; 16] = [
    "ash", "bash", "dash", "fish", "gdb", "irb", "ksh", "lua", "node", "nu", "perl", "python",
    "python3", "sh", "sqlite3", "zsh",
];

/// The most links between a process and the command. A longer chain is none.
const DEEPEST: usize = 256;

/// The processes, each as it was recorded last.
#[derive(Default)]
pub(super) struct Family {
    /// The names of agents' programs.
    agents: Vec<&'static str>,
    /// The command itself.
    target: Option<ProcessId>,
    known: HashMap<u32, Member>,
}

struct Member {
    process: ProcessId,
    /// The name of its program; empty if it is not known.
    program: String,
    parent: u32,
    is_typed: bool,
}

impl Family {
    /// Returns a family without processes. `agents` are the names of agents'
    /// programs.
    pub(super) fn new(agents: &[&'static str]) -> Self {
        Self {
            agents: agents.to_vec(),
            ..Self::default()
        }
    }

    /// Notes which process is the command.
    pub(super) fn begins_with(&mut self, target: ProcessId) {
        self.target = Some(target);
    }

    /// Notes a process.
    pub(super) fn meet(&mut self, process: &Process) {
        let member = Member {
            process: process.process,
            program: name(&process.program).to_owned(),
            parent: process.parent,
            is_typed: self.is_typed(process),
        };
        self.known.insert(process.process.pid, member);
    }

    /// Returns the name of a process's program; `None` if it is not known.
    pub(super) fn program(&self, process: ProcessId) -> Option<&str> {
        let member = self.known.get(&process.pid)?;
        (member.process == process).then_some(&*member.program)
    }

    /// Returns what is to be known of the process that made a mark. `None` if it
    /// does not descend from the command any more: its parent has exited.
    pub(super) fn marker(&self, mark: &Mark) -> Option<Marker> {
        let mut next = self.known.get(&mark.process.pid)?;
        if next.process != mark.process {
            return None;
        }
        let mut typed: Option<Millis> = None;
        for _ in 0..DEEPEST {
            if next.is_typed {
                typed = typed.max(Some(started(mark, next.process)));
            }
            if Some(next.process) == self.target {
                return Some(Marker {
                    began: started(mark, mark.process),
                    typed,
                });
            }
            next = self.known.get(&next.parent)?;
        }
        None
    }

    /// Returns whether a person may type into a process.
    fn is_typed(&self, process: &Process) -> bool {
        let mut words = process.command_line.split(|byte| *byte == 0);
        let called = words.next().unwrap_or_default();
        // A login shell's name begins with `-`.
        let called = called.strip_prefix(b"-").unwrap_or(called);
        let script = { words }.find(|word| !word.is_empty() && !word.starts_with(b"-"));
        let is_program = |name| TYPED.contains(&stem(name)) || self.agents.contains(&stem(name));
        let names = [&*process.program, called];
        let is_shell = names.iter().any(|name| SHELLS.contains(&stem(name)));
        names.into_iter().any(is_program) || is_shell && script.is_none_or(is_program)
    }
}

/// Returns when a process was started, in milliseconds since 1970. The mark has
/// both clocks.
fn started(mark: &Mark, process: ProcessId) -> Millis {
    let second = rustix::param::clock_ticks_per_second().max(1);
    let started = process.started.saturating_mul(1_000) / second;
    let age = (mark.boottime / 1_000_000).saturating_sub(started);
    (mark.realtime / 1_000_000).saturating_sub(age)
}

/// Returns a program's name without its directory; empty if it is not UTF-8.
fn name(path: &[u8]) -> &str {
    let name = Path::new(OsStr::from_bytes(path)).file_name();
    name.and_then(OsStr::to_str).unwrap_or_default()
}

/// Returns a program's name without its directory and without an ending of
/// scripts.
fn stem(path: &[u8]) -> &str {
    let name = name(path);
    let endings = [".js", ".mjs", ".cjs", ".py"];
    let mut stems = endings
        .iter()
        .filter_map(|ending| name.strip_suffix(ending));
    stems.next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_witness::{Identity, Operation};

    use super::*;

    fn process(pid: u32, parent: u32, command_line: &str) -> Process {
        let words: Vec<&str> = command_line.split(' ').collect();
        Process {
            process: ProcessId {
                pid,
                started: u64::from(pid),
            },
            parent,
            program: words[0].into(),
            command_line: (words.join("\0") + "\0").into(),
        }
    }

    fn mark(pid: u32) -> Mark {
        Mark {
            realtime: 5_000_000_000,
            boottime: 2_000_000_000,
            process: ProcessId {
                pid,
                started: u64::from(pid),
            },
            operation: Operation::Opened,
            directory: Identity::default(),
            path: Vec::new(),
            name: Vec::new(),
            object: None,
            chance: touchmark_witness::Chance::Good,
            before: None,
            is_watched: false,
        }
    }

    #[test]
    fn a_process_descends_from_the_command() {
        let mut family = Family::default();
        family.meet(&process(10, 1, "/bin/sh -c make"));
        assert_eq!(family.marker(&mark(10)), None);
        family.begins_with(ProcessId {
            pid: 10,
            started: 10,
        });
        family.meet(&process(11, 10, "make"));
        let marker = family.marker(&mark(11)).unwrap();
        assert_eq!(
            marker,
            Marker {
                began: 3_110,
                typed: None
            }
        );
        // Its parent has exited.
        family.meet(&process(11, 1, "make"));
        assert_eq!(family.marker(&mark(11)), None);
        assert_eq!(family.marker(&mark(12)), None);
    }

    #[test]
    fn what_a_person_types_into_counts_for_what_is_below() {
        let mut family = Family::default();
        family.begins_with(ProcessId {
            pid: 10,
            started: 10,
        });
        family.meet(&process(10, 1, "/bin/bash"));
        family.meet(&process(11, 10, "git commit"));
        family.meet(&process(12, 11, "/usr/bin/vim f"));
        family.meet(&process(13, 10, "sh -c true"));
        let typed = |pid| family.marker(&mark(pid)).unwrap().typed;
        assert_eq!(typed(11), Some(3_100));
        assert_eq!(typed(12), Some(3_120));
        assert_eq!(typed(13), Some(3_100));
    }

    #[test]
    fn a_shell_with_a_script_is_not_typed_into() {
        let family = Family::new(&["agent"]);
        let typed = |line: &str| family.is_typed(&process(1, 0, line));
        for line in [
            "bash",
            "bash -i",
            "-zsh",
            "vim f",
            "/usr/bin/python3",
            "agent --resume",
            "node /lib/node_modules/agent/bin/agent.js",
        ] {
            assert!(typed(line), "{line}");
        }
        for line in [
            "sh -c x",
            "bash build.sh",
            "python3 -m json.tool",
            "node build.js",
            "make",
        ] {
            assert!(!typed(line), "{line}");
        }
    }
}
