//! The versions of the schema.

use rusqlite::Connection;

use super::super::schema::{self, MIGRATIONS};
use super::*;

#[test]
fn every_migration_runs_once_from_every_version() {
    let steps = [
        "CREATE TABLE a (x); INSERT INTO a VALUES (1)",
        "ALTER TABLE a ADD COLUMN y DEFAULT 2",
        "INSERT INTO a VALUES (3, 4)",
    ];
    for from in 0..=steps.len() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection, &steps[..from]).unwrap();
        assert_eq!(schema::version(&connection).unwrap() as usize, from);
        for _ in 0..2 {
            schema::migrate(&mut connection, &steps).unwrap();
            assert_eq!(schema::version(&connection).unwrap(), 3);
        }
        let rows: (i64, i64) = connection
            .query_row("SELECT count(*), sum(x * y) FROM a", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(rows, (2, 14));
    }
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let mut connection = Connection::open_in_memory().unwrap();
    let steps = [
        "CREATE TABLE a (x)",
        "CREATE TABLE b (x); CREATE TABLE a (x)",
    ];
    schema::migrate(&mut connection, &steps).unwrap_err();
    assert_eq!(schema::version(&connection).unwrap(), 1);
    connection.prepare("SELECT * FROM b").unwrap_err();
}

#[test]
fn the_real_migrations_lead_from_an_empty_file_to_the_known_version() {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::migrate(&mut connection, MIGRATIONS).unwrap();
    assert_eq!(schema::version(&connection).unwrap(), schema::known());
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    world.store(&records(1..=3));
    world.close();
    let file = directory.path().join("store.db");
    let newer = schema::known() + 1;
    let connection = Connection::open(&file).unwrap();
    connection
        .pragma_update(None, "user_version", newer)
        .unwrap();
    connection.close().unwrap();

    let before = fs::read(&file).unwrap();
    let refused = open(&options(directory.path()), |_| ()).err().unwrap();
    assert_eq!(
        refused,
        StoreError::Newer {
            what: "schema",
            found: newer,
            known: schema::known()
        }
    );
    assert_eq!(refused.code(), touchmark_proto::ErrorCode::Incompatible);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(aside(directory.path()).is_empty());
}

#[test]
fn the_durability_is_what_was_asked_for() {
    for (durability, expected) in [(Durability::Process, 1), (Durability::Power, 2)] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("store.db");
        let connection = schema::open(&file, durability, false).unwrap();
        let pragma = |name: &str| -> i64 {
            connection
                .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
                .unwrap()
        };
        assert_eq!(pragma("synchronous"), expected);
        assert_eq!(pragma("wal_autocheckpoint"), 0);
    }
}
