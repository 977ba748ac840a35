//! Runs that have failed once, shrunk (`tests/known/model.txt`). Each is
//! named after what it showed. Where the model leaves it open who wrote a file's
//! content, the run says so: `-> NAME by SESSION`.

use touchmark_proto::files::FileHistory;
use touchmark_proto::{Reply, Request};

use crate::op::Script;
use crate::people::SESSIONS;
use crate::play::{self, Play, session};
use crate::runs;

#[test]
fn they_hold() {
    let all = runs::known::<Script>(include_str!("../known/model.txt"));
    assert!(all.len() > 30);
    for run in all {
        for (tick, turned, texts) in [(1, false, false), (1_000, true, false), (1, false, true)] {
            let script = Script {
                tick,
                turned,
                texts,
                ..run.script.clone()
            };
            let played = play::play(&script);
            let mut play = played.unwrap_or_else(|why| panic!("{}: {why:?}", run.name));
            for wanted in &run.result {
                let (name, _) = wanted.split_once(' ').unwrap();
                let by = writer(&mut play, name);
                let by = by.map_or("nobody".to_owned(), |who| who.to_string());
                assert_eq!(format!("{name} by {by}"), *wanted, "{}", run.name);
            }
        }
    }
}

/// Returns the session that is named as the author of a file's current content,
/// or `None`.
fn writer(play: &mut Play, name: &str) -> Option<usize> {
    let history = Request::FileHistory(FileHistory {
        path: name.into(),
        limit: None,
        before: None,
        sync: None,
        verify: None,
    });
    let Ok(Reply::FileHistory(told)) = play.ask(0, history) else {
        panic!("no history");
    };
    let author = told
        .versions
        .first()
        .and_then(|row| row.author.session.clone());
    author.and_then(|id| (0..SESSIONS).find(|who| session(*who) == id))
}
