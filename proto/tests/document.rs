//! `docs/protocol.md` names exactly the methods, errors and notifications that
//! exist.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use touchmark_proto::events::Happening;
use touchmark_proto::{ErrorCode, METHODS};

const DOCUMENT: &str = include_str!("../../docs/protocol.md");

/// Returns the text from this heading to the next heading of its level.
fn section(heading: &str) -> &'static str {
    let (_, rest) = DOCUMENT
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("no section {heading:?}"));
    rest.split("\n## ").next().unwrap()
}

/// Returns the first name in each row of the section's tables.
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
