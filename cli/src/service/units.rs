//! The units, their names, and the drop-in that connects an instance of them to
//! its workspace (systemd.unit(5), systemd.exec(5)).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The template of the sockets: name and text. The file is in the repository
/// and in packages.
pub(super) const SOCKET: (&str, &str) = (
    "touchmark@.socket",
    include_str!("../../parts/touchmark@.socket"),
);

/// The template of the services: name and text.
pub(super) const SERVICE: (&str, &str) = (
    "touchmark@.service",
    include_str!("../../parts/touchmark@.service"),
);

/// The program that [`SERVICE`] names.
const PACKAGED: &str = "/usr/bin/touchmark";

/// The drop-in's name in its instance's directory.
pub(super) const DROP_IN: &str = "workspace.conf";

/// Returns the name of a workspace's socket unit.
pub(crate) fn socket(key: &str) -> String {
    format!("touchmark@{key}.socket")
}

/// Returns the name of a workspace's service unit.
pub(crate) fn service(key: &str) -> String {
    format!("touchmark@{key}.service")
}

/// The values of an instance.
#[derive(Debug)]
pub(super) struct Instance<'a> {
    pub(super) workspace: &'a Path,
    /// The absolute path of the program.
    pub(super) program: &'a Path,
    /// The directories outside the workspace that the daemon writes to.
    pub(super) writes: Vec<PathBuf>,
    /// The directories that the daemon reads.
    pub(super) reads: Vec<PathBuf>,
    /// Variables that give daemon and clients the same directories.
    pub(super) environment: Vec<(&'static str, OsString)>,
}

/// Returns the text of an instance's drop-in.
///
/// # Errors
/// The value that systemd would not accept.
pub(super) fn drop_in(instance: &Instance<'_>) -> Result<String, String> {
    let mut text = format!(
        "# Written by `touchmark service install`, removed by `touchmark service uninstall`.\n\
         [Unit]\nDescription=touchmark for {}\n\n[Service]\n",
        plain(instance.workspace)
    );
    if instance.program != Path::new(PACKAGED) {
        text.push_str("ExecStart=\n");
        let program = program(instance.program)?;
        text.push_str(&format!("ExecStart={program} daemon --instance %i\n"));
    }
    for (name, value) in &instance.environment {
        let value = value
            .to_str()
            .filter(|value| is_sayable(value))
            .ok_or_else(|| format!("{name} contains what systemd does not accept"))?;
        text.push_str(&format!(
            "Environment={}\n",
            word(&format!("{name}={value}"))
        ));
    }
    let writes = instance.writes.iter().map(PathBuf::as_path);
    for path in std::iter::once(instance.workspace).chain(writes) {
        // A directory that no longer exists must not prevent the daemon's
        // start.
        text.push_str(&format!(
            "ReadWritePaths={}\n",
            word(&format!("-{}", nearest(path)))
        ));
    }
    let mut all = instance
        .writes
        .iter()
        .chain(&instance.reads)
        .map(PathBuf::as_path)
        .chain([instance.workspace, instance.program]);
    if all.any(is_temporary) {
        // A private temporary directory would hide them.
        text.push_str("PrivateTmp=no\n");
    }
    Ok(text)
}

/// Returns whether `PrivateTmp=` would hide a path.
fn is_temporary(path: &Path) -> bool {
    ["/tmp", "/var/tmp"].iter().any(|tmp| path.starts_with(tmp))
}

/// Returns the path, or the nearest directory above it that can be written in a
/// unit. systemd accepts neither line breaks nor anything that is not UTF-8.
fn nearest(path: &Path) -> &str {
    path.ancestors()
        .find_map(|path| path.to_str().filter(|text| is_sayable(text)))
        .unwrap_or("/")
}

