//! `model/*`: which models a session has used.

use touchmark_proto::models::{ModelEntries, ModelEntry, ModelList, ModelRecord, ModelRecorded};
use touchmark_proto::{Error, Reply};

use super::number_cursor;
use crate::base::Base;
use crate::ledger::session_memory::{ModelUse, Note};
use crate::requests::pending::{Answered, done};

/// The maximum number of bytes in the name of a model, a provider, a mode or a
/// message.
const NAME: usize = 1_000;

impl Base {
    /// Records the model in use. Neither the same model again nor a message
    /// that was recorded already makes a new entry.
    pub(crate) fn model_record(&mut self, ask: &ModelRecord) -> Answered {
        let message = ask.message_id.as_deref().unwrap_or_default();
        let names = [&ask.model_id, &ask.provider_id, &ask.mode].map(String::as_str);
        if names.iter().chain([&message]).any(|name| name.len() > NAME) {
            return Err(Error::invalid(format!("a name is longer than {NAME} bytes")).into());
        }
        self.ensure_session(&ask.session);
        let (same, seen) = self
            .state
            .memory(&ask.session)
            .map_or((false, false), |memory| {
                let same = |entry: &ModelUse| {
                    entry.model == ask.model_id
                        && entry.provider == ask.provider_id
                        && entry.mode == ask.mode
                };
                let seen = |message| memory.messages.contains(message);
                (
                    memory.models.last().is_some_and(same),
                    ask.message_id.as_ref().is_some_and(seen),
                )
            });
        let recorded = !same && !seen;
        let note = match &ask.message_id {
            message if recorded => Some(Note::ModelRecorded {
                model: ask.model_id.clone(),
                provider: ask.provider_id.clone(),
                mode: ask.mode.clone(),
                message: message.clone(),
            }),
            // The model is unchanged, so this makes no entry. The message is
            // remembered, so that a repeat of it is recognised.
            Some(message) if !seen => Some(Note::MessageSeen {
                message: message.clone(),
            }),
            _ => None,
        };
        if let Some(note) = note {
            self.note(&ask.session, note);
        }
        done(Reply::ModelRecord(ModelRecorded { recorded }))
    }

    pub(crate) fn model_list(&mut self, ask: &ModelList) -> Answered {
        let from = match number_cursor(ask.cursor.as_deref()) {
            Ok(from) => usize::try_from(from).unwrap_or(usize::MAX),
            Err(error) => return Err(error.into()),
        };
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let models = self
            .state
            .memory(&ask.session)
            .map(|memory| memory.models.as_slice())
            .unwrap_or_default();
        let entries = models
            .iter()
            .skip(from)
            .take(limit)
            .map(|entry| ModelEntry {
                time: entry.time,
                model_id: entry.model.clone(),
                provider_id: entry.provider.clone(),
                mode: entry.mode.clone(),
            })
            .collect();
        let next = from.saturating_add(limit);
        done(Reply::ModelList(ModelEntries {
            entries,
            more: (next < models.len()).then(|| next.to_string()),
        }))
    }
}
