#![allow(clippy::unwrap_used)]
use touchmark_engine::patterns::Patterns;

use super::*;

/// Returns the defaults with the values of a user's file, or its first error.
pub(super) fn parse(text: &str) -> Result<Config, String> {
    let mut config = Config::default();
    let wrong = config
        .apply(Path::new("c.toml"), text.as_bytes(), Whose::User)
        .wrong;
    match wrong.first() {
        Some(wrong) => Err(wrong.to_string()),
        None => Ok(config),
    }
}

#[test]
fn every_key() {
    let config = parse(
        r#"
        case = "insensitive"
        durability = "power"
        watch = "off"
        idle_exit = "5 min"
        [marks]
        edit_ttl = "90 s"
        flag_ttl = 3
        hook_ttl = "1 h"
        command_ttl = "2 h"
        late = "500 ms"
        [limits]
        frame = "1 MiB"
        connections = 7
        read_text = 1000
        [contents]
        total = "1 GiB"
        file = "64 KiB"
        exclude = ["*.secret"]
        [scope]
        exclude = ["data"]
        [guard]
        protect = ["deploy/**"]
        [versions]
        keep = "1,000 per path, 2 days"
        [sessions]
        keep = "7 days"
        [recovery]
        keep = "3 days, 1 MiB"
        ignored = "2 MiB"
        [dedup]
        enabled = false
        [hooks]
        replace_repeats = true
        gate = "off"
        gates = { codex = "strict" }
        unsaved = "off"
        [desktop]
        losses = true
        [worktrees]
        notice = false
        [calls]
        keep = 5
        age = "1 min"
        bytes = "1 KiB"
        never = ["say"]
        rules = { readFile = ["file"] }
        [telemetry]
        enabled = true
        endpoint = "http://collector:4318/x"
        headers = { authorization = "Bearer x" }
        paths = "plain"
        "#,
    )
    .unwrap();
    assert_eq!(
        config,
        Config {
            case: Some(Case::Insensitive),
            durability: Durability::Power,
            watch: Choice::Off,
            idle_exit: 300_000,
            edit_ttl: 90_000,
            flag_ttl: 3_000,
            hook_ttl: 3_600_000,
            command_ttl: 7_200_000,
            late: 500,
            frame: 1 << 20,
            connections: 7,
            read_text: 1000,
            contents_total: 1 << 30,
            contents_file: 64 << 10,
            contents_exclude: vec!["*.secret".into()],
            scope_exclude: vec!["data".into()],
            guard_protect: vec!["deploy/**".into()],
            versions_per_path: 1000,
            versions_age: 2 * 86_400_000,
            sessions_keep: 7 * 86_400_000,
            recovery_age: 3 * 86_400_000,
            recovery_bytes: 1 << 20,
            recovery_ignored: 2 << 20,
            dedup: false,
            replace_repeats: true,
            off: Vec::new(),
            gate: Gate::Off,
            gates: [("codex".to_owned(), Gate::Strict)].into(),
            unsaved: Unsaved::Off,
            desktop_losses: true,
            worktrees_notice: false,
            calls_keep: 5,
            calls_age: 60_000,
            calls_bytes: 1 << 10,
            calls_never: vec!["say".into()],
            calls_rules: {
                let mut rules = Config::default().calls_rules;
                rules.insert("readFile".into(), vec!["file".into()]);
                rules
            },
            telemetry: true,
            telemetry_endpoint: Some(Endpoint::new("http://collector:4318/x").unwrap()),
            telemetry_headers: {
                let header = ("authorization".to_owned(), "Bearer x".to_owned());
                Headers::new([header].into()).unwrap()
            },
            telemetry_paths: Paths::Plain,
        }
    );
}