fn is_sayable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// Returns a text as one quoted word of a line.
fn word(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\\' | '"' => quoted.extend(['\\', character]),
            '%' => quoted.push_str("%%"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

fn program(path: &Path) -> Result<String, String> {
    path.to_str()
        .filter(|path| is_sayable(path) && !path.contains(['"', '\'', '\\']))
        .map(word)
        .ok_or_else(|| {
            format!(
                "systemd starts no program whose path has quotes, backslashes or bytes that are \
                 not UTF-8: {}",
                path.display()
            )
        })
}

/// Returns a path for display, in a line that systemd takes literally.
fn plain(path: &Path) -> String {
    crate::text::escaped(&path.to_string_lossy(), crate::text::MAX_NAME).replace('%', "%%")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_client::proto::native;

    use super::*;

    fn instance(workspace: &Path) -> Instance<'_> {
        Instance {
            workspace,
            program: Path::new(PACKAGED),
            writes: vec!["/home/u/.local/state/touchmark".into()],
            reads: vec!["/home/u/.config/touchmark".into()],
            environment: Vec::new(),
        }
    }

    #[test]
    fn a_drop_in_says_where_to_write_and_nothing_needless() {
        let text = drop_in(&instance(Path::new("/home/u/my proj"))).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "[Unit]",
                "Description=touchmark for /home/u/my proj",
                "",
                "[Service]",
                "ReadWritePaths=\"-/home/u/my proj\"",
                "ReadWritePaths=\"-/home/u/.local/state/touchmark\"",
            ]
        );
    }

    #[test]
    fn names_are_quoted_as_systemd_reads_them() {
        let text = drop_in(&instance(Path::new("/w/50% \"ö\" \\x"))).unwrap();
        assert!(
            text.contains(r#"ReadWritePaths="-/w/50%% \"ö\" \\x""#),
            "{text}"
        );
        // For a path that cannot be written in a unit, the directory above it
        // is used.
        for name in [b"/w/a/\xff/b".as_slice(), b"/w/a/x\ny/b"] {
            let name = native::name(name);
            let text = drop_in(&instance(Path::new(&name))).unwrap();
            assert!(text.contains("ReadWritePaths=\"-/w/a\"\n"), "{text}");
            assert_eq!(text.lines().count(), 7, "{text}");
        }
    }

    #[test]
    fn another_program_and_other_places_are_told() {
        let mut other = instance(Path::new("/home/u/w"));
        other.program = Path::new("/opt/my %tools/touchmark");
        other.environment = vec![("XDG_STATE_HOME", "/s t".into())];
        let text = drop_in(&other).unwrap();
        let start = "ExecStart=\nExecStart=\"/opt/my %%tools/touchmark\" daemon --instance %i\n";
        assert!(text.contains(start), "{text}");
        assert!(
            text.contains("Environment=\"XDG_STATE_HOME=/s t\"\n"),
            "{text}"
        );
        other.program = Path::new("/opt/it's/touchmark");
        assert!(drop_in(&other).unwrap_err().contains("it's"));
    }

    #[test]
    fn a_place_below_a_temporary_directory_is_not_hidden() {
        let hides = |path: &str| {
            !drop_in(&instance(Path::new(path)))
                .unwrap()
                .contains("PrivateTmp=no")
        };
        assert!(hides("/home/u/tmp") && hides("/tmpfs/w"));
        assert!(!hides("/tmp/w") && !hides("/var/tmp/a b"));
        let mut built = instance(Path::new("/home/u/w"));
        built.program = Path::new("/tmp/target/touchmark");
        assert!(drop_in(&built).unwrap().contains("PrivateTmp=no"));
    }

    #[test]
    fn the_templates_name_each_other_and_the_program() {
        assert!(
            SERVICE
                .1
                .contains(&format!("ExecStart={PACKAGED} daemon --instance %i"))
        );
        assert!(SERVICE.1.contains("Requires=touchmark@%i.socket"));
        assert!(
            SOCKET
                .1
                .contains("ListenStream=%t/touchmark/%i.sock\nSocketMode=0600")
        );
    }
}
