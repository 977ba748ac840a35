//! HIST-8 and REV-2 where git has other bytes than the disk: behind filters and
//! conversions. touchmark runs none of them, git does. Each line is unique, so
//! the test has the one who typed it.

use serde_json::json;
use touchmark_tests::{Session, World, user};

use super::carried::{AGENTS, QUEUED, base, blamed, by_agent, command, queue, sh, write};

/// How git converts `f`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Each line has a prefix in git.
    Prefix,
    /// Git has the content's hash, as LFS does.
    Pointer,
    Autocrlf,
    Eol,
    Ident,
    Encoding,
}

const WAYS: [Way; 6] = [
    Way::Prefix,
    Way::Pointer,
    Way::Autocrlf,
    Way::Eol,
    Way::Ident,
    Way::Encoding,
];

impl Way {
    /// Returns a text as it is on the disk.
    fn on_disk(self, text: &str) -> String {
        match self {
            Self::Autocrlf | Self::Eol => text.replace('\n', "\r\n"),
            _ => text.to_owned(),
        }
    }

    /// Returns the text of `f`, whatever git has made of the ends of lines and
    /// of the id in it.
    fn text(self, world: &World) -> String {
        let now = String::from_utf8_lossy(&std::fs::read(world.path("f")).unwrap()).into_owned();
        match self {
            Self::Autocrlf | Self::Eol => {
                assert_eq!(now, now.replace("\r\n", "\n").replace('\n', "\r\n"));
                now.replace("\r\n", "\n")
            }
            _ => now,
        }
    }

    /// A repository with `f` on `main`, and with a commit by another person on
    /// `up`.
    fn repository(self, world: &World) {
        let scripts = world.outside().join("filters");
        std::fs::create_dir_all(&scripts).unwrap();
        let scripts = scripts.display();
        world.file("f", base());
        let (attributes, set) = match self {
            Self::Prefix => (
                "filter=x",
                format!(
                    "printf 'sed s/^/stored:/\\n' > {scripts}/clean && \
                 printf 'sed s/^stored://\\n' > {scripts}/smudge"
                ),
            ),
            Self::Pointer => (
                "filter=x",
                format!(
                    "printf 'cat > {scripts}/$$; h=$(sha256sum < {scripts}/$$ | cut -c1-64); \
                  mv {scripts}/$$ {scripts}/$h; echo pointer $h\\n' > {scripts}/clean && \
                 printf 'read p h; cat {scripts}/$h\\n' > {scripts}/smudge"
                ),
            ),
            Self::Autocrlf => ("text=auto", "git config core.autocrlf true".into()),
            Self::Eol => ("eol=crlf", "true".into()),
            Self::Ident => ("ident", "echo '$Id$' > f && cat f.base >> f".into()),
            Self::Encoding => (
                "working-tree-encoding=ISO-8859-1",
                "printf '\\344\\n' > f && cat f.base >> f".into(),
            ),
        };
        let line = format!(
            "cp f f.base && git init -q -b main && {set} && rm f.base && \
             echo 'f {attributes}' > .gitattributes && \
             git config filter.x.clean 'sh {scripts}/clean' && \
             git config filter.x.smudge 'sh {scripts}/smudge' && \
             git config filter.x.required true && \
             git add -A && git commit -qm base && rm f && git checkout -q f && \
             git switch -qc up && \
             sed -i 's/^line 1\\b/line 1 upstream/' f && git commit -qam up && git switch -q main"
        );
        sh(world, &line);
        let raw = "test \"$(git cat-file -p HEAD:f | sha1sum)\" != \"$(sha1sum < f)\"";
        sh(world, raw);
    }
}

/// The agent's edit, by a command: also of a text that is no UTF-8.
const EDIT: &str =
    "LC_ALL=C sed -i 's/^line 20\\(\\r*\\)$/line 20 agent\\1\\nline 20b agent\\1/' f";

fn edit(world: &World, agent: &mut Session, way: Way) {
    match way {
        Way::Encoding => command(world, agent, EDIT),
        _ => {
            let text = by_agent(&way.text(world));
            write(agent, "f", &way.on_disk(&text));
        }
    }
}

fn run(world: &World, agent: &mut Session, by_the_agent: bool, line: &str) {
    match by_the_agent {
        true => command(world, agent, line),
        false => sh(world, line),
    }
    agent.sync();
}

/// Plays what git does with the agent's lines, and returns what is wrong.
fn played(
    way: Way,
    is_committed: bool,
    line: &str,
    is_upstream: bool,
    by_the_agent: bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut world = World::new();
    way.repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    edit(&world, &mut agent, way);
    if is_committed {
        command(&world, &mut agent, "git commit -qam agents");
    }
    for step in line.split("; ") {
        run(&world, &mut agent, by_the_agent, step);
    }
    let now = way.text(&world);
    assert!(now.contains(AGENTS), "{now}");
    let mut check = |what: &str, found: &str, wanted: &str| {
        if found.replace('\r', "") != wanted {
            let short = |text: &str| text.chars().take(300).collect::<String>();
            wrong.push(format!(
                "{way:?}, {line}, by the agent: {by_the_agent}: {what}: {:?}, not {:?}",
                short(found),
                short(wanted)
            ));
        }
    };
    check("blame", &blamed(&mut agent, "f"), AGENTS);
    check("queue", &queue(&mut agent).join(" and "), QUEUED);
    agent
        .client
        .ok("undo", json!({"session": "a", "likely": true}));
    let undone = way.text(&world);
    check("undone", &undone, &now.replace(AGENTS, "line 20\n"));
    assert_eq!(undone.contains("line 1 upstream"), is_upstream, "{line}");
    world.healthy();
    wrong
}

