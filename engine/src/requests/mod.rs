//! Requests in general: the properties of each method, how requests wait, and
//! how many may be pending.

pub(crate) mod limits;
pub(crate) mod pending;
mod queue;
pub(crate) mod scope;
mod table;
mod waits;
mod whose;

use touchmark_proto::{RelPath, Request, RequestId};

use crate::engine::Engine;
use crate::tracker::spoken::Spoken;
use crate::view::View;
use pending::{Pending, Step};
use scope::Scope;
use table::{About, edit_named, session_mut};
pub(crate) use table::{EditNamed, Use};
pub use table::{ForShell, Row, paths, row, session};
pub use whose::Naming;

impl Engine {
    /// Lets a request take effect.
    pub(crate) fn answer(
        &mut self,
        request: RequestId,
        pending: &mut Pending,
        mut ask: Request,
    ) -> Step {
        if let Err(error) = self.view().name_session(&mut ask) {
            return Step::Done(Err(error));
        }
        // A request that has a fence is answered with absences as deletions.
        if pending.fence.is_some() {
            let scope = self.view().scope_of(&pending.ask);
            self.settle_for(&scope);
        }
        if let Some(question) = self.texts_to_compare(pending, &ask) {
            return Step::Learn(question);
        }
        match self.view().over_limit(pending, &ask) {
            Some(error) => Step::Done(Err(error)),
            None => self.act(request, pending, ask),
        }
    }
}

impl View<'_> {
    /// Returns the paths that a request tracks or looks at and that are not
    /// watched yet.
    pub(crate) fn paths_to_borrow(&self, ask: &Request) -> Vec<RelPath> {
        if row(ask).paths == Use::Names {
            return Vec::new();
        }
        let named = paths(ask).into_iter();
        let mut paths: Vec<RelPath> = named
            .filter_map(|path| self.resolve_name(path).ok())
            .filter(|path| !self.state.paths.contains_key(path) && !self.state.names.is_other(path))
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns the paths of the workspace that a request names.
    pub(crate) fn paths_named(&self, ask: &Request) -> Vec<RelPath> {
        let named = paths(ask).into_iter();
        named.filter_map(|path| self.resolve(path).ok()).collect()
    }

    /// Returns the names of files that the answer to a request uses (FILE-1).
    pub(crate) fn spoken_in(&self, ask: &Request) -> Spoken {
        let edit = edit_named(ask).and_then(|named| self.edit_of(named));
        let edit = edit.and_then(|edit| self.state.edits.get(&edit));
        let named = paths(ask).into_iter();
        let named = named.filter_map(|path| self.resolve_name(path).ok());
        let named = named.map(|name| (self.file_of(&name), name));
        let begun = edit.iter().flat_map(|edit| &edit.files);
        let begun = begun.map(|file| {
            let name = file.name.as_ref().unwrap_or(&file.path);
            (file.path.clone(), name.clone())
        });
        Spoken {
            session: session(ask)
                .or(edit.map(|edit| &edit.fact.session))
                .cloned(),
            named: named.collect(),
            begun: begun.collect(),
        }
    }

    /// Returns the scope of a request: what its answer covers.
    pub(crate) fn scope_of_request(&self, ask: &Request) -> Scope {
        let paths = self.paths_named(ask);
        let row = row(ask);
        match row.about {
            // The shell requests what it needs itself.
            _ if row.by_shell => Scope::Paths(Vec::new()),
            About::Paths if !paths.is_empty() => Scope::Paths(paths),
            About::Paths | About::Session => match session(ask) {
                Some(session) => Scope::Session(session.clone()),
                None => Scope::Everything,
            },
            About::Edit => {
                let edit = edit_named(ask).and_then(|named| self.edit_of(named));
                let mut paths = paths;
                paths.extend(edit.map_or_else(Vec::new, |edit| self.paths_of_edit(edit)));
                Scope::Paths(paths)
            }
            About::Everything => Scope::Everything,
        }
    }
}

#[cfg(test)]
mod tests;
