//! The encoding of records.
//!
//! A record is its kind, its sequence number, and fields of fixed size; texts
//! have their length before them. Everything is little-endian.

use crate::marks::{
    Before, Chance, EVENTS, GAPS, Identity, Mark, OPERATIONS, Process, ProcessId, Record, Refusal,
    Stored,
};

impl Record {
    /// Appends the encoded record to `out`.
    #[cfg(target_os = "linux")]
    pub(crate) fn encode(&self, seq: u64, out: &mut Vec<u8>) {
        let mut number = |bytes: &[u8]| out.extend_from_slice(bytes);
        match self {
            Self::Process(process) => {
                number(&[1]);
                number(&seq.to_le_bytes());
                number(&process.process.pid.to_le_bytes());
                number(&process.process.started.to_le_bytes());
                number(&process.parent.to_le_bytes());
                text(&process.program, out);
                text(&process.command_line, out);
            }
            Self::Mark(mark) => {
                number(&[2]);
                number(&seq.to_le_bytes());
                number(&mark.realtime.to_le_bytes());
                number(&mark.boottime.to_le_bytes());
                number(&mark.process.pid.to_le_bytes());
                number(&mark.process.started.to_le_bytes());
                let before = mark.before.unwrap_or_default();
                let flags = [
                    mark.object.is_some(),
                    mark.before.is_some(),
                    before.stored.is_some(),
                    mark.is_watched,
                ];
                let flags = flags.iter().fold(0, |all, flag| all << 1 | u8::from(*flag));
                number(&[mark.operation as u8, mark.chance as u8, flags]);
                identity(&mark.directory, out);
                identity(&mark.object.unwrap_or_default(), out);
                for part in [before.size, before.changed, before.modified] {
                    out.extend_from_slice(&part.to_le_bytes());
                }
                let stored = before.stored.unwrap_or_default();
                for part in [stored.at, stored.sum] {
                    out.extend_from_slice(&part.to_le_bytes());
                }
                text(&mark.path, out);
                text(&mark.name, out);
            }
            Self::Gap { why, pid, calls } => {
                number(&[3]);
                number(&seq.to_le_bytes());
                number(&[*why as u8]);
                number(&pid.to_le_bytes());
                number(&calls.to_le_bytes());
            }
            Self::Ended => {
                number(&[4]);
                number(&seq.to_le_bytes());
            }
            Self::Holders { holders, target } => {
                number(&[5]);
                number(&seq.to_le_bytes());
                number(&holders[0].to_le_bytes());
                number(&holders[1].to_le_bytes());
                number(&target.pid.to_le_bytes());
                number(&target.started.to_le_bytes());
            }
            Self::Inherited { object, path } => {
                number(&[6]);
                number(&seq.to_le_bytes());
                identity(object, out);
                text(path, out);
            }
            Self::Refused(why) => {
                number(&[7]);
                number(&seq.to_le_bytes());
                number(&[*why as u8]);
            }
            Self::Connected { process, address } => {
                number(&[8]);
                number(&seq.to_le_bytes());
                number(&process.pid.to_le_bytes());
                number(&process.started.to_le_bytes());
                text(address, out);
            }
            Self::Happened {
                realtime,
                path,
                events,
            } => {
                number(&[9]);
                number(&seq.to_le_bytes());
                number(&realtime.to_le_bytes());
                text(path, out);
                let most = events.len().min(usize::from(u16::MAX));
                out.extend_from_slice(&(most as u16).to_le_bytes());
                for (event, name) in &events[..most] {
                    out.push(*event as u8);
                    text(name, out);
                }
            }
            Self::Missed => {
                number(&[10]);
                number(&seq.to_le_bytes());
            }
        }
    }

    /// Returns the record and its sequence number; `None` if the bytes are no
    /// record, or more than one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, Self)> {
        let mut input = Input(bytes);
        let [kind] = input.take()?;
        let seq = input.u64()?;
        let record = match kind {
            1 => Self::Process(Process {
                process: input.process()?,
                parent: input.u32()?,
                program: input.text()?,
                command_line: input.text()?,
            }),
            2 => {
                let (realtime, boottime) = (input.u64()?, input.u64()?);
                let process = input.process()?;
                let [operation, chance, flags] = input.take()?;
                let operations = OPERATIONS.into_iter();
                let operation = { operations }.find(|one| *one as u8 == operation)?;
                let chances = [Chance::Good, Chance::IfNew, Chance::Poor];
                let has = |bit: u8| flags & bit != 0;
                let (directory, object) = (input.identity()?, input.identity()?);
                let mut before = Before {
                    size: input.u64()?,
                    changed: input.u64()?,
                    modified: input.u64()?,
                    stored: None,
                };
                let (at, sum) = (input.u64()?, input.u64()?);
                before.stored = has(2).then_some(Stored { at, sum });
                Self::Mark(Mark {
                    realtime,
                    boottime,
                    process,
                    operation,
                    directory,
                    path: input.text()?,
                    name: input.text()?,
                    object: has(8).then_some(object),
                    chance: { chances.into_iter() }.find(|one| *one as u8 == chance)?,
                    before: has(4).then_some(before),
                    is_watched: has(1),
                })
            }
            3 => {
                let [why] = input.take()?;
                Self::Gap {
                    why: GAPS.into_iter().find(|gap| *gap as u8 == why)?,
                    pid: input.u32()?,
                    calls: input.u64()?,
                }
            }
            4 => Self::Ended,
            5 => Self::Holders {
                holders: [input.u32()?, input.u32()?],
                target: input.process()?,
            },
            6 => Self::Inherited {
                object: input.identity()?,
                path: input.text()?,
            },
            7 => {
                let [why] = input.take()?;
                Self::Refused(Refusal::from_number(why)?)
            }
            8 => Self::Connected {
                process: input.process()?,
                address: input.text()?,
            },
            9 => {
                let (realtime, path) = (input.u64()?, input.text()?);
                let mut events = Vec::new();
                for _ in 0..input.take().map(u16::from_le_bytes)? {
                    let [event] = input.take()?;
                    let event = { EVENTS.into_iter() }.find(|one| *one as u8 == event)?;
                    events.push((event, input.text()?));
                }
                Self::Happened {
                    realtime,
                    path,
                    events,
                }
            }
            10 => Self::Missed,
            _ => return None,
        };
        input.0.is_empty().then_some((seq, record))
    }
}

#[cfg(target_os = "linux")]
fn text(text: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&text[..usize::from(length)]);
}

#[cfg(target_os = "linux")]
fn identity(identity: &Identity, out: &mut Vec<u8>) {
    out.extend_from_slice(&identity.device.to_le_bytes());
    out.extend_from_slice(&identity.inode.to_le_bytes());
    out.extend_from_slice(&identity.born.to_le_bytes());
    out.extend_from_slice(&identity.mode.to_le_bytes());
}

/// The bytes of a record that are not decoded yet.
struct Input<'b>(&'b [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, after) = self.0.split_first_chunk::<N>()?;
        self.0 = after;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn process(&mut self) -> Option<ProcessId> {
        Some(ProcessId {
            pid: self.u32()?,
            started: self.u64()?,
        })
    }

    fn identity(&mut self) -> Option<Identity> {
        Some(Identity {
            device: self.u64()?,
            inode: self.u64()?,
            born: self.u64()?,
            mode: self.take().map(u16::from_le_bytes)?,
        })
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let length = self.take().map(u16::from_le_bytes)?;
        let (text, after) = self.0.split_at_checked(usize::from(length))?;
        self.0 = after;
        Some(text.to_owned())
    }
}
