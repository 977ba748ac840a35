//! REV: what agents changed stays in a queue until the user has reviewed it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use touchmark_tests::process::until;
use touchmark_tests::user::pause;
use touchmark_tests::{Client, Session, World, text, user};

fn ten() -> String {
    (1..=10).map(|n| format!("line {n}\n")).collect()
}

fn on_disk(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

fn edit(world: &World, agent: &mut Session, path: &str, old: &str, new: &str) {
    let now = on_disk(world, path);
    let params = json!({"path": path, "text": now.replace(old, new), "force": true});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
}

fn queue(client: &mut Client) -> Vec<Value> {
    let listed = client.ok("review/list", json!({}));
    listed["hunks"].as_array().unwrap().clone()
}

/// Formats hunks as `path before>after`, without line ends.
fn told(queue: &[Value]) -> Vec<String> {
    let flat = |hunk: &Value, field| text(hunk, field).replace('\n', "|");
    let told = queue.iter().map(|hunk| {
        format!(
            "{} {}>{}",
            text(hunk, "path"),
            flat(hunk, "before"),
            flat(hunk, "after")
        )
    });
    told.collect()
}

fn named(hunk: &Value) -> Value {
    json!({"hunks": [{"path": hunk["path"], "id": hunk["id"]}]})
}

#[test]
fn rev1_a_change_stays_in_the_queue_until_it_is_kept_undone_or_committed() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    first_commit(&world);
    edit(&world, &mut agent, "f", "line 2\n", "two\n");
    edit(&world, &mut agent, "f", "line 5\n", "five\n");
    edit(&world, &mut agent, "f", "line 8\n", "eight\n");
    let now = on_disk(&world, "f");
    user::replace(&world.path("f"), &format!("mine\n{now}"));
    let all = queue(&mut client);
    assert_eq!(
        told(&all),
        ["f line 2|>two|", "f line 5|>five|", "f line 8|>eight|"]
    );
    assert_eq!(all[0]["lines"], json!({"start": 3, "end": 3}));
    assert_eq!(all[0]["authors"][0]["session"], "a");

    assert_eq!(client.ok("review/keep", named(&all[0]))["kept"], 1);
    // A save elsewhere changes no name.
    user::replace(&world.path("f"), &format!("mine too\nmine\n{now}"));
    let undone = client.ok("review/undo", named(&all[1]));
    assert_eq!(undone["files"][0]["outcome"], "undone", "{undone}");
    let left = now.replace("five", "line 5");
    assert_eq!(on_disk(&world, "f"), format!("mine too\nmine\n{left}"));
    assert_eq!(told(&queue(&mut client)), ["f line 8|>eight|"]);
    // What is not as it was listed is not touched.
    let before = on_disk(&world, "f");
    client.refused("review/undo", named(&all[1]), "notFound");
    user::replace(&world.path("f"), &before.replace("eight", "8"));
    client.refused("review/undo", named(&all[2]), "notFound");
    user::replace(&world.path("f"), &before);

    // What is kept is known after a restart. A daemon that is killed may not
    // have written yet what files held (KEEP-3).
    world.stop();
    world.start();
    let mut client = world.client();
    assert_eq!(told(&queue(&mut client)), ["f line 8|>eight|"]);
    user::git(world.workspace(), &["commit", "-q", "-a", "-m", "second"]);
    assert_eq!(told(&queue(&mut client)), [""; 0]);
    // And an undo can be taken back.
    client.ok("redo", json!({}));
    assert!(on_disk(&world, "f").contains("five"));
    world.healthy();
}

/// After `review/keep` has been answered, the daemon looks at what is left of
/// the file's queue. A change made during this look is in the queue.
#[test]
fn rev1_a_change_right_after_a_keep_is_in_the_queue() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    user::git(world.workspace(), &["init", "-q"]);
    for round in 0..30 {
        let name = &format!("f{round}");
        world.file(name, ten());
        edit(&world, &mut agent, name, "line 2\n", "two\n");
        let all = queue(&mut client);
        client.ok("review/keep", named(&all[0]));
        pause(round);
        edit(&world, &mut agent, name, "line 5\n", "five\n");
        let left = [format!("{name} line 5|>five|")];
        // Once right away, and once after the look has ended.
        assert_eq!(told(&queue(&mut client)), left);
        client.ok("review/keep", json!({"hunks": []}));
        let all = queue(&mut client);
        assert_eq!(told(&all), left, "{round}");
        client.ok("review/undo", named(&all[0]));
    }
    world.healthy();
}

