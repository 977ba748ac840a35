//! touchmark's own files, where the workspace contains them: a home directory
//! as workspace contains its daemon's state, log and socket (SCOPE-8).

use std::path::Path;

use touchmark_proto::Places;

/// Returns the patterns of touchmark's own files below a canonical workspace.
/// Empty if there are none, as in an ordinary project.
pub(crate) fn patterns(workspace: &Path, places: &Places) -> Vec<String> {
    let state = places.state.parent();
    let directories = state.into_iter().chain([places.runtime.as_path()]);
    directories
        .filter_map(|directory| {
            let directory = directory.canonicalize().ok()?;
            let inside = directory.strip_prefix(workspace).ok()?;
            Some(globset::escape(&inside.join("").to_string_lossy()) + "**")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_engine::patterns::Patterns;
    use touchmark_proto::RelPath;
    use touchmark_proto::places::BaseDirectories;

    use super::*;

    #[test]
    fn only_the_daemon_s_directories_inside_the_workspace_match() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let base = BaseDirectories {
            runtime: None,
            state: home.join("[state]"),
            config: home.join("config"),
            cache: home.join("cache"),
        };
        for directory in ["[state]/touchmark/k", "cache/touchmark/run", "w"] {
            std::fs::create_dir_all(home.join(directory)).unwrap();
        }
        let places = |workspace: &Path| Places::new(&base, workspace, None);
        let workspace = home.join("w");
        assert!(patterns(&workspace, &places(&workspace)).is_empty());
        let own = patterns(&home, &places(&home));
        let own = Patterns::new(own.iter().map(String::as_str)).unwrap();
        let is_own = |name: &str| own.has(&RelPath::new(name.as_bytes()).unwrap());
        assert!(is_own("[state]/touchmark/k/store.db"));
        assert!(is_own("cache/touchmark/run/k.sock"));
        assert!(!is_own("cache/touchmark/other"));
        assert!(!is_own("s/touchmark/k/store.db"));
        assert!(!is_own("notes.txt"));
    }
}
