//! Wrapped tools for tokio: as [`crate::tools`], over a session that is open.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::Session;
use crate::error::Result;
use crate::tools::{Answer, Output, Rules, unwatched};

/// The tools of one session. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tools {
    session: Session,
    rules: Rules,
    /// That there is no daemon was said.
    told: Arc<AtomicBool>,
}

impl Tools {
    /// Of a session.
    pub fn of(session: &Session) -> Self {
        Self {
            session: session.clone(),
            rules: Rules::default(),
            told: Arc::default(),
        }
    }

    /// The same by other rules.
    #[must_use]
    pub fn with(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Wraps a tool: a function of its arguments that gives a future.
    pub fn wrap<T, E>(&self, name: &str, tool: T) -> Tool<T>
    where
        T: AsyncFn(&Value) -> std::result::Result<Output, E>,
    {
        Tool {
            tools: self.clone(),
            name: name.into(),
            tool,
        }
    }

    /// What came of asking the daemon, or what to say of that.
    fn heard<A>(&self, answer: Result<A>) -> (Option<A>, Option<String>) {
        match answer {
            Ok(answer) => {
                self.told.store(false, Ordering::Relaxed);
                (Some(answer), None)
            }
            Err(error) => {
                let told = self.told.swap(true, Ordering::Relaxed);
                (None, (!told).then(|| unwatched(&error)))
            }
        }
    }
}

/// A wrapped tool.
pub struct Tool<T> {
    tools: Tools,
    name: String,
    tool: T,
}

impl<T> fmt::Debug for Tool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<T> Tool<T> {
    /// The earlier result of such a call, or the tool's own, which is
    /// remembered.
    ///
    /// # Errors
    /// The tool's: one that failed is not remembered.
    pub async fn call<E>(&self, args: &Value) -> std::result::Result<Answer, E>
    where
        T: AsyncFn(&Value) -> std::result::Result<Output, E>,
    {
        let Tools { session, rules, .. } = &self.tools;
        if !rules.enabled {
            let output = (self.tool)(args).await?;
            return Ok(Answer::new(output.result, None));
        }
        let checked = session.call_check(&self.name, args.clone()).await;
        let (checked, said) = self.tools.heard(checked);
        if let Some(answer) = checked.and_then(|checked| rules.serve(checked)) {
            return Ok(answer);
        }
        let output = (self.tool)(args).await?;
        let Output { result, paths } = output;
        let paths = Some(paths).filter(|paths| !paths.is_empty());
        let recorded = session
            .call_record(&self.name, args.clone(), result.clone(), paths)
            .await;
        let (_, late) = self.tools.heard(recorded);
        Ok(Answer::new(result, said.or(late)))
    }
}