#[test]
fn rev1_files_that_agents_made_and_deleted() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    world.file("gone", ten());
    agent.read("gone");
    agent.ok("file/write", json!({"path": "made", "text": "1\n2\n"}));
    let begun = agent.ok("command/begin", json!({"label": "rm"}));
    fs::remove_file(world.path("gone")).unwrap();
    agent
        .client
        .ok("command/end", json!({"command": begun["command"]}));
    let all = queue(&mut client);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0]["deleted"], true, "{all:?}");
    assert_eq!(all[1]["created"], true, "{all:?}");
    for hunk in &all {
        client.ok("review/undo", named(hunk));
    }
    assert_eq!(on_disk(&world, "gone"), ten());
    assert!(!world.path("made").exists());
    assert_eq!(told(&queue(&mut client)), [""; 0]);
    world.healthy();
}

/// Creates a file with ten lines, and a repository in which the user has
/// committed it.
fn first_commit(world: &World) {
    world.file("f", ten());
    user::git(world.workspace(), &["init", "-q"]);
    user::git(world.workspace(), &["add", "f"]);
    by_user(world, &["commit", "-q", "-m", "first"]);
}

/// Runs git as the user, away from what an agent does before and after it, by
/// the file system's clock.
fn by_user(world: &World, arguments: &[&str]) {
    let tick = world.outside().join("tick");
    let pass = || {
        let then = SystemTime::now() + Duration::from_millis(300);
        until("the file system's clock", || {
            fs::write(&tick, "").unwrap();
            fs::metadata(&tick).unwrap().modified().unwrap() > then
        });
    };
    pass();
    user::git(world.workspace(), arguments);
    pass();
}

/// Runs git in a command of an agent, with another committer's time.
fn by_agent(world: &World, agent: &mut Session, time: SystemTime, arguments: &[&str]) {
    let command = agent.ok("command/begin", json!({"label": "git"}));
    let mut git = user::git_command(world.workspace(), arguments);
    let seconds = time.duration_since(UNIX_EPOCH).unwrap().as_secs();
    git.env("GIT_COMMITTER_DATE", format!("{seconds} +0000"));
    assert!(git.status().unwrap().success());
    let command = json!({"command": command["command"]});
    agent.client.ok("command/end", command);
}

#[test]
fn rev2_a_committer_may_choose_any_time() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    first_commit(&world);
    // The agent commits an hour ago, and in an hour.
    let now = SystemTime::now();
    edit(&world, &mut agent, "f", "line 2\n", "two\n");
    let commit = ["commit", "-q", "-a", "-m", "the agent's"];
    by_agent(&world, &mut agent, now - HOUR, &commit);
    let two = "f line 2|>two|";
    assert_eq!(told(&queue(&mut client)), [two]);
    edit(&world, &mut agent, "f", "line 5\n", "five\n");
    by_agent(&world, &mut agent, now + HOUR, &commit);
    let five = "f line 5|>five|";
    assert_eq!(told(&queue(&mut client)), [two, five]);
    // It makes its commits again, with other times.
    let rebase = ["rebase", "-q", "--root", "--committer-date-is-author-date"];
    by_agent(&world, &mut agent, now, &rebase);
    assert_eq!(told(&queue(&mut client)), [two, five]);
    // The user commits at the time at which the agent's command ran.
    edit(&world, &mut agent, "f", "line 8\n", "eight\n");
    let command = agent.ok("command/begin", json!({"label": "make"}));
    let during = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let command = json!({"command": command["command"]});
    agent.client.ok("command/end", command);
    let date = format!("--date={} +0000", during.as_secs());
    by_user(&world, &["commit", "-q", "-a", "-m", "the user's", &date]);
    let rebase = [
        "rebase",
        "-q",
        "--committer-date-is-author-date",
        "-f",
        "HEAD~1",
    ];
    by_user(&world, &rebase);
    assert_eq!(told(&queue(&mut client)), [two, five]);
    world.healthy();
}

