//! How long single requests take, alternating with the floors.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use touchmark_client::blocking::Client;
use touchmark_client::hash_of;
use touchmark_proto::changes::{Ack, ModifiedTake};
use touchmark_proto::daemon::Ping;
use touchmark_proto::edits::EditMark;
use touchmark_proto::{AuthorKind, HashOrAbsent, SessionId, State};

use crate::floor::{Echo, Pinger};
use crate::samples::Samples;
use crate::table::Row;
use crate::world::{World, content, read_of, session, state_of, status_of};
use crate::{Options, progress};

/// Files of the workspace; each has a part of its own in the measurement.
const FILES: usize = 100;
const WRITTEN: usize = 0;
const TAKEN: usize = 1;
const MARKED: usize = 2;
const FLOOR: usize = 3;
const FIRST_READ: usize = 10;

/// Everything a repetition needs.
struct Stage<'a> {
    world: &'a World,
    client: Client,
    session: SessionId,
    pinger: Pinger,
    /// Numbers contents, so that each write changes its file.
    written: u64,
}

/// One thing that is measured, and how.
struct Measure {
    what: &'static str,
    goal: &'static str,
    floor: Floor,
    repetition: fn(&mut Stage<'_>, &mut Samples) -> Result<()>,
    /// Repetitions of a round.
    block: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Floor {
    /// It is one.
    Itself,
    Echo,
    Write,
}

const ECHO: &str = "socket ping-pong, 64 bytes";
const WRITE: &str = "write 1 KiB, ping-pong, read and hash";

const MEASURES: &[Measure] = &[
    Measure {
        what: ECHO,
        goal: "",
        floor: Floor::Itself,
        repetition: echo,
        block: 400,
    },
    Measure {
        what: WRITE,
        goal: "",
        floor: Floor::Itself,
        repetition: write_floor,
        block: 100,
    },
    Measure {
        what: "ping",
        goal: "",
        floor: Floor::Echo,
        repetition: ping,
        block: 200,
    },
    Measure {
        what: "file/status, no fence",
        goal: "<= 1.6 x",
        floor: Floor::Echo,
        repetition: status_unfenced,
        block: 200,
    },
    Measure {
        what: "file/status, fence",
        goal: "<= 5 x",
        floor: Floor::Echo,
        repetition: status_fenced,
        block: 200,
    },
    Measure {
        what: "file/read, committed, no fence",
        goal: "<= 4 x, p99.9 < 1 ms",
        floor: Floor::Echo,
        repetition: read_unfenced,
        block: 100,
    },
    Measure {
        what: "file/read, committed, fence",
        goal: "",
        floor: Floor::Echo,
        repetition: read_fenced,
        block: 100,
    },
    Measure {
        what: "write 1 KiB, then synced status",
        goal: "<= 45 us",
        floor: Floor::Write,
        repetition: write_status,
        block: 100,
    },
    Measure {
        what: "write 1 KiB, then modified/take",
        goal: "",
        floor: Floor::Write,
        repetition: write_take,
        block: 100,
    },
    Measure {
        what: "edit/mark, write 1 KiB, synced status",
        goal: "",
        floor: Floor::Write,
        repetition: mark_write_status,
        block: 100,
    },
];

pub(crate) fn rows(options: &Options) -> Result<Vec<Row>> {
    let chosen: Vec<&Measure> = MEASURES
        .iter()
        .filter(|measure| measure.floor == Floor::Itself || options.wants(measure.what))
        .collect();
    if chosen.iter().all(|measure| measure.floor == Floor::Itself) {
        return Ok(Vec::new());
    }
    let world = World::new(&options.binary, FILES)?;
    let (daemon, _) = world.start()?;
    let echo = Echo::start(world.scratch())?;
    let client = daemon.connect()?;
    let session = session("latency")?;
    world.read(&client, &session, &world.names)?;
    let mut stage = Stage {
        world: &world,
        client,
        session,
        pinger: echo.connect()?,
        written: 1_000_000,
    };
    let mut samples = vec![Samples::default(); chosen.len()];
    let rounds = options.pick(20, 100);
    // The first round warms up what is measured, and does not count.
    for round in 0..=rounds {
        progress(&format!("latency, round {round} of {rounds}"));
        for (measure, samples) in chosen.iter().zip(&mut samples) {
            let mut unused = Samples::default();
            let kept = if round == 0 { &mut unused } else { samples };
            for _ in 0..measure.block {
                (measure.repetition)(&mut stage, kept)?;
            }
        }
    }
    let floor_of = |what: &str| {
        let found = chosen.iter().zip(&samples).find(|(m, _)| m.what == what);
        found.map_or(Duration::ZERO, |(_, samples)| samples.p50())
    };
    Ok(chosen
        .iter()
        .zip(&samples)
        .map(|(measure, samples)| {
            let row = Row::of(measure.what, samples).goal(measure.goal);
            match measure.floor {
                Floor::Itself => row,
                Floor::Echo => row.over("ping-pong", samples.p50(), floor_of(ECHO)),
                Floor::Write => row.over("write", samples.p50(), floor_of(WRITE)),
            }
        })
        .collect())
}

impl Stage<'_> {
    fn next_content(&mut self) -> Vec<u8> {
        self.written += 1;
        content(self.written)
    }

    fn name(&self, file: usize) -> &str {
        self.world.names.get(file).map_or("", String::as_str)
    }

    fn path(&self, file: usize) -> &Path {
        self.world.files.get(file).unwrap_or(&self.world.root)
    }

    /// Writes in place, as many editors and every shell do.
    fn write(&self, file: usize, bytes: &[u8]) -> Result<()> {
        let open = fs::OpenOptions::new().write(true).open(self.path(file))?;
        open.write_all_at(bytes, 0)?;
        Ok(())
    }

    fn any_read_file(&mut self) -> String {
        self.written += 1;
        let span = FILES - FIRST_READ;
        let file = FIRST_READ + usize::try_from(self.written).unwrap_or(0) % span;
        self.name(file).to_owned()
    }
}

fn echo(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    samples.time(|| stage.pinger.ping())
}

fn write_floor(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    let bytes = stage.next_content();
    samples.time(|| {
        stage.write(FLOOR, &bytes)?;
        stage.pinger.ping()?;
        hash_of(&fs::read(stage.path(FLOOR))?);
        Ok(())
    })
}

fn ping(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    samples.time(|| stage.client.call(Ping {}))?;
    Ok(())
}

fn status_unfenced(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    status(stage, samples, false)
}

fn status_fenced(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    status(stage, samples, true)
}

fn status(stage: &mut Stage<'_>, samples: &mut Samples, sync: bool) -> Result<()> {
    let name = stage.any_read_file();
    let query = status_of(&stage.session, &name, sync);
    let file = samples.time(|| state_of(&stage.client, query))?;
    ensure!(file.state == State::Fresh, "an unchanged file is not fresh");
    Ok(())
}

fn read_unfenced(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    read(stage, samples, false)
}

fn read_fenced(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    read(stage, samples, true)
}

fn read(stage: &mut Stage<'_>, samples: &mut Samples, sync: bool) -> Result<()> {
    let name = stage.any_read_file();
    let request = read_of(&stage.session, &name, sync);
    samples.time(|| stage.client.call(request))?;
    Ok(())
}

fn write_status(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    let bytes = stage.next_content();
    let hash = hash_of(&bytes);
    let query = status_of(&stage.session, stage.name(WRITTEN), true);
    let file = samples.time(|| {
        stage.write(WRITTEN, &bytes)?;
        state_of(&stage.client, query)
    })?;
    ensure!(file.hash == Some(hash), "a write was missed (SYNC-1)");
    ensure!(
        by(file.changed_by.as_deref(), AuthorKind::User),
        "a user's write is not the user's"
    );
    Ok(())
}

fn write_take(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    let bytes = stage.next_content();
    let hash = hash_of(&bytes);
    let take = ModifiedTake {
        session: stage.session.clone(),
        peek: false,
        ack: Ack::Implicit,
        paths: Some(vec![stage.name(TAKEN).into()]),
        sync: None,
        verify: None,
        limit: None,
    };
    let taken = samples.time(|| -> Result<_> {
        stage.write(TAKEN, &bytes)?;
        Ok(stage.client.call(take)?)
    })?;
    ensure!(
        matches!(&*taken.changes, [change] if change.hash == Some(hash)
            && by(Some(&change.changed_by), AuthorKind::User)),
        "a user's write was not handed out"
    );
    Ok(())
}

fn mark_write_status(stage: &mut Stage<'_>, samples: &mut Samples) -> Result<()> {
    let bytes = stage.next_content();
    let hash = hash_of(&bytes);
    let mark = EditMark {
        session: stage.session.clone(),
        path: stage.name(MARKED).into(),
        expect: Some(HashOrAbsent::Hash(hash)),
        require_read: false,
        bind: false,
        ttl_ms: None,
        step: None,
    };
    let query = status_of(&stage.session, stage.name(MARKED), true);
    let file = samples.time(|| {
        stage.client.call(mark)?;
        stage.write(MARKED, &bytes)?;
        state_of(&stage.client, query)
    })?;
    ensure!(
        file.hash == Some(hash) && file.state == State::Fresh,
        "a declared write is not the agent's"
    );
    Ok(())
}

fn by(authors: Option<&[touchmark_proto::Author]>, kind: AuthorKind) -> bool {
    authors.is_some_and(|authors| authors.iter().any(|author| author.kind == kind))
}
