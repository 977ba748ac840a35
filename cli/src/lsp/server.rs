//! The server's side of the protocol: what each message does.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;
use touchmark_client::aio::Client;
use touchmark_client::proto::editors::{EditorDidClose, EditorDidOpen, EditorDidSave, EditorDirty};
use touchmark_client::proto::{LineRange, RelPath};

use super::authors;
use super::diagnostics::{self, Findings};
use super::document::{Document, Place, Shown};
use super::editor::{self, Editor};
use super::link::until;
use super::messages::{At, Changed, Execute, Opened, Saved, Within};
use super::options::Options;
use super::review::{self, Chosen, Deed};
use super::transport::{Out, Received};
use super::workspaces::{Workspaces, path_of};
use crate::text::{now, path};

/// How long the editor's last messages are read after a signal: an editor saves,
/// ends, and signals its servers at once.
const UNREAD: Duration = Duration::from_millis(500);

/// What the server reacts to.
pub(super) enum Input {
    /// The editor has sent something.
    Received(Received),
    /// The editor's output has ended, or could not be read.
    Ended(Option<String>),
    /// A daemon answers.
    Connected(PathBuf, Client),
    /// A daemon no longer answers.
    Lost(PathBuf),
    /// Something else may have to be shown of a workspace.
    Stirred(PathBuf),
    /// What was found for the diagnostics of a workspace.
    Found(PathBuf, Findings),
    /// A line for the log.
    Log(String),
}

/// How far the conversation with the editor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Open,
    ShutDown,
}

/// A file that the editor shows.
#[derive(Debug)]
struct Open {
    document: Document,
    /// The unsaved lines that the daemon was told of; `None` for no unsaved
    /// changes.
    told: Option<LineRange>,
    /// The diagnostics that the editor shows.
    diagnostics: Vec<Value>,
}

/// What is known of a workspace for its diagnostics.
#[derive(Debug, Default)]
struct Look {
    findings: Findings,
    is_running: bool,
    /// Whether something happened since the running look began.
    is_late: bool,
}

/// The server for one editor.
pub(super) struct Server {
    out: Out,
    news: UnboundedSender<Input>,
    workspaces: Workspaces,
    stage: Stage,
    editor: Editor,
    options: Options,
    /// The request for the settings that was sent last.
    asked: Option<RequestId>,
    /// By URI.
    files: HashMap<String, Open>,
    /// By the workspace's directory.
    looks: HashMap<PathBuf, Look>,
}

impl Server {
    pub(super) fn new(out: Out, workspaces: Workspaces, news: UnboundedSender<Input>) -> Self {
        Self {
            out,
            news,
            workspaces,
            stage: Stage::New,
            editor: Editor::of(&Value::Null),
            options: Options::default(),
            asked: None,
            files: HashMap::new(),
            looks: HashMap::new(),
        }
    }

    /// Serves until the end. Returns whether that was orderly: not an `exit`
    /// without `shutdown`.
    pub(super) async fn run(
        &mut self,
        mut inputs: UnboundedReceiver<Input>,
        told_to_end: impl Future<Output = ()>,
    ) -> bool {
        tokio::pin!(told_to_end);
        // When to end, once a signal has arrived.
        let mut end: Option<Instant> = None;
        loop {
            let input = tokio::select! {
                input = inputs.recv() => input,
                () = &mut told_to_end, if end.is_none() => {
                    end = Some(Instant::now() + UNREAD);
                    continue;
                }
                () = until(end), if end.is_some() => return true,
            };
            match input {
                None | Some(Input::Ended(None)) => return true,
                Some(Input::Ended(Some(why))) => {
                    self.out.log(&why);
                    return false;
                }
                Some(Input::Received(Received::Malformed(why))) => self.out.log(&why),
                Some(Input::Received(Received::Message(message))) => match *message {
                    Message::Request(request) if request.method == "shutdown" => {
                        self.flush().await;
                        self.stage = Stage::ShutDown;
                        self.out.reply(request.id, Value::Null);
                    }
                    Message::Request(request) => self.answer(request),
                    // Kate 22.12 sends it without an id, so it gets no answer.
                    Message::Notification(note) if note.method == "shutdown" => {
                        self.flush().await;
                        self.stage = Stage::ShutDown;
                    }
                    Message::Notification(note) if note.method == "exit" => {
                        return self.stage == Stage::ShutDown;
                    }
                    Message::Notification(note) => self.note(note),
                    Message::Response(response) => self.answered(response),
                },
                Some(Input::Connected(root, client)) => self.connected(&root, client),
                Some(Input::Lost(root)) => self.lost(&root),
                Some(Input::Stirred(root)) => self.stirred(&root),
                Some(Input::Found(root, findings)) => self.found(&root, findings),
                Some(Input::Log(text)) => self.out.log(&text),
            }
        }
    }