#[test]
fn rev2_what_an_agents_commit_replaced_is_not_kept_by_the_next_commit() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    first_commit(&world);
    edit(&world, &mut agent, "f", "line 5\n", "five\n");
    let commit = ["commit", "-q", "-a", "-m", "five"];
    by_agent(&world, &mut agent, SystemTime::now(), &commit);
    edit(&world, &mut agent, "f", "five\n", "cinco\n");
    by_user(&world, &["commit", "-q", "-a", "-m", "cinco"]);
    // The user has committed `cinco` in place of `five`, and has seen nothing of
    // `line 5`.
    assert_eq!(told(&queue(&mut client)), ["f line 5|>cinco|"]);
    world.healthy();
}

#[test]
fn rev2_a_removal_right_behind_a_line_that_the_user_commits_stays() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    first_commit(&world);
    edit(&world, &mut agent, "f", "line 5\n", "");
    let commit = ["commit", "-q", "-a", "-m", "without five"];
    by_agent(&world, &mut agent, SystemTime::now(), &commit);
    edit(&world, &mut agent, "f", "line 4\n", "four\n");
    by_user(&world, &["commit", "-q", "-a", "-m", "four"]);
    assert_eq!(told(&queue(&mut client)), ["f line 4|line 5|>four|"]);
    world.healthy();
}

/// Git's times are in whole seconds, and agents commit in the user's name.
#[test]
fn rev2_commits_of_one_second_are_not_one_that_is_made_again() {
    let mut world = World::asleep();
    world.file("f", ten());
    user::git(world.workspace(), &["init", "-q"]);
    user::git(world.workspace(), &["add", "f"]);
    let now = SystemTime::now();
    let seconds = now.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let date = format!("--date={seconds} +0000");
    let commit = ["commit", "-q", "-a", &date, "-m", "one"];
    user::git(world.workspace(), &commit);
    // The user removes a line on another branch, and the agent removes it here.
    user::git(world.workspace(), &["switch", "-q", "-c", "other"]);
    world.file("f", ten().replace("line 2\n", ""));
    by_user(&world, &["commit", "-q", "-a", &date, "-m", "other"]);
    user::git(world.workspace(), &["switch", "-q", "-"]);
    world.start();
    let mut agent = world.session("a");
    let mut client = world.client();
    edit(&world, &mut agent, "f", "line 2\n", "");
    by_agent(&world, &mut agent, now, &commit);
    let two = "f line 2|>";
    assert_eq!(told(&queue(&mut client)), [two]);
    edit(&world, &mut agent, "f", "line 8\n", "eight\n");
    by_agent(&world, &mut agent, now, &commit);
    let both = [two, "f line 8|>eight|"];
    assert_eq!(told(&queue(&mut client)), both);
    // The user makes them again, which keeps nothing.
    by_user(&world, &["rebase", "-q", "-f", "--root"]);
    assert_eq!(told(&queue(&mut client)), both);
    world.healthy();
}

#[test]
fn rev2_a_commit_keeps_if_it_is_the_users() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    world.file("f", ten());
    world.file("gone", ten());
    agent.read("gone");
    user::git(world.workspace(), &["init", "-q"]);
    user::git(world.workspace(), &["add", "f"]);
    user::git(world.workspace(), &["commit", "-q", "-m", "first"]);
    edit(&world, &mut agent, "f", "line 2\n", "two\n");
    // The agent commits its own change.
    let command = agent.ok("command/begin", json!({"label": "git commit"}));
    user::git(
        world.workspace(),
        &["commit", "-q", "-a", "-m", "the agent's"],
    );
    agent
        .client
        .ok("command/end", json!({"command": command["command"]}));
    assert_eq!(told(&queue(&mut client)), ["f line 2|>two|"]);
    // The user commits another one, and stays with what was committed before.
    edit(&world, &mut agent, "f", "line 8\n", "eight\n");
    assert_eq!(queue(&mut client).len(), 2);
    by_user(&world, &["commit", "-q", "-a", "-m", "the user's"]);
    assert_eq!(told(&queue(&mut client)), ["f line 2|>two|"]);
    let left = queue(&mut client);
    assert_eq!(client.ok("review/keep", named(&left[0]))["kept"], 1);
    assert_eq!(told(&queue(&mut client)), [""; 0]);
    // The commit is read again when it is another one.
    user::git(world.workspace(), &["reset", "-q", "HEAD~1"]);
    assert_eq!(told(&queue(&mut client)), ["f line 8|>eight|"]);
    by_user(&world, &["commit", "-q", "-a", "-m", "again"]);
    // What git never had is not kept by a commit that has it not.
    let command = agent.ok("command/begin", json!({"label": "rm"}));
    fs::remove_file(world.path("gone")).unwrap();
    agent
        .client
        .ok("command/end", json!({"command": command["command"]}));
    assert_eq!(queue(&mut client).len(), 1);
    edit(&world, &mut agent, "f", "line 9\n", "nine\n");
    by_user(&world, &["commit", "-q", "-a", "-m", "once more"]);
    assert_eq!(queue(&mut client).len(), 1);
    world.healthy();
}

