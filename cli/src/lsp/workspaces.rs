//! The workspaces of the open files, and the connections to their daemons.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as ValueError;
use tokio::sync::mpsc::UnboundedSender;
use touchmark_client::proto::{ClientPath, RelPath, native};
use touchmark_client::{Environment, Hello, Start, Workspace};

use super::document::Place;
use super::link::{Caller, Link};
use super::server::Input;
use crate::project;

/// How long the last reports may take.
const LAST: Duration = Duration::from_millis(1000);

/// The workspaces, each with its connection.
pub(super) struct Workspaces {
    environment: Environment,
    /// The only workspace; `None` if a file's own is looked for.
    only: Option<Workspace>,
    start: Option<Start>,
    is_start_wanted: Arc<AtomicBool>,
    /// The editor.
    hello: Hello,
    links: HashMap<PathBuf, Link>,
    news: UnboundedSender<Input>,
}

impl Workspaces {
    pub(super) fn new(
        environment: Environment,
        only: Option<Workspace>,
        start: Option<Start>,
        news: UnboundedSender<Input>,
    ) -> Self {
        Self {
            environment,
            only,
            start,
            is_start_wanted: Arc::default(),
            hello: Hello::new("lsp", env!("CARGO_PKG_VERSION")),
            links: HashMap::new(),
            news,
        }
    }

    /// Sets the name and version of the editor, for daemons.
    pub(super) fn introduce(&mut self, name: &str, version: &str) {
        self.hello = Hello::new(name, version);
    }

    /// Sets whether daemons are started.
    pub(super) fn want_start(&self, is_wanted: bool) {
        let was = self.is_start_wanted.swap(is_wanted, Ordering::Relaxed);
        if is_wanted && !was {
            self.links.values().for_each(Link::wake);
        }
    }

    /// Returns the place of a file, and begins to connect to its daemon; `None`
    /// if no workspace contains it: neither a project's mark nor a daemon is
    /// above it.
    pub(super) fn place(&mut self, file: &Path) -> Option<Place> {
        let workspace = match &self.only {
            Some(only) => only.clone(),
            None => {
                let above = file.ancestors().skip(1).find(|above| above.is_dir())?;
                let found = Workspace::find(above, &self.environment).ok()?;
                Some(found).filter(project::is_one)?
            }
        };
        let name = inside(&workspace.root, file)?;
        let root = workspace.root.clone();
        let caller = || Caller {
            workspace,
            hello: self.hello.clone(),
            start: self.start.clone(),
            is_start_wanted: Arc::clone(&self.is_start_wanted),
            news: self.news.clone(),
        };
        let link = self.links.entry(root.clone());
        link.or_insert_with(|| Link::begin(caller())).wake();
        Some(Place { root, name })
    }

    /// Returns the connection to a workspace's daemon; `None` if no open file
    /// was in it.
    pub(super) fn link(&self, root: &Path) -> Option<&Link> {
        self.links.get(root)
    }

    /// The same, to change it.
    pub(super) fn link_mut(&mut self, root: &Path) -> Option<&mut Link> {
        self.links.get_mut(root)
    }

    /// Waits until the daemons have received the last reports, for a second at
    /// most.
    pub(super) async fn flush(&self) {
        let all: Vec<_> = self.links.values().map(Link::flushed).collect();
        let each = async {
            for one in all {
                // An error: the connection has ended.
                let _ = one.await;
            }
        };
        let _ = tokio::time::timeout(LAST, each).await;
    }
}

/// Returns a file's name in a workspace; `None` if it is not inside. The name as
/// it is spelled counts, since agents use that one, also through a symlink.
fn inside(root: &Path, file: &Path) -> Option<RelPath> {
    let name = |file: &Path| {
        let rest = file.strip_prefix(root).ok()?;
        RelPath::new(&native::bytes(rest)).ok()
    };
    name(file).or_else(|| {
        let above = file.ancestors().skip(1).find(|above| above.is_dir())?;
        let rest = file.strip_prefix(above).ok()?;
        name(&above.canonicalize().ok()?.join(rest))
    })
}

/// Returns the path that a `file:` URI names; `None` for any other URI.
pub(super) fn path_of(uri: &str) -> Option<PathBuf> {
    uri.strip_prefix("file:///")?;
    let text: serde::de::value::StrDeserializer<'_, ValueError> = uri.into_deserializer();
    let path = ClientPath::deserialize(text).ok()?;
    Some(native::name(path.as_bytes()).into_owned().into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn uris_are_paths_in_every_spelling() {
        let path = |uri| path_of(uri).map(|path| native::bytes(&path).into_owned());
        let wanted = Some(b"/a b/[id].ts".to_vec());
        assert_eq!(path("file:///a%20b/%5Bid%5D.ts"), wanted);
        assert_eq!(path("file:///a b/[id].ts"), wanted);
        assert_eq!(path("file:///%FF"), Some(b"/\xff".to_vec()));
        for other in ["untitled:Untitled-1", "file://host/a", "/a", ""] {
            assert_eq!(path(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_is_named_as_it_is_spelled() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let root = base.join("w");
        std::fs::create_dir_all(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("w", base.join("outside")).unwrap();
        let name = |file: &str| inside(&root, &base.join(file)).map(|name| name.to_string_lossy());
        assert_eq!(name("w/link/a"), Some("link/a".into()));
        assert_eq!(name("outside/real/new/a"), Some("real/new/a".into()));
        assert_eq!(name("a"), None);
        assert_eq!(name("w"), None);
    }
}
