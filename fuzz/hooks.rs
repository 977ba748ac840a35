//! The bodies of the fuzz targets `hooks`, `patches` and `shown`: events of all
//! agents, patches and the commands that have one, and outputs of commands. They
//! are a module of the daemon's, since they call what is private there.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use touchmark_proto::LineRange;

use super::happened::{Change, Tool, Verdict, What, Writing};
use super::named::{self, Place};
use super::shown::{Held, plain, seen};
use super::{Agent, Unanswered, agent, edits, patch, place, shell_patch};
use crate::fuzzed::{parts, scratch};

/// The most that a result may have beyond the text and what replaces parts of
/// it.
const GROWTH: usize = 4 << 20;

/// Reads an event by every agent's row. No step may panic. A stored event must
/// be read back unchanged, a hook's output must be JSON, and the result of an
/// edit must be bounded.
pub fn hooks(bytes: &[u8]) {
    let Ok(input) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    for hook in Agent::all() {
        if let Some(place) = place(hook.name, &input) {
            assert!(place.is_absolute(), "{}: {place:?}", hook.name);
        }
        let agent = hook.speaker(&input);
        let agent::Heard { happened, odd, .. } = agent.read(&input);
        if let Some(odd) = odd {
            // It is remembered, and shown in the log.
            assert!(format!("{odd:?}").len() < 5_000 && odd.to_string().len() < 2_000);
        }
        let Some(happened) = happened else { continue };
        assert_eq!(agent.session(&input).as_ref(), Some(&happened.session));
        let kept = Unanswered::of(hook.name, &input, 7).unwrap();
        let line = serde_json::to_string(&kept).unwrap();
        assert!(!line.contains('\n'));
        let back: Unanswered = serde_json::from_str(&line).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
        let raw = match &happened.what {
            What::Before { tool, .. } => {
                changes(tool);
                Value::Null
            }
            What::After { output, .. } | What::Failed { output, .. } => output.raw.clone(),
            _ => Value::Null,
        };
        for verdict in [
            Verdict::Nothing,
            Verdict::Deny(line.clone()),
            Verdict::Ask(line.clone()),
            Verdict::Tell(line.clone()),
            Verdict::Replace(raw),
        ] {
            let printed = agent.print(&happened.event, verdict, Some(line.clone()));
            let json: Value = serde_json::from_str(&printed.stdout).unwrap();
            assert!(json.is_object());
        }
    }
}

/// Computes what a tool's changes make of a file that has what they replace.
fn changes(tool: &Tool) {
    let Tool::Write { files, .. } = tool else {
        return;
    };
    for Writing { change, .. } in files {
        let text = change.quotes().join("\n");
        let said = match change {
            Change::Whole(text) => text.len(),
            Change::Replace(parts) => parts.iter().map(|part| part.new.len()).sum(),
            _ => text.len(),
        };
        for content in edits::contents(change, Some(text.as_bytes())) {
            assert!(content.len() <= text.len() + said + GROWTH);
        }
    }
}

/// Parses a patch, alone and as a shell's command, and applies it to a file. A
/// result has no more than the file and the patch. In quotes or in a
/// here-document, a patch is the same as alone.
pub fn patches(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let [file, patch] = parts(&text);
    let parsed = patch::parse(patch);
    for Writing { path, change } in parsed.iter().flatten() {
        assert!(!path.is_empty());
        if let Change::Patch { hunks, .. } = change
            && let Some(result) = patch::apply(file, hunks)
        {
            assert!(result.len() <= file.len() + patch.len() + 1);
        }
    }
    shell_patch::writings(patch);
    let files = parsed.filter(|files| !files.is_empty());
    let quoted = patch.replace('\'', r"'\''");
    let by_word = shell_patch::writings(&format!("apply_patch '{quoted}'"));
    assert_eq!(by_word, files);
    if !patch.contains('\r') && !patch.contains("EOF") {
        let command = format!("cd a && apply_patch <<'EOF'\n{patch}\nEOF");
        let by_document = shell_patch::writings(&command);
        let names = |files: Option<Vec<Writing>>| -> Option<Vec<PathBuf>> {
            Some(files?.iter().map(|one| PathBuf::from(&one.path)).collect())
        };
        let below: Option<Vec<PathBuf>> = names(files);
        let below = below.map(|all| {
            all.iter()
                .map(|one| PathBuf::from(format!("a/{}", one.display())))
                .collect()
        });
        assert_eq!(names(by_document), below);
    }
}

/// Makes a workspace with a few files.
fn fill(root: &Path) {
    for name in ["a.txt", "b c.txt", "src/lib.rs", ".hidden", "src/[x].rs"] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text\n").unwrap();
    }
    fs::write(root.join(".gitignore"), "*.rs\n").unwrap();
}

/// Finds the lines of two files that the output of a command shows, one of which
/// it has changed, and the files that command and output name. The lines are
/// ranges in their order within the file, and the files are the workspace's.
pub fn shown(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let [command, before, now, output] = parts(&text);
    let root = scratch("shown", fill);
    let place = Place {
        root: &root,
        cwd: &root.join("src"),
        trusted: Path::new("/nonexistent"),
    };
    let known = named::in_command(place, command);
    let output = plain(output);
    let found = named::in_output(place, command, &output, &known);
    for files in [&known, &found] {
        assert!(files.len() <= named::FILES);
        for file in files {
            assert!(file.path.starts_with(&**root) && file.path.is_file());
        }
    }
    let names = ["a.txt", "src/lib.rs"].map(|name| [name.to_owned()]);
    let held = [(before, now), (now, now)];
    let held = names.iter().zip(held);
    let held: Vec<Held<'_>> = held
        .map(|(names, (before, now))| Held { names, before, now })
        .collect();
    for shortest in [1, named::shortest(command)] {
        for (seen, held) in seen(&output, &held, shortest).iter().zip(&held) {
            let text = if seen.of_now { held.now } else { held.before };
            let mut next = 1;
            for LineRange { start, end } in &seen.ranges {
                assert!(next <= *start && start <= end);
                next = end + 2;
            }
            assert!(next as usize <= text.lines().count() + 2);
        }
    }
}

/// Takes the events that a hook has left. Each is stored as it was, and none
/// is left then.
pub(crate) fn unanswered(bytes: &[u8]) {
    let at = scratch("unanswered", |_| ());
    fs::write(at.join("unanswered"), bytes).unwrap();
    let lines = super::waiting(&at) + 1;
    let taken = super::unanswered::take(&at).unwrap_or_default();
    assert!(taken.len() <= lines);
    for one in taken {
        let line = serde_json::to_string(&one).unwrap();
        let back: Unanswered = serde_json::from_str(&line).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
    }
}
