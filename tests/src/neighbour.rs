//! A well-behaved client next to a hostile one. It works all the time, and
//! every answer that it gets must be right.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use crate::{Session, World, sha256, user};

/// Runs something hostile while a neighbour works. The neighbour must complete
/// rounds before, during and after it.
pub fn beside_a_neighbour<T>(world: &World, hostile: impl FnOnce() -> T) -> T {
    let (done, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let mut agent = world.session("neighbour");
            while !done.load(Ordering::Relaxed) {
                round(world, &mut agent, rounds.load(Ordering::Relaxed));
                rounds.fetch_add(1, Ordering::Relaxed);
            }
            round(world, &mut agent, rounds.load(Ordering::Relaxed));
        });
        let end = End(&done);
        while rounds.load(Ordering::Relaxed) == 0 && !neighbour.is_finished() {
            user::pause(1);
        }
        let told = hostile();
        drop(end);
        if let Err(panic) = neighbour.join() {
            std::panic::resume_unwind(panic);
        }
        println!(
            "{} rounds of the neighbour's",
            rounds.load(Ordering::Relaxed)
        );
        told
    })
}

/// Sets a flag when it is dropped, also by a panic.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Performs one round: a read, a user's change, a refused edit, a read, an
/// edit.
fn round(world: &World, agent: &mut Session, number: usize) {
    const NAME: &str = "neighbour/a.txt";
    let own = |what: &str| format!("{what} {number}\n");
    world.file(NAME, own("first"));
    agent.read(NAME);
    assert_eq!(agent.state(NAME), "fresh");
    agent.take();
    user::write(&world.path(NAME), &own("the user's"));
    assert_eq!(agent.state(NAME), "stale", "round {number}");
    agent.refused(
        "edit/begin",
        json!({"files": [{"path": NAME, "expect": sha256("x")}]}),
        "stale",
    );
    let taken = agent.take();
    assert_eq!(taken.len(), 1, "round {number}: {taken:?}");
    assert_eq!(taken[0]["hash"], sha256(own("the user's")), "{taken:?}");
    // The change is the session's if its window covers everything (ATTR-6), or
    // a formatter's after the neighbour's last edit (ATTR-17).
    let evidence = taken[0]["evidence"].as_array().expect("evidence");
    if !evidence.contains(&json!("command")) {
        assert_eq!(crate::authors(&taken[0]), ["user"], "{taken:?}");
    }
    agent.read(NAME);
    agent.mark(NAME, Some(&own("the agent's")));
    user::write(&world.path(NAME), &own("the agent's"));
    assert_eq!(agent.taken(), Vec::<String>::new(), "round {number}");
    assert_eq!(agent.state(NAME), "fresh", "round {number}");
}
