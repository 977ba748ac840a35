//! HIST-8 and REV-2 where git has other bytes than the disk: behind filters and
//! conversions. touchmark runs none of them, git does. Each line is unique, so
//! the test knows who typed it.

use serde_json::json;
use touchmark_tests::{Session, World, user};

use super::carried::{
    AGENTS, QUEUED, base, blamed, by_agent, command, on_disk, queue, sh, undo, upstream, write,
};

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

    /// A repository with `f` on `main`, and with a commit by somebody else on
    /// `up`.
    fn repository(self, world: &World) {
        let scripts = world.outside().join("filters");
        std::fs::create_dir_all(&scripts).unwrap();
        let scripts = scripts.display();
        world.file("f", base());
        let (attributes, set) = match self {
            Self::Prefix => ("filter=x", format!(
                "printf 'sed s/^/stored:/\\n' > {scripts}/clean && \
                 printf 'sed s/^stored://\\n' > {scripts}/smudge"
            )),
            Self::Pointer => ("filter=x", format!(
                "printf 'cat > {scripts}/$$; h=$(sha256sum < {scripts}/$$ | cut -c1-64); \
                  mv {scripts}/$$ {scripts}/$h; echo pointer $h\\n' > {scripts}/clean && \
                 printf 'read p h; cat {scripts}/$h\\n' > {scripts}/smudge"
            )),
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
        let raw = format!("test \"$(git cat-file -p HEAD:f | sha1sum)\" != \"$(sha1sum < f)\"");
        sh(world, &raw);
    }
}

/// The agent's edit, by a command: also of a text that is no UTF-8.
const EDIT: &str = "LC_ALL=C sed -i 's/^line 20\\(\\r*\\)$/line 20 agent\\1\\nline 20b agent\\1/' f";

fn edit(world: &World, agent: &mut Session, way: Way) {
    match way {
        Way::Encoding => command(world, agent, EDIT),
        _ => {
            let text = by_agent(&way.text(world));
            write(agent, "f", &way.on_disk(&text));
        }
    }
}

fn plain(text: String) -> String {
    text.replace('\r', "")
}

fn run(world: &World, agent: &mut Session, by_the_agent: bool, line: &str) {
    match by_the_agent {
        true => command(world, agent, line),
        false => sh(world, line),
    }
    agent.sync();
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
        (true, "git switch -q up; git cherry-pick main", true),
        (false, "git stash -q; git stash pop -q", false),
        (false, "git stash -q; git switch -q up; git switch -q main; git stash pop -q", false),
        (false, "git pull -q --rebase --autostash . up", true),
        (false, "git checkout -q -m up", true),
    ];
    let only = std::env::var("WAY").ok();
    let mut wrong = Vec::new();
    for way in WAYS {
        if only.as_ref().is_some_and(|only| *only != format!("{way:?}")) { continue; }
        for (is_committed, line, is_upstream) in steps {
            // Two pointers do not merge.
            if way == Way::Pointer && is_upstream {
                continue;
            }
            for by_the_agent in [false, true] {
                let story = format!("{way:?}, {line}, by the agent: {by_the_agent}");
                let world = World::new();
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
                let rest = way.text(&world);
                assert!(rest.contains(AGENTS), "{story}: {rest}");
                let mut check = |what: &str, found: String, wanted: String| {
                    if found != wanted {
                        let short = |text: String| text.replace("\n", "|").chars().filter(|c| *c != ' ').take(260).collect::<String>();
                        wrong.push(format!("{story}: {what}: {} != {}", short(found), short(wanted).chars().take(60).collect::<String>()));
                    }
                };
                check("blame", plain(blamed(&mut agent, "f")), AGENTS.into());
                check("queue", plain(format!("{:?}", queue(&mut agent))).replace("\\r", ""), format!("{:?}", [QUEUED]));
                let undone = agent.client.ok("undo", json!({"session": "a", "likely": true}));
                if way.text(&world).contains("agent") { eprintln!("{story}, {undone}\n{}\n", agent.client.ok("file/log", json!({"paths": ["f"]}))); }
                let now = way.text(&world);
                let expected = rest.replace(AGENTS, "line 20\n");
                check("undone", now, expected);
                check("upstream", way.text(&world).contains("line 1 upstream").to_string(), is_upstream.to_string());
            }
        }
    }
    let _ = (on_disk, upstream, user::pause, undo);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