#[test]
fn rev2_a_removed_line_waits_until_a_commit_has_it_no_more() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    first_commit(&world);
    edit(&world, &mut agent, "f", "line 2\n", "");
    edit(&world, &mut agent, "f", "line 10\n", "");
    assert_eq!(told(&queue(&mut client)), ["f line 2|>", "f line 10|>"]);
    by_user(&world, &["commit", "-q", "-a", "-m", "without them"]);
    assert_eq!(told(&queue(&mut client)), [""; 0]);
    world.healthy();
}

#[test]
fn rev2_a_commit_of_the_users_keeps_a_deletion() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    for name in ["f", "gone", "by the agent"] {
        world.file(name, ten());
    }
    user::git(world.workspace(), &["init", "-q"]);
    user::git(world.workspace(), &["add", "."]);
    user::git(world.workspace(), &["commit", "-q", "-m", "first"]);
    let mut remove = |name: &str, commit: bool| {
        agent.read(name);
        let command = agent.ok("command/begin", json!({"label": "rm"}));
        fs::remove_file(world.path(name)).unwrap();
        if commit {
            user::git(world.workspace(), &["commit", "-q", "-a", "-m", "an rm"]);
        }
        let command = json!({"command": command["command"]});
        agent.client.ok("command/end", command);
    };
    let gone = |name: &str| format!("{name} {}>", ten().replace('\n', "|"));
    remove("gone", false);
    assert_eq!(told(&queue(&mut client)), [gone("gone")]);
    by_user(&world, &["commit", "-q", "-a", "-m", "the user's"]);
    assert_eq!(told(&queue(&mut client)), [""; 0]);
    // A commit that is taken back keeps nothing.
    user::git(world.workspace(), &["reset", "-q", "HEAD~1"]);
    assert_eq!(told(&queue(&mut client)), [gone("gone")]);
    by_user(&world, &["commit", "-q", "-a", "-m", "the user's again"]);
    assert_eq!(told(&queue(&mut client)), [""; 0]);
    // A deletion that the agent has committed stays, also after a commit of the
    // user's.
    remove("by the agent", true);
    assert_eq!(told(&queue(&mut client)), [gone("by the agent")]);
    user::replace(&world.path("f"), "mine\n");
    by_user(&world, &["commit", "-q", "-a", "-m", "the user's third"]);
    assert_eq!(told(&queue(&mut client)), [gone("by the agent")]);
    world.healthy();
}