    /// Waits until daemons have received what was reported: an editor saves and
    /// ends at once.
    pub(super) async fn flush(&self) {
        self.workspaces.flush().await;
    }

    fn answer(&mut self, request: Request) {
        let Request { id, method, params } = request;
        match (self.stage, method.as_str()) {
            (Stage::New, "initialize") => self.initialize(id, &params),
            (Stage::New, _) => {
                let why = "initialize is the first request";
                self.out.refuse(id, ErrorCode::ServerNotInitialized, why);
            }
            (Stage::ShutDown, _) | (_, "initialize") => {
                let why = "not at this point of the conversation";
                self.out.refuse(id, ErrorCode::InvalidRequest, why);
            }
            (Stage::Open, "textDocument/hover") => self.with(id, params, Self::hover),
            (Stage::Open, "textDocument/inlayHint") => self.with(id, params, Self::hints),
            (Stage::Open, "textDocument/codeAction") => self.with(id, params, Self::actions),
            (Stage::Open, "workspace/executeCommand") => self.with(id, params, Self::execute),
            (Stage::Open, _) => {
                let why = format!("there is no method {method}");
                self.out.refuse(id, ErrorCode::MethodNotFound, &why);
            }
        }
    }

    /// Calls a handler with the parameters of a request.
    fn with<P: DeserializeOwned>(
        &mut self,
        id: RequestId,
        params: Value,
        handler: fn(&mut Self, RequestId, P),
    ) {
        match serde_json::from_value(params) {
            Ok(params) => handler(self, id, params),
            Err(error) => {
                let why = error.to_string();
                self.out.refuse(id, ErrorCode::InvalidParams, &why);
            }
        }
    }

    fn note(&mut self, note: Notification) {
        if self.stage != Stage::Open {
            return;
        }
        let Notification { method, params } = note;
        let done = match method.as_str() {
            "initialized" => {
                self.register();
                self.ask_for_settings();
                Ok(())
            }
            "workspace/didChangeConfiguration" => {
                self.set(&params["settings"]["touchmark"]);
                self.ask_for_settings();
                Ok(())
            }
            "textDocument/didOpen" => serde_json::from_value(params).map(|it| self.opened(it)),
            "textDocument/didChange" => serde_json::from_value(params).map(|it| self.changed(it)),
            "textDocument/didSave" => serde_json::from_value(params).map(|it| self.saved(&it)),
            "textDocument/didClose" => serde_json::from_value(params).map(|it| self.closed(&it)),
            _ => Ok(()),
        };
        if let Err(error) = done {
            self.out.log(&format!("{method}: {error}"));
        }
    }

    fn initialize(&mut self, id: RequestId, params: &Value) {
        self.stage = Stage::Open;
        self.editor = Editor::of(params);
        if let Some((name, version)) = editor::name(params) {
            self.workspaces.introduce(&name, &version);
        }
        self.set(&params["initializationOptions"]);
        self.out.reply(id, self.editor.welcome());
    }

    fn register(&self) {
        if self.editor.registers_settings {
            let method = "workspace/didChangeConfiguration";
            let one = json!({"id": "touchmark", "method": method});
            let params = json!({"registrations": [one]});
            self.out.request("client/registerCapability", params);
        }
    }

    fn ask_for_settings(&mut self) {
        if self.editor.has_settings {
            let params = json!({"items": [{"section": "touchmark"}]});
            self.asked = Some(self.out.request("workspace/configuration", params));
        }
    }

    fn answered(&mut self, response: Response) {
        if self.asked.as_ref() == Some(&response.id)
            && let Ok(settings) = response.response_result
        {
            self.set(&settings[0]);
        }
    }

    /// Takes over settings.
    fn set(&mut self, said: &Value) {
        let before = self.options;
        let unknown = self.options.set(said);
        if !unknown.is_empty() {
            let names = crate::text::escaped(&unknown.join(", "), 200);
            self.out
                .log(&format!("no such setting, or not true or false: {names}"));
        }
        self.workspaces.want_start(self.options.start);
        if self.options != before && !self.files.is_empty() {
            let roots = self
                .files
                .values()
                .filter_map(|open| open.document.place.as_ref());
            let roots: Vec<PathBuf> = roots.map(|place| place.root.clone()).collect();
            roots.iter().for_each(|root| self.stirred(root));
            self.refresh_hints();
        }
    }

    fn refresh_hints(&self) {
        if self.editor.refreshes_hints {
            self.out.request("workspace/inlayHint/refresh", Value::Null);
        }
    }

    fn opened(&mut self, Opened { text_document }: Opened) {
        let Some(path) = path_of(&text_document.uri) else {
            return;
        };
        let open = Open {
            document: Document::open(path, &text_document.text),
            told: None,
            diagnostics: Vec::new(),
        };
        self.files.insert(text_document.uri.clone(), open);
        self.find(&text_document.uri);
    }

