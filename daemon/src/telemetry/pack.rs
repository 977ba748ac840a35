//! Packs facts of the log into batches. It reads stored contents to count
//! lines, so it runs outside of the loop's thread.

use std::path::PathBuf;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use touchmark_engine::text::lines;
use touchmark_engine::{Fact, Record, VersionFact};
use touchmark_proto::trust::Trust;
use touchmark_proto::{Hash, LineCounts, Places};

use super::events::{self, Around, Attributes, Event};
use super::identity::{self, Names};
use super::progress::Progress;
use super::sessions::{self, Sessions};
use crate::config::Paths;
use crate::store::{Exports, Reader, StoreError};

/// The most records of one batch.
pub(super) const MOST_RECORDS: usize = 512;

/// The bytes of records after which a batch is closed.
const MOST_BYTES: usize = 1 << 20;

/// The most facts that are looked at for one batch.
const MOST_FACTS: usize = 8_192;

/// The bytes of compared texts after which a batch is closed.
const MOST_COMPARED: usize = 8 << 20;

/// A batch that is ready to be sent.
pub(super) struct Batch {
    /// The body of the request; empty if there is no record to send.
    pub(super) body: Vec<u8>,
    /// The number of records.
    pub(super) records: usize,
    /// The number of the newest fact that the batch covers.
    pub(super) upto: u64,
    /// Whether there may be more facts.
    pub(super) more: bool,
}

/// Whose facts are packed.
pub(crate) struct Subject {
    pub(crate) workspace: PathBuf,
    pub(crate) places: Places,
    pub(crate) trust: Trust,
    pub(crate) paths: Paths,
}

/// Packs the facts of one store.
pub(super) struct Packer {
    exports: Exports,
    /// Closed while nothing is to be sent.
    reader: Option<Reader>,
    sessions: Sessions,
    names: Names,
    resource: Resource,
}

impl Packer {
    pub(super) fn new(
        exports: Exports,
        sessions: Sessions,
        subject: &Subject,
        instance: &str,
    ) -> Self {
        let mut attributes = Attributes::default();
        attributes.text("service.name", "touchmark");
        attributes.text("service.version", env!("CARGO_PKG_VERSION"));
        attributes.text("service.instance.id", instance);
        let names = identity::identify(
            &subject.workspace,
            &subject.places,
            &subject.trust,
            subject.paths,
            &mut attributes,
        );
        Self {
            exports,
            reader: None,
            sessions,
            names,
            resource: Resource {
                attributes: attributes.0,
                ..Resource::default()
            },
        }
    }

    /// Releases what is needed only while facts are packed.
    pub(super) fn rest(&mut self) {
        self.reader = None;
        self.sessions.bound();
    }

    /// Returns the number of facts after `n` and up to `upto` that have a
    /// record.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) fn count(&mut self, n: u64, upto: u64) -> Result<u64, StoreError> {
        let mut count = 0;
        self.reader()?.stored_after(n, |record| {
            count += u64::from(record.n <= upto && Event::of(&record.fact).is_some());
            record.n < upto
        })?;
        Ok(count)
    }

    /// Packs the facts that follow in a batch of at most `most` records.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) fn pack(&mut self, progress: &Progress, most: usize) -> Result<Batch, StoreError> {
        let n = progress.n;
        let mut facts = Vec::new();
        let (mut looked, mut wanted) = (0, 0);
        let (mut last, mut more) = (n, false);
        self.reader()?.stored_after(n, |record| {
            if looked == MOST_FACTS || wanted == most {
                more = true;
                return false;
            }
            looked += 1;
            last = record.n;
            let is_wanted = Event::of(&record.fact).is_some();
            wanted += usize::from(is_wanted);
            if is_wanted || sessions::concerns(&record.fact) {
                facts.push(record);
            }
            true
        })?;
        let mut batch = Batch {
            body: Vec::new(),
            records: 0,
            upto: last,
            more,
        };
        self.fill(&mut batch, progress, facts)?;
        Ok(batch)
    }

    /// Makes the records of some facts that follow, until the batch is full.
    fn fill(
        &mut self,
        batch: &mut Batch,
        progress: &Progress,
        facts: Vec<Record>,
    ) -> Result<(), StoreError> {
        let mut n = progress.n;
        let mut records: Vec<LogRecord> = Vec::new();
        let (mut bytes, mut compared) = (0, 0);
        for record in facts {
            if bytes >= MOST_BYTES || compared >= MOST_COMPARED {
                (batch.upto, batch.more) = (n, true);
                break;
            }
            n = record.n;
            self.sessions.follow(&record.fact);
            if Event::of(&record.fact).is_none() {
                continue;
            }
            let counts = match &record.fact {
                Fact::Version(version) => self.counts(version, &mut compared)?,
                _ => None,
            };
            let session = events::session_of(&record.fact);
            let around = Around {
                number: progress.records + records.len() as u64 + 1,
                uids: &|n| progress.uids.of(n),
                names: &self.names,
                session: session.and_then(|session| self.sessions.get(session)),
                lines: counts,
            };
            let Some(made) = events::record_of(&record, &around) else {
                continue;
            };
            bytes += made.encoded_len();
            records.push(made);
        }
        batch.records = records.len();
        if !records.is_empty() {
            let request = ExportLogsServiceRequest {
                resource_logs: vec![ResourceLogs {
                    resource: Some(self.resource.clone()),
                    scope_logs: vec![ScopeLogs {
                        scope: Some(scope()),
                        log_records: records,
                        schema_url: String::new(),
                    }],
                    schema_url: String::new(),
                }],
            };
            batch.body = request.encode_to_vec();
        }
        Ok(())
    }

    fn reader(&mut self) -> Result<&Reader, StoreError> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.exports.reader()?,
        };
        Ok(self.reader.insert(reader))
    }

    /// Returns the lines of a version; `None` if a text is not kept. A
    /// correction has none: the version that it corrects has them.
    fn counts(
        &mut self,
        version: &VersionFact,
        compared: &mut usize,
    ) -> Result<Option<LineCounts>, StoreError> {
        if version.amends.is_some() || version.is_before_unknown() {
            return Ok(None);
        }
        let reader = self.reader()?;
        let content = |hash: Option<Hash>| match hash {
            None => Ok(Some([].into())),
            Some(hash) => reader.peek(&hash),
        };
        let (Some(old), Some(new)) = (content(version.before)?, content(version.held.hash)?) else {
            return Ok(None);
        };
        *compared += old.len() + new.len();
        Ok(lines::count(&old, &new))
    }
}

/// Returns the scope of all records.
fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "touchmark".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    }
}
