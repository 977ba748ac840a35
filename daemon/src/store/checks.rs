//! What tells a whole store from a damaged one, and a lost tail from both.

use rusqlite::Connection;

use super::Durability;
use super::error::StoreError;
use super::witness::Testimony;

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

/// Compares what is in the store with what was answered.
///
/// `last` is the newest fact found, `unclean` says that the log was not empty,
/// `boot` is this run of the machine. Returns why the epoch must be a new one,
/// if it must.
///
/// # Errors
/// Committed facts are missing although nothing excuses it.
pub(super) fn tail(
    testimony: Option<&Testimony>,
    last: u64,
    unclean: bool,
    boot: &str,
) -> Result<Option<&'static str>, StoreError> {
    let Some(says) = testimony else {
        // Somebody took the file away. Nothing proves that all is there.
        return Ok(
            (unclean && last > 0).then_some("the file that tells the newest fact is missing")
        );
    };
    if says.failing {
        return Ok(Some(
            "the last facts could not be stored before the daemon ended",
        ));
    }
    // Power may have gone between the commit and the sync that follows it.
    let excused = says.boot != boot && says.durability == Durability::Process;
    if says.n > last && !excused {
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

    fn says(boot: &str, n: u64, durability: Durability, failing: bool) -> Testimony {
        Testimony {
            boot: boot.into(),
            n,
            durability,
            failing,
        }
    }

    /// What follows: `same` epoch, `new` epoch, or `damaged`.
    fn follows(testimony: Option<&Testimony>, last: u64, unclean: bool) -> &'static str {
        match tail(testimony, last, unclean, "b") {
            Ok(None) => "same",
            Ok(Some(_)) => "new",
            Err(_) => "damaged",
        }
    }

    #[test]
    fn missing_facts_are_damage_unless_power_went() {
        use Durability::{Power, Process};
        for (boot, n, durability, failing, last, unclean, expected) in [
            ("b", 5, Process, false, 5, true, "same"),
            ("b", 5, Process, false, 6, true, "same"), // killed between commit and witness
            ("b", 5, Process, false, 4, true, "damaged"),
            ("b", 5, Process, false, 4, false, "damaged"),
            ("b", 5, Process, false, 0, false, "damaged"), // the file was taken away
            ("a", 5, Process, false, 4, true, "new"),
            ("a", 5, Process, false, 5, true, "new"), // the witness may lag, too
            ("a", 5, Process, false, 5, false, "same"),
            ("a", 5, Power, false, 5, true, "same"),
            ("a", 5, Power, false, 4, true, "damaged"),
            ("b", 5, Process, true, 5, false, "new"),
        ] {
            let testimony = says(boot, n, durability, failing);
            assert_eq!(
                follows(Some(&testimony), last, unclean),
                expected,
                "{testimony:?} {last} {unclean}"
            );
        }
        assert_eq!(follows(None, 0, false), "same");
        assert_eq!(follows(None, 3, false), "same");
        assert_eq!(follows(None, 3, true), "new");
    }
}
