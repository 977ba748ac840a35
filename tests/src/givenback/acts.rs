//! The steps by which authors move files, use git, and put back what was
//! removed.

use std::collections::BTreeSet;

use super::play::{Done, Kind, NAMES, Play, joined, quoted, typed, wrong};
use super::stage::second;
use super::step::{Edit, Git, Nature, Resolve, Save, Tool, Who};
use super::truth::{Act, Kept, Life, Way, bytes, identity, is_marker, tree};

impl Play {
    pub(super) fn commit(&mut self, who: Who, script: &str) {
        let (before, from) = (self.committed(), second());
        self.in_window(who);
        self.stage.run(who, script);
        let is_users = who == Who::User;
        let kept = Kept::Commit(from, second());
        // REV-2, step 2.6: what a new commit of the user's adds or removes; also
        // the removal of what no commit ever had.
        let (after, since) = (self.committed(), self.committed_at);
        for (line, known) in self.truth.lines.iter_mut().filter(|_| is_users) {
            let is_new = known.marks.last().is_some_and(|mark| mark.step > since);
            let is_gone = !before.contains(line) && !after.contains(line) && is_new;
            if before.contains(line) != after.contains(line) || is_gone {
                known.kept = kept;
            }
        }
        self.committed_at = self.truth.step;
    }

    pub(super) fn beside(&mut self, who: Who, edit: Edit, save: Save, writes: bool) {
        let Some((path, text)) = self.edited(edit, Who::User) else {
            return;
        };
        let other = self
            .path(edit.file + 1)
            .filter(|other| writes && *other != path);
        self.in_window(who);
        let line: Vec<String> = typed(who, self.truth.step, 1).collect();
        let truth = &mut self.truth;
        self.stage.window(who, "npm test", |stage| {
            let act = |by| Act {
                window: Some(who),
                ..Act::of(by, Way::Hand)
            };
            if let Some(other) = other {
                stage.sh(&format!("echo '{}' >> {}", line[0], quoted(&other)));
                truth.observe(tree(&bytes(stage.root())), act(who), &BTreeSet::new());
            }
            stage.save(save, &path, &text);
            truth.observe(tree(&bytes(stage.root())), act(Who::User), &BTreeSet::new());
        });
    }

    pub(super) fn moves(&mut self, who: Who, file: usize, name: usize, by_git: bool) {
        let Some(from) = self.path(file) else {
            return;
        };
        let to = NAMES[name % NAMES.len()].to_owned();
        if self.truth.tree.contains_key(&to) {
            return;
        }
        let git = if by_git { "git " } else { "" };
        let (old, new) = (quoted(&from), quoted(&to));
        let script =
            format!("mkdir -p \"$(dirname {new})\"; {git}mv {old} {new} || mv {old} {new}");
        self.in_window(who);
        self.stage.run(who, &script);
        self.truth.moves(who, &from, &to);
        self.acted(who, Way::Hand);
    }

    pub(super) fn moves_directory(&mut self, who: Who, directory: usize) {
        let above = |path: &String| path.split_once('/').map(|(above, _)| above.to_owned());
        let all: BTreeSet<String> = self.truth.tree.keys().filter_map(above).collect();
        let Some(from) = all.iter().nth(directory % all.len().max(1)) else {
            return;
        };
        let to = format!("moved{}", self.truth.step);
        self.in_window(who);
        self.stage.run(who, &format!("mv {from} {to}"));
        let inside = format!("{from}/");
        let paths = self
            .truth
            .tree
            .keys()
            .filter(|path| path.starts_with(&inside));
        for path in paths.cloned().collect::<Vec<_>>() {
            let moved = format!("{to}/{}", &path[inside.len()..]);
            self.truth.moves(who, &path, &moved);
        }
        self.acted(who, Way::Hand);
    }

    pub(super) fn git(&mut self, who: Who, file: usize, git: Git) {
        let Some(path) = self.path(file) else {
            return;
        };
        let script = format!("f={}; {}", quoted(&path), git.script());
        if git.nature() == Nature::Commits {
            return self.commit(who, &script);
        }
        let committed = self.committed();
        self.in_window(who);
        self.stage.run(who, &script);
        if !self.is_unmerged().is_empty() {
            self.over = true;
            return;
        }
        let way = match git.nature() {
            Nature::Decides => Way::Decided,
            _ => Way::Carried,
        };
        let window = who.session().map(|_| who);
        self.look(
            Act {
                window,
                ..Act::of(who, way)
            },
            &committed,
        );
        if git == Git::ResetBack {
            // REV-2: a commit that is taken back keeps nothing.
            self.truth
                .lines
                .values_mut()
                .for_each(|known| known.kept = Kept::Maybe);
        }
    }

