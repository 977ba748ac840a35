//! The scenarios of tests/scenarios.md, played on the engine alone
//! (`tests/known/scenarios.txt`). Each has a known truth: what each
//! `modified/take` reports. Each is played once with every step brought to rest,
//! and once with nothing delivered before the request.

use touchmark_proto::Reply;

use crate::audit::Audit;
use crate::op::{Ask, Op};
use crate::runs;
use crate::script::Script;
use crate::world::{Outcome, Seen, World};

#[test]
fn each_reports_what_is_true() {
    let all = runs::known::<Script>(include_str!("../known/scenarios.txt"));
    assert!(all.len() > 30);
    for run in all {
        for at_rest in [true, false] {
            let told = play(&run.script, at_rest);
            assert_eq!(told, run.result, "{}, at rest: {at_rest}", run.name);
        }
    }
}

/// Plays the steps. Returns what each `modified/take` reported.
fn play(script: &Script, at_rest: bool) -> Vec<String> {
    let mut world = World::new(script.tick, &script.initial);
    let mut audit = Audit::default();
    let mut all = Vec::new();
    let mut go = |world: &mut World, op: &Op| {
        world.step(op);
        audit.look(world).unwrap();
        for one in std::mem::take(&mut world.seen) {
            if let Seen::Answered {
                outcome: Outcome::Reply(Ok(answer)),
                ..
            } = one
                && let Reply::ModifiedTake(taken) = answer.reply
            {
                let told = taken.changes.iter().map(|change| {
                    let what = change.lost.as_ref().map_or("changed", |_| "lost");
                    format!("{} {what}", change.path.to_string_lossy())
                });
                let told: Vec<String> = told.collect();
                all.push(match told.is_empty() {
                    true => "nothing".to_owned(),
                    false => told.join(", "),
                });
            }
        }
    };
    for op in &script.ops {
        go(&mut world, op);
        // The agent waits for its answers. Everything else may stay pending.
        let settles = matches!(
            op,
            Op::Ask(asking) if matches!(asking.ask, Ask::Read { .. } | Ask::Take { .. })
        );
        if at_rest || settles {
            go(&mut world, &Op::Drain);
        }
    }
    go(&mut world, &Op::Drain);
    all
}
