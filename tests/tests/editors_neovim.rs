//! The Neovim plug-in: real Neovims, a real daemon, an agent's session.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::world::{binary, finish};
use touchmark_tests::{Neovim, Session, World, neovim, text, user};

const SETUP: &str = "require('touchmark').setup{}";
/// The author and evidence of a version that an editor has reported.
const SAVED: &str = "user editor";

/// Runs a test with every available Neovim, in parallel.
fn each(test: impl Fn(&Path) + Sync) {
    std::thread::scope(|scope| {
        for program in neovim::programs() {
            let test = &test;
            scope.spawn(move || test(program));
        }
    });
}

/// Creates a world with `a.txt`, which the session `s` has read.
fn world() -> (World, Session) {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\ntwo\nthree\n");
    agent.read("a.txt");
    (world, agent)
}

fn story(agent: &mut Session, path: &str, wanted: &[&str]) {
    agent.wait_saves(path, wanted);
}

fn unsaved(agent: &mut Session, path: &str, wanted: bool) {
    agent.wait_unsaved(path, wanted);
}

/// Returns the changes for the agent, without backups that remain: a read file
/// that was renamed to its backup's name is listed when the next save replaces
/// it.
fn taken(agent: &mut Session) -> Vec<String> {
    let mut paths = agent.taken();
    paths.retain(|path| !path.ends_with('~'));
    paths
}

fn replace(agent: &mut Session, path: &str, old: &str, new: &str) {
    let edit = json!({"path": path, "oldString": old, "newString": new});
    assert_eq!(agent.ok("file/edit", edit)["outcome"], "applied");
}

