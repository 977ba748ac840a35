//! Runs that have failed once, shrunk (`tests/known/property.txt`). Each is
//! named after what it showed. Each is audited as it is and, unless its name
//! says otherwise, with each step brought to rest. Then the versions that it
//! recorded are compared.

use touchmark_engine::{Fact, VersionFact};

use crate::content::content;
use crate::op::Op;
use crate::script::Script;
use crate::world::World;
use crate::{chaos, runs};

#[test]
fn they_hold() {
    let all = runs::known::<Script>(include_str!("../known/property.txt"));
    assert!(all.len() > 20);
    for run in all {
        let name = run.name;
        chaos::run(&run.script).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        let mut script = run.script;
        if !name.ends_with("(as it is)") {
            script = script.at_rest();
            chaos::run(&script).unwrap_or_else(|why| panic!("{name}, at rest: {why:?}"));
        }
        assert_eq!(recorded(&script), run.result, "{name}");
    }
}

/// Plays a run as it is. Returns the versions that it recorded, with their
/// corrections.
fn recorded(script: &Script) -> Vec<String> {
    let mut world = World::new(script.tick, &script.initial);
    let end = [Op::Pass(1_000), Op::Drain];
    for op in script.ops.iter().chain(&end) {
        world.step(op);
    }
    let versions = world
        .records
        .iter()
        .filter_map(|record| match &record.fact {
            Fact::Version(version) => Some(version),
            _ => None,
        });
    versions.map(told).collect()
}

fn told(version: &VersionFact) -> String {
    let known = version.held.hash.map(|hash| {
        let mut all = 0..100;
        all.find(|id| crate::content::hash(&content(*id)) == hash)
    });
    let what = match known {
        Some(Some(id)) => id.to_string(),
        Some(None) => "something".to_owned(),
        None => "nothing".to_owned(),
    };
    let who = match &version.author.session {
        Some(session) => session.as_str().to_owned(),
        None => format!("{:?}", version.author.kind),
    };
    let unseen = if version.unobserved {
        ", unobserved"
    } else {
        ""
    };
    let amends = if version.amends.is_some() { " is" } else { "" };
    let path = version.path.to_string_lossy();
    format!(
        "{path}{amends} {what} by {who}, {:?}{unseen}",
        version.evidence
    )
}
