//! Which daemons are asked to end, so that this one gets an inotify instance
//! (FLEET-2, FLEET-3).
//!
//! The order of use decides. A daemon asks only those that were last used before
//! itself, so two daemons never end each other. Only one daemon asks at a time:
//! it has the lock of the directory of all locks, and reads the numbers under
//! it, so two that start together do not end twice as many as needed.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use touchmark_proto::Millis;

use super::ask;
use super::numbers::{Member, members};
use crate::system::clock;

/// The part of all daemons that end when an inotify instance is needed, as its
/// inverse: more than one, so that not each start ends another daemon.
const SPARE: usize = 16;

/// How long one daemon may ask others, and wait for its turn to.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first interval between two tries to get the turn. Each is twice as long
/// as the one before, since hundreds of daemons may have started together.
const AGAIN: Duration = Duration::from_millis(50);

/// The daemon that needs an inotify instance.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    /// The key of its workspace.
    pub(crate) key: String,
    /// The directory of all locks.
    pub(crate) directory: PathBuf,
}

/// Asks other daemons to end, so that this one gets an inotify instance.
/// Returns how many have ended. It is run in a separate task, and answers to
/// clients do not wait for it.
pub(crate) async fn share(own: Own) -> usize {
    let until = Instant::now() + PATIENCE;
    let Some(_turn) = turn(&own.directory, until).await else {
        return 0;
    };
    let directory = own.directory.clone();
    // Hundreds of small files: other threads answer meanwhile.
    let Ok(members) = tokio::task::spawn_blocking(move || members(&directory)).await else {
        return 0;
    };
    let wanted = wanted(&members);
    let mut ended = 0;
    for member in order(&own.key, &members) {
        if ended == wanted || Instant::now() >= until {
            break;
        }
        let idle = uptime().saturating_sub(member.numbers.used);
        if ask::ends(&own.directory, member, idle).await {
            ended += 1;
        }
    }
    if ended > 0 {
        tracing::info!("{ended} idle daemons of other workspaces ended for this one");
    }
    ended
}

/// Returns the current time on the clock of [`Numbers::used`].
pub(crate) fn uptime() -> Millis {
    Millis::try_from(clock::running().as_millis()).unwrap_or(Millis::MAX)
}

/// Waits until no other daemon asks. The returned lock ends with the file.
async fn turn(directory: &Path, until: Instant) -> Option<File> {
    let file = File::open(directory).ok()?;
    let mut pause = AGAIN;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                sleep(pause).await;
                pause *= 2;
            }
            Err(_) => return None,
        }
    }
}

/// Returns the daemons that may be asked, the one to ask first first: those
/// that were last used before this one, have an inotify instance, and serve no
/// client.
fn order<'m>(own: &str, members: &'m [Member]) -> Vec<&'m Member> {
    let rank = |member: &Member| (member.numbers.used, member.key.clone());
    let Some(mine) = members.iter().find(|member| member.key == own).map(rank) else {
        return Vec::new();
    };
    let mut older: Vec<&Member> = members
        .iter()
        .filter(|member| rank(member) < mine)
        .filter(|member| member.numbers.has_instance && !member.numbers.serves)
        .collect();
    older.sort_by_key(|member| rank(member));
    older
}

/// Returns how many daemons should end.
fn wanted(members: &[Member]) -> usize {
    1.max(members.len() / SPARE)
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Numbers;
    use super::*;

    fn member(key: &str, used: Millis) -> Member {
        Member {
            key: key.to_owned(),
            numbers: Numbers {
                pid: 1,
                used,
                has_instance: true,
                serves: false,
            },
        }
    }

    fn asked(own: &str, members: &[Member]) -> String {
        let keys: Vec<&str> = order(own, members)
            .iter()
            .map(|member| member.key.as_str())
            .collect();
        keys.join(" ")
    }

    #[test]
    fn fleet2_those_unused_for_longest_end_first() {
        let mut all = vec![
            member("c", 30),
            member("a", 10),
            member("own", 40),
            member("b", 20),
        ];
        assert_eq!(asked("own", &all), "a b c");
        assert_eq!(asked("b", &all), "a", "only those used before it");
        // One without an instance has none to give.
        all[1].numbers.has_instance = false;
        assert_eq!(asked("own", &all), "b c");
        assert_eq!(wanted(&all), 1);
        assert_eq!(wanted(&vec![member("a", 1); 100]), 6);
    }

    #[test]
    fn fleet3_one_that_serves_is_not_asked() {
        let mut all = vec![member("a", 10), member("b", 20), member("own", 30)];
        all[0].numbers.serves = true;
        assert_eq!(asked("own", &all), "b");
    }

    /// However the times of use are, even equal, of two daemons at most one may
    /// ask the other.
    #[test]
    fn fleet3_two_never_end_each_other() {
        for (one, other) in [(1, 1), (1, 2), (2, 1)] {
            let all = vec![member("a", one), member("b", other)];
            let ask = [asked("a", &all), asked("b", &all)];
            assert_eq!(ask.iter().filter(|asked| !asked.is_empty()).count(), 1);
        }
        assert_eq!(asked("unknown", &[member("a", 1)]), "");
    }
}
