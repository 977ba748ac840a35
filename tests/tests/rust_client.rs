//! The Rust client over the binary wire against a real daemon.

use std::fs;

use touchmark_client::blocking::Client;
use touchmark_client::{Hello, Session};
use touchmark_proto::AuthorKind;
use touchmark_proto::activity::ActivityList;
use touchmark_proto::changes::{Ack, ModifiedTake};
use touchmark_proto::daemon::{Ping, Status};
use touchmark_proto::edits::Outcome;
use touchmark_tests::{World, on_tokio, user};

#[test]
fn an_edit_is_a_value_that_ends_itself() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    assert_eq!(
        client.server().unwrap().workspace,
        world.workspace().to_str().unwrap()
    );
    let session = Session::open(&client, "s").unwrap();
    assert_eq!(
        session.read_text("a.txt").unwrap().text.as_deref(),
        Some("one\n")
    );
    // Committed.
    let edit = session.edit_to("a.txt", b"two\n").unwrap();
    fs::write(edit.target(), "two\n").unwrap();
    let done = edit.commit(b"two\n").unwrap();
    assert_eq!(done.files.len(), 1);
    assert!(session.changed().unwrap().is_empty());
    // Dropped: aborted, so that the next change is the user's.
    drop(session.edit("a.txt").unwrap());
    user::write(&world.path("a.txt"), "three\n");
    assert_eq!(session.changed().unwrap().len(), 1);
    // Refused with a code and a hint.
    let error = session.edit("a.txt").unwrap_err();
    assert_eq!(error.code(), "stale");
    assert!(!error.hint().is_empty());
    session.close().unwrap();
}

#[test]
fn a_guarded_edit_overwrites_nothing_that_was_saved_in_between() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    let session = Session::open(&client, "s").unwrap();
    session.read("a.txt").unwrap();
    let written = session.edit("a.txt").unwrap().write(b"two\n").unwrap();
    assert_eq!(written.outcome, Outcome::Applied);
    assert_eq!(fs::read_to_string(world.path("a.txt")).unwrap(), "two\n");
    // A new file, of bytes that are no text.
    session.edit("b.bin").unwrap().write(b"\xff").unwrap();
    assert_eq!(fs::read(world.path("b.bin")).unwrap(), b"\xff");
    assert!(session.changed().unwrap().is_empty());
    // Saved in between: refused, by the right name, and nothing stays open.
    let edit = session.edit("a.txt").unwrap();
    user::write(&world.path("a.txt"), "user\n");
    let error = edit.write(b"mine\n").unwrap_err();
    assert_eq!(error.code(), "stale");
    let by = error.daemon().unwrap().data.changed_by.clone().unwrap();
    assert_eq!(by[0].kind, AuthorKind::User);
    assert_eq!(fs::read_to_string(world.path("a.txt")).unwrap(), "user\n");
    assert_eq!(client.call(Status {}).unwrap().open_edits, 0);
    // The same for tokio.
    session.read("a.txt").unwrap();
    on_tokio(async {
        use touchmark_client::aio;
        let client = aio::Client::connect(world.socket(), &Hello::new("tests", "1"))
            .await
            .unwrap();
        let session = aio::Session::open(&client, "s").await.unwrap();
        let edit = session.edit("a.txt").await.unwrap();
        assert!(edit.before().is_some());
        edit.write(b"mine\n").await.unwrap();
        let edit = session.edit("a.txt").await.unwrap();
        user::write(&world.path("a.txt"), "user\n");
        assert_eq!(edit.write(b"x\n").await.unwrap_err().code(), "stale");
    });
    assert_eq!(fs::read_to_string(world.path("a.txt")).unwrap(), "user\n");
}

#[test]
fn many_requests_under_way_keep_their_order() {
    let world = World::new();
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    let answers = client.pipeline((0..5000).map(|_| Ping {})).unwrap();
    assert_eq!(answers.len(), 5000);
    assert!(answers.iter().all(Result::is_ok));
    let status = client.call(Status {}).unwrap();
    assert!(status.counters.requests >= 5000, "{status:?}");
}

