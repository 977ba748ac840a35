//! Checks that distinguish an intact store, a damaged one, and one that has
//! lost its newest facts.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rusqlite::Connection;

use super::error::StoreError;
use super::high_water_mark::{Condition, Noted};
use super::options::Durability;

/// Runs SQLite's own check of the tables that must be right. Contents are left
/// out: they are most of the bytes, and each is compared with its hash when it
/// is read.
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

/// Returns whether the two bytes of the file's header that name its format have
/// a value that SQLite never writes (its file format, 1.3.3). SQLite treats
/// such a file as one of a later SQLite, which it may read and not write. This
/// error does not pass, so the file counts as damaged.
pub(super) fn names_no_format(path: &Path) -> bool {
    let mut header = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok()
        && header
            .iter()
            .skip(18)
            .any(|format| !matches!(format, 1 | 2))
}

/// Compares the facts in the store with the high-water mark.
///
/// `last` is the newest fact found. `unclean` says that the log was not empty.
/// `boot` is the current boot id. Returns why a new epoch must begin, or
/// `None`.
///
/// # Errors
/// [`StoreError::Damaged`] if committed facts are missing and a power cut does
/// not explain that.
pub(super) fn tail(
    noted: Option<&Noted>,
    last: u64,
    unclean: bool,
    boot: &str,
) -> Result<Option<&'static str>, StoreError> {
    let Some(says) = noted else {
        // The mark was removed. Nothing proves that all facts are there.
        return Ok((unclean && last > 0)
            .then_some("the file with the number of the newest fact is missing"));
    };
    match says.condition {
        Condition::Good => {}
        Condition::Failing => {
            return Ok(Some(
                "the last facts could not be stored before the daemon ended",
            ));
        }
        Condition::Damaged => return Err(StoreError::damaged("it was found malformed")),
    }
    // Power may have failed between the commit and the sync that follows it.
    let excused = says.boot != boot && says.durability == Durability::Process;
    // A power cut loses the newest facts, not all of them.
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

    /// Returns the result: `same` epoch, `new` epoch, or `damaged`.
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
            ("b", 5, Process, Good, 0, false, "damaged"), // the file was removed
            ("a", 5, Process, Good, 4, true, "new"),
            ("a", 5, Process, Good, 0, false, "damaged"), // an empty file
            ("a", 5, Process, Good, 5, true, "new"),      // the mark may be behind as well
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