#[test]
fn hist8_what_git_brings_through_a_filter_is_carried() {
    // Whether the lines are committed, what git does, and whether upstream's
    // change is there afterwards.
    let steps = [
        (true, "git switch -q up; git switch -q main", false),
        (true, "git switch -q up && git switch -q main", false),
        (true, "git commit -q --amend -m reworded", false),
        (true, "git rebase -q up", true),
        (true, "git merge -q --no-edit up", true),
        (false, "git stash -q; git stash pop -q", false),
        (
            false,
            "git stash -q; git switch -q up; git switch -q main; git stash pop -q",
            false,
        ),
    ];
    let mut wrong = Vec::new();
    for way in WAYS {
        for (is_committed, line, is_upstream) in steps {
            // Two pointers do not merge.
            if way == Way::Pointer && is_upstream {
                continue;
            }
            for by_the_agent in [false, true] {
                wrong.extend(played(way, is_committed, line, is_upstream, by_the_agent));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn hist8_what_an_agents_switch_brings_through_a_filter_is_not_its() {
    for way in WAYS {
        for line in [
            "git switch -q up",
            "git merge -q up",
            "git switch -q --detach up",
        ] {
            let mut world = World::new();
            way.repository(&world);
            let mut agent = world.session("a");
            agent.read("f");
            command(&world, &mut agent, line);
            let now = way.text(&world);
            assert!(now.contains("line 1 upstream\n"), "{way:?}, {line}: {now}");
            assert_eq!(blamed(&mut agent, "f"), "", "{way:?}, {line}");
            assert_eq!(queue(&mut agent), [""; 0], "{way:?}, {line}");
            // Nothing is to be undone.
            let undone = agent
                .client
                .call("undo", json!({"session": "a", "likely": true}));
            assert_eq!(way.text(&world), now, "{way:?}, {line}: {undone:?}");
            world.healthy();
        }
    }
}

/// What git stores from the disk is not carried by that.
#[test]
fn hist8_what_an_agent_commits_through_a_filter_is_its() {
    for way in WAYS {
        for store in [
            "git commit -qam agents",
            "git add f",
            "git add f && git status",
        ] {
            let mut world = World::new();
            way.repository(&world);
            let mut agent = world.session("a");
            agent.read("f");
            let before = way.text(&world);
            command(&world, &mut agent, &format!("{EDIT} && {store}"));
            let blamed = blamed(&mut agent, "f").replace('\r', "");
            assert_eq!(blamed, AGENTS, "{way:?}, {store}");
            let queued = queue(&mut agent).join(" and ").replace('\r', "");
            assert_eq!(queued, QUEUED, "{way:?}, {store}");
            let undone = agent
                .client
                .ok("undo", json!({"session": "a", "likely": true}));
            assert_eq!(way.text(&world), before, "{way:?}, {store}: {undone}");
            world.healthy();
        }
    }
}

/// The user's commit keeps the lines, also where git has other bytes.
#[test]
fn rev2_what_the_user_commits_through_a_filter_is_kept() {
    // Behind other filters it is not always known what was committed.
    for way in [Way::Autocrlf, Way::Eol, Way::Ident] {
        let mut world = World::new();
        way.repository(&world);
        let mut agent = world.session("a");
        agent.read("f");
        edit(&world, &mut agent, way);
        assert_eq!(queue(&mut agent).len(), 1, "{way:?}");
        sh(&world, "git commit -qam 'by the user'");
        assert_eq!(queue(&mut agent), [""; 0], "{way:?}");
        world.healthy();
    }
}

/// What a stash or a forced switch destroys comes back.
#[test]
fn hist8_what_git_destroys_behind_a_filter_comes_back() {
    for way in WAYS {
        for line in ["git stash -q", "git switch -q --discard-changes up"] {
            let mut world = World::new();
            way.repository(&world);
            let mut agent = world.session("a");
            agent.read("f");
            let text = way.text(&world).replace("line 20\n", "line 20 mine\n");
            let bytes = way.on_disk(&text);
            if way == Way::Encoding {
                sh(&world, "LC_ALL=C sed -i 's/^line 20$/line 20 mine/' f");
            } else {
                user::write(&world.path("f"), &bytes);
            }
            agent.sync();
            user::pause(300);
            command(&world, &mut agent, line);
            assert!(!way.text(&world).contains("mine"), "{way:?}, {line}");
            let undone = agent.client.ok("undo", json!({"session": "a"}));
            let now = way.text(&world);
            assert!(now.contains("line 20 mine\n"), "{way:?}, {line}: {undone}");
            world.healthy();
        }
    }
}