#[test]
fn rev3_modes_and_links_are_kept_and_undone() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    for name in ["kept", "undone", "committed"] {
        world.file(name, ten());
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    symlink("kept", world.path("link")).unwrap();
    user::git(world.workspace(), &["init", "-q"]);
    user::git(world.workspace(), &["add", "."]);
    by_user(&world, &["commit", "-q", "-m", "first"]);
    let params = json!({"label": "chmod and ln", "scope": "workspace"});
    let begun = agent.ok("command/begin", params);
    for name in ["kept", "undone", "committed"] {
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::remove_file(world.path("link")).unwrap();
    symlink("undone", world.path("link")).unwrap();
    symlink("kept", world.path("new")).unwrap();
    let command = json!({"command": begun["command"]});
    agent.client.ok("command/end", command);

    let run = |args: &[&str]| String::from_utf8(world.run(args).stdout).unwrap();
    assert_eq!(
        run(&["review", "--list"]),
        "committed: mode 644 → 755  by agent-1\n\
         kept: mode 644 → 755  by agent-1\n\
         link: symlink  by agent-1\n-kept\n+undone\n\
         new: new symlink  by agent-1\n+kept\n\
         undone: mode 644 → 755  by agent-1\n"
    );
    let files = |client: &mut Client| {
        let listed = client.ok("review/list", json!({}));
        assert_eq!(listed["hunks"], json!([]));
        listed["files"].as_array().cloned().unwrap_or_default()
    };
    let paths = |client: &mut Client| -> Vec<String> {
        let all = files(client);
        all.iter().map(|file| text(file, "path")).collect()
    };
    let of = |client: &mut Client, name: &str| {
        let mut all = files(client);
        all.retain(|file| file["path"] == *name);
        named(&all[0])
    };
    let name = of(&mut client, "kept");
    assert_eq!(client.ok("review/keep", name.clone())["kept"], 1);
    client.refused("review/keep", name, "notFound");
    for name in ["undone", "link", "new"] {
        let name = of(&mut client, name);
        client.ok("review/undo", name);
    }
    let mode = |name: &str| {
        let found = fs::symlink_metadata(world.path(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    let modes = ["kept", "undone", "committed"].map(mode);
    assert_eq!(modes, [0o755, 0o644, 0o755]);
    let target = fs::read_link(world.path("link")).unwrap();
    assert_eq!(target.to_str(), Some("kept"));
    assert!(fs::symlink_metadata(world.path("new")).is_err());
    assert_eq!(paths(&mut client), ["committed"]);
    // A commit of the user's keeps what git records of a mode.
    by_user(&world, &["commit", "-q", "-a", "-m", "the user's"]);
    assert_eq!(paths(&mut client), [""; 0]);
    user::git(world.workspace(), &["reset", "-q", "HEAD~1"]);
    assert_eq!(paths(&mut client), ["committed"]);
    // What was kept is known after a restart.
    world.stop();
    world.start();
    let mut client = world.client();
    assert_eq!(paths(&mut client), ["committed"]);
    world.healthy();
}

#[test]
fn undo1_what_a_redo_puts_back_is_in_the_queue_again_without_lines_too() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    for name in ["unread", "read", "edited"] {
        world.file(name, ten());
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    symlink("read", world.path("link")).unwrap();
    agent.read("read");
    agent.read("edited");
    let params = json!({"label": "chmod, sed and ln", "scope": "workspace"});
    let begun = agent.ok("command/begin", params);
    for name in ["unread", "read", "edited"] {
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(world.path("edited"), ten().replace("line 2", "two")).unwrap();
    fs::remove_file(world.path("link")).unwrap();
    symlink("unread", world.path("link")).unwrap();
    symlink("read", world.path("new")).unwrap();
    let command = json!({"command": begun["command"]});
    agent.client.ok("command/end", command);

    let state = || {
        let names = ["edited", "link", "new", "read", "unread"];
        names.map(|name| match fs::symlink_metadata(world.path(name)) {
            Ok(found) if found.is_symlink() => {
                let target = fs::read_link(world.path(name)).unwrap();
                target.display().to_string()
            }
            Ok(found) => format!(
                "{:o} {}",
                found.permissions().mode() & 0o777,
                fs::read_to_string(world.path(name)).unwrap()
            ),
            Err(_) => String::new(),
        })
    };
    let changed = state();
    let listed = |client: &mut Client| client.ok("review/list", json!({}));
    let all = |listed: &Value| {
        let rows = [&listed["hunks"], &listed["files"]];
        let rows = rows.into_iter().filter_map(Value::as_array).flatten();
        rows.map(|row| json!({"path": row["path"], "id": row["id"]}))
            .collect::<Vec<_>>()
    };
    let first = listed(&mut client);
    assert_eq!(all(&first).len(), 6, "{first}");
    for _ in 0..2 {
        let again = all(&listed(&mut client));
        client.ok("review/undo", json!({"hunks": again}));
        assert_eq!(state()[1..3], ["read", ""]);
        let restored = format!("644 {}", ten());
        assert!([0, 3, 4].iter().all(|at| state()[*at] == restored));
        let left = listed(&mut client);
        assert!(all(&left).is_empty(), "{left}");
        client.ok("redo", json!({}));
        assert_eq!(state(), changed);
        let now = listed(&mut client);
        assert_eq!(all(&now).len(), 6, "{now}");
    }
    // The agent's changes are the agent's in the history, too.
    for name in ["read", "unread"] {
        let history = client.ok("file/history", json!({"path": name}));
        let newest = &history["versions"][0];
        assert_eq!(newest["author"]["session"], "a", "{history}");
    }
    world.healthy();
}

#[test]
fn keep2_pins_end_when_a_change_is_kept_or_undone() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut client = world.client();
    let kept = |client: &mut Client, field: &str| {
        let status = client.ok("status", json!({}));
        status["store"]["contents"][field].as_u64().unwrap_or(0)
    };
    let mut held = BTreeSet::new();
    let mut change = |name: &str, old: &str, new: &str| {
        held.insert(on_disk(&world, name));
        edit(&world, &mut agent, name, old, new);
        held.insert(on_disk(&world, name));
    };
    for name in ["kept", "undone", "reviewed", "committed", "left"] {
        world.file(name, format!("{name}\n{}", ten()));
        change(name, "line 2\n", &format!("two of {name}\n"));
        change(name, "line 8\n", &format!("eight of {name}\n"));
    }
    // Two files hold the same before and after.
    for name in ["one", "other"] {
        world.file(name, "alike\n");
        change(name, "alike", "changed alike");
    }
    // Contents are written when nothing else is to be done.
    let sizes: usize = held.iter().map(String::len).sum();
    until("all contents are written", || {
        kept(&mut world.client(), "originalBytes") == sizes as u64
    });
    let mut before = kept(&mut client, "pinnedBytes");
    let mut ends = |client: &mut Client, what: &str| {
        until(what, || kept(client, "pinnedBytes") < before);
        before = kept(client, "pinnedBytes");
    };
    let of = |client: &mut Client, name: &str| {
        let mut all = queue(client);
        all.retain(|hunk| hunk["path"] == *name);
        all
    };
    for hunk in of(&mut client, "kept") {
        client.ok("review/keep", named(&hunk));
    }
    ends(&mut client, "kept");
    for hunk in of(&mut client, "reviewed") {
        client.ok("review/undo", named(&hunk));
    }
    ends(&mut client, "undone by a review");
    client.ok("undo", json!({"session": "a", "paths": ["undone"]}));
    ends(&mut client, "undone");
    user::git(world.workspace(), &["init", "-q"]);
    user::git(world.workspace(), &["add", "committed"]);
    user::git(world.workspace(), &["commit", "-q", "-m", "first"]);
    assert!(of(&mut client, "committed").is_empty());
    ends(&mut client, "committed");
    // What another file's change needs stays.
    let alike = of(&mut client, "one");
    client.ok("review/keep", named(&alike[0]));
    let (left, other) = (of(&mut client, "left"), of(&mut client, "other"));
    assert_eq!((left.len(), other.len()), (2, 1));
    client.ok("review/undo", named(&other[0]));
    assert_eq!(fs::read_to_string(world.path("other")).unwrap(), "alike\n");
    ends(&mut client, "the other alike");
    for hunk in left {
        client.ok("review/keep", named(&hunk));
    }
    until("nothing is pinned", || {
        kept(&mut client, "pinnedBytes") == 0
    });
    world.healthy();
}

#[test]
fn review_on_the_command_line() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", ten());
    edit(&world, &mut agent, "f", "line 2\n", "two\n");
    let run = |args: &[&str]| String::from_utf8(world.run(args).stdout).unwrap();
    let listed = run(&["review", "--list"]);
    assert_eq!(
        listed,
        "f: line 2  by agent-1\n line 1\n-line 2\n+two\n line 3\n line 4\n line 5\n"
    );
    assert_eq!(run(&["review", "--keep-all"]), "kept: 1 change\n");
    assert_eq!(run(&["review", "--list"]), "nothing is left to review\n");
    world.healthy();
}