#[test]
fn the_plug_ins_own_parts() {
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/neovim");
    each(|program| {
        let child = Command::new(program)
            .current_dir(&plugin)
            .args(["--headless", "-n", "-i", "NONE", "-u", "NONE"])
            .args(["--cmd", "set rtp^=.", "-c", "luafile tests/unit.lua"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = finish(child, "the plug-in's unit tests");
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    });
}

#[test]
fn a_user_types_and_saves_and_an_agent_edits() {
    each(|program| {
        let (world, mut agent) = world();
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();
        // Typed and not saved.
        editor.keys("ohello<Esc>");
        unsaved(&mut agent, "a.txt", true);
        assert_eq!(agent.state("a.txt"), "fresh");
        let lines = &agent.status("a.txt")["unsavedLines"];
        assert_eq!(*lines, json!({"start": 1, "end": 2}), "the seam");
        // Undone by hand: nothing is unsaved.
        editor.keys("u");
        unsaved(&mut agent, "a.txt", false);
        editor.keys("ohello<Esc>:write<CR>");
        story(&mut agent, "a.txt", &[SAVED]);
        unsaved(&mut agent, "a.txt", false);
        assert_eq!(agent.state("a.txt"), "stale");
        editor.until("return require('touchmark').statusline() == 'you · stale for agent-1'");
        agent.read("a.txt");
        editor.until("return require('touchmark').statusline() == 'you'");
        // The agent edits: loaded again, said, shown.
        replace(&mut agent, "a.txt", "two", "zwei\nmore");
        editor.until("return vim.fn.getline(3) == 'zwei'");
        editor.until("return vim.deep_equal(require('touchmark.signs').placed(0), {3, 4})");
        editor.until("return require('touchmark').statusline() == 'agent-1'");
        let notice = editor.until("return require('touchmark.notice').last");
        assert_eq!(notice, "agent-1 changed a.txt, loaded again");
        assert_eq!(editor.lua("return vim.bo.modified"), false);
        // A second edit above moves the first one's signs.
        replace(&mut agent, "a.txt", "one", "zero\none");
        editor.until("return vim.deep_equal(require('touchmark.signs').placed(0), {1, 4, 5})");
        // Saved as it is: these are the agent's bytes, and no user edited.
        editor.keys(":write<CR>");
        editor.until("return #require('touchmark.signs').placed(0) == 0");
        editor.keys("Gomine<Esc>:write<CR>");
        let told = [SAVED, "agent:s declared", "agent:s declared", SAVED];
        story(&mut agent, "a.txt", &told);
    });
}

#[test]
fn an_agents_undeclared_bytes_saved_again_stay_its_own() {
    each(|program| {
        let (world, mut agent) = world();
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();
        // A mark without a content: a report of these bytes would make them
        // the user's.
        agent.mark("a.txt", None);
        fs::write(world.path("a.txt"), "the agent's\n").unwrap();
        agent.sync();
        editor.until("return vim.fn.getline(1) == \"the agent's\"");
        editor.until("return require('touchmark.buffers').get(0).base ~= nil");
        editor.command("write");
        editor.until("return require('touchmark.buffers').get(0).base ~= nil");
        editor.keys("omine<Esc>:write<CR>");
        story(&mut agent, "a.txt", &["agent:s marked", SAVED]);
    });
}

#[test]
fn every_way_to_save_is_one_version_of_the_users() {
    const WAYS: &[(&str, &str)] = &[
        ("auto", "backupcopy=auto nobackup writebackup"),
        ("yes", "backupcopy=yes nobackup writebackup"),
        ("no", "backupcopy=no nobackup writebackup"),
        ("kept", "backupcopy=no backup writebackup"),
        ("kept-copy", "backupcopy=yes backup writebackup"),
        ("kept-auto", "backupcopy=auto backup writebackup"),
        ("none", "nobackup nowritebackup"),
        (
            "breaks-links",
            "backupcopy=auto,breakhardlink nobackup writebackup",
        ),
        ("keeps-links", "backupcopy=auto nobackup writebackup"),
        ("synced", "backupcopy=auto nobackup writebackup fsync"),
    ];
    each(|program| {
        let world = World::new();
        let mut agent = world.session("s");
        for (name, _) in WAYS {
            world.file(name, "one\n");
            if name.contains("link") {
                fs::hard_link(world.path(name), world.path(format!("{name}.other"))).unwrap();
            }
            agent.read(name);
        }
        let mut editor = Neovim::start(&world, program, SETUP, &[]);
        for (name, options) in WAYS {
            // Below /tmp and the like Neovim would write in place.
            editor.command(&format!("set backupskip= backupdir=. {options}"));
            editor.command(&format!("edit {name}"));
            editor.connected();
            editor.keys("ouser<Esc>:write<CR>");
            story(&mut agent, name, &[SAVED]);
            assert_eq!(taken(&mut agent), [*name]);
            agent.read(name);
            replace(&mut agent, name, "one", "agent");
            editor.until("return vim.fn.getline(1) == 'agent'");
            editor.until("return require('touchmark.buffers').get(0).base ~= nil");
            // No person saves within the milliseconds in which the agent's
            // own close is still to be looked at.
            agent.sync();
            // A re-save, then another edit, so that the re-save was looked at.
            editor.command("write");
            editor.keys("omore<Esc>:write<CR>");
            story(&mut agent, name, &[SAVED, "agent:s declared", SAVED]);
            assert_eq!(taken(&mut agent), [*name]);
            let text = fs::read_to_string(world.path(name)).unwrap();
            assert_eq!(text, "agent\nuser\nmore\n", "{name}");
        }
    });
}

#[test]
fn what_is_reported_are_the_bytes_on_disk() {
    const WAYS: &[(&str, &str)] = &[
        ("dos.txt", "fileformat=dos"),
        ("mac.txt", "fileformat=mac"),
        ("bom.txt", "bomb"),
        ("latin1.txt", "fileencoding=latin1"),
        ("utf16.txt", "fileencoding=utf-16le bomb"),
        ("without-end.txt", "noendofline nofixendofline"),
        ("name with ünïcode 50%.txt", "nobomb"),
        ("unit/deep/er.txt", "nobomb"),
    ];
    each(|program| {
        let world = World::new();
        let mut agent = world.session("s");
        for (name, _) in WAYS {
            world.file(name, "one\n");
            agent.read(name);
        }
        // Through a link to the workspace, as a user may have it.
        let link = world.outside().join("link");
        symlink(world.workspace(), &link).unwrap();
        let mut editor = Neovim::start(&world, program, SETUP, &[]);
        for (name, options) in WAYS {
            let path = link.join(name);
            let open = format!(
                "vim.cmd('edit ' .. vim.fn.fnameescape('{}'))",
                path.display()
            );
            editor.lua(&open);
            editor.connected();
            editor.command(&format!("setlocal {options}"));
            editor.keys("oüx<Esc>:write<CR>");
            story(&mut agent, name, &[SAVED]);
        }
    });
}

#[test]
fn another_files_save_is_reported_for_that_file() {
    each(|program| {
        let (world, mut agent) = world();
        world.file("b.txt", "b\n");
        agent.read("b.txt");
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();
        editor.keys("ohello<Esc>:write! b.txt<CR>");
        story(&mut agent, "b.txt", &[SAVED]);
        unsaved(&mut agent, "a.txt", true);
        editor.keys(":1write >> b.txt<CR>");
        story(&mut agent, "b.txt", &[SAVED, SAVED]);
        assert!(agent.story("a.txt").is_empty());
        // A new name for the buffer.
        editor.keys(":saveas c.txt<CR>");
        unsaved(&mut agent, "a.txt", false);
        editor.until("local f = require('touchmark').file() return f and f.path == 'c.txt'");
    });
}

#[test]
fn attr17_a_formatter_alone_is_the_agents() {
    const FORMATTER: &str = "require('touchmark').setup{}
        vim.api.nvim_create_autocmd('BufWritePre', { callback = function()
            if vim.g.format then vim.api.nvim_buf_set_lines(0, -1, -1, false, { vim.g.format }) end
        end })";
    each(|program| {
        let (world, mut agent) = world();
        let mut editor = Neovim::start(&world, program, FORMATTER, &["a.txt"]);
        editor.connected();
        replace(&mut agent, "a.txt", "one", "agent");
        editor.until("return vim.fn.getline(1) == 'agent'");
        editor.lua("vim.g.format = 'formatted'");
        editor.command("write");
        story(
            &mut agent,
            "a.txt",
            &["agent:s declared", "agent:s command"],
        );
        let newest = &agent.history("a.txt")[0];
        assert_eq!(newest["formatted"], true, "{newest}");
        // With the user's own change in it, it is the user's.
        agent.read("a.txt");
        replace(&mut agent, "a.txt", "agent", "again");
        editor.until("return vim.fn.getline(1) == 'again'");
        editor.keys("omine<Esc>:write<CR>");
        let told = [
            "agent:s declared",
            "agent:s command",
            "agent:s declared",
            SAVED,
        ];
        story(&mut agent, "a.txt", &told);
    });
}

#[test]
fn an_edit_under_unsaved_changes_is_said_and_asks_nothing() {
    // What the editor is told to do about a change that it has noticed.
    const WATCHED: &str = "require('touchmark').setup{}
        _G.choices = {}
        vim.api.nvim_create_autocmd('FileChangedShell', { callback = function()
            table.insert(choices, vim.v.fcs_choice)
        end })";
    each(|program| {
        let (world, mut agent) = world();
        let mut editor = Neovim::start(&world, program, WATCHED, &["a.txt"]);
        editor.connected();
        editor.keys("omine<Esc>");
        unsaved(&mut agent, "a.txt", true);
        replace(&mut agent, "a.txt", "three", "drei");
        let notice = editor.until("return require('touchmark.notice').last");
        assert!(
            notice.as_str().unwrap().contains("unsaved changes"),
            "{notice}"
        );
        // The editor comes back into focus and looks at its files.
        editor.command("checktime");
        assert_eq!(editor.lua("return choices"), json!([""]));
        assert_eq!(editor.lines(), json!(["one", "mine", "two", "three"]));
        // It still asks before it writes over the newer bytes.
        editor.keys(":write<CR>");
        editor.asks(true);
        editor.keys("n");
        editor.answer("<CR>");
        assert_eq!(agent.story("a.txt"), ["agent:s declared"]);
        // What another author does is asked about as before.
        user::write(&world.path("a.txt"), "another's, and longer than before\n");
        agent.sync();
        editor.keys(":checktime<CR>");
        editor.until("return #choices == 2");
        assert_eq!(editor.lua("return choices"), json!(["", "ask"]));
    });
}

#[test]
fn many_edits_at_once_are_one_notice() {
    const COUNTED: &str = "_G.notices = {}
        require('touchmark').setup{ notify = function(text) table.insert(notices, text) end }";
    each(|program| {
        let world = World::new();
        let mut agent = world.session("s\u{1b}[31m");
        let names: Vec<String> = (0..12).map(|n| format!("f{n}.txt")).collect();
        for name in &names {
            world.file(name, "one\n");
            agent.read(name);
        }
        let files: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut editor = Neovim::start(&world, program, COUNTED, &files);
        editor.command("silent bufdo edit");
        editor.until("for _, b in ipairs(vim.api.nvim_list_bufs()) do
                if vim.fn.bufname(b) ~= '' and not require('touchmark').file(b) then return false end
            end return true");
        for name in &names {
            replace(&mut agent, name, "one", "two");
        }
        editor.until("for _, b in ipairs(vim.api.nvim_list_bufs()) do
                if vim.fn.bufname(b) ~= '' and vim.fn.getbufline(b, 1)[1] ~= 'two' then return false end
            end return true");
        let said = editor.until("return #notices > 0 and table.concat(notices, '\\n')");
        let said = said.as_str().unwrap();
        assert!(said.contains("agent-1 changed"), "{said}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
        assert!(said.lines().count() < names.len(), "{said}");
    });
}

#[test]
fn a_daemon_that_comes_and_goes_is_not_spoken_of() {
    each(|program| {
        let mut world = World::asleep();
        // A mark, so that the workspace is known without a daemon.
        world.file(".touchmark.toml", "");
        world.file("a.txt", "one\n");
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.keys("omine<Esc>");
        editor.until("return vim.bo.modified");
        for _ in 0..2 {
            world.start();
            let mut agent = world.session("s");
            agent.read("a.txt");
            editor.lua("require('touchmark.link').wake()");
            editor.connected();
            // What was there before is told to every daemon.
            unsaved(&mut agent, "a.txt", true);
            world.kill();
            editor.until("return require('touchmark').file() == nil");
            assert_eq!(editor.lua("return require('touchmark').statusline()"), "");
        }
        assert_eq!(editor.messages(), "");
        // By itself, too.
        world.start();
        editor.connected();
        let mut agent = world.session("s");
        unsaved(&mut agent, "a.txt", true);
        // An editor that crashes holds nothing.
        editor.kill();
        unsaved(&mut agent, "a.txt", false);
    });
}

#[test]
fn a_daemon_is_started_only_where_that_is_wanted() {
    each(|program| {
        let world = World::asleep();
        fs::create_dir(world.path(".git")).unwrap();
        world.file("a.txt", "one\n");
        let open = |start: &str, command: &Path| {
            let init = format!("require('touchmark').setup{{ start = '{start}' }}");
            Neovim::start_with(&world, program, &init, &["a.txt"], |nvim| {
                nvim.env("TOUCHMARK_BIN", command);
            })
        };
        let mut never = open("never", &binary());
        never.until("local l = require('touchmark.link').all()[1] return l and l.why");
        assert!(!world.socket().exists());
        // It cannot be started: said once, however often it is tried.
        let mut cannot = open("always", Path::new("/nowhere/touchmark"));
        cannot.until("return #require('touchmark.errors').all() > 0");
        for _ in 0..3 {
            cannot.lua(
                "local l = require('touchmark.link').all()[1] l.started_at = nil l:start_daemon()",
            );
        }
        cannot.until("return vim.fn.execute('messages'):find('no daemon could be started')");
        let messages = cannot.messages();
        assert_eq!(messages.matches("no daemon").count(), 1, "{messages}");
        let mut git = open("when git", &binary());
        git.connected();
        let mut client = world.client();
        let workspace = client.ok("status", json!({}))["workspace"].clone();
        assert_eq!(workspace, json!(world.workspace()));
        client.ok("shutdown", json!({}));
    });
}

/// SEC-8: a socket that is named explicitly may be another workspace's, and a
/// socket in a directory that others can write may be anyone's.
#[test]
fn sec8_no_other_daemon_is_told_anything() {
    each(|program| {
        let (world, _agent) = world();
        let other = world.outside().join("other");
        fs::create_dir_all(other.join(".git")).unwrap();
        fs::write(other.join("b.txt"), "one\n").unwrap();
        let file = other.join("b.txt").to_string_lossy().into_owned();
        let socket = world.socket();
        let mut editor = Neovim::start_with(&world, program, SETUP, &[&file], |nvim| {
            nvim.env("TOUCHMARK_SOCKET", socket);
        });
        editor.until(
            "local l = require('touchmark.link').all()[1] return l and l.state == 'refused'",
        );
        let messages = editor.messages();
        for path in [&other, world.workspace()] {
            assert!(messages.contains(&*path.to_string_lossy()), "{messages}");
        }
        drop(editor);
        let directory = socket.parent().unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
        // A mark, so that the workspace is known without a daemon.
        fs::create_dir(world.path(".git")).unwrap();
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.until(
            "local l = require('touchmark.link').all()[1]
            return l and l.why and l.why:find('others may write', 1, true)",
        );
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
        editor.lua("require('touchmark.link').wake()");
        editor.connected();
    });
}

#[test]
fn a_daemon_that_hangs_holds_nobody_up() {
    each(|program| {
        let (world, mut agent) = world();
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();
        let stopped = touchmark_tests::process::Stopped::new(world.pid());
        editor.keys("ohello<Esc>:write<CR>");
        editor.until("return not vim.bo.modified and vim.fn.getline(2) == 'hello'");
        editor.command("Touchmark status");
        editor.command("bwipeout");
        // Much more than the socket takes: the connection is given up.
        editor.lua(
            "local link = require('touchmark.link').all()[1]
            for _ = 1, 300 do link:request('ping', { withinMs = 1 }) end
            local large = ('x'):rep(64 * 1024)
            for _ = 1, 40 do link:request('file/history', { path = large }) end",
        );
        editor.until("return not require('touchmark.link').all()[1]:is_connected()");
        drop(stopped);
        agent.sync();
        editor.lua("require('touchmark.link').wake()");
        editor.connected();
        assert_eq!(editor.messages().matches("touchmark").count(), 0);
    });
}

#[test]
fn views_help_and_health() {
    each(|program| {
        let (world, mut agent) = world();
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();
        replace(&mut agent, "a.txt", "one", "agent");
        editor.until("return vim.fn.getline(1) == 'agent'");
        let shows = |editor: &mut Neovim, command: &str, wanted: &str| {
            editor.command(command);
            editor.until(&format!(
                "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n'):find([[{wanted}]])"
            ));
            assert_eq!(editor.lua("return vim.bo.modified"), false);
            editor.command("bwipeout");
        };
        shows(&mut editor, "Touchmark feed", "agent%-1 +edited +a.txt");
        shows(&mut editor, "Touchmark history", "a.txt.-agent%-1 +edited");
        shows(
            &mut editor,
            "Touchmark history a.txt",
            "a.txt.-agent%-1 +edited",
        );
        shows(&mut editor, "Touchmark sessions", "\nagent%-1 +open");
        shows(&mut editor, "Touchmark status", "changed by  agent%-1");
        shows(
            &mut editor,
            "checkhealth touchmark",
            "daemon %d+%.%d+%.%d+, process",
        );
        let complete = |editor: &mut Neovim, lead: &str| -> Value {
            editor.lua(&format!("return vim.fn.getcompletion('{lead}', 'cmdline')"))
        };
        let all = json!([
            "blame", "feed", "group", "history", "keep", "later", "next", "previous", "redo",
            "review", "sessions", "status", "undo",
        ]);
        assert_eq!(complete(&mut editor, "Touchmark "), all);
        assert_eq!(complete(&mut editor, "Touchmark h"), json!(["history"]));
        assert_eq!(
            complete(&mut editor, "Touchmark history a"),
            json!(["a.txt"])
        );
        editor.command("helptags ALL");
        for subject in [
            "touchmark",
            ":Touchmark",
            "touchmark-options",
            "touchmark-review",
            "touchmark.statusline()",
        ] {
            editor.command(&format!("help {subject}"));
            let tag = editor.lua("return vim.fn.bufname()");
            assert!(text(&json!({ "name": tag }), "name").ends_with("doc/touchmark.txt"));
        }
    });
}

/// Waits until `path` has this content on disk.
fn on_disk(world: &World, path: &str, wanted: &str) {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = fs::read_to_string(world.path(path)).unwrap_or_default();
        if found == wanted {
            return;
        }
        assert!(Instant::now() < end, "{path}: {found:?}, not {wanted:?}");
        std::thread::yield_now();
    }
}

/// Waits until the last notice contains `wanted`.
fn notice(editor: &mut Neovim, wanted: &str) {
    let is_said = format!(
        "local n = require('touchmark.notice').last return n and n:find({wanted:?}, 1, true)"
    );
    editor.until(&is_said);
}

const EIGHT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

#[test]
fn a_user_reviews_what_an_agent_changed() {
    const PLACED: &str = "require('touchmark.queue').placed(0)";
    each(|program| {
        let world = World::new();
        let mut agent = world.session("0b3f6a52-8f0e-4a55-9d5e-6a1d3c1e7f10");
        world.file("a.txt", EIGHT);
        world.file("deep/b.txt", EIGHT);
        world.file("gone.txt", EIGHT);
        agent.read("gone.txt");
        for path in ["a.txt", "deep/b.txt"] {
            agent.read(path);
            replace(&mut agent, path, "two", "zwei");
            replace(&mut agent, path, "seven", "sieben\nmore");
        }
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();

        // From one change to the next, in the file and over its end.
        for (line, file) in [
            (2, "a.txt"),
            (7, "a.txt"),
            (2, "deep/b.txt"),
            (7, "deep/b.txt"),
            (2, "a.txt"),
        ] {
            editor.command("Touchmark next");
            let is_there =
                format!("return vim.fn.line('.') == {line} and vim.fn.expand('%') == '{file}'");
            editor.until(&is_there);
        }
        editor.until(&format!("return vim.deep_equal({PLACED}, {{2, 7, 8}})"));
        editor.command("Touchmark previous");
        editor.until("return vim.fn.expand('%') == 'deep/b.txt' and vim.fn.line('.') == 7");

        // A file that an agent has deleted is in the view alone.
        let window = agent.ok("command/begin", json!({"scope": "workspace"}));
        fs::remove_file(world.path("gone.txt")).unwrap();
        agent.ok("command/end", json!({"command": window["command"]}));
        editor.command("Touchmark next");
        editor.until("return vim.fn.expand('%') == 'a.txt' and vim.fn.line('.') == 2");
        editor.command("Touchmark review");
        editor.until("return vim.fn.getline(1) == '5 changes by agents to review'");
        editor.command("call search('^gone.txt: deleted the file')");
        editor.keys("<CR>");
        notice(&mut editor, "gone.txt was deleted");
        editor.keys("U");
        on_disk(&world, "gone.txt", EIGHT);
        editor.keys("q");
        editor.command("Touchmark previous");
        editor.until("return vim.fn.expand('%') == 'deep/b.txt' and vim.fn.line('.') == 7");

        // Undone in the file: the other change stays, and the buffer follows.
        editor.command("Touchmark undo");
        notice(&mut editor, "undone: deep/b.txt, lines 7-8 changed");
        on_disk(&world, "deep/b.txt", &EIGHT.replace("two", "zwei"));
        editor.until("return vim.fn.getline(7) == 'seven'");
        editor.until(&format!("return vim.deep_equal({PLACED}, {{2}})"));
        editor.command("Touchmark redo");
        let both = EIGHT
            .replace("two", "zwei")
            .replace("seven", "sieben\nmore");
        on_disk(&world, "deep/b.txt", &both);
        editor.until("return vim.fn.getline(7) == 'sieben'");

        // Kept in the view: nothing is written.
        editor.command("Touchmark review");
        editor.until("return vim.fn.getline(1) == '4 changes by agents to review'");
        let shown = editor.lines();
        assert_eq!(shown[3], "a.txt: line 2 changed  agent-1, just now");
        assert_eq!(shown[4], "-two");
        assert_eq!(shown[5], "+zwei");
        editor.until("return vim.fn.line('.') == 4");
        editor.keys("K");
        editor.until("return vim.fn.getline(1) == '3 changes by agents to review'");
        on_disk(&world, "a.txt", &both);
        editor.until("return vim.fn.getline('.') == 'a.txt: lines 7-8 changed  agent-1, just now'");

        // The list is older than the file's last change: nothing is undone.
        let hunk = agent.ok("review/list", json!({"paths": ["a.txt"]}))["hunks"][0].clone();
        let kept = json!({"hunks": [{"path": "a.txt", "id": hunk["id"]}]});
        agent.client.ok("review/keep", kept);
        editor.keys("U");
        notice(
            &mut editor,
            "conflict in a.txt: the change is no longer as it was listed",
        );
        on_disk(&world, "a.txt", &both);
        editor.until("return vim.fn.getline(1) == '2 changes by agents to review'");

        // Opened from there; an undo does not go over unsaved changes.
        editor.keys("<CR>");
        editor.until("return vim.fn.expand('%') == 'deep/b.txt' and vim.fn.line('.') == 2");
        editor.keys("Gomine<Esc>ggj");
        editor.command("Touchmark undo");
        notice(&mut editor, "deep/b.txt has unsaved changes");
        on_disk(&world, "deep/b.txt", &both);
        editor.keys(":write<CR>");
        story_ends_with_the_users_save(&mut agent, "deep/b.txt");
        editor.command("Touchmark undo");
        on_disk(
            &world,
            "deep/b.txt",
            &format!("{}mine\n", both.replace("zwei", "two")),
        );
    });
}

#[test]
fn rev3_modes_and_symlinks_are_reviewed_in_the_view() {
    each(|program| {
        let world = World::new();
        let mut agent = world.session("s");
        for name in ["a.txt", "kept", "undone"] {
            world.file(name, EIGHT);
            let mode = fs::Permissions::from_mode(0o644);
            fs::set_permissions(world.path(name), mode).unwrap();
        }
        symlink("kept", world.path("link")).unwrap();
        let window = agent.ok("command/begin", json!({"scope": "workspace"}));
        for name in ["a.txt", "kept", "undone"] {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(world.path(name), mode).unwrap();
        }
        fs::remove_file(world.path("link")).unwrap();
        symlink("undone", world.path("link")).unwrap();
        symlink("kept", world.path("new")).unwrap();
        agent.ok("command/end", json!({"command": window["command"]}));
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();

        // They have no line to go to, and none that a command could be about.
        editor.command("Touchmark next");
        notice(&mut editor, "Only modes and symlinks wait for your review");
        editor.command("Touchmark undo");
        notice(
            &mut editor,
            "One of the whole file waits (mode 644 → 755): see `:Touchmark review`",
        );
        editor.command("Touchmark review");
        editor.until("return vim.fn.getline(1) == '5 changes by agents to review'");
        let shown = editor.lines();
        let shown: Vec<&str> = shown
            .as_array()
            .unwrap()
            .iter()
            .skip(2)
            .map(|line| line.as_str().unwrap())
            .collect();
        let by = "agent-1, just now";
        assert_eq!(
            shown,
            [
                "",
                &format!("a.txt: mode 644 → 755  {by}"),
                "",
                &format!("kept: mode 644 → 755  {by}"),
                "",
                &format!("link: symlink kept → undone  {by}"),
                "",
                &format!("new: symlink → kept  {by}"),
                "",
                &format!("undone: mode 644 → 755  {by}"),
            ]
        );
        let left = |editor: &mut Neovim, number: &str| {
            editor.until(&format!(
                "return vim.startswith(vim.fn.getline(1), '{number}')"
            ));
        };
        editor.command("call search('^kept:')");
        editor.keys("K");
        left(&mut editor, "4 changes");
        notice(&mut editor, "kept: kept, mode 644 → 755");
        // A symlink is not opened as the file that it leads to.
        editor.command("call search('^new:')");
        editor.keys("<CR>");
        notice(&mut editor, "new: symlink → kept");
        editor.keys("U");
        left(&mut editor, "3 changes");
        notice(&mut editor, "undone: new, symlink → kept");
        assert!(fs::symlink_metadata(world.path("new")).is_err());
        editor.command("call search('^link:')");
        editor.keys("U");
        left(&mut editor, "2 changes");
        let target = |name: &str| fs::read_link(world.path(name)).unwrap();
        assert_eq!(target("link"), Path::new("kept"));
        editor.command("call search('^undone:')");
        editor.keys("U");
        left(&mut editor, "1 change by");
        // Unsaved changes do not prevent the undo of a mode.
        editor.command("call search('^a.txt:')");
        editor.keys("<CR>");
        editor.until("return vim.fn.expand('%') == 'a.txt'");
        editor.keys("Gomine<Esc>");
        editor.command("Touchmark review");
        editor.command("call search('^a.txt:')");
        editor.keys("U");
        left(&mut editor, "No agent");
        let mode = |name: &str| {
            let found = fs::symlink_metadata(world.path(name)).unwrap();
            found.permissions().mode() & 0o777
        };
        let modes = ["a.txt", "kept", "undone"].map(mode);
        assert_eq!(modes, [0o644, 0o755, 0o644]);
        on_disk(&world, "a.txt", EIGHT);
        editor.command("Touchmark redo");
        notice(&mut editor, "the last undo was taken back");
        assert_eq!(mode("a.txt"), 0o755);
    });
}

#[test]
fn rev1_groups_are_kept_and_undone_and_whose_they_are_is_asked() {
    each(|program| {
        let (world, mut agent) = world();
        fs::create_dir(world.path("gen")).unwrap();
        let window = json!({"scope": "workspace", "label": "npm run codegen"});
        let window = agent.ok("command/begin", window);
        for n in 1..=9 {
            world.file(&format!("gen/{n}.js"), format!("const v = {n};\n"));
        }
        let command = text(&window, "command");
        agent.ok("command/end", json!({"command": command}));
        replace(&mut agent, "a.txt", "two", "zwei");
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();
        // What is asked, and what is answered.
        editor.lua(
            "vim.fn.confirm = function(question)
               _G.asked = question
               return table.remove(_G.answers, 1) or 0
             end",
        );
        let answers = |editor: &mut Neovim, answers: &str| {
            editor.lua(&format!("_G.asked, _G.answers = nil, {answers}"));
        };
        let has = |editor: &mut Neovim, line: &str| {
            editor.until(&format!("return vim.fn.search('{line}', 'nw') > 0"));
        };
        let files = || fs::read_dir(world.path("gen")).unwrap().count();

        // A generator's files are one entry, which can be shown one by one.
        editor.command("Touchmark review");
        editor.until("return vim.fn.getline(1) == '10 changes by agents to review'");
        let entry =
            format!("^`npm run codegen` ({command}, .*): 9 changes  9 files, agent-1 or you");
        has(&mut editor, &entry);
        has(&mut editor, "^  and 3 more");
        editor.command(&format!("call search('{entry}')"));
        editor.keys("S");
        has(
            &mut editor,
            "^gen/9.js: new file, 1 line  agent-1 or you, just now",
        );
        editor.keys("S");
        editor.until("return vim.fn.search('^gen/9.js: new file', 'nw') == 0");
        for (by, line) in [
            ("directory", "^gen/: 9 changes  9 files"),
            (
                "command",
                "^edits, or several commands: 1 change  1 file, agent-1",
            ),
            ("session", "^agent-1: 10 changes  10 files, agent-1 or you"),
            ("file", "^a.txt: line 2 changed"),
        ] {
            editor.keys("B");
            has(&mut editor, line);
            notice(&mut editor, &format!("grouped by {by}"));
        }

        // Without an answer to the second question all of it stays.
        answers(&mut editor, "{ 1 }");
        editor.command(&format!("call search('{entry}')"));
        editor.keys("U");
        editor.until("return (_G.asked or ''):find(\"The command's, or yours?\", 1, true)");
        let asked = editor.lua("return _G.asked").to_string();
        assert!(
            asked.contains("gen/1.js +1, gen/2.js +1, gen/3.js +1, and 6 more"),
            "{asked}"
        );
        assert!(asked.contains("  + const v = 1;"), "{asked}");
        assert_eq!(files(), 9);
        // One is the user's.
        answers(&mut editor, "{ 2 }");
        editor.keys("S");
        editor.command("call search('^gen/9.js')");
        editor.keys("U");
        editor.until("return vim.fn.getline(1) == '9 changes by agents to review'");
        // The others are the command's.
        answers(&mut editor, "{ 1, 1 }");
        editor.command("call search('^`npm run codegen`')");
        editor.keys("U");
        notice(&mut editor, "undone: 8 changes in 8 files");
        editor.until("return vim.fn.getline(1) == '1 change by agents to review'");
        assert_eq!(files(), 1);
        editor.command("Touchmark redo");
        editor.until("return vim.fn.getline(1) == '9 changes by agents to review'");
        assert_eq!(files(), 9);

        // By name: a command's and a directory's changes.
        answers(&mut editor, "{ 1 }");
        editor.command(&format!("Touchmark undo {command}"));
        notice(&mut editor, &format!("by {command} (back: "));
        editor.until("return vim.fn.getline(1) == '1 change by agents to review'");
        assert_eq!(files(), 1);
        editor.command("Touchmark redo");
        editor.until("return vim.fn.getline(1) == '9 changes by agents to review'");
        answers(&mut editor, "{ 1 }");
        editor.command("Touchmark keep gen");
        notice(&mut editor, "kept: 8 changes in 8 files");
        editor.until("return vim.fn.getline(1) == '1 change by agents to review'");
        assert_eq!(files(), 9);
        on_disk(&world, "a.txt", "one\nzwei\nthree\n");
    });
}

fn story_ends_with_the_users_save(agent: &mut Session, path: &str) {
    let end = Instant::now() + PATIENCE;
    while agent.saves(path, false).last().map(String::as_str) != Some(SAVED) {
        assert!(Instant::now() < end, "{path}: the save was not seen");
    }
}

#[test]
fn undo_of_a_session_says_which_line_stays() {
    each(|program| {
        let (world, mut agent) = world();
        replace(&mut agent, "a.txt", "one", "eins");
        replace(&mut agent, "a.txt", "three", "drei");
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();
        // The user changes one of the agent's two lines.
        editor.keys("Gcctrois<Esc>:write<CR>");
        story_ends_with_the_users_save(&mut agent, "a.txt");
        editor.lua("vim.fn.confirm = function() return 1 end");
        editor.command("Touchmark undo agent-1");
        notice(
            &mut editor,
            "conflict: 1 change stays: a.txt line 3 (changed since by you)",
        );
        on_disk(&world, "a.txt", "one\ntwo\ntrois\n");
    });
}

#[test]
fn the_cursors_line_has_its_author() {
    const SHOWN: &str = "require('touchmark.blame').shown(0)[1]";
    each(|program| {
        let (world, mut agent) = world();
        replace(&mut agent, "a.txt", "two", "zwei");
        let mut editor = Neovim::start(&world, program, SETUP, &["a.txt"]);
        editor.connected();
        editor.command("Touchmark blame");
        // The first line is older than what is on record.
        editor.keys("j");
        editor.until(&format!("return {SHOWN} == 'agent-1, just now'"));
        // Unsaved lines above: the author is still that of the saved line.
        editor.keys("ggOmine<Esc>jj");
        editor.until(&format!(
            "return vim.fn.line('.') == 3 and {SHOWN} == 'agent-1, just now'"
        ));
        editor.keys("gg:write<CR>");
        editor.until(&format!("return {SHOWN} == 'you, just now'"));
        editor.command("Touchmark blame");
        assert_eq!(editor.lua(&format!("return {SHOWN}")), Value::Null);
        // What the file contained at first is no change.
        editor.command("Touchmark history");
        editor.until("return vim.fn.getline('$'):find('baseline +as first seen$')");
        let lines = editor.lines().to_string();
        assert!(!lines.contains("watching"), "{lines}");
    });
}

fn runs(command: &mut Command) {
    let ran = command.output().unwrap();
    assert!(
        ran.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn a_clone_of_the_packed_repository_is_a_plug_in() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let base = tempfile::tempdir().unwrap();
    let repository = base.path().join("touchmark.nvim");
    let pack = || runs(Command::new(top.join("packaging/neovim")).arg(&repository));
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&repository).args(arguments);
        command
    };
    pack();
    runs(&mut git(&["init", "--quiet"]));
    runs(&mut git(&["add", "--all"]));
    let who = ["-c", "user.name=n", "-c", "user.email=e"];
    runs(&mut git(
        &[&who[..], &["commit", "--quiet", "-m", "1"]].concat()
    ));
    // The next release is made over the last: what it lacks goes, the history
    // stays.
    fs::write(repository.join("lua/touchmark/old.lua"), "").unwrap();
    pack();
    let status = git(&["status", "--porcelain"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");
    // The files that a registry shows.
    let readme = fs::read_to_string(repository.join("README.md")).unwrap();
    let links = readme
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    for link in links.filter(|link| !link.starts_with("http")) {
        assert!(repository.join(link).exists(), "README.md: {link}");
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(repository.join(name).exists(), "{name}");
    }
    each(|program| {
        let home = tempfile::tempdir().unwrap();
        let start = home.path().join("pack/managed/start");
        fs::create_dir_all(&start).unwrap();
        let cloned = start.join("touchmark.nvim");
        runs(
            Command::new("git")
                .args(["clone", "--quiet"])
                .args([&repository, &cloned]),
        );
        let init = home.path().join("init.lua");
        fs::write(&init, SETUP).unwrap();
        let tried = "lua local ok, why = pcall(function()
            vim.cmd('helptags ALL') vim.cmd('help :Touchmark')
            assert(vim.api.nvim_buf_get_name(0):find('managed/start/touchmark.nvim/doc/touchmark.txt', 1, true))
            vim.cmd('close') vim.cmd('Touchmark status')
            assert(vim.bo.filetype == 'touchmark')
            assert(vim.fn.maparg('<Plug>(touchmark-keep)', 'n') ~= '')
        end) if not ok then io.stderr:write(why) vim.cmd('cquit') end vim.cmd('qall!')";
        let child = Command::new(program)
            .args(["--headless", "-n", "-i", "NONE", "-u"])
            .arg(&init)
            .arg("--cmd")
            .arg(format!("set packpath^={}", home.path().display()))
            .args(["-c", &tried.replace('\n', " ")])
            .env("XDG_RUNTIME_DIR", home.path())
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = finish(child, "Neovim with the packed plug-in");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    });
}
