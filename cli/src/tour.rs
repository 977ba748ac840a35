//! The tour: what touchmark is for, shown with a real daemon in a temporary
//! workspace. Every claim it prints is checked against the daemon's answer.

mod narrator;
mod story;
mod world;

pub(crate) use narrator::Pace;

use crate::output::Outcome;

/// Runs the tour.
pub(crate) fn run(pace: Pace) -> Outcome {
    let world = world::World::new()?;
    let told = story::tell(&world, &mut narrator::Narrator::new(pace));
    // The daemon is ended and the directory removed whatever the story's end.
    let ended = world.end();
    told.and(ended)
}