    /// Looks for the workspace of a file, and introduces the file to its daemon.
    fn find(&mut self, uri: &str) {
        let Some(open) = self.files.get_mut(uri) else {
            return;
        };
        if open.document.place.is_none() {
            open.document.place = self.workspaces.place(open.document.path());
            if let Some(place) = open.document.place.clone() {
                self.introduce(uri);
                self.stirred(&place.root);
            }
        } else if let Some(link) = self.link(uri) {
            link.wake();
        }
    }

    fn link(&self, uri: &str) -> Option<&super::link::Link> {
        let place = self.files.get(uri)?.document.place.as_ref()?;
        self.workspaces.link(&place.root)
    }

    /// Reports a file to a daemon that was told nothing of it.
    fn introduce(&mut self, uri: &str) {
        let Some(open) = self.files.get_mut(uri) else {
            return;
        };
        open.told = None;
        if let Some(place) = &open.document.place
            && let Some(link) = self.workspaces.link(&place.root)
        {
            link.report(EditorDidOpen::new(&place.name));
        }
        self.tell_unsaved(uri);
    }

    /// Reports the unsaved lines if they are others than those that were reported
    /// last.
    fn tell_unsaved(&mut self, uri: &str) {
        let Some(open) = self.files.get_mut(uri) else {
            return;
        };
        let lines = open.document.unsaved().map(|edit| edit.lines());
        if lines == open.told {
            return;
        }
        if let Some(place) = &open.document.place
            && let Some(link) = self.workspaces.link(&place.root)
            && link.client.is_some()
        {
            link.report(EditorDirty {
                lines,
                ..EditorDirty::new(&place.name, lines.is_some())
            });
            open.told = lines;
        }
    }

    fn changed(&mut self, changed: Changed) {
        let uri = changed.text_document.uri;
        let Some(open) = self.files.get_mut(&uri) else {
            return;
        };
        open.document
            .change(&changed.content_changes, self.editor.encoding);
        self.tell_unsaved(&uri);
        self.publish(&uri);
    }

    fn saved(&mut self, saved: &Saved) {
        let time = now();
        let uri = &saved.text_document.uri;
        self.find(uri);
        let Some(open) = self.files.get_mut(uri) else {
            return;
        };
        let hash = open.document.save(saved.text.as_deref());
        self.tell_unsaved(uri);
        let place = self
            .files
            .get(uri)
            .and_then(|open| open.document.place.clone());
        if let (Some(hash), Some(place)) = (hash, place)
            && let Some(link) = self.workspaces.link(&place.root)
        {
            link.report(EditorDidSave {
                time: Some(time),
                ..EditorDidSave::new(&place.name, hash)
            });
        }
        self.publish(uri);
    }

    fn closed(&mut self, closed: &Saved) {
        let uri = &closed.text_document.uri;
        let Some(open) = self.files.remove(uri) else {
            return;
        };
        if let Some(place) = &open.document.place
            && let Some(link) = self.workspaces.link(&place.root)
        {
            link.report(EditorDidClose::new(&place.name));
        }
        if !open.diagnostics.is_empty() {
            self.show_diagnostics(uri, &[]);
        }
    }

    /// Returns what a question about a file needs; `None` if no daemon answers.
    fn question(&mut self, uri: &str) -> Option<(Client, RelPath, Shown)> {
        self.find(uri);
        let document = &self.files.get(uri)?.document;
        let client = self.link(uri)?.client.clone()?;
        let name = document.place.as_ref()?.name.clone();
        Some((client, name, document.shown()))
    }

    /// Answers a request when the answer is known. The next message does not wait
    /// for that.
    fn reply_later(&self, id: RequestId, answer: impl Future<Output = Value> + Send + 'static) {
        let out = self.out.clone();
        tokio::spawn(async move { out.reply(id, answer.await) });
    }

    fn hover(&mut self, id: RequestId, at: At) {
        let asked = self
            .options
            .hover
            .then(|| self.question(&at.text_document.uri));
        match asked.flatten() {
            Some((client, name, shown)) => {
                let (line, is_markdown) = (at.position.line, self.editor.is_markdown);
                self.reply_later(id, authors::hover(client, name, shown, line, is_markdown));
            }
            None => self.out.reply(id, Value::Null),
        }
    }

    fn hints(&mut self, id: RequestId, within: Within) {
        let is_wanted = self.options.inlay_hints;
        let asked = is_wanted.then(|| self.question(&within.text_document.uri));
        match asked.flatten() {
            Some((client, name, shown)) => {
                let encoding = self.editor.encoding;
                let hints = authors::hints(client, name, shown, within.range, encoding);
                self.reply_later(id, hints);
            }
            None => self.out.reply(id, json!([])),
        }
    }

