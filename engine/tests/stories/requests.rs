//! Steps with a request of any method, and with limits.

use touchmark_proto::{Change, RelPath, Reply, Request};

use super::stage::{Stage, changes, config};

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
        Reply::ModifiedTake(taken) => list(&taken.changes, taken.pending),
        Reply::ModifiedList(listed) => list(&listed.changes, listed.pending),
        other => panic!("{other:?}"),
    };
    let pending = pending.into_iter().flatten();
    pending.fold(text, |text, path| format!("{text}, {path} pending"))
}