#[test]
fn the_engine_shares_its_defaults() {
    let engine = Config::default().engine(b"/".to_vec(), false);
    assert_eq!(engine, touchmark_engine::Config::default());
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, start) in [
        ("\n\ncolour = 1\n", "c.toml:3: there is no key \"colour\""),
        (
            "[marks]\nttl = 1\n",
            "c.toml:2: there is no key \"marks.ttl\"",
        ),
        ("case = \"loud\"\n", "c.toml:1: unknown variant `loud`"),
        (
            "[marks]\n\nlate = \"10 parsecs\"\n",
            "c.toml:3: \"10 parsecs\" is not a duration",
        ),
        (
            "[limits]\nframe = \"-1 MiB\"\n",
            "c.toml:2: \"-1 MiB\" is not a size",
        ),
        ("[limits]\nframe = -1\n", "c.toml:2: "),
        (
            "[limits]\nframe = \"1 KiB\"\n",
            "c.toml:2: \"1 KiB\" is not a size like \"16 MiB\", from 65536 to",
        ),
        ("[contents]\n\ntotal = \"2048 GiB\"\n", "c.toml:3: "),
        (
            "idle_exit = \"36501 days\"\n",
            "c.toml:1: \"36501 days\" is not a duration",
        ),
        (
            "[limits]\nconnections = 0\n",
            "c.toml:2: 0 is not a number from 1 to 1000000",
        ),
        ("[recovery]\nkeep = \"5000000000\"\n", "c.toml:2: "),
        ("[contents]\nexclude = [\n\"ok\",\n\"[\"]\n", "c.toml:4: "),
        ("a = = 1", "c.toml:1: "),
        ("marks = 1\n", "c.toml:1: `marks` is a table"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(start), "{text:?} gave {error:?}");
    }
}

/// Returns the result of a user's file and a workspace's file.
fn both(user: &str, workspace: &str) -> Configured {
    let directory = tempfile::tempdir().unwrap();
    let [of_user, of_workspace] =
        [("config.toml", user), (".touchmark.toml", workspace)].map(|(name, text)| {
            let file = directory.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        });
    Config::load(&of_user, &of_workspace, &trust(&of_user), false).unwrap()
}

#[test]
fn absent_files_say_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let none = directory.path().join("none");
    let done = Config::load(&none, &none, &trust(&none), false).unwrap();
    assert_eq!(done, Configured::default());
    assert!(Config::load(&none, &none, &trust(&none), true).is_err());
}

/// For each key, a value that is looser than the user's and one that is
/// stricter, as a repository would set them.
#[test]
fn sec5_a_repository_only_tightens() {
    let user = r#"
        durability = "process"
        dedup.enabled = false
        hooks.gates = { codex = "strict" }
        [limits]
        read_text = 100
        [contents]
        total = 100
        file = 100
        exclude = ["*.secret"]
        [calls]
        keep = 10
        age = 10
        bytes = 10
        never = ["say"]
    "#;
    let plain = both(user, "").config;
    assert_eq!(both(user, "").wrong, []);
    for looser in [
        "limits.read_text = 101\n",
        "contents.total = 101\n",
        "contents.file = 101\n",
        "contents.exclude = []\n",
        "calls.keep = 11\n",
        "calls.age = 11\n",
        "calls.bytes = 11\n",
        "calls.never = []\n",
        "dedup.enabled = true\n",
        "hooks.replace_repeats = true\n",
        "hooks.gate = \"off\"\n",
        "hooks.unsaved = \"deny\"\n",
        "hooks.gates = { gemini = \"off\" }\n",
        "hooks.gates = { codex = \"destructive\" }\n",
    ] {
        assert_eq!(both(user, looser).config, plain, "{looser}");
    }
    let config = both(user, "contents.exclude = [\"a\", \"*.secret\"]\n").config;
    assert_eq!(config.contents_exclude, ["*.secret", "a"]);
    let config = both(user, "calls.never = [\"hear\"]\n").config;
    assert_eq!(config.calls_never, ["say", "hear"]);
    let config = both(user, "durability = \"power\"\ncalls.age = 9\n").config;
    assert_eq!(config.durability, Durability::Power);
    assert_eq!(config.calls_age, 9_000);
    let power = both("durability = \"power\"\n", "durability = \"process\"\n");
    assert_eq!(power.config.durability, Durability::Power);
    assert_eq!(power.wrong.len(), 1);
    let config = both("", "dedup.enabled = false\nlimits.read_text = 5\n").config;
    assert!(!config.dedup);
    assert_eq!(config.read_text, 5);
    let config = both("hooks.gate = \"off\"\n", "hooks.gate = \"strict\"\n").config;
    assert_eq!(config.gate("claude"), Gate::Strict);
    let config = both(user, "hooks.gates = { gemini = \"strict\" }\n").config;
    let gates = ["claude", "codex", "gemini"].map(|agent| config.gate(agent));
    assert_eq!(gates, [Gate::Destructive, Gate::Strict, Gate::Strict]);
}

