//! Measures the search for secrets, which each content passes before it is
//! stored.

use std::hint::black_box;

use anyhow::Result;
use sha2::{Digest as _, Sha256};
use touchmark_engine::text::tokens;

use crate::goal::Goal;
use crate::part::Part;
use crate::samples::Samples;
use crate::table::Row;
use crate::{Options, progress, units};

const SIZE: usize = 1 << 20;

/// Ordinary text: this bench's own code and page.
const TEXT: &str = concat!(
    include_str!("main.rs"),
    include_str!("storm.rs"),
    include_str!("world.rs"),
);

pub(crate) fn part(options: &Options) -> Result<Part> {
    progress("the search for secrets");
    let mut part = Part::new(
        "The search for secrets",
        "1 MiB of source code without a secret, in memory. The floor is the content's SHA-256, \
         which is also computed before a content is stored.",
    );
    let text: Vec<u8> = TEXT.bytes().cycle().take(SIZE).collect();
    let [mut hash, mut search] = [Samples::default(), Samples::default()];
    for _ in 0..options.pick(20, 200) {
        hash.time(|| black_box(Sha256::digest(black_box(&text))));
        search.time(|| black_box(tokens::any(black_box(&text))));
    }
    let (took, floor) = (search.p50(), hash.p50());
    part.rows.push(Row::of("SHA-256 of 1 MiB", &hash));
    part.rows
        .push(Row::of("secrets in 1 MiB", &search).beside("SHA-256", took, floor));
    part.goals.push(
        Goal::new("secrets in 1 MiB", units::duration(took))
            .beside("SHA-256", units::duration(floor))
            .at_most(15.0, "x SHA-256", took.as_secs_f64() / floor.as_secs_f64()),
    );
    Ok(part)
}
