//! Measures one status as the number of tracked files grows.

use std::time::Duration;

use anyhow::{Result, ensure};
use touchmark_proto::State;

use super::Size;
use crate::goal::{self, Goal};
use crate::part::Part;
use crate::peers::watchman::files_of;
use crate::plot::{Kind, Plot, Series, Up, Who};
use crate::samples::Samples;
use crate::table::Row;
use crate::units;
use crate::world::{state_of, status_of};
use crate::{Options, progress};

/// The number of queries of one workspace before the next one's turn.
const BLOCK: usize = 100;

/// The kinds of queries.
const WAYS: [(&str, Who); 3] = [
    ("one status, no fence", Who::TouchmarkToo),
    ("one status, fence", Who::Touchmark),
    ("watchman, synced since", Who::Watchman),
];

pub(super) fn part(options: &Options, sizes: &mut [Size]) -> Result<Part> {
    let mut measured: Vec<[Samples; 3]> = vec![Default::default(); sizes.len()];
    progress("one status, as tracked files grow");
    for round in 0..options.pick(20, 100) {
        for (size, samples) in sizes.iter_mut().zip(&mut measured) {
            let [unfenced, fenced, watchman] = samples;
            for n in 0..BLOCK {
                // A different file each time, over all directories.
                let n = (round * BLOCK + n) * 7 % size.count();
                let name = size.world.tree.names.get(n).map_or("", String::as_str);
                for (samples, sync) in [(&mut *unfenced, false), (&mut *fenced, true)] {
                    let query = status_of(&size.session, name, sync);
                    let file = samples.time(|| state_of(&size.client, query))?;
                    ensure!(file.state == State::Fresh, "an unchanged file is not fresh");
                }
            }
            let Some(watched) = &mut size.watchman else {
                continue;
            };
            for _ in 0..BLOCK / 5 {
                let changes = watchman.time(|| watched.since(&size.world.tree))?;
                ensure!(files_of(&changes) == 0, "watchman tells of no change");
            }
        }
    }
    let counts: Vec<usize> = sizes.iter().map(Size::count).collect();
    Ok(tell(options, &counts, &measured))
}

fn tell(options: &Options, counts: &[usize], measured: &[[Samples; 3]]) -> Part {
    let mut part = Part::new(
        "As the workspace grows",
        "One file's status in workspaces of several sizes, in turns. Every answer was right. \
         Watchman watches the same trees.",
    );
    let of = |way: usize, samples: &[Samples; 3]| samples.get(way).cloned().unwrap_or_default();
    let mut medians: Vec<Vec<Duration>> = Vec::new();
    for (way, (name, _)) in WAYS.iter().enumerate() {
        let all: Vec<Samples> = measured.iter().map(|samples| of(way, samples)).collect();
        let least = all.first().map(Samples::p50).unwrap_or_default();
        for (count, samples) in counts.iter().zip(&all) {
            if samples.count() > 0 {
                let what = format!("{name}, {} tracked", units::count(*count));
                let row = Row::of(what, samples);
                part.rows
                    .push(row.beside("the smallest", samples.p50(), least));
            }
        }
        medians.push(all.iter().map(Samples::p50).collect());
    }
    part.rows.extend(options.peers.absent_watchman());
    part.goals.extend(goal(counts, &medians));
    let series = WAYS
        .iter()
        .zip(&medians)
        .map(|((name, who), medians)| Series {
            name: (*name).into(),
            who: *who,
            points: counts
                .iter()
                .zip(medians)
                .filter(|(_, median)| !median.is_zero())
                .map(|(count, median)| (*count as f64, goal::micros(*median)))
                .collect(),
        });
    part.plots.push(Plot {
        name: "growth",
        title: "One question as tracked files grow".into(),
        kind: Kind::Lines {
            across: "tracked files",
            up: Up::Time,
            series: series.collect(),
        },
    });
    part
}

/// Returns the goal that compares the largest workspace with the smallest.
fn goal(counts: &[usize], medians: &[Vec<Duration>]) -> Option<Goal> {
    let [unfenced, fenced, _] = medians else {
        return None;
    };
    let (least, most) = (counts.first()?, counts.last()?);
    let grown = |medians: &[Duration]| goal::times(*medians.last()?, *medians.first()?);
    let goal = Goal::new(
        "one status as tracked files grow",
        format!(
            "{} -> {}",
            units::duration(*fenced.first()?),
            units::duration(*fenced.last()?)
        ),
    );
    Some(
        goal.beside("from", units::count(*least))
            .beside("to", units::count(*most))
            .at_most(1.2, "x without fence", grown(unfenced))
            .at_most(1.2, "x with fence", grown(fenced)),
    )
}
