//! Wrapped tools for tokio. They work like [`crate::tools`], over an open
//! session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::Session;
use crate::error::Result;
use crate::tools::{self, Answer, Output, Rules, unwatched};

/// The tools of one session. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Tools {
    session: Session,
    rules: Rules,
    /// Whether the missing daemon was already reported.
    reported: Arc<AtomicBool>,
}

impl Tools {
    /// Returns the tools of a session, with default rules.
    pub fn of(session: &Session) -> Self {
        Self {
            session: session.clone(),
            rules: Rules::default(),
            reported: Arc::default(),
        }
    }

    /// Returns the tools with these rules.
    #[must_use]
    pub fn with(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Wraps a tool: a function of its arguments that returns a future.
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

    /// Returns the daemon's answer. Without one, returns the sentence that
    /// reports its first failure.
    fn or_notice<A>(&self, answer: Result<A>) -> (Option<A>, Option<String>) {
        match answer {
            Ok(answer) => {
                self.reported.store(false, Ordering::Relaxed);
                (Some(answer), None)
            }
            Err(error) => {
                let reported = self.reported.swap(true, Ordering::Relaxed);
                (None, (!reported).then(|| unwatched(&error)))
            }
        }
    }
}

/// A wrapped tool.
pub type Tool<T> = tools::Tool<T, Tools>;

impl<T> Tool<T> {
    /// Returns the result of an earlier call with these arguments, or runs the
    /// tool and stores its result.
    ///
    /// # Errors
    /// The tool's error. A failed call is not stored.
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
        let (checked, said) = self.tools.or_notice(checked);
        if let Some(answer) = checked.and_then(|checked| rules.serve(checked)) {
            return Ok(answer);
        }
        let output = (self.tool)(args).await?;
        let Output { result, paths } = output;
        let paths = Some(paths).filter(|paths| !paths.is_empty());
        let recorded = session
            .call_record(&self.name, args.clone(), result.clone(), paths)
            .await;
        let (_, late) = self.tools.or_notice(recorded);
        Ok(Answer::new(result, said.or(late)))
    }
}