    /// A merge that may conflict, and its resolution (step 2.5).
    pub(super) fn clash(&mut self, who: Who, undo: Option<Who>, resolve: Resolve, by: Who) -> Done {
        self.commit(who, "git add -A && git commit -q -m before");
        let committed = self.committed();
        self.in_window(who);
        self.stage.run(who, "git merge -q --no-edit clash");
        let unmerged = self.is_unmerged();
        let way = Way::Carried;
        let window = who.session().map(|_| who);
        self.look(
            Act {
                window,
                ..Act::of(who, way)
            },
            &committed,
        );
        if unmerged.is_empty() {
            return Ok(());
        }
        let present = bytes(self.stage.root());
        if let Some(whom) = undo {
            self.undo(whom, false, &unmerged)?;
            let now = bytes(self.stage.root());
            for path in &unmerged {
                if now.get(path) != present.get(path) {
                    let what = format!("{path} is unmerged, and an undo has changed it");
                    return wrong(Kind::Unmerged, what);
                }
            }
        }
        for (n, path) in unmerged.iter().enumerate() {
            let Some(text) = self.stage.text(path) else {
                continue;
            };
            let resolved = resolution(&text, resolve, typed(by, self.truth.step, n + 1).skip(n));
            self.windows.remove(&self.truth.step);
            self.writes(by, Tool::Hook, path, &resolved);
        }
        self.acted(by, Way::Hand);
        self.commit(by, "git add -A && git commit -q --no-edit");
        Ok(())
    }

    pub(super) fn retype(&mut self, who: Who, line: usize, tool: Tool) {
        let there: BTreeSet<&String> = self.truth.tree.values().flatten().collect();
        let lines = self.truth.lines.iter();
        let away = lines.filter(|(line, known)| {
            !there.contains(line)
                && !known.marks.is_empty()
                && self.truth.names.values().any(|f| *f == known.file)
        });
        let away: Vec<_> = away.collect();
        let Some((line, known)) = away.get(line % away.len().max(1)) else {
            return;
        };
        let names = self.truth.names.iter();
        let Some((path, _)) = { names }.find(|(_, file)| **file == known.file) else {
            return;
        };
        let text = self.stage.text(path).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let around = known
            .marks
            .last()
            .map(|mark| mark.around.clone())
            .unwrap_or_default();
        let above = around.iter().position(|other| other == *line).unwrap_or(0);
        let above = around[..above].iter().rev();
        let at = { above }.find_map(|other| lines.iter().position(|l| identity(l) == other));
        lines.insert(at.map_or(0, |at| at + 1), (*line).clone());
        let path = path.clone();
        self.writes(who, tool, &path, &joined(&lines));
        self.acted(who, Way::Hand);
    }

    pub(super) fn returns(&mut self, who: Who, file: usize) {
        let files = self.truth.files.values();
        let is_gone = |life: &&Life| {
            let name = life.names.last();
            life.removed.is_some() && name.is_some_and(|name| !self.truth.tree.contains_key(name))
        };
        let gone: Vec<_> = files.filter(is_gone).collect();
        let Some(life) = gone.get(file % gone.len().max(1)) else {
            return;
        };
        let (Some(path), Some(lines)) = (life.names.last().cloned(), life.past.last().cloned())
        else {
            return;
        };
        let there: BTreeSet<&String> = self.truth.tree.values().flatten().collect();
        if lines.iter().any(|line| there.contains(line)) {
            return;
        }
        self.writes(who, Tool::Hook, &path, &joined(&lines));
        self.acted(who, Way::Decided);
    }
}

/// Returns a text with its conflict resolved. `anew`: the lines that are typed
/// for it.
fn resolution(text: &str, resolve: Resolve, anew: impl Iterator<Item = String>) -> String {
    let (mut lines, mut side, mut anew) = (Vec::new(), None, anew);
    for line in text.lines() {
        let marker = is_marker(line).then(|| line.as_bytes()[0]);
        match (marker, side, resolve) {
            (Some(b'<'), ..) => {
                side = Some(Resolve::Ours);
                if matches!(resolve, Resolve::Anew) {
                    lines.extend(anew.by_ref());
                }
            }
            (Some(b'='), ..) => side = Some(Resolve::Theirs),
            (Some(b'>'), ..) => side = None,
            (Some(_), ..) => side = Some(Resolve::Anew),
            (None, None, _)
            | (None, Some(Resolve::Ours), Resolve::Ours | Resolve::Both)
            | (None, Some(Resolve::Theirs), Resolve::Theirs | Resolve::Both) => {
                lines.push(line.to_owned());
            }
            _ => {}
        }
    }
    joined(&lines)
}
