//! The versions of the schema.

use rusqlite::Connection;

use super::super::schema::{self, SCHEMA};
use super::*;

#[test]
fn a_store_of_another_version_is_refused_and_left_alone() {
    for found in [1, SCHEMA - 1, SCHEMA + 1] {
        let directory = tempfile::tempdir().unwrap();
        let world = world(directory.path());
        world.store(&records(1..=3));
        world.close();
        let file = directory.path().join("store.db");
        let connection = Connection::open(&file).unwrap();
        connection
            .pragma_update(None, "user_version", found)
            .unwrap();
        connection.close().unwrap();

        let before = fs::read(&file).unwrap();
        let refused = open(&options(directory.path()), |_| ()).err().unwrap();
        assert_eq!(
            refused,
            StoreError::Incompatible {
                what: "schema",
                found,
                known: SCHEMA
            }
        );
        assert_eq!(refused.code(), touchmark_proto::ErrorCode::Incompatible);
        let newer = refused.hint().contains("update touchmark");
        assert_eq!(newer, found > SCHEMA);
        assert_eq!(fs::read(&file).unwrap(), before);
        assert!(aside(directory.path()).is_empty());
    }
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
