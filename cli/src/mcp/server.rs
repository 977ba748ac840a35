//! The server's side of the protocol, in both versions.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::tool::{ToolCallContext, ToolRouter};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    Resource, ResourceContents, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use touchmark_client::Error;

use super::answers;
use super::changes::{self, Listener, URI, Watch};
use super::link::{Link, ToolCall};
use super::transport::Wires;

const INSTRUCTIONS: &str = "Files of this workspace are also changed by the user and by other \
agents. Read and write them with these tools: an edit of a file that was changed since you read it \
is refused instead of overwriting that change. Ask changed_files at the beginning of a turn; \
read again what it names before relying on it.";

/// The server for one client.
#[derive(Clone)]
pub(super) struct Server {
    link: Arc<Link>,
    wires: Wires,
    tools: ToolRouter<Self>,
    /// The task that sends notifications since `resources/subscribe`; `None`
    /// for none.
    told: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Server {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self {
            wires: Wires::new(Arc::clone(&link)),
            link,
            tools: Self::tools(),
            told: Arc::default(),
        }
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    pub(super) fn wires(&self) -> Wires {
        self.wires.clone()
    }

    /// Replaces the task that sends notifications.
    fn listener(&self, next: Option<JoinHandle<()>>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = std::mem::replace(&mut *told, next) {
            last.abort();
        }
    }

    /// Stores the client's name and version. In one version of the protocol
    /// every request has them, in the other the handshake.
    fn heard(&self, context: &RequestContext<RoleServer>) {
        if let Some(client) = context.client_info() {
            self.link.introduce(&client.name, &client.version);
        }
    }

    fn failed(&self, error: &Error) -> ErrorData {
        let fields = answers::fields(error, self.link.root());
        ErrorData::internal_error(error.to_string(), Some(json!({"error": fields})))
    }
}

/// The fields with an agent's id for a call: Claude Code's, Codex's.
const CALL_IDS: [&str; 2] = ["claudecode/toolUseId", "callId"];

/// Returns what a client reports about a call.
fn said(request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> ToolCall {
    let id = |name: &&str| context.meta.get(*name)?.as_str().map(str::to_owned);
    ToolCall {
        id: CALL_IDS.iter().find_map(id),
        tool: Some(request.name.to_string()),
        arguments: request.arguments.clone().map(Value::Object),
    }
}

/// Checks that a resource is `touchmark://changes`.
///
/// # Errors
/// Any other resource is not found.
fn only_changes(uri: &str) -> Result<(), ErrorData> {
    if uri == URI {
        return Ok(());
    }
    Err(ErrorData::resource_not_found(
        format!("there is no resource {uri:?}"),
        Some(json!({"code": "notFound", "hint": format!("the resource is {URI}")})),
    ))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("touchmark", env!("CARGO_PKG_VERSION"))
                    .with_title("touchmark")
                    .with_description("Which file copies are out of date, and who changed what"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.list_all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.get(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.heard(&context);
        let caller = self.link.whose(said(&request, &context)).await;
        let call = ToolCallContext::new(self, request, context);
        let answered = self.link.speaking_for(caller, self.tools.call(call));
        match answered.await? {
            // For arguments that do not fit, the SDK returns only a text.
            CallToolResponse::Complete(result)
                if result.is_error == Some(true) && result.meta.is_none() =>
            {
                let said = result.content.first().and_then(|content| content.as_text());
                let said = said.map_or("the arguments", |text| text.text.as_str());
                Ok(answers::wrong_arguments(said).into())
            }
            done => Ok(done),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = Resource::new(URI, "changes")
            .with_title("Changes by others")
            .with_description(
                "Changes by others in this session's files that were not reported to it yet. Reading this resource does not mark them as reported; the tool changed_files does.",
            )
            .with_mime_type("application/json");
        Ok(ListResourcesResult::with_all_items(vec![resource]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.heard(&context);
        only_changes(&request.uri)?;
        let untold = changes::untold(&self.link).await;
        let untold = untold.map_err(|error| self.failed(&error))?;
        let contents = ResourceContents::text(answers::for_a_model(untold, &self.link.id()), URI);
        Ok(ReadResourceResult::new(vec![contents.with_mime_type("application/json")]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.heard(&context);
        only_changes(&request.uri)?;
        let watch = Watch::begin(&self.link).await;
        let watch = watch.map_err(|error| self.failed(&error))?;
        let link = Arc::clone(&self.link);
        let listener = Listener::Connection(context.peer);
        self.listener(Some(tokio::spawn(async move {
            watch.run(&link, &listener).await;
        })));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        only_changes(&request.uri)?;
        self.listener(None);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let ours = SubscriptionFilter::builder()
            .resource_subscription(URI)
            .build();
        Some(requested.intersection(&ours))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.heard(context.request_context());
        if context.accepted().resource_subscriptions.is_none() {
            // The requested kinds of notifications never occur here.
            self.until_over(&context).await;
            return Ok(());
        }
        let watch = Watch::begin(&self.link).await;
        let watch = watch.map_err(|error| self.failed(&error))?;
        let listener = Listener::Request(context.sink().clone());
        tokio::select! {
            () = watch.run(&self.link, &listener) => {}
            () = self.until_over(&context) => {}
        }
        Ok(())
    }
}

impl Server {
    async fn until_over(&self, context: &SubscriptionContext) {
        tokio::select! {
            () = context.cancelled() => {}
            () = self.wires.ended() => {}
        }
    }
}
