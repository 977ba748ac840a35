//! Steps with a request of any method, and with limits.

use touchmark_proto::{Change, RelPath, Reply, Request};

use super::stage::{Stage, changes, config, play};

impl Stage {
    /// Plays a step with a request.
    pub(super) fn request(&mut self, words: &[&str]) -> String {
        match *words {
            ["limits", ref limits @ ..] => {
                let mut config = config();
                for (name, most) in limits.iter().filter_map(|limit| limit.split_once('=')) {
                    let limit = match name {
                        "sessions" => &mut config.sessions,
                        "tracked" => &mut config.tracked,
                        "own_files" => &mut config.own_files,
                        "marked" => &mut config.marked,
                        "windows" => &mut config.windows,
                        "own_windows" => &mut config.own_windows,
                        _ => panic!("not a limit: {name}"),
                    };
                    *limit = most.parse().unwrap();
                }
                self.engine.reconfigure(config);
                String::new()
            }
            ["counts"] => {
                let state = self.engine.state();
                let (sessions, paths) = (state.sessions.len(), state.paths.len());
                format!("{sessions} sessions, {paths} paths")
            }
            ["answer"] => {
                let asked = self.asked.take().unwrap();
                answered(self.answer(asked).unwrap())
            }
            [method, ref params @ ..] if method.contains('/') || method == "sync" => {
                let params = params.join(" ").replace("LONG", &"x".repeat(257));
                let params = serde_json::from_str(&params).unwrap();
                let request = self.send(Request::from_json(method, params).unwrap());
                if !self.answers.contains_key(&request) {
                    self.asked = Some(request);
                    return "waits".into();
                }
                match self.answer(request) {
                    Ok(_) => "ok".into(),
                    Err(error) => {
                        let limit = error.data.limit.map(|limit| format!(" {limit}"));
                        assert!(limit.is_none() || !error.hint.is_empty(), "{error}");
                        error.code.name().to_owned() + &limit.unwrap_or_default()
                    }
                }
            }
            _ => panic!("not understood: {words:?}"),
        }
    }
}

/// Returns an answer, and the paths that it does not cover.
fn answered(reply: Reply) -> String {
    let list = |all: &[Change], pending: Option<Vec<RelPath>>| (changes(all), pending);
    let (text, pending) = match reply {
        Reply::FileStatus(states) => {
            let files = states.files.iter();
            let states_of: Vec<String> = files.map(|file| format!("{:?}", file.state)).collect();
            (states_of.join(" ").to_lowercase(), states.pending)
        }
        Reply::FileReadText(read) => (read.text.unwrap_or_default(), None),
        Reply::ModifiedTake(taken) => list(&taken.changes, taken.pending),
        Reply::ModifiedList(listed) => list(&listed.changes, listed.pending),
        other => panic!("{other:?}"),
    };
    let pending = pending.into_iter().flatten();
    pending.fold(text, |text, path| format!("{text}, {path} pending"))
}

/// An editor removes a file and restores it. A request about that file gets the
/// answer that it is gone. A request about another file, or one that does not
/// cover contents, does not break up the save (ATTR-12).
#[test]
fn what_is_asked_of_one_file_cuts_no_save_of_another_short() {
    let versions = |asked: &str| {
        let history = play(&[
            "quietly write a one",
            "quietly write b one",
            "s reads a",
            "t reads b",
            r#"edit/begin {"session": "s", "files": [{"path": "a"}], "callId": "c"}"#,
            "quietly remove b",
            "hint removed b",
            asked,
            "quietly write b two",
            "hint closed b",
            "history b",
        ]);
        history.last().unwrap().split("; ").count()
    };
    for about_a in [
        r#"file/status {"session": "s", "paths": ["a"]}"#,
        r#"file/status {"session": "s"}"#,
        r#"file/snapshot {"path": "a"}"#,
        r#"file/history {"path": "a"}"#,
        r#"edit/begin {"session": "s", "files": [{"path": "a"}]}"#,
        r#"edit/commit {"session": "s", "callId": "c"}"#,
        r#"edit/commit {"session": "s", "files": [{"path": "a"}]}"#,
        r#"edit/abort {"session": "s", "callId": "c"}"#,
        r#"file/write {"session": "s", "path": "a", "text": "new"}"#,
        r#"file/edit {"session": "s", "path": "a", "oldString": "x", "newString": "y"}"#,
        r#"modified/list {"session": "s"}"#,
        r#"modified/take {"session": "s"}"#,
        r#"retention/rank {"session": "s", "step": 1, "maxAge": 1, "items":
            [{"id": "1", "tool": "read_file", "path": "a", "step": 1}]}"#,
    ] {
        assert_eq!(versions(about_a), 1, "{about_a}");
    }
    // The steps can show a broken up save: these requests cover the file and end
    // the save.
    for about_b in [
        r#"file/status {"session": "t", "paths": ["b"]}"#,
        r#"modified/list {"session": "t"}"#,
        r#"command/begin {"session": "s"}"#,
        "sync {}",
    ] {
        assert_eq!(versions(about_b), 2, "{about_b}");
    }
}
