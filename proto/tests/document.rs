//! `docs/protocol.md` names every method, error and notification, and no
//! method that is not there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use touchmark_proto::events::Happening;
use touchmark_proto::{ErrorCode, METHODS};

const DOCUMENT: &str = include_str!("../../docs/protocol.md");

/// The text from one heading to the next of its rank.
fn section(heading: &str) -> &'static str {
    let (_, rest) = DOCUMENT
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("no section {heading:?}"));
    rest.split("\n## ").next().unwrap()
}

/// The first names in the tables' rows.
fn rows(section: &'static str) -> BTreeSet<&'static str> {
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect()
}

#[test]
fn every_method_has_a_row() {
    let documented = rows(section("Methods"));
    assert_eq!(documented, METHODS.iter().copied().collect());
}

#[test]
fn every_error_has_a_row() {
    let errors = section("Errors");
    for error in ErrorCode::ALL {
        let row = format!("| {} | `{}` |", error.code(), error.name());
        assert!(errors.contains(&row), "no row {row}");
    }
}

#[test]
fn every_notification_has_a_row() {
    let documented = rows(section("Notifications"));
    assert_eq!(documented, Happening::KINDS.iter().copied().collect());
}