#[test]
fn a_daemon_that_is_gone_is_an_error_and_not_a_hang() {
    let mut world = World::new();
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    world.kill();
    let error = client.call(Ping {}).unwrap_err();
    assert!(error.is_disconnected(), "{error}");
    let Err(error) = Client::connect(world.socket(), &Hello::new("tests", "1")) else {
        panic!("nobody listens");
    };
    assert_eq!(error.code(), "noDaemon");
}

#[test]
fn every_system_has_its_named_requests() {
    use touchmark_proto::retention::{Priority, RetentionItem};
    use touchmark_proto::search::SearchGrep;
    use touchmark_proto::tasks::{Task, TaskType};
    let world = World::new();
    world.file("a.txt", "“one”\n");
    world.file("b.txt", "two\n");
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    let session = Session::open(&client, "s").unwrap();
    session.read_text("a.txt").unwrap();
    session.mention("b.txt").unwrap();
    assert_eq!(session.files(false).unwrap().len(), 2);
    assert!(session.is_stale("a.txt", 9, 1).unwrap().age.is_none());
    assert!(session.recent(9, 1).unwrap().is_empty());
    // Before and after a change.
    let snapshot = session.snapshot("a.txt").unwrap();
    let checkpoint = session
        .checkpoint_create(Some("before"), None, Some(3))
        .unwrap();
    assert_eq!(session.checkpoints().unwrap()[0].step, Some(3));
    session.replace("a.txt", "\"one\"", "\"1\"").unwrap();
    assert_eq!(fs::read_to_string(world.path("a.txt")).unwrap(), "“1”\n");
    assert!(session.detect(snapshot).unwrap().modified);
    let edited = session
        .checkpoint_detect(&checkpoint.checkpoint, &[], true)
        .unwrap();
    assert_eq!(edited.len(), 1);
    assert!(session.warning_take().unwrap().warning.is_some());
    assert!(session.warning_take().unwrap().warning.is_none());
    session
        .warning_store(vec!["b.txt".into()], Some("look"))
        .unwrap();
    assert_eq!(session.warning_cleanup(Vec::new()).unwrap().removed, 0);
    session.checkpoint_delete(&checkpoint.checkpoint).unwrap();
    assert!(session.checkpoints().unwrap().is_empty());
    // Quotation marks.
    assert_eq!(session.normalize_quotes("‘x’").unwrap().text, "'x'");
    let found = session.match_quotes("\"x\"", "a “x”").unwrap().unwrap();
    assert_eq!((found.position, found.original_match.as_str()), (2, "“x”"));
    // Tasks and models.
    let task = Task {
        id: "t".into(),
        task_type: TaskType::Process,
        command: Some("tests".into()),
        pid: Some(std::process::id()),
        start_time: 1,
        working_directory: "/".into(),
    };
    session.task_save(task).unwrap();
    assert_eq!(session.tasks().unwrap()[0].alive, Some(true));
    assert_eq!(session.task_cleanup().unwrap().removed, 0);
    assert_eq!(session.task_remove("t").unwrap().removed, 1);
    assert!(
        session
            .model_record("m", "p", "act", Some("1"))
            .unwrap()
            .recorded
    );
    assert!(
        !session
            .model_record("m", "p", "act", Some("1"))
            .unwrap()
            .recorded
    );
    assert_eq!(session.models().unwrap().len(), 1);
    // What may leave the context.
    let item = RetentionItem::new("1", "edit_file", 1).path("a.txt");
    let ranked = session.rank(50, 1, vec![item]).unwrap();
    assert_eq!(ranked.items[0].priority, Priority::Never);
    let search = SearchGrep::new("tw.");
    assert_eq!(session.grep(search).unwrap().matches.len(), 1);
    session.read_text("b.txt").unwrap();
    assert!(session.read_text("b.txt").unwrap().text.is_none());
    assert_eq!(session.stats().unwrap().repeats, 1);
    session.compacted(Vec::new()).unwrap();
    assert!(session.read_text("b.txt").unwrap().text.is_some());
    session.forget().unwrap();
    // Nothing of it is known any more (SES-1).
    let gone = session.files(false).unwrap_err();
    assert!(gone.to_string().contains("no session"), "{gone}");
}