#[test]
fn sec5_what_is_the_users_is_told_where_a_repository_says_it() {
    let others = keys::all().filter(|key| key.repository().is_none());
    let names: Vec<&str> = others.map(|key| key.name).collect();
    for kept in [
        "versions.keep",
        "sessions.keep",
        "recovery.keep",
        "idle_exit",
        "watch",
    ] {
        assert!(names.contains(&kept), "{kept}");
    }
    let done = both(
        "",
        "idle_exit = \"1 s\"\nrecovery.keep = \"0 s, 0 B\"\nsessions.keep = 0\n\
         versions.keep = \"0 per path\"\nlimits.read_text = 7\n",
    );
    let expected = Config {
        read_text: 7,
        ..Config::default()
    };
    assert_eq!(done.config, expected);
    assert!(!done.user_is_wrong);
    assert_eq!(done.wrong.len(), 4);
    let told = done.refused().unwrap();
    assert!(
        told.contains(".touchmark.toml:2: `recovery.keep` can only be set in the user's"),
        "{told}"
    );
}

#[test]
fn sec5_what_is_wrong_costs_itself_alone() {
    let done = both("", "colour = 1\nlimits.read_text = 7\ncalls.keep = \"x\"\n");
    assert_eq!(done.config.read_text, 7);
    assert_eq!(done.config.calls_keep, Config::default().calls_keep);
    let lines: Vec<usize> = done.wrong.iter().map(|wrong| wrong.line).collect();
    assert_eq!(lines, [1, 3]);
    assert_eq!(done.config.contents_file, Config::default().contents_file);
    // It is not known which names are secrets.
    for unknown in [
        "contents.exclude = [\"[\"]\n",
        "a = = 1\n",
        "contents.exclude = 1\n",
    ] {
        assert_eq!(both("", unknown).config.contents_file, 0, "{unknown}");
        assert_eq!(both(unknown, "").config.contents_file, 0, "{unknown}");
    }
}

/// The daemon compiles the effective patterns when it starts, and it must
/// start.
#[test]
fn sec5_patterns_of_a_repository_have_bounds() {
    let nested = format!("\"{}a{}\"", "{".repeat(60_000), "}".repeat(60_000));
    // Each of them compiles, but not all of them together.
    let large: Vec<String> = (0..40)
        .map(|n| format!("\"{}{n}\"", "?".repeat(4_000)))
        .collect();
    let quiet = Config {
        contents_file: 0,
        ..Config::default()
    };
    for patterns in [nested, large.join(",")] {
        let done = both("", &format!("contents.exclude = [{patterns}]\n"));
        assert_eq!(done.config, quiet);
        assert_eq!(done.wrong.len(), 1);
        let done = both("", &format!("guard.protect = [{patterns}]\n"));
        assert_eq!(done.config.guard_protect, Config::default().guard_protect);
        assert_eq!(done.wrong.len(), 1);
        // The user's own patterns must compile as well.
        let done = both(&format!("guard.protect = [{patterns}]\n"), "");
        assert_eq!(done.config.guard_protect, Config::default().guard_protect);
        assert_eq!(done.wrong.len(), 1);
    }
    // The user has so many patterns that the repository's do not fit.
    let half = large[..30].join(",");
    let more = large[30..].join(",");
    let user = format!("guard.protect = [{half}]\n");
    for (repository, wrong) in [(&more, 1), (&"\"a\"".to_owned(), 0)] {
        let done = both(&user, &format!("guard.protect = [{repository}]\n"));
        assert_eq!(done.wrong.len(), wrong);
        Patterns::new(done.config.guard_protect.iter().map(String::as_str)).unwrap();
    }
}

#[test]
fn sec5_while_the_users_file_is_wrong_nothing_is_dropped() {
    let default = Config::default();
    let done = both("colour = 1\nversions.keep = \"2 per path\"\n", "");
    assert!(done.user_is_wrong);
    assert!(done.config.versions_per_path > default.versions_per_path);
    assert!(done.config.recovery_age > default.recovery_age);
    assert!(done.config.recovery_bytes > default.recovery_bytes);
    assert!(done.config.sessions_keep > default.sessions_keep);
    // An error in a repository's file does not stop the removal that the user
    // configured.
    let done = both("versions.keep = \"2 per path\"\n", "colour = 1\n");
    assert_eq!(done.config.versions_per_path, 2);
}

#[test]
fn a_single_day_is_one_day() {
    for (written, said) in [("24 h", "1 day"), ("1 day", "1 day"), ("48 h", "2 days")] {
        let config = parse(&format!("[sessions]\nkeep = \"{written}\"\n")).unwrap();
        let mut settings = config.settings();
        let keep = settings.find(|one| one.key == "sessions.keep").unwrap();
        assert_eq!(keep.value, Some(said.into()), "{written}");
    }
}
