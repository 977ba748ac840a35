//! Earlier contents are written only over what is stored, and through no
//! symlink that was not there.

use super::*;

const TOKEN: &str = "T=ghp_a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4wxyz\n";

fn name(path: &str, real: Option<&str>) -> Name {
    let name = |name: &str| RelPath::new(name.as_bytes()).unwrap();
    Name {
        path: name(path),
        real: real.map(name),
    }
}

/// Writes `new` over `base` as a restore does. Returns the cause if nothing was
/// written.
fn replace(world: &World, name: &Name, base: Option<&str>, new: &str) -> Result<(), String> {
    let replacer = world.replacer();
    let base = base.map(|base| Hash::of(base.as_bytes()));
    let stored = match replacer.store(name, false, base, Storage::Recovery(None)) {
        Ok(stored) => stored,
        Err(NotStored::Changed(_)) => return Err(CHANGED.into()),
        Err(NotStored::NotKept(cause)) => return Err(cause),
        Err(NotStored::Failed(error)) => return Err(error.message),
    };
    let written = replacer.write(name, &stored, new.as_bytes().into(), None);
    match written.outcome {
        WriteOutcome::Done { .. } => Ok(()),
        WriteOutcome::Conflict { cause, .. } => Err(cause),
        WriteOutcome::Failed(error) => Err(error.message),
    }
}

#[test]
fn undo4_a_content_that_may_not_be_stored_is_not_replaced() {
    let world = World::new();
    let large = "x".repeat((1 << 20) + 1);
    let rows = [
        (
            ".env",
            "key",
            "its name is that of a secret (`contents.exclude`)",
        ),
        ("token", TOKEN, "it holds a secret"),
        ("large", &large, "it is larger than 1 MiB (`contents.file`)"),
    ];
    for (file, base, cause) in rows {
        let path = world.file(file, base);
        let name = name(file, None);
        assert_eq!(replace(&world, &name, Some(base), "new"), Err(cause.into()));
        assert_eq!(fs::read(&path).unwrap(), base.as_bytes());
        // What the request says need not be brought back is replaced.
        let replacer = world.replacer();
        let base = Some(Hash::of(base.as_bytes()));
        let stored = replacer
            .store(&name, false, base, Storage::Nowhere)
            .unwrap();
        replacer.write(&name, &stored, (*b"new").into(), None);
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
    assert_eq!(world.kept(), Vec::<String>::new());
    let path = world.file("f", "now");
    let f = name("f", None);
    assert_eq!(
        replace(&world, &f, Some("before"), "new"),
        Err(CHANGED.into())
    );
    assert_eq!(replace(&world, &f, Some("now"), "new"), Ok(()));
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(world.kept(), ["now"]);
}

#[test]
fn undo6_a_link_that_was_not_there_is_not_written_through() {
    let world = World::new();
    fs::create_dir_all(world.path("real/deep")).unwrap();
    for file in ["target", "other", "real/f"] {
        world.file(file, "same");
    }
    symlink("target", world.path("link")).unwrap();
    symlink("real", world.path("above")).unwrap();
    let refused = |path: &str, real: Option<&str>, base: Option<&str>| {
        let cause = replace(&world, &name(path, real), base, "new").unwrap_err();
        assert!(cause.starts_with("a symbolic link"), "{path}: {cause}");
    };
    refused("link", None, Some("same"));
    refused("link", None, None);
    refused("link", Some("other"), Some("same"));
    refused("above/f", None, Some("same"));
    refused("above/g", None, None);
    refused("above/new/g", None, None);
    refused("above/f", Some("deep/f"), Some("same"));
    assert!(!world.path("real/new").exists());
    assert!(!world.path("real/g").exists());
    for file in ["target", "other", "real/f"] {
        assert_eq!(fs::read(world.path(file)).unwrap(), b"same", "{file}");
    }
    // These links were there.
    let link = name("link", Some("target"));
    assert_eq!(replace(&world, &link, Some("same"), "new"), Ok(()));
    let above = name("above/f", Some("real/f"));
    assert_eq!(replace(&world, &above, Some("same"), "new"), Ok(()));
    let below = name("above/new/g", Some("real/new/g"));
    assert_eq!(replace(&world, &below, None, "new"), Ok(()));
    for file in ["target", "real/f", "real/new/g"] {
        assert_eq!(fs::read(world.path(file)).unwrap(), b"new", "{file}");
    }
    assert!(world.path("link").is_symlink());
}

#[test]
fn guard2_no_file_gets_the_rights_of_its_owner_or_group() {
    let world = World::new();
    let path = world.file("f", "base");
    fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
    assert_eq!(
        world.write("f", Some("base"), "new"),
        done(Way::Exchange, true)
    );
    assert_eq!(mode(&path), 0o755);
    let replacer = world.replacer();
    let gone = name("gone", None);
    let was = touchmark_proto::FileMode::new(0o107_751);
    let written = replacer.write(&gone, &Stored::nothing(), (*b"x").into(), was);
    assert_eq!(written.note.as_deref(), Some(RIGHTS));
    assert_eq!(mode(&world.path("gone")), 0o751);
    let now = touchmark_proto::FileMode::new(0o100_751).unwrap();
    replacer.permit(&gone, now, was.unwrap());
    assert_eq!(mode(&world.path("gone")), 0o751);
}