#[test]
fn the_same_names_for_tokio() {
    let world = World::new();
    world.file("a.txt", "one\n");
    on_tokio(async {
        use touchmark_client::aio;
        let client = aio::Client::connect(world.socket(), &Hello::new("tests", "1"))
            .await
            .unwrap();
        let session = aio::Session::open(&client, "s").await.unwrap();
        session.mention("a.txt").await.unwrap();
        session.checkpoint_create(None, None, None).await.unwrap();
        assert_eq!(session.checkpoints().await.unwrap().len(), 1);
        assert_eq!(session.files(true).await.unwrap().len(), 1);
        assert!(session.snapshot("a.txt").await.unwrap().hash.is_some());
    });
}

/// Both kinds of sessions are compiled from one source. This is the one for
/// tokio.
#[test]
fn versions_are_looked_at_restored_and_undone() {
    let world = World::new();
    world.file("a.txt", "one\ntwo\n");
    let held = || fs::read_to_string(world.path("a.txt")).unwrap();
    on_tokio(async {
        use touchmark_client::aio;
        let client = aio::Client::connect(world.socket(), &Hello::new("tests", "1"))
            .await
            .unwrap();
        let session = aio::Session::open(&client, "s").await.unwrap();
        session.read("a.txt").await.unwrap();
        let written = session.write("a.txt", b"one\n2\n").await.unwrap();
        let version = written.files[0].version.clone().unwrap();
        user::write(&world.path("a.txt"), "zero\none\n2\n");
        let blame = session.blame("a.txt", None).await.unwrap();
        let kinds: Vec<_> = blame.lines.iter().map(|line| line.author.kind).collect();
        assert_eq!(kinds[0], AuthorKind::User);
        assert_eq!(kinds[2], AuthorKind::Agent);
        let at = version.clock.to_string().parse().unwrap();
        let content = session.content("a.txt", Some(at)).await.unwrap();
        assert_eq!(content.text, "one\n2\n");
        // What the session did goes, the user's line stays.
        let undone = session.undo(false).await.unwrap();
        assert_eq!(held(), "zero\none\ntwo\n", "{undone:?}");
        session.redo(None).await.unwrap();
        assert_eq!(held(), "zero\none\n2\n");
        let at = version.clock.to_string().parse().unwrap();
        session.restore("a.txt", at).await.unwrap();
        assert_eq!(held(), "one\n2\n");
        // An edit that is given up leaves nothing open.
        session.read("a.txt").await.unwrap();
        session.edit("a.txt").await.unwrap().abort().await.unwrap();
        assert_eq!(client.call(Status {}).await.unwrap().open_edits, 0);
    });
}

/// Requests of a session that other tests send by other clients.
#[test]
fn commands_marks_and_lists_are_methods() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    let session = Session::open(&client, "s").unwrap();
    session.read("a.txt").unwrap();

    let begun = session.command_begin("make", None).unwrap();
    user::write(&world.path("a.txt"), "two\n");
    let ended = session.command_end(&begun.command, Some(0)).unwrap();
    let row = ended.command.unwrap();
    assert_eq!((row.versions, row.exit), (1, Some(0)));
    let commands = session.commands().unwrap().commands;
    assert_eq!(commands.len(), 1);
    assert_eq!(commands[0].command, begun.command);
    // What the command changed is for review, as the session's.
    let hunks = session.review().unwrap().hunks;
    assert_eq!(hunks.len(), 1);

    session.read("a.txt").unwrap();
    let marked = session.mark("a.txt").unwrap();
    assert!(marked.edit.is_some());
    user::write(&world.path("a.txt"), "three\n");
    assert!(session.modified(None).unwrap().is_empty());

    user::write(&world.path("a.txt"), "four\n");
    assert_eq!(session.modified(None).unwrap().len(), 1);
    let take = ModifiedTake::new(session.id().clone()).ack(Ack::Explicit);
    let taken = client.call(take.clone()).unwrap();
    assert_eq!(taken.changes.len(), 1);
    // Not delivered until it is confirmed.
    assert_eq!(client.call(take).unwrap().changes.len(), 1);
    session.modified_ack(&taken.cursor).unwrap();
    assert!(session.changed().unwrap().is_empty());

    let reads = session.activity(ActivityList::new().limit(1)).unwrap();
    assert_eq!(reads.rows.len(), 1);
    assert_eq!(reads.rows[0].session.as_ref(), Some(session.id()));
}