    fn actions(&mut self, id: RequestId, within: Within) {
        let is_wanted = review::is_wanted(within.context.only.as_deref());
        let uri = within.text_document.uri;
        match is_wanted.then(|| self.question(&uri)).flatten() {
            Some((client, name, shown)) => {
                let actions = review::actions(client, name, uri, shown, within.range);
                self.reply_later(id, actions);
            }
            None => self.out.reply(id, json!([])),
        }
    }

    fn execute(&mut self, id: RequestId, mut said: Execute) {
        let chosen = said.arguments.first_mut().map(Value::take);
        let chosen = chosen.and_then(|chosen| serde_json::from_value::<Chosen>(chosen).ok());
        let (Some(deed), Some(chosen)) = (Deed::of(&said.command), chosen) else {
            let why = "there is no such command, or its argument is wrong";
            return self.out.refuse(id, ErrorCode::InvalidParams, why);
        };
        let Some((client, name, shown)) = self.question(&chosen.uri) else {
            self.out.reply(id, Value::Null);
            return self.out.show("no daemon answers for this file", true);
        };
        if deed.is_undo() && shown.is_unsaved() {
            let name = path(&name);
            let why = format!(
                "{name} has unsaved changes: save it first, an undo changes the file on disk"
            );
            self.out.reply(id, Value::Null);
            return self.out.show(&why, true);
        }
        let (out, news) = (self.out.clone(), self.news.clone());
        let root = self.root(&chosen.uri);
        tokio::spawn(async move {
            let (text, is_warning) = review::execute(client, deed, name, chosen).await;
            out.reply(id, Value::Null);
            out.show(&text, is_warning);
            if let Some(root) = root {
                let _ = news.send(Input::Stirred(root));
            }
        });
    }

    fn root(&self, uri: &str) -> Option<PathBuf> {
        let place = self.files.get(uri)?.document.place.as_ref()?;
        Some(place.root.clone())
    }

    /// Returns the open files of a workspace: each with its URI.
    fn inside(&self, root: &Path) -> Vec<(String, RelPath)> {
        let files = self.files.iter();
        let files = files.filter_map(|(uri, open)| match &open.document.place {
            Some(Place { root: own, name }) if own == root => Some((uri.clone(), name.clone())),
            _ => None,
        });
        files.collect()
    }

    fn connected(&mut self, root: &Path, client: Client) {
        if let Some(link) = self.workspaces.link_mut(root) {
            link.client = Some(client);
        }
        for (uri, _) in self.inside(root) {
            self.introduce(&uri);
        }
        self.stirred(root);
    }

    fn lost(&mut self, root: &Path) {
        if let Some(link) = self.workspaces.link_mut(root) {
            link.client = None;
        }
        self.found(root, Findings::default());
    }

    /// Looks again what is to be shown, once at a time.
    fn stirred(&mut self, root: &Path) {
        if self.options.inlay_hints {
            self.refresh_hints();
        }
        let files = self.inside(root);
        let options = self.options;
        let client = self
            .workspaces
            .link(root)
            .and_then(|link| link.client.clone());
        let look = self.looks.entry(root.to_owned()).or_default();
        if look.is_running {
            look.is_late = true;
            return;
        }
        let Some(client) = client.filter(|_| options.stale || options.review) else {
            return self.found(root, Findings::default());
        };
        look.is_running = true;
        let names = files.into_iter().map(|(_, name)| name).collect();
        let (news, root) = (self.news.clone(), root.to_owned());
        tokio::spawn(async move {
            let findings = diagnostics::find(client, names, options).await;
            let _ = news.send(Input::Found(root, findings));
        });
    }

    fn found(&mut self, root: &Path, findings: Findings) {
        let look = self.looks.entry(root.to_owned()).or_default();
        look.findings = findings;
        look.is_running = false;
        let is_late = std::mem::take(&mut look.is_late);
        for (uri, _) in self.inside(root) {
            self.publish(&uri);
        }
        if is_late {
            self.stirred(root);
        }
    }

    /// Shows the diagnostics of a file if they are others than those shown.
    fn publish(&mut self, uri: &str) {
        let Some(open) = self.files.get_mut(uri) else {
            return;
        };
        let place = open.document.place.as_ref();
        let known = place.and_then(|place| Some((self.looks.get(&place.root)?, &place.name)));
        let found = known.map_or_else(Vec::new, |(look, name)| {
            let document = &open.document;
            look.findings
                .of(name, || document.shown(), self.editor.encoding)
        });
        if found != open.diagnostics {
            open.diagnostics.clone_from(&found);
            self.show_diagnostics(uri, &found);
        }
    }

    fn show_diagnostics(&self, uri: &str, diagnostics: &[Value]) {
        let params = json!({"uri": uri, "diagnostics": diagnostics});
        self.out.notify("textDocument/publishDiagnostics", params);
    }
}
