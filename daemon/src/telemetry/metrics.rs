//! Counts since telemetry was switched on, and the metrics that report them
//! (TEL-7).

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use serde::{Deserialize, Serialize};
use touchmark_proto::Millis;

use super::events::{Attributes, nanos};

/// Counts of everything up to the newest record that was acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Totals {
    /// Acknowledged records, by the names of their events.
    pub(super) sent: BTreeMap<String, u64>,
    /// Records that the collector rejected, in answers that took the others.
    pub(super) rejected: u64,
    /// Records that were given up, since the collector refused them repeatedly.
    pub(super) refused: u64,
    /// Requests that failed.
    pub(super) failures: u64,
    /// Lines added, by the kind of author.
    pub(super) added: BTreeMap<String, u64>,
    /// Lines removed, by the kind of author.
    pub(super) removed: BTreeMap<String, u64>,
}

impl Totals {
    /// Adds the counts of a batch.
    pub(super) fn add(&mut self, batch: &Self) {
        for (sums, more) in [
            (&mut self.sent, &batch.sent),
            (&mut self.added, &batch.added),
            (&mut self.removed, &batch.removed),
        ] {
            for (name, more) in more {
                *sums.entry(name.clone()).or_default() += more;
            }
        }
    }
}

/// The points of a sum: an attribute, if the sum has several points, and the
/// number.
type Points = Vec<(Option<(&'static str, String)>, u64)>;

/// Returns the request that reports the counts. `dropped`: facts that were
/// dropped from the log before they were sent.
pub(super) fn request(
    totals: &Totals,
    dropped: u64,
    resource: &Resource,
    scope: &InstrumentationScope,
    [since, now]: [Millis; 2],
) -> ExportMetricsServiceRequest {
    let one = |count| vec![(None, count)];
    let reason = |reason: &str, count| (Some(("touchmark.reason", reason.to_owned())), count);
    let all: [(&str, &str, &str, Points); 6] = [
        (
            "touchmark.records.sent",
            "{record}",
            "Records that the collector acknowledged",
            by("event.name", &totals.sent),
        ),
        (
            "touchmark.records.pruned",
            "{record}",
            "Records that the log dropped before they were sent",
            one(dropped),
        ),
        (
            "touchmark.records.rejected",
            "{record}",
            "Records that the collector did not take",
            vec![
                reason("partial_success", totals.rejected),
                reason("refused", totals.refused),
            ],
        ),
        (
            "touchmark.requests.failed",
            "{request}",
            "Requests to the collector that failed",
            one(totals.failures),
        ),
        (
            "touchmark.lines.added",
            "{line}",
            "Lines that new versions added",
            by("touchmark.author.kind", &totals.added),
        ),
        (
            "touchmark.lines.removed",
            "{line}",
            "Lines that new versions removed",
            by("touchmark.author.kind", &totals.removed),
        ),
    ];
    let metrics = all
        .into_iter()
        .filter(|(.., points)| !points.is_empty())
        .map(|(name, unit, description, points)| Metric {
            name: name.into(),
            unit: unit.into(),
            description: description.into(),
            metadata: Vec::new(),
            data: Some(Data::Sum(Sum {
                data_points: points
                    .into_iter()
                    .map(|(by, sum)| point(by, sum, [since, now]))
                    .collect(),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
                is_monotonic: true,
            })),
        })
        .collect();
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource.clone()),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope.clone()),
                metrics,
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }],
    }
}

fn by(key: &'static str, sums: &BTreeMap<String, u64>) -> Points {
    sums.iter()
        .map(|(value, sum)| (Some((key, value.clone())), *sum))
        .collect()
}

fn point(
    by: Option<(&'static str, String)>,
    sum: u64,
    [since, now]: [Millis; 2],
) -> NumberDataPoint {
    let mut attributes = Attributes::default();
    if let Some((key, value)) = by {
        attributes.text(key, value);
    }
    NumberDataPoint {
        attributes: attributes.0,
        start_time_unix_nano: nanos(since),
        time_unix_nano: nanos(now),
        value: Some(Value::AsInt(i64::try_from(sum).unwrap_or(i64::MAX))),
        ..NumberDataPoint::default()
    }
}
