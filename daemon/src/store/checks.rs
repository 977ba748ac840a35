//! What tells a whole store from a damaged one, and a lost tail from both.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rusqlite::Connection;

use super::Durability;
use super::error::StoreError;
use super::high_water_mark::{Condition, Noted};

/// SQLite's own check of the tables that must be right. Contents are left
/// out: they are most of the bytes, and each is checked against its hash when
/// it is read.
pub(super) fn structure(connection: &Connection) -> Result<(), StoreError> {
    for table in ["meta", "fact", "snapshot"] {
        let found: String =
            connection.query_row(&format!("PRAGMA quick_check('{table}')"), [], |row| {
                row.get(0)
            })?;
        if found != "ok" {
            return Err(StoreError::damaged(found.replace('\n', "; ")));
        }
    }
    Ok(())
}

/// Whether the two bytes of a store's header that name its format hold what
/// SQLite never writes (its file format, 1.3.3). It takes such a file for one
/// of a later SQLite, to be read and not to be written: no error of storage
/// that would pass.
pub(super) fn names_no_format(path: &Path) -> bool {
    let mut header = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok()
        && header
            .iter()
            .skip(18)
            .any(|format| !matches!(format, 1 | 2))
}

/// Compares what is in the store with what was answered.
///
/// `last` is the newest fact found, `unclean` says that the log was not empty,
/// `boot` is this run of the machine. Returns why the epoch must be a new one,
/// if it must.
///
/// # Errors
/// Committed facts are missing although nothing excuses it.
pub(super) fn tail(
    noted: Option<&Noted>,
    last: u64,
    unclean: bool,
    boot: &str,
) -> Result<Option<&'static str>, StoreError> {
    let Some(says) = noted else {
        // Somebody took the file away. Nothing proves that all is there.
        return Ok(
            (unclean && last > 0).then_some("the file that tells the newest fact is missing")
        );
    };
    match says.condition {
        Condition::Good => {}
        Condition::Failing => {
            return Ok(Some(
                "the last facts could not be stored before the daemon ended",
            ));
        }
        Condition::Damaged => return Err(StoreError::damaged("a commit found it malformed")),
    }
    // Power may have gone between the commit and the sync that follows it.
    let excused = says.boot != boot && says.durability == Durability::Process;
    // Not the last moments are missing then, but everything.
    let emptied = says.n > 0 && last == 0;
    if emptied || says.n > last && !excused {
        return Err(StoreError::damaged(format!(
            "facts up to {} were stored, the newest one found is {last}",
            says.n
        )));
    }
    Ok((excused && (unclean || says.n > last))
        .then_some("the machine went down; the last moments may be missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(boot: &str, n: u64, durability: Durability, condition: Condition) -> Noted {
        Noted {
            boot: boot.into(),
            n,
            durability,
            condition,
        }
    }

    /// What follows: `same` epoch, `new` epoch, or `damaged`.
    fn follows(noted: Option<&Noted>, last: u64, unclean: bool) -> &'static str {
        match tail(noted, last, unclean, "b") {
            Ok(None) => "same",
            Ok(Some(_)) => "new",
            Err(_) => "damaged",
        }
    }

    #[test]
    fn missing_facts_are_damage_unless_power_went() {
        use Condition::{Damaged, Failing, Good};
        use Durability::{Power, Process};
        for (boot, n, durability, condition, last, unclean, expected) in [
            ("b", 5, Process, Good, 5, true, "same"),
            ("b", 5, Process, Good, 6, true, "same"), // killed between commit and mark
            ("b", 5, Process, Good, 4, true, "damaged"),
            ("b", 5, Process, Good, 4, false, "damaged"),
            ("b", 5, Process, Good, 0, false, "damaged"), // the file was taken away
            ("a", 5, Process, Good, 4, true, "new"),
            ("a", 5, Process, Good, 0, false, "damaged"), // an empty file
            ("a", 5, Process, Good, 5, true, "new"),      // the mark may lag, too
            ("a", 5, Process, Good, 5, false, "same"),
            ("a", 5, Power, Good, 5, true, "same"),
            ("a", 5, Power, Good, 4, true, "damaged"),
            ("b", 5, Process, Failing, 5, false, "new"),
            ("b", 5, Process, Damaged, 5, false, "damaged"),
        ] {
            let noted = says(boot, n, durability, condition);
            assert_eq!(
                follows(Some(&noted), last, unclean),
                expected,
                "{noted:?} {last} {unclean}"
            );
        }
        assert_eq!(follows(None, 0, false), "same");
        assert_eq!(follows(None, 3, false), "same");
        assert_eq!(follows(None, 3, true), "new");
    }
}
