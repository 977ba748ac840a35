//! `docs/protocol.md` names exactly the methods, errors and notifications that
//! exist.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use touchmark_proto::events::Happening;
use touchmark_proto::methods::{self, MethodSchema};
use touchmark_proto::{COMMON_ERRORS, ErrorCode, METHODS};

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

fn methods() -> Vec<MethodSchema> {
    methods::schemas(&mut schemars::SchemaGenerator::default())
}

fn list(errors: &[ErrorCode]) -> String {
    let names = errors.iter().map(|code| format!("`{}`", code.name()));
    names.collect::<Vec<_>>().join(", ")
}

/// `TOUCHMARK_BLESS=1` writes the table.
#[test]
fn every_method_has_its_errors() {
    const HEAD: &str = "| method | errors |\n| --- | --- |\n";
    let mut methods = methods();
    methods.sort_by_key(|method| method.name);
    let rows = methods.iter().filter(|method| !method.errors.is_empty());
    let rows = rows.map(|method| format!("| `{}` | {} |\n", method.name, list(method.errors)));
    let table = HEAD.to_owned() + &rows.collect::<String>();
    if std::env::var_os("TOUCHMARK_BLESS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.md");
        let document = std::fs::read_to_string(file).unwrap();
        let (before, rest) = document.split_once(HEAD).unwrap();
        let (_, after) = rest.split_once("|\n\n").unwrap();
        std::fs::write(file, format!("{before}{table}\n{after}")).unwrap();
        return;
    }
    let errors = section("Errors");
    assert!(
        errors.contains(&table),
        "the errors of each method in docs/protocol.md are out of date: run this test with \
         TOUCHMARK_BLESS=1"
    );
    let common = format!("Any request can be answered with {}.", list(COMMON_ERRORS));
    assert!(
        errors.contains(&common),
        "not in docs/protocol.md: {common}"
    );
}

/// An error that no method answers is one of the connection.
#[test]
fn every_error_is_answered_by_a_method_or_before_one_is_known() {
    let methods = methods();
    let of_methods = methods.iter().flat_map(|method| method.errors);
    let answered: Vec<ErrorCode> = COMMON_ERRORS.iter().chain(of_methods).copied().collect();
    let before: Vec<ErrorCode> = ErrorCode::ALL
        .iter()
        .filter(|code| !answered.contains(code))
        .copied()
        .collect();
    assert_eq!(
        before,
        [
            ErrorCode::ParseError,
            ErrorCode::InvalidRequest,
            ErrorCode::MethodNotFound,
        ]
    );
    for method in methods {
        let common = |code: &&ErrorCode| COMMON_ERRORS.contains(code);
        assert_eq!(method.errors.iter().find(common), None, "{}", method.name);
    }
}

#[test]
fn every_notification_has_a_row() {
    let documented = rows(section("Notifications"));
    assert_eq!(documented, Happening::KINDS.iter().copied().collect());
}
