//! The comparison of the ledger with the disk and with the history.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::PoisonError;
use std::time::Instant;

use serde_json::{Value, json};

use super::ledger::Written;
use super::trouble::Trouble;
use super::{FILES, Report, Stage, story};
use crate::user::pause;
use crate::wire::PATIENCE;
use crate::world::target;
use crate::{Client, World, children};

/// Compares everything, while no actor acts. Panics if a line of a user's or an
/// acknowledged write is lost.
pub(super) fn judge(world: &mut World, stage: &Stage, trouble: &mut Trouble<'_>) -> Report {
    let alone = stage.gate.write();
    let _alone = alone.unwrap_or_else(PoisonError::into_inner);
    trouble.free();
    let mut client = storing(world);
    let kept = kept(world, &mut client);
    // An undo of a command takes back a move that was made while it ran, also
    // if a user made it (UNDO-7). So a line may be under any name.
    let there = lines_below(&stage.workspace);
    let mut report = Report::default();
    let mut lost = Vec::new();
    for file in FILES {
        let mut entry = stage.ledger.of(file);
        let path = entry.name();
        report.lines += entry.lines.len();
        entry.lines.retain(|line| {
            let is_there = there.contains(line);
            if !is_there && kept.contains(line) {
                report.recovered += 1;
            } else if !is_there {
                lost.push(format!("{path}: {line}"));
            }
            is_there
        });
        let writes = std::mem::take(&mut entry.writes);
        report.writes += writes.len();
        let names = entry.names.iter();
        let recorded: BTreeSet<Written> = names
            .flat_map(|name| recorded(world, &mut client, name))
            .collect();
        for write in writes.difference(&recorded) {
            lost.push(format!("{path}: an acknowledged write: {write:?}"));
        }
    }
    if !lost.is_empty() {
        for line in lost.iter().take(3) {
            println!("{}", story::of_line(&mut client, line));
        }
        let acts = target().join(format!("soak-acts-{}", std::process::id()));
        fs::write(&acts, stage.acts()).expect("a file");
        // The round's file system ends with it.
        let copy = acts.with_extension("world");
        let mut copying = Command::new("cp");
        let base = world.workspace().parent().expect("a directory above");
        let copying = copying.arg("-a").arg(base).arg(&copy);
        let copied = children::start(copying).and_then(|mut copying| copying.wait());
        let (acts, copy) = (acts.display(), copy.display());
        panic!(
            "lost: {lost:#?}\nall acts: {acts}\nthe world: {copy} ({copied:?})\n{}",
            world.said()
        );
    }
    report
}

/// Waits until the daemon stores facts again, and has looked at everything. One
/// that was started on a full disk starts again for that, in the same process.
fn storing(world: &World) -> Client {
    let end = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < end, "nothing is stored:\n{}", world.said());
        let answer = Client::connect(world.socket()).and_then(|mut client| {
            let _synced = client.try_send("sync", &json!({}))?;
            Ok((client.try_call("status", &json!({}))?, client))
        });
        match answer {
            Ok((Ok(status), client)) if !status.to_string().contains("cannot be stored") => {
                return client;
            }
            Ok(_) | Err(_) => pause(5),
        }
    }
}

/// Sends a request, which must succeed.
fn ask(world: &mut World, client: &mut Client, method: &str, params: &Value) -> Value {
    match client.try_call(method, params) {
        Ok(Ok(result)) => result,
        other => panic!(
            "{method} {params}: {other:?}\n{}\n{}",
            world.said(),
            world.log()
        ),
    }
}

/// Returns the lines of all files in a directory, except git's.
fn lines_below(directory: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        match entry.file_type().expect("a type").is_dir() {
            true if entry.file_name() == ".git" => {}
            true => all.extend(lines_below(&entry.path())),
            false => {
                let text = fs::read_to_string(entry.path()).expect("a text");
                all.extend(text.lines().map(str::to_owned));
            }
        }
    }
    all
}

/// Returns the lines of all contents that were kept for their users.
fn kept(world: &mut World, client: &mut Client) -> BTreeSet<String> {
    let list = ask(world, client, "recovery/list", &json!({}));
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let files = items.iter().filter_map(|item| item["file"].as_str());
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    let lines = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.collect()
}

/// Returns the versions of a file that are on record as a session's.
fn recorded(world: &mut World, client: &mut Client, path: &str) -> BTreeSet<Written> {
    let mut all = BTreeSet::new();
    let mut before = None;
    loop {
        let params = json!({"path": path, "before": before});
        let page = ask(world, client, "file/history", &params);
        let versions = page["versions"].as_array().cloned().unwrap_or_default();
        for version in &versions {
            if let (Some(session), Some(hash)) = (
                version["author"]["session"].as_str(),
                version["hash"].as_str(),
            ) {
                let (session, hash) = (session.to_owned(), hash.to_owned());
                all.insert(Written { session, hash });
            }
        }
        before = Some(page["more"].clone()).filter(|more| !more.is_null());
        if before.is_none() {
            return all;
        }
    }
}
