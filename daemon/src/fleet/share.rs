//! Which daemons are asked to end, so that all of them together stay within the
//! user's limits (FLEET-2, FLEET-3).
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
use super::numbers::{Member, Numbers, members};
use crate::config::SharedLimit;
use crate::system::{clock, proc};

/// The part of a limit that is freed in addition once it is passed, as its
/// inverse, so that not each start ends another daemon.
const SPARE: u64 = 8;

/// The part of all daemons that end when an inotify instance is needed, as its
/// inverse.
const SPARE_INSTANCES: u64 = 16;

/// How long one daemon may ask others, and wait for its turn to.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first interval between two tries to get the turn. Each is twice as long
/// as the one before, since hundreds of daemons may have started together.
const AGAIN: Duration = Duration::from_millis(50);

/// What all daemons may use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The maximum number of watched directories.
    pub(crate) watches: SharedLimit,
    /// The maximum private memory, in bytes.
    pub(crate) memory: SharedLimit,
}

impl Limits {
    /// Returns the limits in numbers, on this machine.
    pub(crate) fn most(self) -> Most {
        let watches = || proc::most_watches().map(|most| most / 2);
        let memory = || proc::memory_of_machine().map(|all| all / 4);
        Most {
            watches: self.watches.most(watches),
            memory: self.memory.most(memory),
        }
    }
}

/// The daemon that checks.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    /// The key of its workspace.
    pub(crate) key: String,
    /// The directory of all locks.
    pub(crate) directory: PathBuf,
    /// Whether it got no inotify instance.
    pub(crate) lacks_instance: bool,
}

/// Asks other daemons to end, if all together use too much or this one has no
/// inotify instance. Returns how many have ended. It is run in a separate task,
/// and answers to clients do not wait for it.
pub(crate) async fn share(own: Own, most: Most) -> usize {
    let until = Instant::now() + PATIENCE;
    let Some(_turn) = turn(&own.directory, until).await else {
        return 0;
    };
    let directory = own.directory.clone();
    // Hundreds of small files: other threads answer meanwhile.
    let Ok(members) = tokio::task::spawn_blocking(move || members(&directory)).await else {
        return 0;
    };
    let mut excess = Excess::of(&members, most, own.lacks_instance);
    let mut ended = 0;
    for member in order(&own.key, &members) {
        if excess.is_none() || Instant::now() >= until {
            break;
        }
        if !excess.shrinks_with(&member.numbers) {
            continue;
        }
        let idle = uptime().saturating_sub(member.numbers.used);
        if ask::ends(&own.directory, member, idle).await {
            excess.shrink(&member.numbers);
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
/// that were last used before this one, and serve no client.
fn order<'m>(own: &str, members: &'m [Member]) -> Vec<&'m Member> {
    let rank = |member: &Member| (member.numbers.used, member.key.clone());
    let Some(mine) = members.iter().find(|member| member.key == own).map(rank) else {
        return Vec::new();
    };
    let mut older: Vec<&Member> = members
        .iter()
        .filter(|member| rank(member) < mine && !member.numbers.serves)
        .collect();
    older.sort_by_key(|member| rank(member));
    older
}

/// The limits in numbers; `None` for no limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Most {
    /// The maximum number of watched directories.
    pub(crate) watches: Option<u64>,
    /// The maximum private memory, in bytes.
    pub(crate) memory: Option<u64>,
}

/// How much has to be freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Excess {
    watches: u64,
    memory: u64,
    instances: u64,
}

impl Excess {
    fn of(members: &[Member], most: Most, lacks_instance: bool) -> Self {
        let sum = |of: fn(&Numbers) -> u64| -> u64 {
            let all = members.iter().map(|member| of(&member.numbers));
            all.fold(0, u64::saturating_add)
        };
        let over = |used: u64, most: Option<u64>| match most {
            Some(most) if used > most => used.saturating_sub(most - most / SPARE),
            _ => 0,
        };
        Self {
            watches: over(sum(|numbers| numbers.watches), most.watches),
            memory: over(sum(|numbers| numbers.memory), most.memory),
            instances: match lacks_instance {
                true => 1.max(members.len() as u64 / SPARE_INSTANCES),
                false => 0,
            },
        }
    }

    fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Returns whether the end of this daemon frees something of it.
    fn shrinks_with(self, numbers: &Numbers) -> bool {
        self.watches.min(numbers.watches) > 0
            || self.memory.min(numbers.memory) > 0
            || self.instances.min(numbers.instances) > 0
    }

    fn shrink(&mut self, numbers: &Numbers) {
        self.watches = self.watches.saturating_sub(numbers.watches);
        self.memory = self.memory.saturating_sub(numbers.memory);
        self.instances = self.instances.saturating_sub(numbers.instances);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn member(key: &str, used: Millis, watches: u64) -> Member {
        Member {
            key: key.to_owned(),
            numbers: Numbers {
                pid: 1,
                used,
                watches,
                memory: 1_000 * watches,
                instances: u64::from(watches > 0),
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

    /// Returns how many of the daemons that would be asked have to end.
    fn ends(own: &str, members: &[Member], most: Most, lacks: bool) -> usize {
        let mut excess = Excess::of(members, most, lacks);
        let mut ended = 0;
        for member in order(own, members) {
            if !excess.is_none() && excess.shrinks_with(&member.numbers) {
                excess.shrink(&member.numbers);
                ended += 1;
            }
        }
        ended
    }

    #[test]
    fn fleet2_those_unused_for_longest_end_first() {
        let mut all = vec![
            member("c", 30, 10),
            member("a", 10, 10),
            member("own", 40, 10),
            member("b", 20, 10),
        ];
        assert_eq!(asked("own", &all), "a b c");
        let most = |watches| Most {
            watches: Some(watches),
            memory: None,
        };
        assert_eq!(ends("own", &all, most(40), false), 0);
        // 5 of 39 are kept free, so that the next start ends no further one.
        assert_eq!(ends("own", &all, most(39), false), 1);
        assert_eq!(ends("own", &all, most(24), false), 2);
        assert_eq!(ends("own", &all, most(1), false), 3, "itself never");
        assert_eq!(ends("own", &all, Most::default(), false), 0);
        let memory = Most {
            watches: None,
            memory: Some(39_999),
        };
        assert_eq!(ends("own", &all, memory, false), 1);
        assert_eq!(ends("own", &all, Most::default(), true), 1, "an instance");
        // One without an instance of its own has none to give.
        all[1].numbers.instances = 0;
        assert_eq!(asked("own", &all), "a b c");
        assert_eq!(ends("own", &all, Most::default(), true), 1);
        assert!(!Excess::of(&all, Most::default(), true).shrinks_with(&all[1].numbers));
    }

    #[test]
    fn fleet3_one_that_serves_is_not_asked() {
        let mut all = vec![member("a", 10, 9), member("b", 20, 9), member("own", 30, 9)];
        all[0].numbers.serves = true;
        assert_eq!(asked("own", &all), "b");
    }

    /// However the times of use are, even equal, of two daemons at most one may
    /// ask the other.
    #[test]
    fn fleet3_two_never_end_each_other() {
        for (one, other) in [(1, 1), (1, 2), (2, 1)] {
            let all = vec![member("a", one, 9), member("b", other, 9)];
            let ask = [asked("a", &all), asked("b", &all)];
            assert_eq!(ask.iter().filter(|asked| !asked.is_empty()).count(), 1);
        }
        assert_eq!(asked("unknown", &[member("a", 1, 9)]), "");
    }
}
