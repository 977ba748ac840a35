//! The pages that are read from top to bottom run verbatim.

use std::path::Path;

use touchmark_tests::snippets::run_page;
use touchmark_tests::world::World;

/// Returns the path of a page in `docs`.
fn page(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name)
}

#[test]
fn the_tutorial_runs() {
    let mut world = World::asleep();
    for who in ["AUTHOR", "COMMITTER"] {
        world.set_env(&format!("GIT_{who}_NAME"), "you");
        world.set_env(&format!("GIT_{who}_EMAIL"), "you@example.com");
    }
    // By its directory Claude Code is found.
    std::fs::create_dir(world.outside().join(".claude")).expect("a directory");
    run_page(&world, &page("tutorial.md"));
}

#[test]
fn the_answers_of_troubleshooting_work() {
    let world = World::asleep();
    // By its directory Claude Code is found.
    std::fs::create_dir(world.outside().join(".claude")).expect("a directory");
    run_page(&world, &page("troubleshooting.md"));
}
